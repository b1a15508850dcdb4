"""Real libraries: an operation returns the caller's kind of array, in the same memory, and takes it as out=."""

import sys
import types
from concurrent.futures import ThreadPoolExecutor

import array_api_strict
import numpy as np
import pytest
from dlpack_abi import BFLOAT, E4M3FN, Legacy, Producer, consume, delete, grows, items_of

from gpumem import _core

tvm_ffi = pytest.importorskip("tvm_ffi")


def numbers(*shape, dtype="f4"):
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


# tvm_ffi: found by the package that its class comes from


def test_tvm_ffi_tensor():
    x = numbers(3, 4)
    result = _core.transpose(tvm_ffi.from_dlpack(x))
    assert type(result) is tvm_ffi.Tensor
    assert tuple(result.shape) == (4, 3)
    assert (np.from_dlpack(result) == x.T).all()


@pytest.mark.parametrize("dtype, name", [((BFLOAT, 16, 1), "bfloat16"), ((E4M3FN, 8, 1), "float8_e4m3fn")])
def test_tvm_ffi_small_floats(dtype, name):
    raw = np.random.default_rng(0).integers(0, 256, (5, 7, dtype[1] // 8), "u1").view(f"V{dtype[1] // 8}")[..., 0]
    result = _core.transpose(tvm_ffi.from_dlpack(Producer(raw, dtype=dtype, kind=Legacy)))
    assert type(result) is tvm_ffi.Tensor
    assert str(result.dtype) == name
    managed = consume(result.__dlpack__(max_version=(1, 3)))
    assert items_of(managed) == raw.T.tobytes()
    delete(managed)


def test_tvm_ffi_exchange_table():
    """A table without an allocator: the result's memory is ours, its wrapper theirs."""
    wrapper = tvm_ffi.core.DLTensorTestWrapper(tvm_ffi.from_dlpack(numbers(3, 4)))
    result = _core.transpose(wrapper)
    assert type(result) is tvm_ffi.Tensor
    assert (np.from_dlpack(result) == numbers(3, 4).T).all()


def test_tvm_ffi_as_output():
    memory = np.zeros((4, 3), "f4")
    out = tvm_ffi.from_dlpack(memory)
    assert _core.transpose(numbers(3, 4), out=out) is out
    assert (memory == numbers(3, 4).T).all()


# array-api-strict: found by its array namespace


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
def test_array_api_strict(dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    strict = array_api_strict.asarray(x)
    result = _core.permute_dims(strict, (2, 0, 1))
    assert type(result) is type(strict)
    assert result.dtype == getattr(array_api_strict, dtype)
    assert bool(array_api_strict.all(result == array_api_strict.permute_dims(strict, (2, 0, 1))))
    assert type(_core.copy(array_api_strict.asarray(7.0))) is type(strict)
    assert _core.copy(array_api_strict.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("make", [tvm_ffi.from_dlpack, array_api_strict.asarray], ids=["tvm_ffi", "strict"])
def test_rounds_without_growth(make):
    array = make(numbers(128, 128))
    assert not grows(lambda: _core.transpose(array), 2000, 2 << 20)  # 128 MB if results stayed


def test_threads_share_an_input():
    """Each import has its own capsule, and its own deleter call, while the GIL comes and goes."""
    x = numbers(300, 400)
    producer = Producer(x)
    wanted = x.T.tobytes()

    def work(_):
        return all(np.from_dlpack(_core.transpose(producer)).tobytes() == wanted for _ in range(25))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert (producer.exported, producer.deleted) == (200, 200)


# libraries made up


def library(name, monkeypatch, **attributes):
    module = types.ModuleType(name)
    vars(module).update(attributes)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def made_of(array):
    """from_dlpack of a made-up library: keeps what it was given."""
    return ("made", np.from_dlpack(array))


def test_the_package_of_a_base_class_is_asked(monkeypatch):
    library("some_arrays", monkeypatch, from_dlpack=made_of)
    base = type("Array", (Producer,), {"__module__": "some_arrays.core.array"})
    derived = type("Mine", (base,), {"__module__": "a_program_of_mine"})
    for kind in (base, derived):
        word, read = _core.transpose(kind(numbers(2, 3)))
        assert word == "made"
        assert (read == numbers(2, 3).T).all()


def test_the_namespace_comes_before_the_package(monkeypatch):
    library("some_arrays", monkeypatch, from_dlpack=lambda array: "by the package")
    space = library("some_arrays.api", monkeypatch, from_dlpack=made_of)
    kind = type("Array", (Producer,), {"__module__": "some_arrays", "__array_namespace__": lambda self: space})
    assert _core.copy(kind(numbers(3)))[0] == "made"
    del space.from_dlpack
    assert _core.copy(kind(numbers(3))) == "by the package"


@pytest.mark.parametrize("module", ["not_loaded.at.all", "sys", "", None, 7])
def test_without_a_from_dlpack_the_result_is_a_gpumem_array(module):
    kind = type("Array", (Producer,), {"__module__": module})
    result = _core.transpose(kind(numbers(2, 3)))
    assert type(result) is _core.Array
    assert (np.from_dlpack(result) == numbers(2, 3).T).all()


def test_no_copy_on_the_way(monkeypatch):
    addresses = []

    def keep(array):
        addresses.append(np.from_dlpack(array).ctypes.data)
        return array

    library("some_arrays", monkeypatch, from_dlpack=keep)
    result = _core.copy(type("Array", (Producer,), {"__module__": "some_arrays"})(numbers(3)))
    assert addresses == [np.from_dlpack(result).ctypes.data]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_of_from_dlpack_pass_and_leave_nothing(monkeypatch, error):
    held = []

    def fail(array):
        held.append(array.__dlpack__(max_version=(1, 0)))
        raise error("not today")

    library("some_arrays", monkeypatch, from_dlpack=fail)
    producer = type("Array", (Producer,), {"__module__": "some_arrays"})(numbers(2, 3))
    with pytest.raises(error, match="not today"):
        _core.transpose(producer)
    assert (producer.exported, producer.deleted) == (1, 1)
    managed = consume(held.pop())
    assert items_of(managed) == numbers(2, 3).T.tobytes()
    delete(managed)


def test_errors_of_the_namespace_pass():
    def fail(self):
        raise RuntimeError("no namespace today")

    producer = type("Array", (Producer,), {"__array_namespace__": fail})(numbers(3))
    with pytest.raises(RuntimeError, match="no namespace today"):
        _core.copy(producer)
    assert producer.deleted == 1


# where they are installed


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64, torch.float8_e4m3fn):
        x = torch.arange(12).reshape(3, 4).to(dtype)
        result = _core.transpose(x)
        assert type(result) is torch.Tensor
        assert result.dtype == dtype
        assert result.is_contiguous()
        assert result.view(torch.uint8).equal(x.t().contiguous().view(torch.uint8))
    out = torch.zeros(4, 3)
    assert _core.transpose(torch.arange(12.0).reshape(3, 4), out=out) is out
    assert out.equal(torch.arange(12.0).reshape(3, 4).t())
    for lazy in (torch.ones(2, requires_grad=True), torch.ones(2).to(torch.complex64).conj()):
        with pytest.raises(BufferError, match=r"pass x\.(detach|resolve_conj)\(\)"):
            _core.copy(lazy)
    with pytest.raises(BufferError, match="strided"):
        _core.copy(torch.ones(2, 2).to_sparse())
    with pytest.raises(BufferError, match=r"pass x.resolve_neg\(\)"):
        _core.copy(torch.ones(2).to(torch.complex64).conj().imag)


def test_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    jax.config.update("jax_default_device", jax.devices("cpu")[0])
    for dtype in (jnp.float32, jnp.bfloat16, jnp.bool_, jnp.int32):
        x = jnp.arange(12).reshape(3, 4).astype(dtype)
        result = _core.transpose(x)
        assert type(result) is type(x)
        assert result.dtype == x.dtype
        assert bool((result == x.T).all())
