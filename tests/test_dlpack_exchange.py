"""Exchange tables: found on the type, checked for their version, and used for inputs and for results."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dlpack_abi import (
    BFLOAT,
    BOOL,
    FLOAT,
    METAL,
    READ_ONLY,
    Allocator,
    ExchangeApi,
    FromPyObject,
    Producer,
    ToPyObject,
    Versioned,
    api,
    delete,
    grows,
)

from gpumem import _core

ALL = ("allocator", "from_py_object", "to_py_object")


class Library:
    """A library of arrays with an exchange table: those functions it `has`, or C functions `instead` of them.

    `log` says which of its functions ran; `made` holds what it allocated, which dies by its own deleter.
    """

    def __init__(self, *, version=(1, 3), has=ALL, prev=None, instead=None, **behaviour):
        self.log, self.made, self.behaviour, self.taken, self.wrapped = [], [], behaviour, [], []
        functions = {
            "allocator": Allocator(self.allocator),
            "from_py_object": FromPyObject(self.from_py_object),
            "to_py_object": ToPyObject(self.to_py_object),
        }
        given = {name: functions[name] for name in has}
        for name, address in (instead or {}).items():
            given[name] = type(functions[name])(address)
        address = ctypes.addressof(prev.table) if prev else None
        self.table = ExchangeApi(major=version[0], minor=version[1], prev=address, **given)
        self.prev = prev
        self.capsule = api.PyCapsule_New(ctypes.addressof(self.table), b"dlpack_exchange_api", None)

    def allocator(self, prototype, out, context, set_error):
        self.log.append("allocator")
        wanted = prototype.contents
        shape = self.behaviour.get("shape", tuple(wanted.shape[: wanted.ndim]))
        assert (wanted.device.type, wanted.device.id) == (1, 0)
        if "silent" in self.behaviour:
            return -1
        size = wanted.dtype.bits // 8
        padded = np.full((*shape, 2), 0xEE, f"V{size}")[..., 0]  # neighbours are two items apart: strides matter
        dtype = (wanted.dtype.code, wanted.dtype.bits, wanted.dtype.lanes)
        self.made.append(Producer(padded, dtype=dtype, **self.behaviour.get("lies", {})))
        out[0] = ctypes.addressof(self.made[-1].managed())
        return 0

    def from_py_object(self, array, out):
        self.log.append("from_py_object")
        out[0] = ctypes.addressof(array.managed())
        return 0

    def to_py_object(self, managed, out):
        self.log.append("to_py_object")
        self.taken.append(Versioned.from_address(managed))
        tensor = self.taken[-1].tensor
        result = (self, tuple(tensor.shape[: tensor.ndim]), tensor.dtype.code)
        self.wrapped.append(result)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(result))
        out[0] = id(result)
        return 0

    def array(self, *args, **lies):
        kind = type("Array", (Producer,), {"__dlpack_c_exchange_api__": self.capsule, "library": self})
        return kind(*args, **lies)

    def items(self):
        """The bytes of the last result that it was given."""
        (tensor,) = [m.tensor for m in self.taken[-1:]]
        shape, size = tuple(tensor.shape[: tensor.ndim]), tensor.dtype.bits // 8
        spread = [s * size for s in tensor.strides[: tensor.ndim]]
        reach = sum((n - 1) * s for n, s in zip(shape, spread, strict=True)) + size
        memory = np.frombuffer(ctypes.string_at(tensor.data, reach), "u1")
        return np.lib.stride_tricks.as_strided(memory[:size].view(f"V{size}"), shape, spread).tobytes()

    def close(self):
        while self.taken:
            delete(self.taken.pop())


@pytest.fixture
def library():
    made = []

    def make(**options):
        made.append(Library(**options))
        return made[-1]

    yield make
    for each in made:
        each.close()
        assert all(m.exported == m.deleted == 1 for m in each.made)


def numbers(*shape, dtype="f4"):
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


@pytest.mark.parametrize("dtype", [(FLOAT, 32, 1), (BFLOAT, 16, 1), (BOOL, 8, 1), (12, 8, 1)], ids=str)
def test_the_table_imports_allocates_and_wraps(library, dtype):
    lib = library()
    x = np.random.default_rng(0).integers(0, 256, (3, 4, dtype[1] // 8), "u1").view(f"V{dtype[1] // 8}")[..., 0]
    array = lib.array(x, dtype=dtype)
    assert _core.transpose(array) == (lib, (4, 3), dtype[0])
    assert lib.log == ["from_py_object", "allocator", "to_py_object"]
    assert (array.exported, array.deleted) == (1, 1)
    assert lib.items() == x.T.tobytes()


def test_without_an_allocator_the_memory_is_ours(library):
    lib = library(has=("from_py_object", "to_py_object"))
    x = numbers(3, 4)
    assert _core.transpose(lib.array(x)) == (lib, (4, 3), FLOAT)
    assert lib.log == ["from_py_object", "to_py_object"]
    assert lib.items() == x.T.tobytes()
    assert lib.taken[-1].flags == 0

    array = lib.array(numbers(128, 128))

    def once():
        _core.copy(array)
        lib.close()
        lib.log.clear()

    assert not grows(once, 2000, 2 << 20)  # 128 MB if the library's copy of the tensor were not the last owner


def test_a_table_that_only_wraps_leaves_imports_to_dlpack(library):
    lib = library(has=("to_py_object",))
    x = numbers(3, 4)
    assert _core.transpose(lib.array(x))[0] is lib
    assert lib.items() == x.T.tobytes()


def test_a_table_that_only_imports_leaves_results_to_us(library):
    lib = library(has=("from_py_object", "allocator"))
    x = numbers(3, 4)
    assert np.from_dlpack(_core.transpose(lib.array(x))).tobytes() == x.T.tobytes()
    assert lib.log == ["from_py_object"]


def test_a_type_needs_the_table_only(library):
    lib = library()
    x = numbers(2, 3)
    inner = Producer(x)

    class Bare:
        __dlpack_c_exchange_api__ = lib.capsule

        def managed(self):
            return inner.managed()

    assert _core.transpose(Bare())[0] is lib
    assert lib.items() == x.T.tobytes()
    assert inner.deleted == 1


# versions


def test_an_older_table_is_found_behind_a_newer_one(library):
    old = library(version=(1, 2))
    new = library(version=(3, 0), prev=library(version=(2, 1), prev=old))
    assert _core.copy(new.array(numbers(3)))[0] is old
    assert new.log == []


@pytest.mark.parametrize("version", [(2, 0), (0, 8)], ids=str)
def test_a_table_of_another_major_version_is_not_used(library, version):
    lib = library(version=version)
    array = lib.array(numbers(3))
    assert np.from_dlpack(_core.copy(array)).tolist() == [0, 1, 2]
    assert lib.log == []
    assert array.deleted == 1


def test_a_chain_in_a_circle_ends(library):
    lib = library(version=(2, 0))
    lib.table.prev = ctypes.addressof(lib.table)
    assert np.from_dlpack(_core.copy(lib.array(numbers(3)))).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "attribute", [0x1234, "text", None, property(lambda self: 1 / 0)], ids=["int", "str", "None", "property"]
)
def test_an_attribute_that_is_no_table(attribute):
    """Drafts of the protocol had the address as an integer."""
    kind = type("Array", (Producer,), {"__dlpack_c_exchange_api__": attribute})
    assert np.from_dlpack(_core.copy(kind(numbers(3)))).tolist() == [0, 1, 2]


def test_a_capsule_of_another_name_is_no_table(library):
    lib = library()
    lib.capsule = api.PyCapsule_New(ctypes.addressof(lib.table), b"some_other_api", None)
    assert np.from_dlpack(_core.copy(lib.array(numbers(3)))).tolist() == [0, 1, 2]
    assert lib.log == []


def test_the_table_is_the_type_s_and_not_the_object_s(library):
    lib, array = library(), Producer(numbers(3))
    array.__dlpack_c_exchange_api__ = lib.capsule
    assert np.from_dlpack(_core.copy(array)).tolist() == [0, 1, 2]
    assert lib.log == []


# refusals and errors: one deleter call each


@pytest.mark.parametrize(
    "lies, why",
    [
        ({"version": (2, 0)}, "DLPack 2.0"),
        ({"dtype": (FLOAT, 32, 2)}, "lanes"),
        ({"device": METAL}, "device 8 .Metal."),
        ({"data": None}, "items without memory"),
    ],
    ids=str,
)
def test_tensors_that_are_refused(library, lies, why):
    array = library().array(numbers(3), **lies)
    with pytest.raises(BufferError, match=why):
        _core.copy(array)
    assert (array.exported, array.deleted) == (1, 1)


def test_read_only_memory_takes_no_result(library):
    out = library().array(np.zeros(3, "f4"), flags=READ_ONLY)
    with pytest.raises(ValueError, match="read-only"):
        _core.copy(numbers(3), out=out)
    assert out.deleted == 1


def test_a_result_into_an_array_with_a_table(library):
    lib, memory = library(), np.zeros((4, 3), "f4")
    out = lib.array(memory)
    assert _core.transpose(numbers(3, 4), out=out) is out
    assert (memory == numbers(3, 4).T).all()
    assert lib.log == ["from_py_object"]


# int f(PyObject *, ...), which fails as the array's fileno() does
FAILING_IMPORT = ctypes.cast(api.PyObject_AsFileDescriptor, ctypes.c_void_p).value


def failing_array(error, **lies):
    def fileno(self):
        raise error

    lib = Library(instead={"from_py_object": FAILING_IMPORT})
    array = lib.array(numbers(3), **lies)
    type(array).fileno = fileno
    return lib, array


def test_where_the_table_fails_dlpack_is_asked():
    """It knows better why, or can do what the table cannot."""
    lib, array = failing_array(RuntimeError("a trace of C++"))
    assert _core.copy(array)[0] is lib
    assert (array.exported, array.deleted) == (1, 1)
    lib.close()
    with pytest.raises(BufferError, match="Metal"):
        _core.copy(failing_array(RuntimeError("a trace of C++"), device=METAL)[1])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_no_failure_of_the_table_passes(error):
    array = failing_array(error)[1]
    with pytest.raises(error):
        _core.copy(array)
    assert array.exported == 0


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Compiled where there is a compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("needs a C compiler")
    built = tmp_path_factory.mktemp("native") / "failing_table.so"
    source = Path(__file__).parent / "native" / "failing_table.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", built, source], check=True)
    return ctypes.CDLL(built)


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@pytest.mark.parametrize(
    "kind, error",
    [
        (b"MemoryError", MemoryError),
        (b"BufferError", BufferError),
        (b"ValueError", ValueError),
        (b"TypeError", TypeError),
        (b"RuntimeError", RuntimeError),
        (b"SomethingElse", RuntimeError),
        (None, RuntimeError),
    ],
)
def test_the_allocator_says_what_is_wrong(library, failing, kind, error):
    ctypes.c_char_p.in_dll(failing, "kind").value = kind
    array = library(instead={"allocator": address(failing.failing_allocator)}).array(numbers(3))
    with pytest.raises(error, match="no room in this library"):
        _core.copy(array)
    assert (array.exported, array.deleted) == (1, 1)


def test_the_allocator_says_nothing(library):
    array = library(silent=True).array(numbers(3))
    with pytest.raises(RuntimeError, match="managed_tensor_allocator of the exchange table failed"):
        _core.copy(array)
    assert (array.exported, array.deleted) == (1, 1)


@pytest.mark.parametrize(
    "behaviour",
    [{"shape": (4,)}, {"shape": (3, 1)}, {"lies": {"data": None}}, {"lies": {"device": METAL}}],
    ids=str,
)
def test_an_allocator_that_gives_something_else(library, behaviour):
    lib = library(**behaviour)
    array = lib.array(numbers(3))
    with pytest.raises(BufferError):
        _core.copy(array)
    assert (array.exported, array.deleted) == (1, 1)
    assert [m.deleted for m in lib.made] == [1]


def test_a_result_that_the_library_does_not_take(library, failing):
    """The tensor is stolen all the same: it is not ours to delete."""
    lib = library(instead={"to_py_object": address(failing.failing_to_py_object)})
    array = lib.array(numbers(3))
    with pytest.raises(RuntimeError, match="cannot wrap"):
        _core.copy(array)
    assert (array.exported, array.deleted) == (1, 1)
    assert [m.deleted for m in lib.made] == [1]


def test_an_error_after_the_allocation_gives_the_memory_back(library):
    """Scratch memory runs out while the result is there already."""
    failed = 0
    for count in range(20):
        lib = library()
        array = lib.array(numbers(300, 300))
        _core._fail_allocation(count)
        try:
            _core.transpose(array)
        except MemoryError:
            failed += 1
            if lib.wrapped:
                references = sys.getrefcount(lib.wrapped[0])
                assert references == 2  # the list's, and that of the call: the tensor is its library's to delete
                lib.close()
            assert [m.deleted for m in lib.made] == [1]
        finally:
            _core._fail_allocation(-1)
        assert (array.exported, array.deleted) == (1, 1)
    assert failed < 20


def test_marks_count_before_the_table(library):
    lib = library()
    array = lib.array(numbers(3))
    array.is_conj = lambda: True
    with pytest.raises(BufferError, match=r"x.resolve_conj\(\)"):
        _core.copy(array)
    assert lib.log == []
    assert array.exported == 0
