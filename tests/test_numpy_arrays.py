"""What NumPy can hand over: any rank, dtype, stride and flag; and what comes back."""

import re
from pathlib import Path

import numpy as np
import pytest
from arrays import DTYPES, Fenced, dense, random_bytes, same
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import gpumem


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_stay_what_they_are(dtype):
    x = random_bytes((3, 5, 2), dtype)
    for result, expected in [
        (gpumem.copy(x), x),
        (gpumem.transpose(x), x.T),
        (gpumem.permute_dims(x, (1, 0, 2)), x.transpose(1, 0, 2)),
        (gpumem.matrix_transpose(x), x.swapaxes(1, 2)),
    ]:
        assert same(result, expected)
        assert type(result) is np.ndarray


@pytest.mark.parametrize("text", ["S0", "U0", "V0"])
def test_items_of_no_bytes(text):
    """They come out as NumPy's own copies do: empty strings, with room for one character."""
    x = np.full((2, 3), 7, [("nothing", "u1"), ("something", "i4")])
    x = x.view([("nothing", text), ("something", "i4"), ("rest", "u1")])["nothing"]
    assert x.itemsize == 0
    assert same(gpumem.transpose(x), x.T.copy())
    assert same(gpumem.copy(x), x.copy())


@pytest.mark.parametrize("ndim", [0, 1, 2, 31, 32, 33, 63, 64])
def test_every_rank(ndim):
    if ndim > 32 and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("NumPy 1 has at most 32 axes")
    lengths = {0: 2, ndim // 2: 3, ndim - 1: 5}
    shape = tuple(lengths.get(axis, 1) for axis in range(ndim))
    x = random_bytes(shape, "f4")
    assert same(gpumem.copy(x), x)
    assert same(gpumem.transpose(x), x.T)
    assert gpumem.sum(np.ones(shape, "u1")) == np.prod(shape, initial=1)


def test_64_axes_that_are_all_needed():
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("NumPy 1 has at most 32 axes")
    base = random_bytes(1 << 14, "u1")
    strides = [1 << axis for axis in range(14)] + [0] * 50
    x = as_strided(base, (2,) * 14 + (1,) * 50, strides)
    assert same(gpumem.copy(x), x)
    repeated = as_strided(base, (2,) * 10 + (1,) * 50 + (2,) * 4, [3**axis % 1000 for axis in range(64)])
    assert same(gpumem.copy(repeated), repeated)


def test_zero_dimensional_arrays():
    x = np.array(3.5)
    for result in [gpumem.copy(x), gpumem.transpose(x), gpumem.permute_dims(x, ()), gpumem.sum(x)]:
        assert (type(result), result.shape, result.dtype, float(result)) == (np.ndarray, (), x.dtype, 3.5)
    out = np.array(0.0)
    assert gpumem.copy(x, out=out) is out
    assert out == 3.5


@given(
    st.lists(st.sampled_from([0, 0, 1, 2, 3, 128]), min_size=1, max_size=4).filter(lambda shape: 0 in shape), st.data()
)
def test_arrays_of_nothing(shape, data):
    """CASES T04: no division by zero, nothing read, nothing written, and the right shape."""
    x = np.zeros(shape, data.draw(st.sampled_from(["f4", "V3"])))
    x = as_strided(
        x, shape, data.draw(st.lists(st.sampled_from([0, 4, -8, 2**40]), min_size=len(shape), max_size=len(shape)))
    )
    axes = data.draw(st.permutations(range(len(shape))))
    assert gpumem.copy(x).shape == x.shape
    assert gpumem.permute_dims(x, axes).shape == x.transpose(axes).shape
    assert gpumem.permute_dims(x, axes, out=np.empty_like(x.transpose(axes))).shape == x.transpose(axes).shape
    if x.dtype == "f4":
        axis = data.draw(st.sampled_from([None, *range(len(shape))]))
        total = gpumem.sum(x, axis=axis)
        assert (total.shape, total.dtype) == (np.sum(x, axis=axis).shape, x.dtype)
        assert not total.any()


def test_a_sum_of_nothing_fills_strided_outs_with_zeros():
    out = np.full((3, 2), 7.0)
    gpumem.sum(np.zeros((0, 3)), axis=0, out=out[:, 0])
    assert out.tolist() == [[0, 7], [0, 7], [0, 7]]


@pytest.mark.parametrize(
    "shape, strides, canonical",
    [
        ((1, 10, 20), (-1600, 160, 8), (1600, 160, 8)),
        ((2, 1, 3, 4, 5), (480, 960, 160, 40, 8), (480, 480, 160, 40, 8)),
        ((7, 1, 1), (8, 2**50, -3), (8, 8, 8)),
        ((1, 1), (0, 0), (8, 8)),
    ],
    ids=str,
)
def test_strides_of_axes_of_length_1_mean_nothing(shape, strides, canonical):
    """CASES T03."""
    x = as_strided(random_bytes(200, "f8"), shape, strides)
    result = gpumem.copy(x)
    assert same(result, x)
    assert result.strides == canonical
    assert same(gpumem.transpose(x), x.T)


@pytest.mark.parametrize("shape", [(1000,), (1000, 1000), (3, 70, 1, 65)], ids=str)
def test_broadcast_arrays_are_written_out(shape):
    """CASES T10: only the items that exist are read; the result is dense."""
    for base in [
        np.full((1,) * len(shape), 5.0, "f4"),
        random_bytes(shape[-1], "f4"),
        random_bytes((*shape[:-1], 1), "f4"),
    ]:
        x = np.broadcast_to(base, shape)
        assert same(gpumem.copy(x), x)
        assert same(gpumem.transpose(x), x.T)
        assert gpumem.copy(x).flags.owndata
    assert gpumem.sum(np.broadcast_to(np.float32(5), shape)) == 5.0 * np.prod(shape)


@pytest.mark.parametrize("dtype, count", [("u1", 1), ("f4", 1), ("f4", 7), ("f8", 33), ("V3", 5)])
def test_a_broadcast_array_beside_a_fence(dtype, count):
    """CASES T10: nothing is read but the items that exist."""
    fenced = Fenced(1000)
    for at_end in (False, True):
        last = fenced.array((count,), dtype, at_end)
        rows, columns = np.broadcast_to(last, (100, count)), np.broadcast_to(last[:, None], (count, 1000))
        for x in [rows, columns, last, last[::-1]]:
            assert same(gpumem.copy(x), x)
            assert same(gpumem.transpose(x), x.T)
            if dtype != "V3":
                gpumem.sum(x)


def test_read_only_inputs(tmp_path):
    """CASES T18: as a source, silent and fine."""
    x = random_bytes((9, 5), "f4")
    x.flags.writeable = False
    assert same(gpumem.transpose(x), x.T)
    assert gpumem.transpose(x).flags.writeable

    from_bytes = np.frombuffer(bytes(range(60)), "V3").reshape(4, 5)
    assert same(gpumem.transpose(from_bytes), from_bytes.T)

    x.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", "f4", mode="r", shape=(9, 5))
    result = gpumem.transpose(mapped)
    assert same(result, x.T)
    assert type(result) is np.ndarray


class Named(np.ndarray):
    """A subclass, as users write them."""


def test_subclasses_are_taken_as_the_arrays_that_they_hold():
    x = random_bytes((2, 3), "f4")
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix(x)
    records = np.rec.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")])
    for given_x in [x.view(Named), matrix, records]:
        result = gpumem.copy(given_x)
        assert type(result) is np.ndarray
        assert same(result, np.asarray(given_x))
    out = np.zeros((3, 2), "f4").view(Named)
    assert gpumem.transpose(x, out=out) is out
    assert same(np.asarray(out), x.T)


def test_unaligned_items():
    """CASES T13: complex128 aligned to 8, or to nothing."""
    for dtype in ["u2", "f4", "f8", "c16"]:
        for start in (1, 4, 8):
            x = dense(dtype, (33, 35), start).view().x
            assert same(gpumem.transpose(x), x.T)


def test_large_results_ask_for_huge_pages():
    """A tile walk touches a page for each row. NumPy's allocator asks for them; this notices if it stops to."""
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("transparent huge pages are switched off")
    result = gpumem.copy(np.zeros(8 << 20, "u1"))
    middle, inside, flags = result.ctypes.data + result.nbytes // 2, False, []
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if addresses := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            low, high = (int(address, 16) for address in addresses.groups())
            inside = low <= middle < high
        elif inside and line.startswith("VmFlags:"):
            flags = line.split()
    assert "hg" in flags


@pytest.mark.parametrize("rows", [300, 3000, 9001])
def test_large_results_begin_with_a_cache_line(rows):
    x = np.arange(rows * 333, dtype="f4").reshape(rows, 333)
    results = [gpumem.transpose(x), gpumem.copy(x[::2]), gpumem.matrix_transpose(x)]
    assert all(result.ctypes.data % 64 == 0 and result.flags.owndata for result in results)
    kept = np.empty(1 << 20, "u1")  # NumPy's own memory is left as it is
    assert kept.flags.owndata
    longer = results.pop()
    expected = longer.ravel().tolist()
    longer.resize(2 * longer.size, refcheck=False)
    assert longer[: len(expected)].tolist() == expected
    assert not longer[len(expected) :].any()
