"""Sizes past 2^31 items and 2^32 bytes (CASES T05), and sizes where other libraries fall off a cliff (T17).

Memory that is only reserved costs nothing: pages never written to are all the same page of zeros. So most of these
arrays are sparse, a few items are set, and the rest of what a call reads is zero.
"""

import itertools
import mmap
from pathlib import Path

import numpy as np
import pytest

import gpumem

MAP_NORESERVE = 0x4000
GIB = 2**30


def sparse(shape, dtype, pages=mmap.MADV_NOHUGEPAGE):
    """An array of zeros that occupies no memory until it is written to, and then only the pages touched.

    Reading all of a large one is quicker from huge pages, writing to few items is cheaper in small ones.
    """
    count = np.prod(shape, dtype=object)
    memory = mmap.mmap(
        -1,
        int(count) * np.dtype(dtype).itemsize,
        flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE,
    )
    memory.madvise(pages)
    return np.frombuffer(memory, dtype).reshape(shape)


def available_memory():
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


needs_6_gib = pytest.mark.skipif(available_memory() < 6 * GIB, reason="needs 6 GiB of free memory for one result")


@pytest.fixture(scope="module")
def wide():
    """50000 x 100000 float32, 20 GB: row 21475 starts at item 2,147,500,000. One item in a million is set."""
    x = sparse((50000, 100000), "f4")
    rows, columns = np.arange(0, 50000, 1250), np.arange(0, 100000, 25000)
    x[np.ix_(rows, columns)] = np.arange(1, rows.size * columns.size + 1).reshape(rows.size, columns.size)
    x[21475, :40] = x[-1, -40:] = np.arange(1, 41)
    return x


VIEWS = {
    "sparse rows and columns": np.s_[::1250, ::25000],
    "backwards": np.s_[::-1250, ::-25000],
    "row 21475": np.s_[21475:21477, :40],
    "the last items": np.s_[-2:, -40:],
    "two rows far apart": np.s_[::49999, :1000],
    "one column in 50000": np.s_[40000:40003, ::50000],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("stage", gpumem.stages("transpose", device="cpu"), ids=str)
def test_reads_at_offsets_past_2_32(wide, view, stage):
    x = wide[view]
    assert gpumem.transpose(x, stage=stage.name).tobytes() == x.T.tobytes()


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("stage", gpumem.stages("copy", device="cpu"), ids=str)
def test_writes_at_offsets_past_2_32(view, stage):
    out = sparse((50000, 100000), "f4")[view]
    x = np.arange(1, out.size + 1, dtype="f4").reshape(out.shape)
    assert gpumem.copy(x, out=out, stage=stage.name) is out
    assert out.tobytes() == x.tobytes()


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_sums_at_offsets_past_2_32(wide, axis):
    for view in VIEWS.values():
        x = wide[view]
        assert np.array_equal(gpumem.sum(x, axis=axis), x.sum(axis=axis))


@pytest.mark.parametrize("n", [2**31 - 1, 2**31, 2**31 + 1, 2**32 + 64])
def test_sum_of_more_bytes_than_32_bits_count(n):
    x = sparse((n,), "u1", mmap.MADV_HUGEPAGE)
    x[:3], x[n // 2], x[-3:] = (1, 2, 3), 50, (200, 201, 202)
    assert gpumem.sum(x) == 1 + 2 + 3 + 50 + 200 + 201 + 202


def test_sum_of_2_29_int64_and_one():
    x = sparse((2**29 + 1,), "i8", mmap.MADV_HUGEPAGE)
    x[0], x[-1] = -5, 2**40
    assert gpumem.sum(x) == 2**40 - 5


def test_sum_keeps_the_tail_of_a_long_axis_apart():
    """Results at the end of 2^31 rows: (2^31 + 1, 1) and its like are one long axis to the planner."""
    x = sparse((2, 2**31 + 1), "u1", mmap.MADV_HUGEPAGE)
    x[0, -1], x[1, 0], x[1, -1] = 3, 4, 5
    assert gpumem.sum(x, axis=1).tolist() == [3, 9]


@needs_6_gib
def test_copy_of_2_32_bytes_and_64():
    x = sparse((2**32 + 64,), "u1", mmap.MADV_HUGEPAGE)
    x[:100] = x[-100:] = np.arange(100)
    x[2**31 - 50 : 2**31 + 50] = x[2**32 - 50 : 2**32 + 14] = 7
    result = gpumem.copy(x)
    for at in (0, 2**31 - 128, 2**31, 2**32 - 128, 2**32 - 64):
        assert (result[at : at + 128] == x[at : at + 128]).all()


@needs_6_gib
def test_transpose_of_65537_x_65536_bytes():
    shape = 65537, 65536
    x = sparse(shape, "u1", mmap.MADV_HUGEPAGE)
    generator = np.random.default_rng(5)
    corners = np.array(list(itertools.product((0, 65536), (0, 65535))))
    rows, columns = np.concatenate([corners, generator.integers(0, shape, (100, 2))]).T
    x[rows, columns] = generator.integers(1, 256, rows.size)
    result = gpumem.transpose(x)
    assert result.shape == (65536, 65537)
    assert (result[columns, rows] == x[rows, columns]).all()


@pytest.mark.parametrize("dtype", ["u1", "u4", "u8"])
@pytest.mark.parametrize("shape", [(4095, 4095), (4096, 4096), (4097, 4097), (10**6, 3), (3, 10**6)], ids=str)
def test_either_side_of_a_power_of_two(shape, dtype):
    x = np.random.default_rng(1).integers(0, 256, np.prod(shape) * np.dtype(dtype).itemsize, "u1")
    x = x.view(dtype).reshape(shape)
    assert np.array_equal(gpumem.transpose(x), x.T)
