"""transpose, permute_dims, matrix_transpose: every stage, item size, awkward shape and layout gives NumPy's bytes."""

import inspect
import itertools
import random

import numpy as np
import pytest
from arrays import DTYPES, GUARD, Fenced, dense, layouts, random_bytes, raw, same
from hypothesis import given
from hypothesis import strategies as st

import gpumem

STAGES = [stage.name for stage in gpumem.stages("transpose", "cpu")]
SHAPES = [
    (1, 1),
    (1, 33),
    (33, 1),
    (31, 33),
    (33, 31),
    (32, 32),
    (64, 65),
    (100, 200),
    (127, 513),
    (7, 1025),
    (0, 7),
    (7, 0),
]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices(stage, dtype, shape):
    x = random_bytes(shape, dtype)
    result = gpumem.transpose(x, stage=stage)
    assert same(result, x.T)
    assert result.flags.c_contiguous
    assert result.flags.owndata


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", ["u1", "u2", "V3", "f4", "f8", "V12", "c16"])
def test_every_small_size_through_the_fast_and_the_slow_path(stage, dtype):
    """CASES T13: a fast path that starts at some size is right on both sides of it."""
    base = random_bytes((129, 129), dtype)
    for n, m in [*((n, n) for n in range(1, 71)), *itertools.product((127, 128, 129), repeat=2), (1, 129), (129, 2)]:
        x = base[:n, :m]
        assert same(gpumem.transpose(x, stage=stage), x.T), (n, m)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_few_long_rows_and_few_columns(dtype):
    """Larger than a last cache, for each number of rows a kernel of its own; at odd places, and no byte too many."""
    size = np.dtype(dtype).itemsize
    source = random_bytes((18 << 20,), "u1")
    for k in range(2, 36):
        n = (17 << 20) // (k * size) + k
        start, begin = (k * 5) % 64, (k * 23) % 64
        flat = source[start : start + n * k * size].view(dtype)
        for x in (flat.reshape(n, k), flat.reshape(k, n)):
            fenced = np.full(x.nbytes + 128, 0xA5, "u1")
            out = fenced[begin : begin + x.nbytes].view(dtype).reshape(x.shape[::-1])
            gpumem.transpose(x, out=out)
            assert np.array_equal(out, x.T), x.shape
            outside = np.concatenate((fenced[:begin], fenced[begin + x.nbytes :]))
            assert (outside == 0xA5).all(), x.shape


@pytest.mark.parametrize("run", [64, 67, 120, 512, 1472, 9000, 40000])
def test_runs_larger_than_a_last_cache(run):
    """They keep their bytes together and change places, to where lines are shared between them and where not."""
    shape = (7, (20 << 20) // (7 * 3 * run), 3, run)
    x = random_bytes((int(np.prod(shape)) + 64,), "u1")
    for start, begin in itertools.product((0, 16, 37), (0, 48, 63)):
        source = x[start : start + int(np.prod(shape))].reshape(shape)
        for axes in [(1, 0, 2, 3), (2, 1, 0, 3), (0, 2, 1, 3), (1, 2, 0, 3)]:
            view = source.transpose(axes)
            fenced = np.full(view.size + 128, 0xA5, "u1")
            out = fenced[begin : begin + view.size].reshape(view.shape)
            gpumem.transpose(source, axes, out=out)
            assert np.array_equal(out, view), axes
            outside = np.concatenate((fenced[:begin], fenced[begin + view.size :]))
            assert (outside == 0xA5).all(), axes


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
@pytest.mark.parametrize("first,last", [(7, 9), (5, 6), (16, 16), (31, 15), (2, 33)])
def test_two_short_axes_about_a_long_one(dtype, first, last):
    """Both are woven into it, by way of slabs: whatever lines both sides begin in, alone and in batches."""
    size = np.dtype(dtype).itemsize
    for total, (start, begin) in itertools.product((1 << 20, 20 << 20), ((0, 0), (16, 40))):
        shape = (first, total // (first * last * size) | 1, last)
        raw = random_bytes((int(np.prod(shape)) * size + 64,), "u1")
        x = raw[start : start + raw.size - 64].view(dtype).reshape(shape)
        fenced = np.full(x.nbytes + 128, 0xA5, "u1")
        out = fenced[begin : begin + x.nbytes].view(dtype).reshape(shape[::-1])
        gpumem.transpose(x, out=out)
        assert same(out, x.T)
        outside = np.concatenate((fenced[:begin], fenced[begin + x.nbytes :]))
        assert (outside == 0xA5).all()
    batch = random_bytes((3, first, 40_000 // size, last), dtype)
    assert same(gpumem.permute_dims(batch, (0, 3, 2, 1)), batch.transpose(0, 3, 2, 1))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", ["u1", "u2", "V3", "f4", "f8", "V12", "c16"])
def test_every_pair_of_start_offsets_leaves_the_guards_alone(stage, dtype):
    """CASES T07: vector widths come from the addresses of both sides, never from the dtype."""
    shape = (19, 37)
    for ahead, behind in itertools.product(range(16), repeat=2):
        source = dense(dtype, shape, ahead).view(seed=ahead)
        target = dense(dtype, shape[::-1], behind).view(fill=0xA5)
        expected, before = target.after(source.x.T), source.buffer.tobytes()
        gpumem.transpose(source.x, out=target.x, stage=stage)
        assert target.buffer.tobytes() == expected, (ahead, behind)
        assert source.buffer.tobytes() == before
    assert GUARD >= 64


@pytest.mark.parametrize("ahead, behind", [(0, 0), (0, 16), (16, 0), (16, 16), (16, 17), (40, 3)])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "c16"])
def test_runs_that_all_begin_at_one_place_inside_a_line(dtype, ahead, behind):
    """Whole lines are put together from two, and the last columns reach back to where the shift is another one."""
    size = np.dtype(dtype).itemsize
    for rows, columns in [(832, 256), (832, 1152), (833, 1024), (2048, 260), (3 * 48, 48 * 20)]:
        shape = (rows // size * 4, columns)
        source = dense(dtype, shape, ahead).view(seed=rows)
        target = dense(dtype, shape[::-1], behind).view(fill=0xA5)
        expected = target.after(source.x.T)
        gpumem.transpose(source.x, out=target.x, stage="streaming")
        assert target.buffer.tobytes() == expected, shape


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
@pytest.mark.parametrize(
    "shape, axes",
    [
        ((300, 17, 33), (0, 2, 1)),
        ((300, 33, 17), (0, 2, 1)),
        ((2000, 9, 30), (0, 2, 1)),
        ((900, 16, 32), (0, 2, 1)),
        ((70, 3, 14, 16, 5, 16), (0, 2, 4, 3, 5, 1)),
        ((900, 6, 2, 7, 11), (0, 2, 4, 3, 1)),
        ((40, 3, 50, 5), (0, 2, 3, 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("begin", [0, 16, 33])
def test_batches_of_small_boxes(dtype, shape, axes, begin):
    """Vectors that end behind a box are overwritten by the next one; behind the last box nothing is."""
    x = random_bytes(shape, dtype)
    fenced = np.full(x.nbytes + 128, 0xA5, "u1")
    out = fenced[begin : begin + x.nbytes].view(dtype).reshape([shape[axis] for axis in axes])
    gpumem.permute_dims(x, axes, out=out)
    assert same(out, x.transpose(axes))
    outside = np.concatenate((fenced[:begin], fenced[begin + x.nbytes :]))
    assert (outside == 0xA5).all()


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
@pytest.mark.parametrize("start, begin", [(0, 0), (16, 0), (0, 16), (16, 16), (16, 40)])
@pytest.mark.parametrize(
    "shape, axes",
    [
        ((4, 352, 6, 3, 48), (4, 0, 3, 2, 1)),
        ((3, 5, 1024, 64), (0, 1, 3, 2)),
        ((7, 2176, 72), (0, 2, 1)),
        ((3, 3, 3, 80, 4, 64), (1, 5, 0, 4, 2, 3)),
    ],
    ids=str,
)
def test_runs_that_share_lines_with_the_next_ones(dtype, start, begin, shape, axes):
    source, target = dense(dtype, shape, start), dense(dtype, tuple(shape[axis] for axis in axes), begin)
    x, out = source.view(seed=1), target.view(fill=0xA5)
    expected = out.after(x.x.transpose(axes))
    gpumem.transpose(x.x, axes, out=out.x, stage="streaming")
    assert out.buffer.tobytes() == expected


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", ["u1", "u2", "V3", "f4", "f8", "V12", "c16"])
def test_nothing_outside_of_the_arrays_is_touched(stage, dtype):
    """Not even read: the pages on both sides of x and out cannot be."""
    size = np.dtype(dtype).itemsize
    shapes = [
        (1, 1),
        (2, 3),
        (4, 4),
        (5, 7),
        (8, 8),
        (3, 40),
        (40, 3),
        (16, 16),
        (17, 70),
        (33, 31),
        (64, 65),
        (1000, 5),
    ]
    most = max(n * m for n, m in shapes) * size
    source, target = Fenced(most), Fenced(most)
    for shape, at_end, to_end in itertools.product([*shapes, (3, 9, 4), (2, 70, 5)], (False, True), (False, True)):
        axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
        x = source.array(shape, dtype, at_end)
        x[...] = random_bytes(shape, dtype)
        out = target.array(tuple(shape[axis] for axis in axes), dtype, to_end)
        gpumem.permute_dims(x, axes, out=out, stage=stage)
        assert same(out, x.transpose(axes)), (shape, at_end, to_end)
        strided = x[..., ::-1]
        assert same(gpumem.copy(strided), strided)


@given(layouts(), st.data())
def test_any_permutation_of_any_view(layout, data):
    axes = data.draw(st.permutations(range(len(layout.shape))))
    stage = data.draw(st.sampled_from(STAGES))
    signed = [axis - len(axes) if data.draw(st.booleans()) else axis for axis in axes]
    source = layout.view()
    before = source.buffer.tobytes()
    result = gpumem.permute_dims(source.x, signed, stage=stage)
    assert same(result, source.x.transpose(axes))
    assert result.flags.c_contiguous
    assert source.buffer.tobytes() == before


@given(st.data())
def test_any_view_into_any_view(data):
    """CASES T15: only the items of out change, never the gaps between them."""
    source = data.draw(layouts()).view()
    axes = data.draw(st.permutations(range(source.x.ndim)))
    shape = tuple(source.x.shape[axis] for axis in axes)
    target = data.draw(layouts(shape=shape, dtype=source.x.dtype, writable=True)).view(fill=0xA5)
    expected = target.after(source.x.transpose(axes))
    stage = data.draw(st.sampled_from(STAGES))
    assert gpumem.permute_dims(source.x, axes, out=target.x, stage=stage) is target.x
    assert target.buffer.tobytes() == expected


@pytest.mark.parametrize("shape", [(70, 65), (3, 70, 65), (5, 9, 300), (4, 5, 6, 7), (300, 3, 40), (2,) * 12], ids=str)
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "V12", "c16"])
def test_permutations_of_larger_arrays(shape, dtype):
    x = random_bytes(shape, dtype)
    axes, choose = range(len(shape)), random.Random(len(shape))
    orders = itertools.permutations(axes) if len(axes) < 5 else (choose.sample(axes, len(axes)) for _ in range(24))
    for axes in orders:
        assert same(gpumem.permute_dims(x, axes), x.transpose(axes)), axes


@pytest.mark.parametrize("axes", [None, (2, 1, 0)])
def test_transpose_reverses_all_axes_unless_told(axes):
    x = random_bytes((2, 3, 4), "f4")
    assert same(gpumem.transpose(x, axes), x.transpose())
    assert same(gpumem.transpose(x, axes=axes), x.transpose())


@pytest.mark.parametrize("shape", [(5, 7), (3, 5, 7), (0, 5, 7), (2, 3, 1, 9)], ids=str)
def test_matrix_transpose_swaps_the_last_two(shape):
    x = random_bytes(shape, "f4")
    assert same(gpumem.matrix_transpose(x), x.swapaxes(-1, -2))


def test_axes_may_be_any_integers_in_any_sequence():
    x = random_bytes((2, 3, 4), "f4")
    for axes in [[2, 0, 1], (-1, 0, 1), np.array([2, 0, 1]), range(2, -1, -1), (np.int8(2), np.uint64(0), True)]:
        assert same(gpumem.permute_dims(x, axes), x.transpose([int(axis) for axis in axes]))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_the_number_of_threads_changes_nothing(threads):
    x = random_bytes((1025, 1023), "f4")
    before = gpumem.get_num_threads()
    try:
        gpumem.set_num_threads(threads)
        assert gpumem.get_num_threads() == threads
        assert same(gpumem.transpose(x), x.T)
    finally:
        gpumem.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "f4", "f8", "c8", "c16", "V3"])
def test_large_matrices_byte_for_byte(dtype):
    """CASES T13: NaN payloads and odd bools go through; complex numbers are not conjugated."""
    x = random_bytes((1025, 1023), dtype)
    assert raw(gpumem.transpose(x)).tobytes() == raw(x).T.tobytes()


def test_values_that_libraries_take_for_marks_are_moved():
    """CASES T14."""
    assert gpumem.transpose(np.array([[0, -1, 2], [3, 4, 5]])).tolist() == [[0, 3], [-1, 4], [2, 5]]


@pytest.mark.parametrize(
    "function, signature",
    [
        (gpumem.transpose, "(x, /, axes=None, *, out=None, device=None, stage=None, stream=None)"),
        (gpumem.permute_dims, "(x, /, axes, *, out=None, device=None, stage=None, stream=None)"),
        (gpumem.matrix_transpose, "(x, /, *, out=None, device=None, stage=None, stream=None)"),
        (gpumem.copy, "(x, /, *, out=None, device=None, stage=None, stream=None)"),
        (
            gpumem.sum,
            "(x, /, *, axis=None, dtype=None, keepdims=False, out=None, device=None, stage=None, stream=None)",
        ),
    ],
)
def test_signatures(function, signature):
    assert str(inspect.signature(function)) == signature


def test_none_for_every_keyword_is_the_default():
    x = random_bytes((3, 4), "f4")
    assert same(gpumem.transpose(x, None, out=None, device=None, stage=None, stream=None), x.T)
    assert same(gpumem.transpose(x, device="cpu"), x.T)


@pytest.mark.parametrize("rows", [513, 640, 1023])
def test_rows_a_power_of_two_apart(rows):
    """So many of them share a set of the cache that they are copied together first; the last tile repeats some."""
    x = np.random.default_rng(rows).integers(0, 256, (rows, 1 << 16), "u1")
    for stage in ("streaming", "tuned"):
        assert np.array_equal(gpumem.transpose(x, stage=stage), x.T)
