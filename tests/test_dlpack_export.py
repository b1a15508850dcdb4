"""gpumem.Array as a producer: what __dlpack__ answers, and memory that outlives its objects and the interpreter."""

import ctypes
import inspect
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from dlpack_abi import (
    BFLOAT,
    FLOAT,
    IS_COPIED,
    READ_ONLY,
    Legacy,
    Producer,
    Versioned,
    consume,
    delete,
    grows,
    items_of,
    managed_of,
    name_of,
)

from gpumem import _core


def numbers(*shape, dtype="f4"):
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


def array_of(x, **lies):
    """The values of x as a gpumem.Array, as its producer's library is nowhere to be found."""
    return _core.copy(Producer(x, **lies))


def test_what_it_says_of_itself():
    array = array_of(numbers(2, 0, 3, dtype="u2"), dtype=(BFLOAT, 16, 1))
    assert (array.shape, array.ndim, array.dtype, array.itemsize, array.nbytes) == ((2, 0, 3), 3, "bfloat16", 2, 0)
    assert repr(array) == "gpumem.Array(shape=(2, 0, 3), dtype='bfloat16')"
    assert array.__dlpack_device__() == (1, 0)
    assert array_of(numbers(5, 7)).nbytes == 140


def test_it_is_made_by_operations_only():
    with pytest.raises(TypeError, match="cannot create"):
        _core.Array()
    with pytest.raises(TypeError, match="immutable type"):
        _core.Array.shape = 7
    with pytest.raises(AttributeError):
        array_of(numbers(3)).shape = (3, 1)


def test_signature():
    assert str(inspect.signature(_core.Array.__dlpack__)) == (
        "(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)"
    )


@pytest.mark.parametrize(
    "options, kind",
    [
        ({}, Legacy),
        ({"max_version": None}, Legacy),
        ({"max_version": (0, 8)}, Legacy),
        ({"max_version": (1, 0)}, Versioned),
        ({"max_version": (1, 3)}, Versioned),
        ({"max_version": (2, 0)}, Versioned),
        ({"max_version": (1, 0), "stream": None, "dl_device": None, "copy": None}, Versioned),
        ({"max_version": (1, 0), "dl_device": (1, 0), "copy": False}, Versioned),
    ],
    ids=str,
)
def test_the_capsule_that_is_asked_for(options, kind):
    x = numbers(2, 3, 4)
    array = array_of(x)
    capsule = array.__dlpack__(**options)
    assert name_of(capsule) == {Versioned: "dltensor_versioned", Legacy: "dltensor"}[kind]
    managed = managed_of(capsule)
    tensor = managed.tensor
    assert (tensor.device.type, tensor.device.id, tensor.byte_offset) == (1, 0, 0)
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (FLOAT, 32, 1)
    assert tensor.ndim == 3
    assert tensor.shape[:3] == [2, 3, 4]
    assert tensor.strides[:3] == [12, 4, 1]
    assert tensor.data % 64 == 0
    assert items_of(managed) == x.tobytes()
    if kind is Versioned:
        # the producer's own version: a consumer of any minor version can read it
        assert (managed.major, managed.minor, managed.flags) == (1, 3, 0)


def test_strides_are_always_given_and_canonical():
    """DLPack 1.2: never NULL, though consumers should not look at those of axes of length 1."""
    for shape, strides in [((1, 10, 20), [200, 20, 1]), ((2, 1, 3, 4, 5), [60, 60, 20, 5, 1]), ((5, 1, 1), [1, 1, 1])]:
        tensor = managed_of(array_of(numbers(*shape)).__dlpack__(max_version=(1, 0))).tensor
        assert tensor.strides[: len(shape)] == strides


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1, 8, 0, 128)], ids=str)
def test_without_items_the_data_is_null(shape):
    array = array_of(numbers(*shape))
    tensor = managed_of(array.__dlpack__(max_version=(1, 0))).tensor
    assert tensor.data is None
    assert tensor.shape[: len(shape)] == list(shape)
    assert tensor.strides
    assert np.from_dlpack(array).shape == shape
    assert memoryview(array).shape == shape


def test_copy_true_is_a_copy_that_says_so():
    x = numbers(3, 4)
    array = array_of(x)
    managed = consume(array.__dlpack__(max_version=(1, 0), copy=True))
    assert managed.flags == IS_COPIED
    np.asarray(array)[:] = -1
    assert items_of(managed) == x.tobytes()
    delete(managed)
    legacy = consume(array.__dlpack__(copy=True))
    np.asarray(array)[:] = -2
    assert np.frombuffer(items_of(legacy), "f4").tolist() == [-1] * 12
    delete(legacy)


@pytest.mark.parametrize("copy", [None, False])
def test_otherwise_the_memory_is_shared(copy):
    array = array_of(numbers(3, 4))
    np.asarray(array)[1, 2] = 77
    capsule = array.__dlpack__(max_version=(1, 3), copy=copy)
    assert np.frombuffer(items_of(managed_of(capsule)), "f4")[6] == 77
    assert np.shares_memory(np.from_dlpack(array), np.asarray(array))


@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"stream": 1}, ValueError, "stream 1: the CPU has no streams, pass None"),
        ({"stream": -1}, ValueError, "stream -1"),
        ({"stream": 0}, ValueError, "stream 0"),
        ({"dl_device": (2, 0)}, BufferError, r"dl_device \(2, 0\): the array is in host memory, \(1, 0\)"),
        ({"dl_device": (1, 1)}, BufferError, r"dl_device \(1, 1\)"),
        ({"dl_device": (3, 0)}, BufferError, r"dl_device \(3, 0\)"),
        ({"dl_device": 1}, TypeError, "dl_device must be a tuple of two integers, not 1"),
        ({"dl_device": "cpu"}, TypeError, "dl_device must be a tuple"),
        ({"max_version": 1}, TypeError, "max_version must be a tuple of two integers"),
        ({"max_version": (1,)}, TypeError, "max_version must be a tuple of two integers"),
        ({"max_version": ("1", "0")}, TypeError, "integer"),
        ({"other": 1}, TypeError, "no keyword argument 'other'"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_for(options, error, said):
    with pytest.raises(error, match=said):
        array_of(numbers(3)).__dlpack__(**options)
    with pytest.raises(TypeError):
        array_of(numbers(3)).__dlpack__(None)


# memory


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 3)}, {"max_version": (1, 3), "copy": True}], ids=str)
def test_a_tensor_outlives_array_and_capsule(options):
    x = numbers(100, 100)
    managed = consume(array_of(x).__dlpack__(**options))
    other = array_of(np.full((100, 100), -1, "f4"))  # would be where the freed block was
    assert items_of(managed) == x.tobytes()
    delete(managed)
    assert (np.from_dlpack(other) == -1).all()


@pytest.mark.parametrize("consumed", [False, True])
@pytest.mark.parametrize("options", [{}, {"max_version": (1, 3)}, {"max_version": (1, 3), "copy": True}], ids=str)
def test_no_export_leaks(options, consumed):
    """A leak of the block would keep 64 kB each time, one of the structure 100 bytes."""
    x = numbers(128, 128)

    def once():
        capsule = array_of(x).__dlpack__(**options)
        if consumed:
            delete(consume(capsule))

    assert not grows(once, 10_000, 900_000)


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 3)}, {"max_version": (1, 3), "copy": True}], ids=str)
def test_an_export_without_memory(options):
    x = numbers(50)
    array = array_of(x)
    failed = 0
    for count in range(5):
        _core._fail_allocation(count)
        try:
            array.__dlpack__(**options)
        except MemoryError as error:
            failed += 1
            said = str(error)
        finally:
            _core._fail_allocation(-1)
    assert failed == (3 if "copy" in options else 1)
    assert said == "not enough memory for a DLPack export"
    assert (np.from_dlpack(array) == x).all()


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 3)}], ids=str)
def test_a_deleter_in_a_thread_that_python_does_not_know(options):
    """D04: pthread_create runs the deleter itself, which holds no GIL and has no thread state."""
    libc = ctypes.CDLL(None)
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    for _ in range(50):
        managed = consume(array_of(numbers(200, 200)).__dlpack__(**options))
        thread = ctypes.c_ulong()
        start = ctypes.cast(managed.deleter, ctypes.c_void_p)
        assert libc.pthread_create(ctypes.byref(thread), None, start, ctypes.c_void_p(ctypes.addressof(managed))) == 0
        assert libc.pthread_join(thread, None) == 0


def test_deleters_of_one_block_in_many_threads():
    array = array_of(numbers(1000))
    managed = [consume(array.__dlpack__(max_version=(1, 0))) for _ in range(4000)]
    del array
    threads = [threading.Thread(target=lambda part: [delete(m) for m in part], args=(managed[i::8],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("options", ["", "max_version=(1, 3)"])
def test_a_deleter_after_the_interpreter(options):
    """D04: the C library calls it at exit, when Python has been finalised."""
    program = f"""
    import ctypes, sys
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import numpy as np
    from dlpack_abi import Producer, consume
    from gpumem import _core

    managed = consume(_core.copy(Producer(np.zeros((500, 500)))).__dlpack__({options}))
    libc = ctypes.CDLL(None)
    libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
    deleter = ctypes.cast(managed.deleter, ctypes.c_void_p)
    assert libc.__cxa_atexit(deleter, ctypes.addressof(managed), None) == 0
    print("registered")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=1200, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "registered\n", "")


# consumers


def test_numpy_takes_it_without_a_copy():
    x = numbers(3, 4, 5)
    array = array_of(x)
    read = np.from_dlpack(array)
    assert (read == x).all()
    assert read.flags.c_contiguous
    assert read.ctypes.data == managed_of(array.__dlpack__()).tensor.data
    del array
    assert (read == x).all()


def test_gpumem_takes_it_back():
    array = array_of(numbers(2, 3))
    result = _core.transpose(array)
    assert type(result) is _core.Array
    assert np.from_dlpack(result).tolist() == [[0, 3], [1, 4], [2, 5]]
    out = array_of(np.zeros((2, 3), "f4"))
    assert _core.transpose(result, out=out) is out
    assert (np.from_dlpack(out) == numbers(2, 3)).all()
    x = numbers(128, 128)
    assert not grows(lambda: _core.copy(array_of(x)), 2000, 1 << 20)  # 128 MB if an input stayed


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_the_buffer_protocol_shares_the_memory(dtype):
    x = np.arange(24).astype(dtype).reshape(2, 3, 4)
    array = array_of(x)
    for read in (np.asarray(memoryview(array)), np.asarray(array)):
        assert read.dtype == x.dtype
        assert (read == x).all()
        assert np.shares_memory(read, np.from_dlpack(array))
    view = memoryview(array)
    assert (view.shape, view.strides, view.itemsize, view.c_contiguous) == (x.shape, x.strides, x.itemsize, True)
    assert not view.readonly
    assert bytes(array) == x.tobytes()
    del array
    assert view.tobytes() == x.tobytes()


def test_a_buffer_of_no_axes():
    view = memoryview(array_of(np.array(2.5)))
    assert (view.ndim, view.shape, view.tolist()) == (0, (), 2.5)


@pytest.mark.parametrize("dtype", [(BFLOAT, 16, 1), (10, 8, 1), (FLOAT, 128, 1), (5, 32, 1)], ids=str)
def test_types_without_a_buffer_format(dtype):
    array = array_of(np.zeros(3, f"V{dtype[1] // 8}"), dtype=dtype)
    with pytest.raises(BufferError, match=f"there is no buffer format for {array.dtype}"):
        memoryview(array)


def test_read_only_is_not_inherited():
    """The result is memory of its own."""
    assert managed_of(array_of(numbers(3), flags=READ_ONLY).__dlpack__(max_version=(1, 0))).flags == 0
