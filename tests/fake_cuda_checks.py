"""CUDA arrays, without a GPU: run by test_cuda_arrays.py on the driver of fake_cuda.py.

Whatever is not ordered by events happens there in the wrong order.
"""

import collections
import contextlib
import ctypes
import itertools
import math
import mmap
import threading
from typing import ClassVar

import numpy as np
import pytest
from dlpack_abi import (
    CUDA,
    CUDA_MANAGED,
    READ_ONLY,
    Allocator,
    ExchangeApi,
    FromPyObject,
    Legacy,
    Producer,
    Tensor,
    ToPyObject,
    Versioned,
    api,
    consume,
    delete,
    grows,
)
from fake_cuda import Driver

import gpumem
from gpumem import _core

NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE
LEGACY, MINE, THEIRS, OTHER = 1, 0x100, 0x200, 0x300
BorrowTensor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
CurrentWorkStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


@pytest.fixture(params=["youngest first", "oldest first"])
def driver(request):
    fake = Driver()
    fake.oldest_first(request.param == "oldest first")
    fake.run()
    assert _core._kept() == 0
    fake.said()
    memories = fake.memories
    yield fake
    fake.run()
    lent.clear()
    assert _core._kept() == 0, "an array was not given back"
    fake.run()
    assert fake.contexts == 0, "the thread's current context is another"
    assert fake.memories == memories, "device memory was not given back"


def numbers(*shape, dtype="f4"):
    return np.random.default_rng(1).integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1").view(dtype)[..., 0]


class ByDLPack(Producer):
    """An array on a device by __dlpack__ alone, as CuPy's: its library works on `current`."""

    current = THEIRS
    exporting: ClassVar = collections.Counter()  # what was exported keeps its producer alive

    def __init__(self, array, **options):
        super().__init__(array, **{"device": CUDA, **options})
        self.asked = []

    def managed(self):
        ByDLPack.exporting[self] += 1
        return super().managed()

    def delete(self, address):
        super().delete(address)
        ByDLPack.exporting[self] -= 1
        if not ByDLPack.exporting[self]:
            del ByDLPack.exporting[self]

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        if stream != self.current:
            order(self.current, stream)
        return super().__dlpack__()


lent = []  # a library's memory is free in the order of its stream: here, when everything has happened


class Interface:
    """An array on a device by the CUDA array interface alone, as Numba's."""

    def __init__(self, array, **lies):
        self.array, self.lies = array, lies

    @property
    def __cuda_array_interface__(self):
        array = self.array
        plain = {"shape": array.shape, "typestr": array.dtype.str, "data": (array.ctypes.data, False), "version": 3}
        return {**plain, "strides": array.strides, **self.lies}


class Library:
    """A library with an exchange table, as PyTorch: it works on `current`, and its memory is ordered on that stream."""

    def __init__(self, has_stream=True, lends=True):
        self.log, self.current, self.made, self.keep = [], THEIRS, {}, []
        self.functions = (
            Allocator(self.allocator),
            FromPyObject(self.from_py_object),
            ToPyObject(self.to_py_object),
        )
        self.work_stream = CurrentWorkStream(self.current_work_stream)
        self.lend = BorrowTensor(self.dltensor_from_py_object)
        address, lend = (
            ctypes.cast(function, ctypes.c_void_p).value if there else None
            for function, there in ((self.work_stream, has_stream), (self.lend, lends))
        )
        allocator, from_py_object, to_py_object = self.functions
        self.table = ExchangeApi(
            major=1,
            minor=3,
            allocator=allocator,
            from_py_object=from_py_object,
            to_py_object=to_py_object,
            dltensor_from_py_object=lend,
            current_work_stream=address,
        )
        self.capsule = api.PyCapsule_New(ctypes.addressof(self.table), b"dlpack_exchange_api", None)
        self.type = type("Array", (ByDLPack,), {"__dlpack_c_exchange_api__": self.capsule, "library": self})

    def current_work_stream(self, kind, device, out):
        self.log.append(("stream", device))
        out[0] = self.current
        return 0

    def allocator(self, prototype, out, context, set_error):
        wanted = prototype.contents
        place = (wanted.device.type, wanted.device.id)
        self.log.append(("allocator", place))
        shape = tuple(wanted.shape[: wanted.ndim])
        array = np.full((*shape, wanted.dtype.bits // 8), 0xEE, "u1").view(f"V{wanted.dtype.bits // 8}")[..., 0]
        dtype = (wanted.dtype.code, wanted.dtype.bits, wanted.dtype.lanes)
        made = self.type(array, device=place, dtype=dtype)
        managed = made.managed()
        self.made[ctypes.addressof(managed)] = made
        out[0] = ctypes.addressof(managed)
        return 0

    def from_py_object(self, array, out):
        out[0] = ctypes.addressof(array.managed())
        return 0

    def dltensor_from_py_object(self, array, out):
        out[0], array.lent = array.tensor()
        lent.append(array)
        return 0

    def to_py_object(self, managed, out):
        result = self.made.get(managed) or self.wrap(managed)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(result))
        out[0] = id(result)
        return 0

    def wrap(self, managed):
        """What another allocated, with the duty to delete it."""
        tensor = Versioned.from_address(managed).tensor
        wrapped = type(
            "Wrapped", (), {"tensor": tensor, "drop": lambda self: delete(Versioned.from_address(managed))}
        )()
        self.keep.append(wrapped)
        return wrapped

    def array(self, array, **options):
        return self.type(array, **options)


def order(first, later):
    """Makes one stream wait for another, as a library would."""
    library = Driver().library
    event = ctypes.c_void_p()
    library.cuEventCreate(ctypes.byref(event), 0)
    library.cuEventRecord(event, ctypes.c_void_p(first))
    library.cuStreamWaitEvent(ctypes.c_void_p(later), event, 0)
    library.cuEventDestroy(event)


def tensor_of(array, stream=LEGACY):
    """The exported tensor, and what deletes it; its items are ready on `stream`."""
    managed = consume(array.__dlpack__(stream=stream, max_version=(1, 3)))
    return managed.tensor, lambda: delete(managed)


def read(driver, array, stream=OTHER):
    """The bytes of a gpumem.Array as its consumer on `stream` finds them, and nobody else has waited."""
    tensor, drop = tensor_of(array, stream)
    size = array.nbytes
    found = (ctypes.c_char * size)()
    driver.copy(ctypes.addressof(found), tensor.data or 0, size, stream)
    driver.run()
    drop()
    return bytes(found)


def filled(driver, array, stream):
    """Memory whose items come only when the stream gets there."""
    memory = np.zeros_like(array)
    driver.copy(memory.ctypes.data, array.ctypes.data, array.nbytes, stream)
    return memory


# where the work goes


@pytest.mark.parametrize("lends", [True, False])
def test_a_table_s_array_is_moved_on_its_library_s_stream(driver, lends):
    lib, x = Library(lends=lends), numbers(37, 65)
    array = lib.array(filled(driver, x, THEIRS), device=(2, 1))
    driver.said()
    result = gpumem.transpose(array)
    assert [line for line in driver.said() if line != "cuModuleLoadData"] == [f"cuLaunchKernel on {THEIRS} of device 1"]
    assert ("allocator", (2, 1)) in lib.log
    assert array.exported == array.deleted == (0 if lends else 1)  # at once: the memory is ordered on that stream
    assert array.asked == []
    driver.run()
    assert result.array.tobytes() == x.T.tobytes()


def test_the_library_s_stream_is_asked_for_at_each_call(driver):
    lib = Library()
    for lib.current in (THEIRS, OTHER, 0, 2):
        driver.said()
        gpumem.copy(lib.array(numbers(64)))
        assert driver.said()[-1].startswith(f"cuLaunchKernel on {lib.current or LEGACY} ")


def test_what_a_call_asks_of_an_array(driver):
    """Each question costs a call that computes nothing: PyTorch's is_conj and is_neg give the GIL away, too."""
    lib, asked = Library(), []
    gpumem.transpose(lib.array(numbers(6, 4)))  # kernels are loaded

    def ask(self, name):
        asked.append(name)
        return ByDLPack.__getattribute__(self, name)

    curious = type("Array", (lib.type,), {"__getattribute__": ask, "is_neg": lambda self: False})
    array = curious(numbers(6, 4))
    for now in (asked, lib.log):
        now.clear()
    driver.said()
    gpumem.transpose(array)
    # What follows `is_neg` is this library's own.
    assert asked[asked.index("requires_grad") : asked.index("is_neg") + 1] == ["requires_grad", "is_neg"]
    assert not {"is_conj", "__dlpack__", "__dlpack_device__"} & set(asked)
    assert lib.log == [("stream", 0), ("allocator", CUDA)]
    assert driver.said() == [f"cuLaunchKernel on {THEIRS} of device 0"]


@pytest.mark.parametrize(
    "dtype, mark, remedy",
    [
        ("f4", "requires_grad", "detach"),
        ("f4", "is_neg", "resolve_neg"),
        ("i4", "is_neg", "resolve_neg"),
        ("c8", "requires_grad", "detach"),
        ("c8", "is_conj", "resolve_conj"),
        ("c8", "is_neg", "resolve_neg"),
    ],
)
def test_memory_that_is_not_the_whole_array(driver, dtype, mark, remedy):
    lib = Library()
    array = lib.array(numbers(6, 4, dtype=dtype))
    setattr(array, mark, True if mark == "requires_grad" else lambda: True)
    driver.said()
    for options in ({}, {"out": lib.array(numbers(4, 6, dtype=dtype))}):
        with pytest.raises(BufferError, match=rf"{mark} of the array is set.*x\.{remedy}\(\)"):
            gpumem.transpose(array, **options)
    with pytest.raises(BufferError, match=rf"x\.{remedy}\(\)"):
        gpumem.transpose(lib.array(numbers(4, 6, dtype=dtype)), out=array)
    assert driver.said() == []


@pytest.mark.parametrize("stream", [MINE, "protocol"])
def test_another_stream_is_a_detour_from_the_library_s(driver, stream):
    class Stream:
        def __cuda_stream__(self):
            return (0, MINE)

    lib, x = Library(), numbers(33, 70)
    array = lib.array(filled(driver, x, THEIRS))
    driver.said()
    result = gpumem.transpose(array, stream=MINE if stream == MINE else Stream())
    launches = [line for line in driver.said() if "Launch" in line]
    assert launches == [f"cuLaunchKernel on {MINE} of device 0"]
    # The library goes on: it overwrites x and reads the result.
    found = np.zeros(x.T.shape, x.dtype)
    driver.copy(found.ctypes.data, result.array.ctypes.data, found.nbytes, THEIRS)
    driver.fill(array.array.ctypes.data, 0xDB, x.nbytes, THEIRS)
    driver.run()
    assert found.tobytes() == x.T.tobytes()


def test_a_table_without_a_stream_is_asked_by_dlpack(driver):
    lib, x = Library(has_stream=False), numbers(5, 9)
    array = lib.array(filled(driver, x, THEIRS))
    result = gpumem.transpose(array)
    assert array.asked == [LEGACY]
    assert not any(what == "allocator" for what, _ in lib.log)
    driver.run()
    size = int(np.prod(result.tensor.shape[:2])) * 4
    assert ctypes.string_at(result.tensor.data, size) == x.T.tobytes()
    result.drop()


@pytest.mark.parametrize("kind", [Versioned, Legacy])
@pytest.mark.parametrize("stream", [None, LEGACY, 2, MINE])
def test_a_producer_is_told_our_stream(driver, kind, stream):
    x = numbers(40, 30)
    array = ByDLPack(filled(driver, x, THEIRS), kind=kind)
    result = gpumem.transpose(array, stream=stream)
    assert array.asked == [stream or LEGACY]
    assert type(result) is gpumem.Array
    assert (result.shape, result.dtype, result.device) == ((30, 40), "float32", "cuda:0")
    assert result.__dlpack_device__() == (2, 0)
    assert read(driver, result) == x.T.tobytes()


def test_managed_memory_is_its_device_s(driver):
    x = numbers(8, 3)
    result = gpumem.transpose(ByDLPack(filled(driver, x, THEIRS), device=CUDA_MANAGED))
    assert result.__dlpack_device__() == (2, 0)
    assert read(driver, result) == x.T.tobytes()


@pytest.mark.parametrize("theirs", [None, 1, 2, THEIRS])
@pytest.mark.parametrize("stream", [None, MINE])
def test_the_cuda_array_interface(driver, theirs, stream):
    x = numbers(31, 9, dtype="i2")
    ready = theirs or stream or LEGACY
    array = Interface(filled(driver, x, ready), stream=theirs)
    result = gpumem.permute_dims(array, (1, 0), stream=stream)
    assert read(driver, result) == x.T.tobytes()


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_types_of_the_cuda_array_interface(driver, dtype):
    x = numbers(6, 4, dtype=dtype)
    result = gpumem.transpose(Interface(x, strides=None))
    assert result.dtype == np.dtype(dtype).name
    interface = result.__cuda_array_interface__
    assert interface["typestr"] == np.dtype(dtype).str
    assert (interface["shape"], interface["strides"], interface["version"], interface["stream"]) == ((4, 6), None, 3, 1)
    assert read(driver, result) == x.T.tobytes()


@pytest.mark.parametrize(
    "lies, said",
    [
        ({"stream": 0}, "stream 0: "),
        ({"stream": "s"}, "stream 's': "),
        ({"mask": Interface(np.zeros(3))}, "it has a mask"),
        ({"typestr": ">f4"}, "type '>f4'"),
        ({"typestr": "|V4"}, "type '|V4'"),
        ({"typestr": None}, "type None"),
        ({"shape": 7}, "its shape is no tuple"),
        ({"shape": (-1, 3)}, "negative length"),
        ({"strides": (4,)}, "more or fewer strides"),
        ({"strides": (6, 4)}, "no multiple"),
        ({"data": 5}, "its data is no pair"),
        ({"data": (0, False)}, "items without memory"),
    ],
    ids=str,
)
def test_interfaces_that_are_refused(driver, lies, said):
    with pytest.raises((BufferError, ValueError)) as raised:
        gpumem.copy(Interface(numbers(3, 4), **lies))
    assert said in str(raised.value)


def test_the_interface_stands_in_for_dlpack_that_is_wrong(driver):
    """CuPy 14 divides negative strides as if they were unsigned."""

    class Both(ByDLPack):
        @property
        def __cuda_array_interface__(self):
            return Interface(self.array).__cuda_array_interface__

    x = numbers(6, 10)[::-1]
    array = Both(x, strides=(2**62 - 10, 1))
    assert read(driver, gpumem.transpose(array)) == x.T.tobytes()
    assert array.deleted == 1


# who may take memory back, and when


def test_what_no_stream_of_its_own_orders_is_kept_until_the_work_is_done(driver):
    """See cutile-python 88: the exporter went while the launch was still to come."""
    x = numbers(50, 60)
    memory = x.copy()
    array = ByDLPack(memory, on_delete=lambda: memory.view("u1").fill(0xDB))
    result = gpumem.transpose(array)
    assert (array.deleted, _core._kept()) == (0, 1)
    gpumem.copy(np.zeros(3))  # a later call looks, and finds that nothing has happened yet
    assert array.deleted == 0
    driver.run()
    gpumem.copy(np.zeros(3))
    assert array.deleted == 1
    assert read(driver, result) == x.T.tobytes()


def test_the_object_behind_an_interface_is_kept(driver):
    class Watched(Interface):
        gone = 0

        def __del__(self):
            Watched.gone += 1

    result = gpumem.copy(Watched(numbers(100)))
    assert Watched.gone == 0
    driver.run()
    assert _core._kept() == 0
    assert Watched.gone == 1
    del result


def test_deleters_may_call_us_again(driver):
    x = numbers(20)
    arrays = [ByDLPack(x, on_delete=lambda: gpumem.copy(np.zeros(2))) for _ in range(5)]
    for array in arrays:
        gpumem.copy(array)
    driver.run()
    assert _core._kept() == 0
    assert [array.deleted for array in arrays] == [1] * 5


def test_our_array_outlives_its_streams(driver):
    """The stream of the work may be gone: nothing is put on it when the array is read or dies."""
    x = numbers(30, 40)
    result = gpumem.transpose(ByDLPack(x), stream=MINE)
    driver.said()
    assert read(driver, result) == x.T.tobytes()
    assert not [line for line in driver.said() if f" {MINE}" in line]
    del result
    assert driver.said() == [f"cuStreamWaitEvent on {LEGACY}", f"cuMemFreeAsync on {LEGACY}"]


def test_memory_goes_back_behind_the_work(driver):
    x = numbers(300, 40)
    first = gpumem.transpose(ByDLPack(x), stream=MINE)
    second = gpumem.transpose(first, stream=OTHER)  # waits for the first; keeps it
    del first
    assert read(driver, second, THEIRS) == x.tobytes()


@pytest.mark.parametrize("stream", [None, 1, 2, MINE, -1])
def test_an_array_is_ready_on_its_consumer_s_stream(driver, stream):
    result = gpumem.copy(ByDLPack(numbers(9)), stream=OTHER)
    driver.said()
    result.__dlpack__(stream=stream)
    waits = [line for line in driver.said() if "Wait" in line]
    assert waits == ([] if stream == -1 else [f"cuStreamWaitEvent on {stream or LEGACY}"])


@pytest.mark.parametrize("stream", [0, "x", -(2**70)])
def test_streams_that_are_none(driver, stream):
    result = gpumem.copy(ByDLPack(numbers(9)))
    with pytest.raises(ValueError, match=r"give None, a handle"):
        result.__dlpack__(stream=stream)
    with pytest.raises(ValueError, match=r"give None, a handle"):
        gpumem.copy(result, stream=stream)


def test_an_array_can_be_exported_as_a_copy(driver):
    x = numbers(7, 5)
    result = gpumem.copy(ByDLPack(x), stream=MINE)
    managed = consume(result.__dlpack__(stream=OTHER, max_version=(1, 0), copy=True))
    assert managed.flags == 2
    assert managed.tensor.data != result.__cuda_array_interface__["data"][0]
    found = np.zeros_like(x)
    driver.copy(found.ctypes.data, managed.tensor.data, x.nbytes, OTHER)
    driver.run()
    assert found.tobytes() == x.tobytes()
    delete(managed)
    with pytest.raises(BufferError, match=r"dl_device \(1, 0\): the array is in CUDA device 0, \(2, 0\)"):
        result.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="a buffer is host memory"):
        memoryview(result)


# graphs


def test_in_a_graph_nothing_is_waited_for_and_nothing_kept(driver):
    lib, x = Library(), numbers(30, 40)
    driver.capture(THEIRS, True)
    driver.capture(MINE, True)
    driver.said()
    by_table = lib.array(x)
    gpumem.transpose(by_table)
    by_dlpack = ByDLPack(x)
    result = gpumem.transpose(by_dlpack, stream=MINE)
    assert (by_table.exported - by_table.deleted, by_dlpack.deleted, _core._kept()) == (0, 1, 0)
    assert not [line for line in driver.said() if "Synchronize" in line]
    driver.capture(THEIRS, False)
    driver.capture(MINE, False)
    assert read(driver, result) == x.T.tobytes()


# out


def test_out_is_filled_and_returned(driver):
    lib, x = Library(), numbers(12, 34)
    memory = np.full((34, 2, 12), 7, "f4")
    out = lib.array(memory[:, 0])
    assert gpumem.transpose(lib.array(filled(driver, x, THEIRS)), out=out) is out
    driver.run()
    assert memory[:, 0].tobytes() == x.T.tobytes()
    assert (memory[:, 1] == 7).all()


def test_out_of_another_library(driver):
    """Its stream waits for the work, and the work for it."""
    lib, x = Library(), numbers(12, 34)
    memory = np.zeros((34, 12), "f4")
    driver.fill(memory.ctypes.data, 0xEE, memory.nbytes, THEIRS)
    out = lib.array(memory)
    gpumem.transpose(ByDLPack(x), out=out, stream=MINE)
    found = np.zeros_like(memory)
    driver.copy(found.ctypes.data, memory.ctypes.data, found.nbytes, THEIRS)
    driver.run()
    assert found.tobytes() == x.T.tobytes()


def test_out_on_another_stream(driver):
    """Input and output are the library's: it fills the one before, and reads the other after."""
    lib, x = Library(), numbers(12, 34)
    memory, found = np.zeros((34, 12), "f4"), np.zeros((34, 12), "f4")
    gpumem.transpose(lib.array(filled(driver, x, THEIRS)), out=lib.array(memory), stream=MINE)
    driver.copy(found.ctypes.data, memory.ctypes.data, found.nbytes, THEIRS)
    driver.run()
    assert found.tobytes() == x.T.tobytes()


@pytest.mark.parametrize("shift", [1, -1, 8])
def test_out_that_overlaps(driver, shift):
    """See pytorch 197829."""
    lib, memory = Library(), numbers(64, 40)
    rows = (memory[: -abs(shift)], memory[abs(shift) :])
    source, target = rows if shift > 0 else rows[::-1]
    expected = source.copy()
    gpumem.copy(lib.array(source), out=lib.array(target))
    driver.run()
    assert target.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize("step", [(1, 1), (-2, 1), (1, -1), (-1, -1), (3, -1), (1, 2), (-1, 2)])
def test_rows_of_strided_items(driver, dtype, step):
    """Longer and shorter than a vector, a warp's share and a block's, from and to any item; what is around stays."""
    size = np.dtype(dtype).itemsize
    for rows, columns in ((1, 3), (1, 5000), (3, 17), (40, 65), (7, 333), (9, 1040), (5, 2051)):
        for begin, start in ((0, 0), (1, 0), (0, 1), (3, 5), (13, 130 // size)):
            lib, memory = Library(), numbers(begin + rows * columns, dtype=dtype)
            x = memory[begin:].reshape(rows, columns)[:: step[0], :: step[1]]
            around = np.full(start + x.size + 3, 7, dtype)
            out = around[start : start + x.size].reshape(x.shape)
            gpumem.copy(lib.array(x), out=lib.array(out))
            driver.run()
            assert out.tobytes() == x.tobytes()
            assert (around[:start] == 7).all()
            assert (around[-3:] == 7).all()


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("n", [45, 401, 528])
def test_squares_in_place(driver, n, dtype):
    lib, memory = Library(), numbers(2, n, n, dtype=dtype)
    expected = memory.transpose(0, 2, 1).copy()
    array = lib.array(memory)
    driver.said()
    gpumem.matrix_transpose(array, out=array)
    assert not [line for line in driver.said() if "Alloc" in line]
    driver.run()
    assert memory.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize("n", [311, 385, 403])
def test_squares_whose_rows_begin_anywhere(driver, n, dtype):
    """From the array's first byte or later, to its last, with rows apart, with columns from the last row on."""
    lib, size = Library(), np.dtype(dtype).itemsize
    for start, gap, step in ((0, 0, 1), (1, 0, 1), (3, 5, 1), (2, 16 // size, 1), (1, 3, -1)):
        memory = numbers(start + n * (n + gap) - gap, dtype=dtype)
        strides = (step * (n + gap) * size, size)
        first = start + (n - 1) * (n + gap) * (step < 0)
        expected = memory.copy()
        square = np.lib.stride_tricks.as_strided(expected[first:], (n, n), strides)
        square[...] = square.T.copy()
        array = lib.array(np.lib.stride_tricks.as_strided(memory[first:], (n, n), strides))
        gpumem.transpose(array, out=array)
        driver.run()
        assert memory.tobytes() == expected.tobytes()


def test_many_small_squares_go_through_scratch(driver):
    """Those that are not one behind the other."""
    lib, memory = Library(), numbers(5, 12_000, 5)
    expected = memory.transpose(2, 1, 0).copy()
    array = lib.array(memory)
    driver.said()
    gpumem.permute_dims(array, (2, 1, 0), out=array)
    said = "\n".join(driver.said())
    assert said.count("Alloc") == said.count("cuMemFreeAsync") == 1
    assert said.count("cuLaunchKernel") == 2
    driver.run()
    assert memory.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("n", [2, 3, 5, 16, 33, 38, 100, 104, 128, 250])
def test_small_squares_in_place(driver, n, dtype):
    """One behind the other, with gaps between some, from any item on, from the last to the first."""
    lib, items = Library(), 3 * n * n
    many = max(3, 30_000 // items)
    for start, gap, step in ((0, 0, 1), (1, 0, 1), (3, 1, 1), (0, 2, -1)):
        memory = numbers(start + many * (items + gap) + 5, dtype=dtype)
        expected = memory.copy()
        for whole in (memory, expected):
            squares = whole[start : start + many * (items + gap)].reshape(many, items + gap)[:, :items]
            squares = (
                squares.reshape(many, 3, n, n)
                if gap == 0
                else np.lib.stride_tricks.as_strided(
                    squares, (many, 3, n, n), (squares.strides[0], *(memory.itemsize * k for k in (n * n, n, 1)))
                )
            )
            squares = squares[::step]
            if whole is expected:
                squares[...] = squares.swapaxes(2, 3).copy()
            else:
                array = lib.array(squares)
        gpumem.matrix_transpose(array, out=array)
        driver.run()
        assert memory.tobytes() == expected.tobytes()


# What a launch in place depends on, each time another thing: shape, axes, steps, place in a line of memory, device.
@pytest.mark.parametrize(
    "shape, axes, pitch, start, dtype, device",
    [
        ((4, 40, 40), (0, 2, 1), 40, 0, "f4", 0),
        ((4, 40, 40), (0, 2, 1), 40, 128, "f4", 0),
        ((4, 40, 40), (0, 2, 1), 40, 4, "f4", 0),
        ((4, 40, 40), (0, 2, 1), 44, 0, "f4", 0),
        ((4, 40, 40), (0, 2, 1), 40, 0, "u4", 1),
        ((5, 40, 40), (0, 2, 1), 40, 0, "f4", 0),
        ((40, 40, 40), (0, 2, 1), 40, 0, "f4", 0),
        ((40, 40, 40), (1, 0, 2), 40, 0, "f4", 0),
        ((40, 40, 40), (2, 1, 0), 40, 0, "f4", 0),
        ((4, 40, 40), (0, 2, 1), 40, 0, "f8", 0),
        ((4, 40, 40), (0, 2, 1), 40, 0, "u1", 0),
        ((4, 300, 300), (0, 2, 1), 300, 0, "f4", 0),
        ((4, 300, 300), (0, 2, 1), 304, 0, "f4", 0),
    ],
    ids=str,
)
def test_a_square_in_place_after_others(driver, shape, axes, pitch, start, dtype, device):
    def turn(shape, axes, pitch, start, dtype, device):
        room = numbers(np.prod(shape[:2]) * pitch * np.dtype(dtype).itemsize + start + 128, dtype="u1")
        first = -room.ctypes.data % 128 + start
        view = room[first:][: np.prod(shape[:2]) * pitch * np.dtype(dtype).itemsize].view(dtype)
        squares = view.reshape(*shape[:2], pitch)[..., : shape[2]]
        expected = room.copy()
        moved = expected[first:][: view.nbytes].view(dtype).reshape(*shape[:2], pitch)[..., : shape[2]]
        moved[...] = squares.transpose(axes).copy()
        array = Library().array(squares, device=(2, device))
        gpumem.permute_dims(array, axes, out=array)
        driver.run()
        assert room.tobytes() == expected.tobytes()

    for _ in range(2):
        turn((4, 40, 40), (0, 2, 1), 40, 0, "f4", 0)
        turn(shape, axes, pitch, start, dtype, device)
        gpumem.transpose(Library().array(numbers(40, 40)))


def test_a_large_square_in_place(driver):
    lib, memory = Library(), numbers(4104, 4104, dtype="i2")
    expected = memory.T.copy()
    array = lib.array(memory)
    gpumem.transpose(array, out=array)
    driver.run()
    assert memory.tobytes() == expected.tobytes()


def test_a_rectangle_in_its_own_memory(driver):
    """See OpenBLAS 1289."""
    lib, memory = Library(), np.arange(24, dtype="i4")
    gpumem.transpose(lib.array(memory.reshape(4, 6)), out=lib.array(memory.reshape(6, 4)))
    driver.run()
    assert memory.tolist() == np.arange(24).reshape(4, 6).T.ravel().tolist()


@pytest.mark.parametrize("x_on, out_on", [("cuda", "host"), ("host", "cuda"), ("cuda", "cuda:1")])
def test_out_elsewhere(driver, x_on, out_on):
    lib, x = Library(), numbers(3, 4)
    places = {"cuda": lambda a: lib.array(a), "cuda:1": lambda a: lib.array(a, device=(2, 1)), "host": lambda a: a}
    names = {"cuda": "CUDA device 0", "cuda:1": "CUDA device 1", "host": "host memory"}
    out = np.zeros((4, 3), "f4")
    with pytest.raises(ValueError, match=f"out is in {names[out_on]} and the result is in {names[x_on]}"):
        gpumem.transpose(places[x_on](x), out=places[out_on](out))
    assert not out.any()


def test_read_only_out(driver):
    for out in (ByDLPack(numbers(3), flags=READ_ONLY), ByDLPack(numbers(3), kind=Legacy)):
        with pytest.raises(ValueError, match="out is read-only"):
            gpumem.copy(ByDLPack(numbers(3)), out=out)
    x = numbers(3)
    with pytest.raises(ValueError, match="out is read-only"):
        gpumem.copy(ByDLPack(x), out=Interface(x, data=(x.ctypes.data, True)))


# device=


def test_devices(driver):
    x = numbers(3, 4)
    array = ByDLPack(x, device=(2, 1))
    for device in (None, "cuda:1"):
        assert gpumem.transpose(array, device=device).device == "cuda:1"
    for device in ("cpu", "cuda", "cuda:0", "cuda:7"):
        with pytest.raises(ValueError, match=f"device '{device}': x is in the memory of CUDA device 1"):
            gpumem.transpose(array, device=device)
    with pytest.raises(RuntimeError, match="no such CUDA device: 5; there are 4"):
        gpumem.copy(ByDLPack(x, device=(2, 5)))
    with pytest.raises(RuntimeError, match="no such CUDA device: 7; there are 4"):
        gpumem.copy(x, device="cuda:7")
    ours = gpumem.copy(array)
    assert gpumem.copy(ours, device=ours.device).device == "cuda:1"


def views():
    base = np.random.default_rng(2).integers(0, 256, (300, 200, 3), "u1")
    big = np.random.default_rng(3).integers(0, 256, (5000, 4001), "u1")  # three pieces
    yield "photo", base, (2, 0, 1)
    yield "photo back", base.transpose(2, 0, 1).copy(), (1, 2, 0)
    yield "reversed", base[::-1, ::-1], (1, 0, 2)
    yield "loose", base[::2, ::3, ::2], (2, 1, 0)
    yield "broadcast", np.broadcast_to(base[:1], (50, 200, 3)), (1, 0, 2)
    yield "one item", base[:1, :1, :1], (0, 1, 2)
    yield "nothing", base[:0], (2, 0, 1)
    yield "scalar", np.array(3, "f4"), ()
    yield "records", base.view("V3"), (2, 1, 0)
    yield "big", big, (1, 0)
    yield "big rows", big[::-1], (0, 1)
    yield "big planes", big.reshape(5, 1000, 4001), (0, 2, 1)


@pytest.mark.parametrize("x, axes", [view[1:] for view in views()], ids=[view[0] for view in views()])
def test_host_arrays_through_the_device(driver, x, axes):
    result = gpumem.permute_dims(x, axes, device="cuda")
    assert type(result) is np.ndarray
    assert result.tobytes() == x.transpose(axes).tobytes()
    room = np.full((*result.shape, 2), 7, x.dtype if x.dtype.names is None and x.dtype.kind != "V" else "u1")
    if room.dtype == x.dtype and x.size:
        assert gpumem.permute_dims(x, axes, out=room[..., 0], device="cuda:1") is not None
        assert room[..., 0].tobytes() == x.transpose(axes).tobytes()
        assert (room[..., 1] == 7).all()


def test_host_arrays_in_place_through_the_device(driver):
    x = numbers(200, 200)
    expected = x.T.copy()
    assert gpumem.transpose(x, out=x, device="cuda") is x
    assert x.tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="stream 1: the CPU has no streams"):
        gpumem.transpose(x, device="cuda", stream=1)


# errors


@pytest.mark.parametrize(
    "call, error, raised, said",
    [
        ("cuLaunchKernel", 700, RuntimeError, "a CUDA call failed: cuLaunchKernel: as it was told"),
        ("cuMemAllocFromPoolAsync", 2, MemoryError, "not enough memory on the CUDA device: cuMemAllocFromPoolAsync: "),
        ("cuEventRecord", 999, RuntimeError, "a CUDA call failed: cuEventRecord: "),
    ],
)
def test_errors_of_the_driver(driver, call, error, raised, said):
    x = numbers(30, 40)
    array = ByDLPack(x)
    array.current = MINE
    driver.fail(call, error)
    with pytest.raises(raised, match=said):
        gpumem.transpose(array, stream=MINE)
    driver.run()
    assert _core._kept() == 0
    assert array.deleted == 1
    assert read(driver, gpumem.transpose(ByDLPack(x))) == x.T.tobytes()  # the next call works


def times_it_fails(driver, call, x, device):
    """How often a call of the driver can fail, each time another one, until none is left that could."""
    result = None
    for after in itertools.count():
        driver.fail(call, 2, after)
        with contextlib.suppress(MemoryError):
            result = gpumem.transpose(x, device=device)
        driver.fail(call, 2, 1 << 30)
        if result is not None:
            break
    assert result.tobytes() == x.T.tobytes()
    return after


@pytest.mark.parametrize("call, least", [("cuMemAllocFromPoolAsync", 2), ("cuMemcpyAsync", 4), ("cuLaunchKernel", 2)])
def test_errors_on_the_way_through_the_device(driver, call, least):
    x = np.random.default_rng(0).integers(0, 256, (2500, 5001), "u1")  # two pieces each way
    assert times_it_fails(driver, call, x, "cuda") >= least


@pytest.mark.parametrize("after", range(5))  # two pieces up, the turn, two pieces down
def test_no_transfer_is_left_under_way_by_a_failed_event(driver, after):
    """The buffers are pinned ones, which the next call writes to as soon as their events let it."""
    x = np.random.default_rng(0).integers(0, 256, (2500, 5001), "u1")
    driver.said()
    driver.fail("cuEventRecord", 2, after)
    with pytest.raises(MemoryError, match="cuEventRecord: as it was told"):
        gpumem.transpose(x, device="cuda")
    said = driver.said()
    copies = [i for i, call in enumerate(said) if call.startswith("cuMemcpyAsync")]
    assert copies
    for i in copies:
        assert f"cuStreamSynchronize of {said[i].split()[-1]}" in said[i:]
    assert gpumem.transpose(x, device="cuda").tobytes() == x.T.tobytes()


untouched = map("cuda:{}".format, itertools.count(2))


def test_no_memory_for_the_buffers_on_the_way(driver):
    """They are made once for each device."""
    assert times_it_fails(driver, "cuMemHostAlloc", numbers(3, 4), next(untouched)) == 3


@pytest.mark.parametrize("device", [2, 3])
def test_a_module_that_could_not_be_loaded_is_loaded_the_next_time(device):
    driver, array = Driver(), Library().array(numbers(3, 4), device=(2, device))
    driver.fail("cuModuleLoadData", 700)
    with pytest.raises(RuntimeError, match="cuModuleLoadData: as it was told"):
        gpumem.copy(array, stage="scalar")
    driver.said()
    gpumem.copy(array, stage="scalar")
    assert "cuModuleLoadData" in driver.said()
    driver.run()


@pytest.mark.parametrize(
    "error, said",
    [
        (
            209,
            "no CUDA kernels: a fake has compute capability 9.0; this build has kernels for (sm_.* )*and PTX for later "
            "chips: build gpumem on this machine, or with GPUMEM_CUDA_ARCHS=90: cuModuleLoadData: ",
        ),
        (
            222,
            r"the CUDA driver is too old: it serves CUDA 13\.0 and the kernels were made by CUDA 1[2-9]\.\d+: "
            "update it, or build gpumem with an older nvcc: cuModuleLoadData: ",
        ),
        (700, "a CUDA call failed: cuModuleLoadData: as it was told"),  # a kernel before this call, of anybody
        (2, "not enough memory on the CUDA device: cuModuleLoadData: "),
    ],
)
def test_why_a_module_could_not_be_loaded(error, said):
    driver, x = Driver(), Library().array(numbers(3, 4), device=(2, 3))
    driver.fail("cuModuleLoadData", error)
    with pytest.raises((RuntimeError, MemoryError), match=said):
        gpumem.sum(x, stage="interleaved")
    driver.run()


def reserved(*shape):
    """Bytes that nobody may look at: they have addresses and no memory."""
    try:
        whole = mmap.mmap(-1, math.prod(shape), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    except OSError as error:
        pytest.skip(f"no {math.prod(shape)} addresses: {error}")
    return np.frombuffer(whole, "u1").reshape(shape)


def test_more_blocks_than_a_launch_may_have(driver):
    x, out = reserved(1 << 41), reserved(1 << 41)
    with pytest.raises(RuntimeError, match=f"{1 << 33} blocks of copy_scalar_1: a launch has {2**31 - 1} at the most"):
        gpumem.copy(Library().array(x), out=Library().array(out), stage="scalar")


# The driver is told to fail, as what is asked for would take long here.


def test_two_to_the_32_pieces(driver):
    x, out = reserved(1 << 32, 2, 3), reserved(1 << 32, 3, 2)
    driver.fail("cuLaunchKernel", 2)
    with pytest.raises(MemoryError, match="cuLaunchKernel: as it was told"):
        gpumem.permute_dims(Library().array(x), (0, 2, 1), out=Library().array(out))


@pytest.mark.parametrize("results", [1 << 35, 1 << 36])
def test_sums_of_one_line_again_and_again(driver, results):
    """More of them than the blocks of a launch can have by the kernel for such lines."""
    x, out = np.broadcast_to(numbers(600, dtype="u1"), (results, 600)), reserved(results)
    driver.fail("cuLaunchKernel", 2)
    with pytest.raises(MemoryError, match="cuLaunchKernel: as it was told"):
        gpumem.sum(Library().array(x), axis=1, dtype="uint8", out=Library().array(out))


def test_sums_wait_for_what_is_under_way(driver):
    """The second one is of many blocks, and has a scratch."""
    lib = Library()
    for x in (np.arange(12, dtype="f4").reshape(3, 4), np.ones((2, 70000), "f4")):
        result = gpumem.sum(lib.array(filled(driver, x, THEIRS)), axis=1)
        driver.run()
        assert result.array.tobytes() == x.sum(1).tobytes()


def test_stages_are_cuda_s_own(driver):
    there_are = [stage.name for stage in gpumem.stages("transpose", "cuda")]
    said = ", ".join(there_are) if there_are else "CUDA has no stages of transpose yet"
    with pytest.raises(ValueError, match=said):
        gpumem.transpose(ByDLPack(numbers(3, 3)), stage="streaming")


def test_nothing_of_an_empty_array_is_launched(driver):
    lib = Library()
    for shape in [(0,), (0, 3), (3, 0), (1, 8, 0, 128), (0, 0, 0)]:
        for array in (lib.array(np.zeros(shape, "f4")), ByDLPack(np.zeros(shape, "f4"), data=None)):
            result = gpumem.transpose(array)
            assert getattr(result, "shape", shape[::-1]) == shape[::-1]
    assert not [line for line in driver.said() if "Launch" in line]


# many calls


def test_calls_leave_nothing_behind(driver):
    x = Interface(numbers(8, 8))

    def once():
        first = gpumem.transpose(x)
        second = gpumem.transpose(first, stream=MINE)
        gpumem.copy(x, out=Interface(x.array[::-1]))
        del first, second
        driver.run()
        driver.said()

    assert not grows(once, 1000, 150_000)  # an array that is kept for ever takes at least 64 bytes, and there are four
    driver.run()
    _core._kept()
    assert driver.events <= 16  # those of the staging buffers of four devices


def test_threads(driver):
    x = numbers(64, 65)
    wrong = []

    def work(stream):
        for _ in range(50):
            result = gpumem.transpose(ByDLPack(x), stream=stream)
            if read(driver, result, stream + 1) != x.T.tobytes():
                wrong.append(stream)

    threads = [threading.Thread(target=work, args=(0x1000 + 16 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_matrix_in_strips(driver):
    """Large enough for them, its rows anywhere in a line; what lies around the result stays."""
    x = np.random.default_rng(4).integers(0, 1 << 16, (2101, 2200), "u2")[:, 1:2100]
    memory = np.full((2099, 2200), 7, "u2")
    gpumem.transpose(ByDLPack(x), out=ByDLPack(memory[:, 3:2104]))
    driver.run()
    assert (memory[:, 3:2104] == x.T).all()
    assert (memory[:, :3] == 7).all()
    assert (memory[:, 2104:] == 7).all()


def test_planes_and_back(driver):
    lib, x = Library(), numbers(100, 3, dtype="u1")
    array = lib.array(x)
    array.shape = x.shape
    planes = gpumem.to_soa(array)
    planes.shape = (3, 100)
    records = gpumem.to_aos(planes)
    driver.run()
    assert planes.array.tobytes() == x.T.tobytes()
    assert records.array.tobytes() == x.tobytes()


@pytest.mark.parametrize("step", [1, 2, -1])
def test_a_sequence_of_planes(driver, step):
    lib, x = Library(), numbers(3, 100, dtype="f4")
    given = [lib.array(plane) for plane in x]
    planes = [plane[::step] for plane in x]
    for array, plane in zip(given, planes, strict=True):
        array.array = plane
    records = gpumem.to_aos(given)
    driver.run()
    assert records.array.tobytes() == np.stack(planes, axis=-1).tobytes()
