"""sum: every stage is right for every type, shape, axis and layout, within the error that csrc/cpu/sum.h states."""

import itertools
import math

import numpy as np
import pytest
from arrays import dense, layouts
from dlpack_abi import Producer
from hypothesis import given
from hypothesis import strategies as st

import gpumem

STAGES = [stage.name for stage in gpumem.stages("reduce", "cpu")]
INTEGERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
TYPES = [*INTEGERS, *FLOATS, "c8", "c16"]

DIGITS = {"f2": 11, "f4": 24, "f8": 53}
SMALLEST = {"f2": 2.0**-24, "f4": 2.0**-149, "f8": 0.0}


def some(shape, dtype, seed=0):
    """Any integers; floats of very different sizes, whose sums cancel."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 256, shape, np.uint8).view("?")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    with np.errstate(over="ignore"):
        x = (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 8, shape))).astype(dtype)
        if dtype.kind == "c":
            x += x.dtype.type(1j) * rng.standard_normal(shape).astype(x.real.dtype)
    return x


def lines(x, axis):
    """For each result, the items that make it up."""
    axes = [a % x.ndim for a in axis]
    left = [a for a in range(x.ndim) if a not in axes]
    count = math.prod(x.shape[a] for a in axes)
    return x.transpose(*left, *axes).reshape(math.prod(x.shape[a] for a in left), count)


def close(got, items, stage, kind):
    """Whether `got` is the sum of the items, rounded once to its own type, but for the error of adding in float64."""
    name, items = got.dtype.str[1:], items.astype("f8").tolist()
    exact, magnitude = math.fsum(items), math.fsum(map(abs, items))
    plain = stage in ("naive", "unrolled")
    depth = 1 + (len(items) if plain else 64 + math.log2(max(len(items), 1)))
    error = magnitude * (depth * 2.0**-53 + (2.0**-23 if kind == "f2" and not plain else 0))
    if not np.isfinite(got):
        return abs(exact) + error >= np.finfo(got.dtype).max
    rounding = max((abs(exact) + error) * 2.0 ** -DIGITS[name], SMALLEST[name] / 2)
    return abs(float(got) - exact) <= error + rounding


def right(result, x, axis, stage):
    """Compares with Python's integers and fractions, which do not round."""
    rows = lines(x, axis)
    results = result.reshape(len(rows))
    if x.dtype.kind in "biu":
        wrap = 2**64
        whole = (rows.view("u1") != 0) if x.dtype.kind == "b" else rows
        return all(int(got) % wrap == sum(map(int, row)) % wrap for got, row in zip(results, whole, strict=True))
    parts = [(results.real, rows.real), (results.imag, rows.imag)] if x.dtype.kind == "c" else [(results, rows)]
    kind = x.dtype.str[1:]
    return all(close(got, row, stage, kind) for r, i in parts for got, row in zip(r, i, strict=True))


def result_type(dtype):
    return {"b": np.dtype("i8"), "i": np.dtype("i8"), "u": np.dtype("u8")}.get(np.dtype(dtype).kind, np.dtype(dtype))


def axes_of(draw, ndim):
    return tuple(axis for axis in range(ndim) if draw(st.booleans()))


@given(st.data())
def test_any_view_along_any_axes(data):
    dtype = np.dtype(data.draw(st.sampled_from(TYPES)))
    source = data.draw(layouts(dtype=dtype)).view(fill=0)
    if all(stride for stride in source.x.strides):
        source.x[...] = some(source.x.shape, dtype, data.draw(st.integers(0, 9)))
    axis = axes_of(data.draw, source.x.ndim)
    for stage in STAGES:
        result = gpumem.sum(source.x, axis=axis, stage=stage)
        assert result.dtype == result_type(dtype)
        assert result.shape == tuple(n for a, n in enumerate(source.x.shape) if a not in axis)
        assert right(result, source.x, axis, stage)


@given(st.data())
def test_into_any_view(data):
    """The gaps of out, and what lies round it, keep their bytes."""
    dtype = np.dtype(data.draw(st.sampled_from(TYPES)))
    x = some(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)), dtype)
    axis = axes_of(data.draw, x.ndim)
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axis)
    layout = data.draw(layouts(shape=shape, dtype=result_type(dtype), writable=True))
    for stage in STAGES:
        target = layout.view(fill=0xA5)
        gaps = np.frombuffer(target.after(np.zeros(shape, target.x.dtype)), "u1") == 0xA5
        assert gpumem.sum(x, axis=axis, out=target.x, stage=stage) is target.x
        assert right(target.x, x, axis, stage)
        assert (target.buffer[gaps] == 0xA5).all()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", TYPES)
def test_every_length(stage, dtype):
    """CASES R05: no size of block, vector or tail is special."""
    most = 1100
    x = some(most, dtype)
    ones = np.ones(2**17 + 1, dtype)
    for n in range(most + 1):
        assert gpumem.sum(ones[:n], stage=stage) == n
    for n in [*range(140), 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, most]:
        assert right(gpumem.sum(x[:n], stage=stage), x[:n], (0,), stage)
    for n in [2**k + d for k in range(11, 18) for d in (-1, 0, 1)]:
        assert gpumem.sum(ones[:n], stage=stage, dtype="c16" if dtype[0] == "c" else "f8") == n


def test_cases_of_r05():
    assert [gpumem.sum(np.array([4, 1, 0]), stage=stage).item() for stage in STAGES] == [5] * len(STAGES)
    assert [gpumem.sum(np.array([5.0]), stage=stage).item() for stage in STAGES] == [5.0] * len(STAGES)


# Shapes in which rows are short, long, few, many, wide, and wider than a strip.
MATRICES = [(1, 5), (5, 1), (100, 2), (99, 3), (300, 4), (301, 5), (77, 8), (70, 13), (60, 31), (257, 40)]
MATRICES += [(2, 1000), (9, 600), (2, 9000)]


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("shape", MATRICES, ids=str)
def test_matrices(shape, dtype):
    """Rows and columns, whole, in steps, backwards, and with the axes exchanged."""
    whole = some((shape[0] * 2, shape[1] * 2), dtype)
    part = whole[: shape[0], : shape[1]]
    views = [part.copy(), part, part[::-1, ::-1], whole[::2, ::2], whole[::-2, 1::2]]
    for x, axis in itertools.product(views, [(0,), (1,), (0, 1), ()]):
        assert right(gpumem.sum(x, axis=axis), x, axis, "tuned")
        assert right(gpumem.sum(x.T, axis=axis), x.T, axis, "tuned")


@pytest.mark.parametrize("dtype", [*INTEGERS, "f2", "f4", "c8"])
def test_short_rows(dtype):
    """Several rows in one vector: of every length, dense and with gaps, down to the last row of the buffer."""
    for n, gap in itertools.product(range(1, 70), [0, 1, 2, 5]):
        x = some((35, n + gap), dtype, n)[:, gap:]
        if np.dtype(dtype).kind in "iu":
            assert np.array_equal(gpumem.sum(x, axis=1), x.sum(1, result_type(dtype)))
        else:
            assert right(gpumem.sum(x, axis=1), x, (1,), "tuned")


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("shape", [(1_500_001, 3), (300_007, 17), (40_003, 100), (5, 900_000), (700, 40_000)], ids=str)
def test_large_matrices(shape, dtype):
    """Rows joined to wide ones, many slabs, results past the caches: whole numbers, whose sums every type can hold."""
    few = np.random.default_rng(0).integers(0, 2, 10_007, "i1")
    x = np.resize(few, shape).astype(dtype)
    for axis in (0, 1):
        with np.errstate(over="ignore"):
            expected = x.sum(axis, "c16" if dtype == "c8" else "f8").astype(result_type(dtype))
        assert np.array_equal(gpumem.sum(x, axis=axis), expected)


@pytest.mark.parametrize("dtype", ["i1", "u2", "f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("axis", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_three_axes(axis, dtype):
    x = some((5, 11, 40), dtype)
    for view in [x, x.transpose(2, 0, 1), x[::-1, ::3, 1::2], x.transpose(1, 0, 2)[:, :, :3]]:
        for stage in STAGES:
            assert right(gpumem.sum(view, axis=axis, stage=stage), view, axis, stage)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_offset(dtype):
    """CASES T07: no alignment is taken for granted; guards on both sides are neither read into the sum nor written."""
    for start, shape in itertools.product(range(16), [(37,), (9, 19), (40, 3)]):
        source = dense(dtype, shape, start).view(fill=0xFF)
        source.x[...] = some(shape, dtype, start)
        for axis in [tuple(range(len(shape))), (0,), (-1,)]:
            assert right(gpumem.sum(source.x, axis=axis), source.x, axis, "tuned")


# ---- values ----


@pytest.mark.parametrize("n, total", [(2**24 + 10, 16777226.0), (2 * 10**7, 20000000.0), (2**28 + 1, 268435456.0)])
def test_more_ones_than_float32_counts(n, total):
    """CASES R01: the same along every axis and stride."""
    if n < 2**28:
        pair = np.ones((n, 2), "f4")
        assert gpumem.sum(pair, axis=0).tolist() == [total, total]
        assert gpumem.sum(pair.T, axis=1).tolist() == [total, total]
        assert gpumem.sum(pair[::-1, 1]) == total
        assert gpumem.sum(np.broadcast_to(np.float32(1), (n,))) == total
    ones = np.ones(n, "f4")
    assert gpumem.sum(ones) == total
    assert gpumem.sum(ones, dtype="f8") == n


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "x, total",
    [
        (np.full(3, 2**31 - 1, "i4"), np.int64(6442450941)),
        (np.arange(100, dtype="u1"), np.uint64(4950)),
        (np.ones(100_000, "?"), np.int64(100_000)),
        (np.array([0, 1, 2, 128, 255], "u1").view("?"), np.int64(4)),
        (np.array([2**63 - 1, 1]), np.int64(-(2**63))),
        (np.array([2**64 - 1, 2], "u8"), np.uint64(1)),
        (np.array([], "i1"), np.int64(0)),
        (np.full(300, -128, "i1"), np.int64(-38400)),
        (np.full(300, 255, "u1"), np.uint64(76500)),
    ],
    ids=lambda value: f"{value.dtype}",
)
def test_integers(stage, x, total):
    """CASES R04."""
    result = gpumem.sum(x, stage=stage)
    assert (result.dtype, result) == (total.dtype, total)


@pytest.mark.parametrize("dtype", ["i1", "u1", "?", "i2", "u2", "i4", "u4"])
def test_extreme_integers_in_columns(dtype):
    """Partial sums of narrow integers fill their fields to the last bit."""
    dtype = np.dtype(dtype)
    low, high = (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for value, rows in itertools.product([low, high], [1, 255, 256, 257, 1024]):
        x = np.full((rows, 300), value, dtype)
        assert (gpumem.sum(x, axis=0) == int(value) * rows).all()
        assert gpumem.sum(x) == int(value) * rows * 300


@pytest.mark.parametrize("dtype", ["i1", "u1", "?", "i2", "u2", "i4", "u4"])
def test_extreme_integers_in_rows(dtype):
    """Rows as long as one call takes, and longer, with and without gaps; what lies in the gaps is extreme too."""
    dtype = np.dtype(dtype)
    low, high = (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for value, other in [(low, high), (high, low)]:
        for n in (33, 4096, 131_072, 262_144, 300_007):
            x = np.full((9, n + 40), other, dtype)
            x[:, :n] = value
            assert (gpumem.sum(x[:, :n], axis=1) == int(value) * n).all()
            assert (gpumem.sum(x, axis=1) == int(value) * n + int(other) * 40).all()


@pytest.mark.parametrize("dtype", ["i1", "u1", "?", "i2", "u2", "i4", "u4"])
@pytest.mark.parametrize("rows, start", [(2, 0), (5, 1), (8, 7)])
def test_long_sums_of_few_rows_of_integers(rows, start, dtype):
    """Results past the caches, from anywhere in a line, and not a word beyond them."""
    n = 2_200_011
    x = some((rows, n), "u1").astype(dtype) if dtype == "?" else some((rows, n), dtype)
    memory = np.full(start + n + 1, 77, np.int64)
    out = memory[start : start + n].view("u8" if dtype[0] == "u" else "i8")
    for view in (x, x[:, ::-1]):
        gpumem.sum(view, axis=0, out=out)
        assert np.array_equal(out, view.sum(axis=0, dtype=out.dtype))
        assert (memory[:start] == 77).all()
        assert memory[-1] == 77


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", [*FLOATS, "c8", "c16"])
def test_nan_and_infinities(stage, dtype):
    """CASES R07."""
    for items in [[np.nan, -1, 0, 1], [3, 1, 7, np.nan], [-np.inf, np.nan], [np.nan, np.nan], [np.inf, -np.inf, 1]]:
        assert np.isnan(gpumem.sum(np.array(items, dtype), stage=stage).real)
    assert gpumem.sum(np.array([1, np.inf, 2], dtype), stage=stage).real == np.inf
    for n in range(1, 131):
        x = np.ones(n, dtype)
        for at in range(n):
            x[at] = np.nan
            assert np.isnan(gpumem.sum(x, stage=stage).real)
            x[at] = 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_stays_in_its_row_and_column(dtype):
    x = np.ones((200, 100), dtype)
    x[7, 9], x[150, 99] = np.nan, -np.inf
    rows, columns = gpumem.sum(x, axis=1), gpumem.sum(x, axis=0)
    assert (np.flatnonzero(np.isnan(rows)).tolist(), np.flatnonzero(np.isnan(columns)).tolist()) == ([7], [9])
    assert (rows[150], columns[99]) == (-np.inf, -np.inf)
    every_second = gpumem.sum(x[:, ::2], axis=1)
    assert np.isfinite(every_second).all()


@pytest.mark.parametrize("stage", STAGES)
def test_float16_overflows_at_the_end_only(stage):
    x = np.array([60000, 60000, -60000, -60000] * 100, "f2")
    assert gpumem.sum(x, stage=stage) == 0
    assert gpumem.sum(np.full(1000, 65504, "f2"), stage=stage) == np.inf
    assert gpumem.sum(np.full(1000, 65504, "f2"), dtype="float32", stage=stage) == 65504000
    assert gpumem.sum(np.array([65504, 15.99], "f2"), stage=stage) == 65504


@pytest.mark.parametrize("stage", STAGES)
def test_bfloat16(stage):
    """Among them the largest ones: four of them in float32 would overflow, where their sum does not."""
    for shape, axis in [((640,), 0), ((64, 48), 0), ((48, 64), 1)]:
        bits = np.full(shape, 0x3F80, "u2")
        assert (
            np.from_dlpack(gpumem.sum(Producer(bits, dtype=(4, 16, 1)), axis=axis, dtype="float32", stage=stage))
            == shape[axis]
        ).all()
        sign = np.arange(shape[axis]).reshape((-1, 1) if axis == 0 and len(shape) == 2 else (-1,)) // 4 % 2
        bits = np.where(sign, 0xFF7F, 0x7F7F).astype("u2") + np.zeros(shape, "u2")
        assert (
            np.from_dlpack(gpumem.sum(Producer(bits, dtype=(4, 16, 1)), axis=axis, dtype="float32", stage=stage)) == 0
        ).all()


def test_negative_zero():
    for n, dtype in itertools.product([1, 3, 8, 100, 5000], FLOATS):
        assert np.signbit(gpumem.sum(np.full(n, -0.0, dtype)))
        assert np.signbit(gpumem.sum(np.full((3, n), -0.0, dtype), axis=1)).all()
        assert np.signbit(gpumem.sum(np.full((n, 5), -0.0, dtype), axis=0)).all()


def test_broadcast():
    """CASES T10."""
    assert gpumem.sum(np.broadcast_to([5.0], (1000,))) == 5000.0
    row, column = np.arange(1000.0), np.arange(1000.0)[:, None]
    for x, axis in itertools.product([row, column], [0, 1, None]):
        x = np.broadcast_to(x, (1000, 1000))
        assert np.array_equal(gpumem.sum(x, axis=axis), x.sum(axis=axis))


# ---- result types ----


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", TYPES)
def test_result_types(stage, dtype):
    """Any type that is no lesser a kind; the rest is refused."""
    x = np.arange(100).astype(dtype).reshape(10, 10)
    rank = {"b": 0, "i": 0, "u": 0, "f": 1, "c": 2}
    for other in TYPES:
        kind, to = x.dtype.kind, np.dtype(other)
        if rank[to.kind] < rank[kind] or (to.kind == "b" and kind != "b"):
            with pytest.raises(TypeError, match="cannot be given as"):
                gpumem.sum(x, axis=0, dtype=other, stage=stage)
        else:
            expected = gpumem.sum(x, axis=0).astype(to)
            result = gpumem.sum(x, axis=0, dtype=other, stage=stage)
            assert (result.dtype, result.tolist()) == (to, expected.tolist())


HALVES = [1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-25, 2.0**-25 + 2.0**-60, 65519.999999, 65520.0]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("value", HALVES)
def test_results_are_rounded_once(value, stage):
    """To nearest even: through float32, some of these would be rounded twice."""
    with np.errstate(over="ignore"):
        expected = np.array(value).astype("f2")
    assert gpumem.sum(np.array([value, -0.0]), dtype="f2", stage=stage).tobytes() == expected.tobytes()


@pytest.mark.parametrize("stage", STAGES)
def test_many_results_are_rounded_once(stage):
    """Every float16, the ties between them, and what is next to a tie."""
    halves = np.arange(1 << 16, dtype="u2").view("f2")
    halves = np.sort(halves[np.isfinite(halves)].astype("f8"))
    ties = (halves[:-1] + halves[1:]) / 2
    x = np.concatenate([halves, ties, np.nextafter(ties, 1e9), np.nextafter(ties, -1e9), [65520, np.inf, np.nan]])
    with np.errstate(over="ignore"):
        expected = x.astype("f2")
    pairs = np.stack([x, np.full_like(x, -0.0)], 1)
    assert gpumem.sum(pairs, axis=1, dtype="f2", stage=stage).tobytes() == expected.tobytes()


# ---- the same bits ----


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_threads_change_no_bit(dtype):
    before = gpumem.get_num_threads()
    shapes = [(3_000_000,), (3000, 1000), (300_000, 10), (10, 300_000), (40, 75, 1000)]
    try:
        for shape in shapes:
            x = some(shape, dtype)
            for axis in [None, *range(len(shape))]:
                found = set()
                for threads in [1, 2, 3, 7]:
                    gpumem.set_num_threads(threads)
                    found.add(gpumem.sum(x, axis=axis).tobytes())
                found.add(gpumem.sum(x, axis=axis, stage="simd").tobytes())
                assert len(found) == 1
    finally:
        gpumem.set_num_threads(before)


@pytest.mark.parametrize("stage", STAGES)
def test_16_bit_floats_that_cancel(stage):
    """Four of them may meet in float32: the error is that of its rounding, next to the largest."""
    for shape, axis, places in [((64,), 0, (0, 16, 32)), ((8, 64), 0, (0, 64, 128))]:
        x = np.zeros(shape, "f2")
        x.flat[list(places)] = 65504, 0.25, -65504
        got = gpumem.sum(x, axis=axis, dtype="f4", stage=stage)
        assert np.abs(got - x.astype("f8").sum(axis)).max() <= 65504 * 2.0**-23


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_few_float16_at_millions_of_places(axis, k):
    """Up to four meet in float32, in pairs, wherever input and results begin; nothing beside the results is written."""
    n = 4_300_007
    raw = np.random.default_rng(k).integers(0, 0x7800, n * k + 8, dtype="u2")  # finite, of either size
    raw ^= np.random.default_rng(k + 9).integers(0, 2, raw.size, dtype="u2") << 15
    for start, begin in ((0, 0), (3, 5)):
        x = raw[start : start + n * k].view("f2").reshape((k, n) if axis == 0 else (n, k))
        fenced = np.full(n + 64, 0xAAAA, "u2")
        out = fenced[begin : begin + n].view("f2")
        gpumem.sum(x, axis=axis, out=out)
        a, b, c, d = [*(x if axis == 0 else x.T).astype("f4"), *np.zeros((4 - k, n), "f4")]
        wanted = (a + b) + (c + d) if axis == 0 else (a + c) + (b + d)
        with np.errstate(over="ignore"):  # some sums are beyond float16: inf
            assert np.array_equal(out, wanted.astype("f2"))
        assert (np.concatenate((fenced[:begin], fenced[begin + n :])) == 0xAAAA).all()
