"""The planner (csrc/base/plan.h) through `_core._plan`: the same copy in the fewest, best ordered loops."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem import _core

Pairs = np.ndarray[Any, np.dtype[np.int64]]


class Copy(NamedTuple):
    """dst[i, j, ...] = src[i, j, ...]: what the planner is asked."""

    itemsize: int
    shape: tuple[int, ...]
    src: tuple[int, ...]
    dst: tuple[int, ...]


def dense(itemsize: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """C-order strides in bytes."""
    return tuple(itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape)))


def permuted(itemsize: int, shape: tuple[int, ...], axes: tuple[int, ...]) -> Copy:
    """A dense array read in the order of `axes` and written densely."""
    strides = dense(itemsize, shape)
    to = tuple(shape[axis] for axis in axes)
    return Copy(itemsize, to, tuple(strides[axis] for axis in axes), dense(itemsize, to))


def offsets(start: int, lengths: tuple[int, ...], strides: tuple[int, ...]) -> Pairs:
    """Byte offset of every item of a loop nest, in its order."""
    at = np.array([start], np.int64)
    for length, stride in zip(lengths, strides, strict=True):
        at = (at[:, None] + np.arange(length, dtype=np.int64) * stride).ravel()
    return at


def naive_pairs(copy: Copy) -> Pairs:
    """Every (source, destination) offset that the copy moves an item between, sorted."""
    pairs = np.stack([offsets(0, copy.shape, copy.src), offsets(0, copy.shape, copy.dst)], axis=1)
    return pairs[np.lexsort(pairs.T)]


def planned_pairs(plan: dict[str, Any]) -> Pairs:
    """The same of a plan: its axes walked, each of its items taken apart into the arrays' items."""
    if plan["family"] == "empty":
        return np.empty((0, 2), np.int64)
    lengths, src, dst = zip(*plan["axes"], strict=True) if plan["axes"] else ((), (), ())
    run = np.arange(0, plan["item"], plan["itemsize"])
    sides = [(plan["src_start"], src), (plan["dst_start"], dst)]
    pairs = np.stack([(offsets(start, lengths, step)[:, None] + run).ravel() for start, step in sides], axis=1)
    return pairs[np.lexsort(pairs.T)]


@st.composite
def layouts(draw: st.DrawFn, itemsize: int, shape: tuple[int, ...], gaps: bool) -> tuple[int, ...]:
    """Strides that lay a shape out without overlap: axes in any order, any of them reversed, with or without gaps."""
    strides, step = [0] * len(shape), itemsize
    for axis in draw(st.permutations(range(len(shape)))):
        strides[axis] = step * draw(st.sampled_from([1, 1, 1, -1]))
        step *= max(shape[axis], 1)
        if gaps:
            step += itemsize * draw(st.integers(0, 2))
    return tuple(strides)


@st.composite
def copies(draw: st.DrawFn, least: int = 0, gaps: bool = True) -> Copy:
    itemsize = draw(st.sampled_from([1, 2, 3, 4, 8, 12, 16]))
    shape = tuple(draw(st.lists(st.integers(least, 5), max_size=6)))
    return Copy(itemsize, shape, draw(layouts(itemsize, shape, gaps)), draw(layouts(itemsize, shape, gaps)))


@given(copies())
def test_moves_the_same_items_as_the_naive_nest(copy):
    plan = _core._plan(*copy)
    assert np.array_equal(planned_pairs(plan), naive_pairs(copy))
    assert plan["items"] * plan["item"] == math.prod(copy.shape) * copy.itemsize


@given(copies(least=1))
def test_axes_are_ordered_for_the_destination_and_walk_it_forwards(copy):
    plan = _core._plan(*copy)
    steps = [dst for _, _, dst in plan["axes"]]
    assert steps == sorted(steps, reverse=True)
    assert all(step > 0 for step in steps)
    assert all(length > 1 for length, _, _ in plan["axes"])


@given(copies(least=1))
def test_no_two_axes_could_be_one(copy):
    plan = _core._plan(*copy)
    for outer in plan["axes"]:
        for _, src, dst in plan["axes"]:
            assert (src, dst) != (plan["item"], plan["item"]), "the innermost axis belongs to the item"
        for length, src, dst in plan["axes"]:
            assert outer[1:] != (src * length, dst * length), "two axes are one walk"


@given(copies(least=1))
def test_src_axis_and_dst_axis_name_the_contiguous_ones(copy):
    plan = _core._plan(*copy)
    for side, key in ((1, "src_axis"), (2, "dst_axis")):
        unit = [i for i, axis in enumerate(plan["axes"]) if axis[side] == plan["item"]]
        assert unit == ([plan[key]] if plan[key] >= 0 else [])


@given(copies(least=1), st.data())
def test_strides_of_length_1_axes_are_never_looked_at(copy, data):
    """CASES T03: producers put anything there."""
    anything = st.sampled_from([0, -8, 7, 2**40, -(2**62), 2**63 - 1])
    junk = [
        tuple(data.draw(anything) if length == 1 else stride for length, stride in zip(copy.shape, side, strict=True))
        for side in (copy.src, copy.dst)
    ]
    assert _core._plan(copy.itemsize, copy.shape, *junk) == _core._plan(*copy)


@given(copies(), st.integers(0, 6))
def test_an_empty_axis_anywhere_leaves_nothing_to_do(copy, at):
    at = min(at, len(copy.shape))

    def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
        return (*values[:at], value, *values[at:])

    plan = _core._plan(copy.itemsize, insert(copy.shape, 0), insert(copy.src, -8), insert(copy.dst, 2**62))
    assert (plan["family"], plan["items"], plan["axes"]) == ("empty", 0, [])
    assert (plan["src_start"], plan["dst_start"]) == (0, 0)


@given(copies(least=1), st.data())
def test_a_summed_axis_comes_last_and_walks_the_source_forwards(copy, data):
    """A sum is a plan whose summed axes have dst == 0; the kernels rely on where these stand."""
    summed = data.draw(st.sets(st.integers(0, len(copy.shape) - 1))) if copy.shape else set()
    dst = tuple(0 if axis in summed else step for axis, step in enumerate(copy.dst))
    plan = _core._plan(copy.itemsize, copy.shape, copy.src, dst)
    assert np.array_equal(planned_pairs(plan), naive_pairs(copy._replace(dst=dst)))
    zero = [step == 0 for _, _, step in plan["axes"]]
    assert zero == sorted(zero)
    inner = [src for _, src, step in plan["axes"] if step == 0]
    assert inner == sorted(inner, reverse=True)
    assert all(src > 0 for src in inner)


# family, item in bytes, axes as (length, source step, destination step)
EXPECTED = {
    "0-d": (Copy(8, (), (), ()), "flat", 8, []),
    "dense": (permuted(4, (2, 3, 4), (0, 1, 2)), "flat", 96, []),
    "all axes of length 1": (Copy(4, (1, 1), (99, -5), (0, 2**60)), "flat", 4, []),
    "length-1 axis permuted": (permuted(4, (7, 1, 1), (2, 0, 1)), "flat", 28, []),
    "T03 reversed axis of length 1": (Copy(8, (1, 10, 20), (-1600, 160, 8), (1600, 160, 8)), "flat", 1600, []),
    "T03 moved axis of length 1": (
        Copy(8, (2, 1, 3, 4, 5), (480, 960, 160, 40, 8), (480, 480, 160, 40, 8)),
        "flat",
        960,
        [],
    ),
    "zero-size": (Copy(4, (0, 3), (12, 4), (12, 4)), "empty", 4, []),
    "items of no bytes": (Copy(0, (3, 4), (0, 0), (0, 0)), "empty", 0, []),
    "transpose": (permuted(4, (30, 50), (1, 0)), "tile", 4, [(50, 4, 120), (30, 200, 4)]),
    "transpose of fused axes": (permuted(2, (3, 5, 7), (2, 0, 1)), "tile", 2, [(7, 2, 30), (15, 14, 2)]),
    "batched transpose": (
        permuted(1, (4, 30, 50), (0, 2, 1)),
        "tile",
        1,
        [(4, 1500, 1500), (50, 1, 30), (30, 50, 1)],
    ),
    "transpose of short runs": (permuted(4, (30, 50, 3), (1, 0, 2)), "tile", 12, [(50, 12, 360), (30, 600, 12)]),
    "transpose of long runs": (permuted(4, (30, 50, 16), (1, 0, 2)), "rows", 64, [(50, 64, 1920), (30, 3200, 64)]),
    "columns of a wider array": (Copy(4, (10, 64), (400, 4), (256, 4)), "rows", 256, [(10, 400, 256)]),
    "every second column": (Copy(4, (10, 64), (512, 8), (256, 4)), "general", 4, [(640, 8, 4)]),
    "reversed": (Copy(8, (100,), (-8,), (8,)), "general", 8, [(100, -8, 8)]),
    "reversed into reversed": (Copy(8, (100,), (-8,), (-8,)), "flat", 800, []),
    "broadcast row": (Copy(4, (5, 100), (0, 4), (400, 4)), "rows", 400, [(5, 0, 400)]),
    "broadcast item": (Copy(4, (5, 100), (0, 0), (400, 4)), "general", 4, [(500, 0, 4)]),
    "into every second column": (Copy(4, (10, 20), (80, 4), (160, 8)), "general", 4, [(200, 4, 8)]),
}


@pytest.mark.parametrize("copy, family, item, axes", EXPECTED.values(), ids=EXPECTED)
def test_expected_plans(copy, family, item, axes):
    plan = _core._plan(*copy)
    assert (plan["family"], plan["item"], plan["axes"]) == (family, item, axes)


def test_a_reversed_destination_starts_at_its_other_end():
    plan = _core._plan(8, (3, 4), (32, 8), (-32, 8))
    assert (plan["src_start"], plan["dst_start"], plan["axes"]) == (64, -64, [(3, -32, 32)])


def test_64_axes():
    shape = (2,) * 10 + (1,) * 54
    copy = permuted(1, shape, tuple(reversed(range(64))))
    assert np.array_equal(planned_pairs(_core._plan(*copy)), naive_pairs(copy))


def test_sizes_beyond_32_bits():
    """CASES T05: 50000 x 100000 float32, whose row 21475 starts past 2^31 items."""
    plan = _core._plan(*permuted(4, (50000, 100000), (1, 0)))
    assert plan["items"] == 5_000_000_000
    assert plan["axes"] == [(100000, 4, 200000), (50000, 400000, 4)]
