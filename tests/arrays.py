"""Arrays for tests: every kind of view, in memory that is guarded on both sides."""

import ctypes
import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Array = np.ndarray[Any, np.dtype[Any]]

# One dtype for each way in which an item can be peculiar: sizes that are no power of two, both byte orders, bytes that
# are no values (bool), items that are records, with padding too, items larger than a cache line, and items of nothing.
DTYPES = [
    np.dtype(d)
    for d in [
        "?", "u1", "i2", "f2", "V3", "f4", ">i4", "V5", "S6", "V7", "f8", "c8", "M8[us]", ">m8[s]", "V12", "c16", "V24",
        "U9", "V63", "V64", "V65", "V200", "V0",
        [("a", "u1"), ("b", ">f8"), ("c", "i2", (3,))],
    ]
]  # fmt: skip
DTYPES.append(np.dtype([("a", "u1"), ("b", "f8")], align=True))

GUARD = 64  # bytes on each side; a whole cache line, the widest store there is


def raw(x: Array) -> Array:
    """The same items as plain bytes: NumPy's copies of records skip their padding, and compare NaN by value."""
    return x.view(f"V{x.itemsize}")


def same(result: Array, expected: Array) -> bool:
    """Whether shape, dtype and all bytes are the same."""
    return (result.shape, result.dtype) == (expected.shape, expected.dtype) and raw(result).tobytes() == raw(
        expected
    ).tobytes()


def random_bytes(shape: int | Sequence[int], dtype: npt.DTypeLike, seed: int = 0) -> Array:
    """A dense array whose items hold any bytes: NaN with payloads, bool that is neither 0 nor 1."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    dtype = np.dtype(dtype)
    data = np.random.default_rng(seed).bytes(math.prod(shape) * dtype.itemsize)
    return np.ndarray(shape, dtype, bytearray(data) or bytearray(1))


@dataclass(frozen=True)
class Layout:
    """Where the items of an array lie, from which a buffer and a view of it are made."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int  # bytes from the buffer's 64-byte boundary to the lowest item

    def view(self, seed: int = 0, fill: int | None = None) -> "Guarded":
        """A view in a new buffer of random bytes, or of the byte `fill`."""
        reach = [stride * max(length - 1, 0) for length, stride in zip(self.shape, self.strides, strict=True)]
        below, span = -sum(r for r in reach if r < 0), sum(map(abs, reach)) + self.dtype.itemsize
        size = 64 + GUARD + self.start + span + GUARD
        if fill is None:
            buffer = np.frombuffer(bytearray(np.random.default_rng(seed).bytes(size)), np.uint8)
        else:
            buffer = np.full(size, fill, np.uint8)
        at = -buffer.ctypes.data % 64 + GUARD + self.start
        array = np.ndarray(self.shape, self.dtype, buffer.data, at + below, self.strides)
        return Guarded(buffer, array)


@dataclass(frozen=True)
class Guarded:
    """A view, and the whole buffer that it is a view of."""

    buffer: Array
    x: Array

    def after(self, expected: Array) -> bytes:
        """What the buffer holds once `expected` has been written through the view, and nothing else."""
        whole = Guarded(self.buffer.copy(), self.x)
        at = self.x.ctypes.data - self.buffer.ctypes.data
        view = np.ndarray(self.x.shape, f"V{self.x.itemsize}", whole.buffer.data, at, self.x.strides)
        view[...] = raw(expected)
        return whole.buffer.tobytes()


def spread(shape: tuple[int, ...]) -> int:
    """The items that the memory has room for, also where an axis of length 0 leaves none."""
    return math.prod(max(length, 1) for length in shape)


class Fenced:
    """`size` bytes of pages between two that cannot be touched: an access on either side of them ends the process."""

    def __init__(self, size: int):
        page = mmap.PAGESIZE
        self.room = -(-size // page) * page
        self._pages = np.frombuffer(mmap.mmap(-1, self.room + 2 * page), np.uint8)
        self.bytes = self._pages[page : page + self.room]
        protect = ctypes.CDLL(None).mprotect
        for fence in (self._pages.ctypes.data, self.bytes.ctypes.data + self.room):
            assert protect(ctypes.c_void_p(fence), ctypes.c_size_t(page), 0) == 0

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike, at_end: bool) -> Array:
        """A dense array that touches the fence before it, or the one behind it."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return np.ndarray(shape, dtype, self.bytes, self.room - size if at_end else 0)


def fenced_planes(count: int, length: int, dtype: npt.DTypeLike, at_end: bool) -> list[Array]:
    """Arrays at equal distances, each alone between pages that cannot be touched: beside the one behind, or before."""
    size, page = length * np.dtype(dtype).itemsize, mmap.PAGESIZE
    step = -(-size // page) * page + page
    pages = np.frombuffer(mmap.mmap(-1, count * step + page), np.uint8)
    for at in range(0, pages.size, step):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(pages.ctypes.data + at), ctypes.c_size_t(page), 0) == 0
    return [np.ndarray((length,), dtype, pages, i * step + (step - size if at_end else page)) for i in range(count)]


def shapes(most: int = 6) -> st.SearchStrategy[tuple[int, ...]]:
    """Few items, but lengths on both sides of what kernels work in."""
    length = st.one_of(st.integers(0, 5), st.sampled_from([7, 8, 9, 15, 16, 17, 31, 33, 65]))
    return st.lists(length, max_size=most).map(tuple).filter(lambda shape: spread(shape) <= 20_000)


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...] | None = None, dtype: Any = None, writable: bool = False) -> Layout:
    """Axes in any order in memory, in any direction, with gaps, unaligned; repeated ones if it is only read."""
    dtype = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    if shape is None:
        shape = draw(shapes().filter(lambda shape: spread(shape) * dtype.itemsize <= 100_000))
    strides = [0] * len(shape)
    step = dtype.itemsize
    for axis in draw(st.permutations(range(len(shape)))):
        if step < 1 << 13:  # gaps, but no huge buffers
            step = step * draw(st.sampled_from([1, 1, 1, 2, 3])) + draw(st.sampled_from([0, 0, 0, 1, 4, 64]))
        kind = draw(st.sampled_from(["forward", "forward", "backward", "forward" if writable else "repeated"]))
        strides[axis] = {"forward": step, "backward": -step, "repeated": 0}[kind]
        if shape[axis] == 1:
            strides[axis] = draw(st.sampled_from([strides[axis], 0, -8, 2**40]))  # means nothing
        elif kind != "repeated":
            step *= max(shape[axis], 1)
    return Layout(dtype, shape, tuple(strides), draw(st.integers(0, 63)))


def dense(dtype: npt.DTypeLike, shape: tuple[int, ...], start: int = 0) -> Layout:
    """C order, at any offset from a 64-byte boundary."""
    dtype = np.dtype(dtype)
    strides = tuple(dtype.itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape)))
    return Layout(dtype, shape, strides, start)
