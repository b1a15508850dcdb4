"""How the lanes of one execution lie in memory: an even step, or pieces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

SECTOR = 32


@dataclass(frozen=True)
class Shape:
    """The active lanes of one execution."""

    lanes: int
    first: int
    """Byte address of the first active lane."""
    even: bool
    """Whether every lane is as far from the one before."""
    step: int
    """Bytes from lane to lane where that is even; else the distance met most often."""
    runs: int
    """Pieces of memory without a gap, whatever lanes take what of them."""
    bytes: int
    """Distinct bytes."""
    ideal: int
    """Sectors that the lanes' bytes fill when packed."""


def shape_of(addresses: Sequence[int | None], width: int) -> Shape:
    """How 32 byte addresses lie (None: inactive lane), each of `width` bytes.

    >>> shape_of([8 * lane for lane in range(32)], 4)
    Shape(lanes=32, first=0, even=True, step=8, runs=32, bytes=128, ideal=4)
    >>> shape_of([*range(0, 64, 4), *range(256, 320, 4)], 4).runs
    2
    >>> shape_of([4 * (lane ^ 5) for lane in range(32)], 4).runs
    1
    """
    active = [(lane, address) for lane, address in enumerate(addresses) if address is not None]
    if not active:
        return Shape(0, 0, True, 0, 0, 0, 0)
    places = [address for _, address in active]
    steps = [(b - a) / (j - i) for (i, a), (j, b) in itertools.pairwise(active)]
    usual = max(set(steps), key=lambda step: (steps.count(step), -abs(step))) if steps else width
    sorted_places = sorted(set(places))
    return Shape(
        len(active),
        places[0],
        len(set(steps)) <= 1,
        int(usual),
        1 + sum(b > a + width for a, b in itertools.pairwise(sorted_places)),
        len(sorted_places) * width,
        -(-len(active) * width // SECTOR),
    )
