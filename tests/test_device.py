"""device= and dtype= as other libraries spell them."""

import numpy as np
import pytest

import gpumem

tvm_ffi = pytest.importorskip("tvm_ffi")
strict = pytest.importorskip("array_api_strict")

ARRAYS = {
    "numpy": np.arange(6, dtype="f4").reshape(2, 3),
    "tvm_ffi": tvm_ffi.from_dlpack(np.arange(6, dtype="f4").reshape(2, 3)),
    "array_api_strict": strict.reshape(strict.arange(6, dtype=strict.float32), (2, 3)),
}


def as_numpy(array):
    """Not through DLPack from array-api-strict: NumPy 1 hands out no read-only memory, and takes it as such."""
    return array._array if type(array) is type(ARRAYS["array_api_strict"]) else np.from_dlpack(array)


@pytest.mark.parametrize("x", ARRAYS.values(), ids=ARRAYS)
def test_devices(x):
    for device in [None, "cpu", getattr(x, "device", "cpu")]:
        result = gpumem.transpose(x, device=device)
        assert type(result) is type(x)
        assert as_numpy(result).tolist() == [[0, 3], [1, 4], [2, 5]]


DTYPES = ["float64", np.float64, np.dtype("f8")]


@pytest.mark.parametrize(
    "x, dtype",
    [*((x, dtype) for x in ARRAYS.values() for dtype in DTYPES), (ARRAYS["array_api_strict"], strict.float64)],
    ids=lambda value: type(value).__name__,
)
def test_dtypes(x, dtype):
    result = gpumem.sum(x, axis=0, dtype=dtype)
    assert type(result) is type(x)
    assert (as_numpy(result).dtype, as_numpy(result).tolist()) == (np.float64, [3, 5, 7])


@pytest.mark.parametrize("name", ["tvm_ffi", "array_api_strict"])
@pytest.mark.parametrize("dtype", ["float", float, "f8", 3, "complex256"], ids=repr)
def test_dtypes_that_are_none(name, dtype):
    with pytest.raises(TypeError, match="a sum of float32 cannot be given as "):
        gpumem.sum(ARRAYS[name], dtype=dtype)
