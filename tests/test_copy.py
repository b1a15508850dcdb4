"""copy: a dense array of its own from any view, by every stage."""

import itertools

import numpy as np
import pytest
from arrays import dense, layouts, random_bytes, same
from hypothesis import given
from hypothesis import strategies as st

import gpumem

STAGES = [stage.name for stage in gpumem.stages("copy", "cpu")]


@given(layouts(), st.sampled_from(STAGES))
def test_any_view(layout, stage):
    source = layout.view()
    result = gpumem.copy(source.x, stage=stage)
    assert same(result, source.x)
    assert result.flags.c_contiguous
    assert not np.shares_memory(result, source.x)


@given(st.data())
def test_any_view_into_any_view(data):
    """CASES T15: the gaps keep their bytes."""
    source = data.draw(layouts()).view()
    target = data.draw(layouts(shape=source.x.shape, dtype=source.x.dtype, writable=True)).view(fill=0xA5)
    expected = target.after(source.x)
    gpumem.copy(source.x, out=target.x, stage=data.draw(st.sampled_from(STAGES)))
    assert target.buffer.tobytes() == expected


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("itemsize", [1, 2, 3, 4, 8, 16])
def test_every_length_at_every_pair_of_offsets(stage, itemsize):
    """CASES T07, T08: no tail is forgotten, nothing past the end is written."""
    dtype = f"V{itemsize}"
    for ahead, behind in itertools.product(range(16), repeat=2):
        length = (ahead * 16 + behind) % 41
        for items in {length, 63, 64 * 5 // itemsize + length}:
            source = dense(dtype, (items,), ahead).view(seed=behind)
            target = dense(dtype, (items,), behind).view(fill=0xF9)
            expected = target.after(source.x)
            gpumem.copy(source.x, out=target.x, stage=stage)
            assert target.buffer.tobytes() == expected, (items, ahead, behind)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", ["u1", "u2", "V3", "f4", "f8", "V12", "c16"])
def test_strided_views_of_larger_arrays(stage, dtype):
    x = random_bytes((300, 515), dtype)
    for view in [x[:, ::2], x[:, ::-1], x[::-1], x[::-3, 1::5], x[:, :500], x[::2, ::3].T, x.T[::-1, ::2], x[:, 3:4]]:
        assert same(gpumem.copy(view, stage=stage), view)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "c16"])
def test_combs(stage, dtype):
    """Rows of items some steps apart either way, that begin anywhere in a line, and often share one with the next."""
    itemsize = np.dtype(dtype).itemsize
    for step, ahead, behind in itertools.product([*range(-9, 0), *range(2, 10)], (0, 1, 48), (0, 3, 40)):
        items = 64 // itemsize + (step * 7 + ahead) % 61
        wide = dense(dtype, (6, items * abs(step)), ahead).view(seed=step & 15).x
        for view in (wide[:, ::step], wide[::-2, ::step], wide[:1, ::step][0]):
            target = dense(dtype, view.shape, behind).view(fill=0xF9)
            expected = target.after(view)
            gpumem.copy(view, out=target.x, stage=stage)
            assert target.buffer.tobytes() == expected, (step, ahead, behind)


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "c16"])
def test_large_combs(dtype):
    """Past the caches, in many parts of one long row, and of many."""
    itemsize = np.dtype(dtype).itemsize
    x = random_bytes((2003, (24 << 20) // 2003 // itemsize), dtype)
    for view in (x[:, ::2], x[:, ::-1], x[::-1, ::-2], x[::2, 1::3], x.reshape(-1)[::2], x.reshape(-1)[::-1]):
        for behind in (0, 5):
            target = dense(dtype, view.shape, behind).view(fill=0xF9)
            expected = target.after(view)
            gpumem.copy(view, out=target.x)
            assert target.buffer.tobytes() == expected


@pytest.mark.parametrize("stage", STAGES)
def test_a_pitched_destination(stage):
    """CASES T15."""
    x = random_bytes((8, 640), "f4")
    pitched = np.full((8, 768), -7, "f4")
    gpumem.copy(x, out=pitched[:, :640], stage=stage)
    assert same(pitched[:, :640], x)
    assert (pitched[:, 640:] == -7).all()

    spread = np.full((16, 1920), -7, "f4")
    gpumem.copy(x, out=spread[::2, ::3], stage=stage)
    assert same(spread[::2, ::3], x)
    assert (spread[1::2] == -7).all()
    assert (np.delete(spread, np.s_[::3], axis=1) == -7).all()


@pytest.mark.parametrize("stage", STAGES)
def test_megabytes(stage):
    x = random_bytes((3 << 20) + 13, "u1")
    assert same(gpumem.copy(x[5:], stage=stage), x[5:])
    assert same(gpumem.copy(x[::-1], stage=stage), x[::-1])


@pytest.mark.parametrize("dtype", ["u1", "V3", "f4", "c16"])
def test_gaps_and_turns_at_once(dtype):
    """Larger than a slab that is freed of its gaps at once, along each axis."""
    for shape in [(900, 40, 300), (300, 40, 900), (9, 1100, 1100)]:
        x = random_bytes(shape, dtype)[::-1, :, ::2]
        for axes in itertools.permutations(range(3)):
            view = x.transpose(axes)
            assert same(gpumem.copy(view), view), (shape, axes)
    # The last slab is one run: 256 rows of 4 bytes make a kilobyte, 512 columns of them half a megabyte.
    x = random_bytes((1200, 1026), dtype)[::2, ::2]
    assert same(gpumem.copy(x.T), x.T)


def test_a_pitched_destination_of_odd_items():
    """Its runs end in the middle of what a byte shuffle could take at once."""
    base = random_bytes((15, 65, 32, 10), "u1")
    view = base[..., :7].transpose(0, 2, 1, 3)
    spread = np.full((15, 32, 457), 0xA5, "u1")
    gpumem.copy(view, out=spread[..., :455].reshape(15, 32, 65, 7))
    assert same(spread[..., :455], np.ascontiguousarray(view).reshape(15, 32, 455))
    assert (spread[..., 455:] == 0xA5).all()
