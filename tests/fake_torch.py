"""As much of PyTorch as the benchmark on a device uses, on NumPy arrays: what a machine without a GPU tests it with."""

import time
from types import SimpleNamespace

import numpy as np
from dlpack_abi import Producer

__version__ = "0.0"


class OutOfMemoryError(RuntimeError):
    pass


class DType:
    def __init__(self, name):
        self.numpy = np.dtype(name)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point, self.is_complex = self.numpy.kind == "f", self.numpy.kind == "c"

    def __str__(self):
        return f"torch.{self.numpy}"


NAMES = ("uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex128")
DTYPES = {np.dtype(name): DType(name) for name in NAMES}
globals().update({name: DTYPES[np.dtype(name)] for name in NAMES})


class Tensor:
    def __init__(self, array):
        self.array, self.producer = array, Producer(array)

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)
    dtype = property(lambda self: DTYPES[self.array.dtype])
    __cuda_array_interface__ = property(lambda self: self.array.__array_interface__)

    def __dlpack__(self, **options):
        return self.producer.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.producer.__dlpack_device__()

    def stride(self, axis=None):
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        return strides if axis is None else strides[axis]

    def element_size(self):
        return self.array.itemsize

    def numel(self):
        return self.array.size

    def data_ptr(self):
        return self.array.ctypes.data

    def view(self, dtype):
        return Tensor(self.array.view(dtype.numpy))

    def reshape(self, *shape):
        return Tensor(self.array.reshape(*shape))

    def permute(self, *axes):
        return Tensor(self.array.transpose(*axes))

    def flip(self, axis):
        return Tensor(np.flip(self.array, axis).copy())

    def __getitem__(self, index):
        return Tensor(self.array[getattr(index, "array", index)])

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def double(self):
        return Tensor(self.array.astype(np.float64))

    def long(self):
        return Tensor(self.array.astype(np.int64))

    def sum(self, dtype=None):
        return Tensor(np.asarray(self.array.sum(dtype=dtype and dtype.numpy)))

    def clamp(self, **limit):
        return Tensor(np.minimum(self.array, limit["max"]))

    def cuda(self):
        return self

    def contiguous(self):
        return Tensor(np.ascontiguousarray(self.array))

    def fill_(self, value):
        self.array[...] = value
        return self

    def zero_(self):
        return self.fill_(0)

    def copy_(self, other):
        np.copyto(self.array, other.array)
        return self

    def random_(self, low, high):
        return self.fill_(np.random.default_rng(1).integers(low, high, self.shape))

    def uniform_(self):
        return self.fill_(np.random.default_rng(1).random(self.shape))


def from_numpy(array):
    return Tensor(array)


def arange(count, device):
    assert device == "cuda"
    return Tensor(np.arange(count))


def cat(parts):
    return Tensor(np.concatenate([part.array for part in parts]))


def empty(shape, dtype, device):
    assert device == "cuda"
    return Tensor(np.empty(shape, dtype.numpy))


def _by_numpy(name):
    def method(self, other):
        return Tensor(getattr(self.array, name)(getattr(other, "array", other)))

    return method


for _name in ("add", "sub", "rsub", "mul", "floordiv", "mod"):
    setattr(Tensor, f"__{_name}__", _by_numpy(f"__{_name}__"))
Tensor.__len__ = lambda self: len(self.array)
Tensor.__float__ = lambda self: float(self.array)


def equal(a, b):
    return np.array_equal(a.array, b.array)


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, last):
        return (last.at - self.at) * 1e3


cuda = SimpleNamespace(
    Event=Event,
    empty_cache=lambda: None,
    is_available=lambda: True,
    current_stream=lambda: SimpleNamespace(cuda_stream=0),
)
