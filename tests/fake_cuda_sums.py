"""Sums of CUDA arrays, without a GPU: run by test_cuda_arrays.py on the driver of fake_cuda.py.

Numbers are small or integers, so that every order of adding them gives the same.
"""

import math
import random

import numpy as np
import pytest
from fake_cuda import Driver

import gpumem

TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
WIDE = {"b": "i8", "i": "i8", "u": "u8", "f": "f8", "c": "c16"}
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 32, 33, 64, 65]


class Interface:
    """An array on a device by the CUDA array interface."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        array = self.array
        place = {"data": (array.ctypes.data, False), "strides": array.strides, "version": 3}
        return {"shape": array.shape, "typestr": array.dtype.str, **place}


def result_type(dtype):
    return {"b": "i8", "i": "i8", "u": "u8"}.get(np.dtype(dtype).kind, dtype)


def expected(x, axis, to):
    with np.errstate(over="ignore"):
        return x.astype(WIDE[x.dtype.kind]).sum(axis=axis).astype(to)


def numbers(draw, shape, dtype, start=0):
    """Any integers, small floats, from that byte of a line on."""
    rng, dtype = np.random.default_rng(draw.randrange(1 << 30)), np.dtype(dtype)
    memory = np.zeros(math.prod(shape) * dtype.itemsize + 192, "u1")
    first = -memory.ctypes.data % 64 + start
    x = memory[first : first + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
    if dtype.kind in "fc":
        x[...] = rng.integers(-8, 9, shape)
    elif dtype.kind == "b":
        x.view("u1")[...] = rng.integers(0, 256, shape) * rng.integers(0, 2, shape)
    else:
        limits = np.iinfo(dtype)
        x[...] = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return x


def view(draw):
    """Shapes with long rows, long columns, narrow ones; steps, gaps, reversed axes, any order, any start."""
    dtype, kind = draw.choice(TYPES), draw.randrange(6)
    shape = [draw.choice(LENGTHS) for _ in range(draw.randint(1, 4))]
    if kind == 0:
        shape[0] = draw.choice([1000, 4096, 20000])
    if kind == 1:
        shape[-1] = draw.choice([1000, 4096, 20001])
    if kind == 2:
        shape = [draw.choice([20000, 10001]), draw.randint(1, 12)]
    while math.prod(shape) > 60000:
        shape[shape.index(max(shape))] //= 2
    whole = [n * draw.choice([1, 1, 1, 2]) + draw.choice([0, 0, 0, 1, 3]) for n in shape]
    start = draw.choice([0, 0, 1, 2, 4, 8, 3]) * (np.dtype(dtype).itemsize if draw.random() < 0.8 else 1)
    x = numbers(draw, whole, dtype, start)
    for axis, n in enumerate(shape):
        before = (slice(None),) * axis
        x = x[(*before, slice(None, None, draw.choice([1, 1, 1, 2, -1])))]
        x = x[(*before, slice(0, n))]
    return x.transpose(draw.sample(range(x.ndim), x.ndim)) if draw.random() < 0.5 else x


@pytest.mark.parametrize("seed", range(8))
def test_any_view_along_any_axes(seed):
    driver, draw = Driver(), random.Random(seed)
    for _ in range(40):
        x = view(draw)
        axis = tuple(a for a in range(x.ndim) if draw.random() < 0.5)
        to = np.dtype(result_type(x.dtype) if draw.random() < 0.8 else {"i": "f4", "u": "c8"}.get(x.dtype.kind, "c16"))
        wanted = expected(x, axis, to)
        memory = np.full((*wanted.shape, 2), 7, to)
        gpumem.sum(Interface(x), axis=axis, out=Interface(memory[..., 0]), dtype=to.name)
        driver.run()
        assert np.array_equal(memory[..., 0], wanted), (x.dtype, x.shape, x.strides, axis, to)
        assert (memory[..., 1] == 7).all()


def test_host_arrays_through_the_device():
    draw = random.Random(0)
    for _ in range(30):
        x = view(draw)
        axis = tuple(a for a in range(x.ndim) if draw.random() < 0.5)
        to = result_type(x.dtype)
        assert np.array_equal(gpumem.sum(x, axis=axis, device="cuda"), expected(x, axis, to))
        out = np.full((*expected(x, axis, to).shape, 2), 7, to)
        assert gpumem.sum(x, axis=axis, out=out[..., 0], device="cuda") is not None
        assert np.array_equal(out[..., 0], expected(x, axis, to))
        assert (out[..., 1] == 7).all()
    assert gpumem.sum(np.array([1, 2], ">i4"), device="cuda") == 3
    assert gpumem.sum(np.broadcast_to(np.float32(1), (1000, 1000)), device="cuda") == 1e6
    assert gpumem.sum(np.zeros((3, 0)), axis=1, device="cuda").tolist() == [0, 0, 0]


def test_nothing_to_add():
    driver = Driver()
    for dtype in ("f4", "i8", "c16"):
        memory = np.full((5, 2), 7, dtype)
        gpumem.sum(Interface(np.zeros((5, 0), dtype)), axis=1, out=Interface(memory[:, 0]))
        driver.run()
        assert memory[:, 0].tolist() == [0] * 5
        assert not np.signbit(memory[:, 0].real).any()
        assert (memory[:, 1] == 7).all()


def test_out_that_shares_memory_or_is_misaligned():
    driver = Driver()
    x = np.arange(12, dtype="f4").reshape(3, 4).copy()
    gpumem.sum(Interface(x), axis=0, out=Interface(x[1]))
    driver.run()
    assert x[1].tolist() == [12, 15, 18, 21]
    memory = np.zeros(4 * 4 + 1, "u1")
    odd = memory[1:].view("f4")
    gpumem.sum(Interface(np.ones((3, 4), "f4")), axis=0, out=Interface(odd))
    driver.run()
    assert odd.tolist() == [3, 3, 3, 3]


def test_the_scratch_is_given_back_and_wiped():
    """Sums of many blocks leave partial sums in it, with a mark that no later launch may find."""
    driver, x = Driver(), np.ones(300_000, "f4")
    before = driver.memories
    for turn in range(3):
        out = np.zeros((), "f4")
        gpumem.sum(Interface(x), out=Interface(out))
        x[...] = turn + 2
        driver.run()
        assert out == 300_000 * (turn + 2)
    assert driver.memories == before
