"""out=: filled and returned, whatever memory it shares with the input; refused where it shares some with itself."""

import itertools
import math

import numpy as np
import pytest
from arrays import layouts, random_bytes, raw, same
from hypothesis import given
from hypothesis import strategies as st

import gpumem
from gpumem import _core

SQUARES = ["u1", "u2", "V3", "f4", "f8", "V12", "c16", "V65"]
STAGES = [None, *(stage.name for stage in gpumem.stages("transpose", "cpu"))]


def transposed_in_place(x, axes=None):
    """NumPy's answer, from a copy."""
    return x.copy().transpose(axes)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", SQUARES)
@pytest.mark.parametrize("n", [1, 2, 3, 16, 31, 64, 65, 129, 300])
def test_squares_in_place(stage, dtype, n):
    """CASES T02 (a)."""
    x = random_bytes((n, n), dtype)
    expected = transposed_in_place(raw(x)).tobytes()
    assert gpumem.transpose(x, out=x, stage=stage) is x
    assert x.tobytes() == expected


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
@pytest.mark.parametrize(
    "shape",
    [(80, 5, 5), (7, 33, 33), (3, 2, 20, 20), (0, 4, 4), (40, 64, 64), (9, 5, 71, 71), (300, 100, 100)],
    ids=str,
)
def test_stacks_of_squares_in_place(shape, dtype):
    """CASES T02 (b)."""
    x = random_bytes(shape, dtype)
    expected = raw(x).copy().swapaxes(-1, -2).tobytes()
    assert gpumem.matrix_transpose(x, out=x) is x
    assert x.tobytes() == expected


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "c16"])
@pytest.mark.parametrize("more", [0, 1, 15, 33, -1])
def test_large_squares_in_place(more, dtype):
    """Past the caches: tiles that end anywhere, rows that begin anywhere in a cache line, also from the last one on."""
    n, size = 1024 * 4 // math.isqrt(np.dtype(dtype).itemsize) + more, np.dtype(dtype).itemsize
    for start, step in [(0, 1), (size, 1), (16, -1)]:
        buffer = random_bytes(n * n * size + 64, "u1")
        x = buffer[start : start + n * n * size].view(dtype).reshape(n, n)
        before, expected = buffer.copy(), x[::step].T.copy()
        gpumem.transpose(x[::step], out=x[::step])
        assert x[::step].tobytes() == expected.tobytes()
        x[::step] = expected.T
        assert np.array_equal(buffer, before)
    stack = random_bytes((9, n // 3, n // 3), dtype)
    expected = raw(stack).copy().swapaxes(1, 2).tobytes()
    assert gpumem.matrix_transpose(stack, out=stack).tobytes() == expected


@given(st.data())
def test_any_axes_of_equal_length_in_place(data):
    """Permutations of strided, unaligned, reversed views into themselves: of two axes, of three, of all."""
    n = data.draw(st.integers(1, 9))
    shape = tuple(data.draw(st.lists(st.sampled_from([n, n, 2]), min_size=1, max_size=5)))
    axes = data.draw(st.permutations(range(len(shape))).filter(lambda p: [shape[i] for i in p] == list(shape)))
    view = data.draw(layouts(shape=shape, writable=True)).view()
    expected = view.after(raw(view.x).copy().transpose(axes).view(view.x.dtype))
    gpumem.permute_dims(view.x, axes, out=view.x)
    assert view.buffer.tobytes() == expected


@pytest.mark.parametrize(
    "index",
    [
        (np.s_[:-1], np.s_[1:]),
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-5], np.s_[5:]),
        (np.s_[:], np.s_[::-1]),
        (np.s_[:], np.s_[:]),
        (np.s_[1::2], np.s_[::2]),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(8,), (1000,), (24, 50), (1024, 300)], ids=str)
def test_shifts_inside_one_buffer(shape, index):
    """CASES T01: as if the source had been copied first."""
    for dtype in ["u1", "f4", "V3"]:
        x = random_bytes(shape, dtype)
        source, target = index
        expected = x.copy()
        expected[target] = x[source].copy()
        gpumem.copy(x[source], out=x[target])
        assert same(x, expected)


@pytest.mark.parametrize("shift", range(9))
def test_shifts_by_bytes(shift):
    """CASES T01: items overlap in part."""
    for back in (False, True):
        buffer = np.arange(64, dtype=np.uint8)
        low, high = buffer[:32].view("f8"), buffer[shift : shift + 32].view("f8")
        source, target = (high, low) if back else (low, high)
        expected = source.tobytes()
        gpumem.copy(source, out=target)
        assert target.tobytes() == expected


def test_a_matrix_into_its_own_memory_in_another_shape():
    """CASES T02 (c)."""
    x = np.arange(24).reshape(4, 6)
    gpumem.transpose(x, out=x.reshape(6, 4))
    said = "0,6,12,18,1,7,13,19,2,8,14,20,3,9,15,21,4,10,16,22,5,11,17,23"
    assert ",".join(map(str, x.ravel())) == said


@given(st.data())
def test_any_two_views_of_one_buffer(data):
    """Overlap in every degree, from none to all: always as if the source had been copied first."""
    itemsize = data.draw(st.sampled_from([1, 2, 3, 4, 8]))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))

    def view(steps, writable):
        strides, step = [], itemsize if writable else data.draw(st.integers(0, 9))
        for length in shape[::-1]:
            strides.insert(0, step * data.draw(st.sampled_from([1, -1])))
            step = step * length + data.draw(st.sampled_from(steps))
        reach = [stride * (length - 1) for stride, length in zip(strides, shape, strict=True)]
        low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        return low, high, strides

    low, high, strides = view([0, 0, 1, 3], writable=True)
    source_low, source_high, source_strides = view([0, 0, 1, 3], writable=False)
    size = max(high - low, source_high - source_low) + itemsize + data.draw(st.integers(0, 16))
    buffer = np.frombuffer(bytearray(np.random.default_rng(size).bytes(size)), np.uint8)
    at = data.draw(st.integers(-low, size - itemsize - high))
    source_at = data.draw(st.integers(-source_low, size - itemsize - source_high))
    out = np.ndarray(shape, f"V{itemsize}", buffer.data, at, strides)
    x = np.ndarray(shape, f"V{itemsize}", buffer.data, source_at, source_strides)

    expected = buffer.copy()
    np.ndarray(shape, f"V{itemsize}", expected.data, at, strides)[...] = x.copy()
    gpumem.copy(x, out=out)
    assert buffer.tobytes() == expected.tobytes()


def test_interleaved_views_are_no_overlap():
    """Two views that share no element need no temporary: this works with every allocation failing."""
    x = np.arange(20.0)
    record = np.zeros((4, 5), [("a", "f4"), ("b", "f4")])
    record["a"] = np.arange(20).reshape(4, 5)
    _core._fail_allocation(0)
    try:
        gpumem.copy(x[::2], out=x[1::2], stage="naive")
        gpumem.copy(record["a"], out=record["b"], stage="naive")
    finally:
        _core._fail_allocation(-1)
    assert x.tolist() == np.repeat(np.arange(0.0, 20, 2), 2).tolist()
    assert (record["a"] == record["b"]).all()


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1), ()])
def test_sums_into_their_own_input(axis):
    x = np.arange(12.0).reshape(3, 4)
    expected = np.sum(x, axis=axis)
    out = {0: x[1], 1: x[:, 2], None: x[1, 1:2].reshape(()), (0, 1): x[2, 3:].reshape(()), (): x[::-1]}[axis]
    assert gpumem.sum(x, axis=axis, out=out) is out
    assert (out == expected).all()


@pytest.mark.parametrize(
    "shape, strides, refused",
    [
        ((5, 5), (4, 0), True),
        ((5,), (0,), True),
        ((4,), (3,), True),
        ((4, 4), (4, 4), True),
        ((4, 4), (-4, 4), True),
        ((3, 2), (8, 4), False),
        ((2, 2), (12, 8), False),
        ((2, 3), (4, 8), False),
        ((3, 3), (8, 12), False),
        ((1, 4), (0, 4), False),
        ((0, 4), (0, 0), False),
        ((2, 3, 2), (24, 8, 4), False),
        ((2, 3, 2), (20, 8, 4), True),
        ((2, 2), (1 << 20, 3), True),
    ],
    ids=str,
)
def test_outs_that_overlap_themselves(shape, strides, refused):
    """CASES T10: refused where two indices share memory, and only there, whatever the strides."""
    buffer = np.full((1 << 20) + 64, 7, np.uint8)
    out = np.ndarray(shape, "i4", buffer.data, 12, strides)
    x = random_bytes(shape, "i4")
    if refused:
        with pytest.raises(ValueError, match="out has items that share memory with one another"):
            gpumem.copy(x, out=out)
        assert (buffer == 7).all()
    else:
        gpumem.copy(x, out=out)
        assert same(out.copy(), x)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-12, 12)), min_size=1, max_size=4), st.integers(1, 5))
def test_self_overlap_is_what_counting_addresses_says(axes, itemsize):
    shape, strides = zip(*axes, strict=True)
    starts = [
        sum(i * stride for i, stride in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    ]
    touched = [start + byte for start in starts for byte in range(itemsize)]
    buffer = np.zeros(400, np.uint8)
    out = np.ndarray(shape, f"V{itemsize}", buffer.data, 200, strides)
    x = random_bytes(shape, f"V{itemsize}")
    if len(set(touched)) < len(touched):
        with pytest.raises(ValueError, match="share memory with one another"):
            gpumem.copy(x, out=out)
    else:
        gpumem.copy(x, out=out)
        assert out.tobytes() == x.tobytes()


def test_out_may_be_anything_that_matches():
    x = random_bytes((3, 4), ">i4")
    out = np.empty((4, 3), np.dtype("i4").newbyteorder(">"))
    assert gpumem.transpose(x, out=out) is out
    assert same(out, x.T)
    fortran = np.empty((4, 3), ">i4", order="F")
    assert gpumem.transpose(x, out=fortran) is fortran
    assert same(fortran, x.T)
