"""What executions of a memory instruction looked like: where each of the 32 lanes went, and what that cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from struct import Struct
from typing import Any, NamedTuple, overload

LANES = 32
SPACES = ("global", "shared", "local")
DISTINCT = 64  # GM_LENS_DISTINCT
Addresses = tuple[int | None, ...]


@dataclass(frozen=True)
class Pattern:
    """One execution of a site, standing for `times` executions that cost the same.

    cost: sectors (global and local memory) or wavefronts (shared). block, warp: where it was executed. buffer: the
    argument in which all lanes are, or None. addresses: of 32 lanes, None for those that took no part: bytes from the
    start of the buffer (device addresses without one), of the block's shared memory, or of the thread's local memory.
    space: global, shared or local. width: bytes of a lane's access. rule: how it was counted ("global load", "shared
    store", "matrix x4" ...), a name of the counters. targets: of cp.async.cg, where in shared memory each lane's bytes
    went, on which its sectors depend.

    Which execution stands for the others does not depend on threads: it is the first one of its cost, in the block
    (or cluster) with the lowest number, in the order in which that block executes.
    """

    cost: int
    times: int
    block: tuple[int, int, int]
    warp: int
    buffer: str | None
    addresses: Addresses
    space: str
    width: int = 4
    rule: str = ""
    targets: Addresses = ()

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lanes that took part.

        >>> Pattern(1, 1, (0, 0, 0), 0, "x", (None, 0, 4) + (None,) * 29, "global").lanes
        (1, 2)
        """
        return tuple(lane for lane, address in enumerate(self.addresses) if address is not None)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name; addresses as text, in runs of equal steps."""
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {
            **plain,
            "block": list(self.block),
            "addresses": packed(self.addresses),
            "targets": packed(self.targets),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Pattern:
        """What `to_dict` wrote. Raises ValueError for addresses that are none."""
        block = tuple(data["block"])
        lanes = {name: unpacked(data[name]) for name in ("addresses", "targets")}
        return cls(**{**data, "block": block, **lanes})


def packed(addresses: Addresses) -> str:
    """Addresses as text: runs of first+step x lanes; a dot stands for a lane that took no part.

    >>> packed(tuple(range(0, 128, 4)))
    '0+4x32'
    >>> packed((8, 8, 8, None, None, 100))
    '8+0x3 .x2 100'
    """
    words: list[str] = []
    for there, run in groupby(addresses, lambda address: address is not None):
        lanes = list(run)
        if not there:
            words.append(f".x{len(lanes)}" if len(lanes) > 1 else ".")
            continue
        at = 0
        while at < len(lanes):
            end = at + 1
            while end + 1 < len(lanes) and lanes[end + 1] - lanes[end] == lanes[at + 1] - lanes[at]:  # type: ignore[operator]
                end += 1
            end = min(end, len(lanes) - 1)
            count = end - at + 1
            if count > 2:
                words.append(f"{lanes[at]}+{lanes[at + 1] - lanes[at]}x{count}")  # type: ignore[operator]
            else:
                count = 1
                words.append(str(lanes[at]))
            at += count
    return " ".join(words)


_WORD = re.compile(r"(?P<none>\.)(x(?P<absent>\d+))?|(?P<first>\d+)(\+(?P<step>-?\d+)x(?P<count>\d+))?")


def unpacked(text: str) -> Addresses:
    """The addresses of `packed`. Raises ValueError for other text.

    >>> unpacked("8+0x3 .x2 100")
    (8, 8, 8, None, None, 100)
    """
    found: list[int | None] = []
    for word in text.split():
        match = _WORD.fullmatch(word)
        count = int(match["absent"] or match["count"] or 1) if match else 0
        if not match or not 1 <= count <= LANES - len(found):
            raise ValueError(f"addresses {text!r}: runs such as 0+4x32 or .x16 are wanted, of {LANES} lanes at most")
        if match["none"]:
            found += [None] * count
        else:
            found += [int(match["first"]) + int(match["step"] or 0) * i for i in range(count)]
    return tuple(found)


class Row(NamedTuple):
    """A pattern as the lens gives it. `active` has a bit a lane; addresses are 32 uint64, targets 32 uint32."""

    site: int
    distinct: int
    space: str
    rule: str
    width: int
    active: int
    cost: int
    times: int
    unit: int
    order: int
    block: int
    warp: int
    addresses: bytes
    targets: bytes


class Place(NamedTuple):
    """Where a buffer lay in the device's memory."""

    name: str
    address: int
    size: int


class Recorded(Sequence[Pattern]):
    """Patterns that are made of the lens's rows when somebody looks at them: a short run takes less than they do."""

    def __init__(self, rows: Sequence[Row], places: Sequence[Place], grid: tuple[int, int, int]) -> None:
        self._from = rows, places, grid
        self._made: tuple[Pattern, ...] | None = None

    def _all(self) -> tuple[Pattern, ...]:
        if self._made is None:
            rows, places, grid = self._from
            self._made = tuple(pattern_of(Row(*row), places, grid) for row in rows)
        return self._made

    def __len__(self) -> int:
        return len(self._from[0])

    @overload
    def __getitem__(self, index: int) -> Pattern: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Pattern, ...]: ...

    def __getitem__(self, index: int | slice) -> Pattern | tuple[Pattern, ...]:
        return self._all()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


def patterns_of(
    rows: Sequence[Row], places: Sequence[Place], grid: tuple[int, int, int]
) -> dict[int, tuple[Recorded, Recorded]]:
    """For each site its patterns by cost, and its distinct accesses to shared memory."""
    found: dict[int, tuple[list[Row], list[Row]]] = {}
    for row in rows:
        found.setdefault(row[0], ([], []))[row[1]].append(row)
    return {site: (Recorded(one, places, grid), Recorded(two, places, grid)) for site, (one, two) in found.items()}


def pattern_of(row: Row, places: Sequence[Place], grid: tuple[int, int, int]) -> Pattern:
    """A row with its buffer named, and addresses from its start."""
    addresses = _ADDRESSES.unpack(row.addresses)
    here = None if row.active == ALL else [bool(row.active >> lane & 1) for lane in range(LANES)]
    name, start = None, 0
    if row.space == "global":
        reached = [address for address, active in zip(addresses, here, strict=True) if active] if here else addresses
        low, high = min(reached), max(reached)
        for place in places:
            if place.address <= low and high < place.address + place.size:
                name, start = place.name, place.address
    targets = _lanes(_TARGETS.unpack(row.targets), here, 0) if row.rule == "copy" else ()
    x, y = grid[:2]
    block = (row.block % x, row.block // x % y, row.block // x // y)
    lanes = _lanes(addresses, here, start)
    return Pattern(row.cost, row.times, block, row.warp, name, lanes, row.space, row.width, row.rule, targets)


ALL = (1 << LANES) - 1
_ADDRESSES, _TARGETS = Struct(f"{LANES}Q"), Struct(f"{LANES}I")


def _lanes(values: tuple[int, ...], here: Sequence[bool] | None, start: int) -> Addresses:
    if here is None:
        return tuple([value - start for value in values]) if start else values
    return tuple([value - start if active else None for value, active in zip(values, here, strict=True)])


def added_patterns(ours: Sequence[Pattern], theirs: Sequence[Pattern]) -> tuple[Pattern, ...]:
    """The patterns of one site in two launches, the first launch's executions before the second's."""
    made = {(pattern.space, pattern.cost): pattern for pattern in ours}
    for pattern in theirs:
        known = made.get((pattern.space, pattern.cost))
        times = pattern.times + (known.times if known else 0)
        made[pattern.space, pattern.cost] = replace(known or pattern, times=times)
    return tuple(sorted(made.values(), key=lambda pattern: (SPACES.index(pattern.space), pattern.cost)))


def joined_patterns(rows: Sequence[Row]) -> list[Row]:
    """The patterns of parts of a grid as those of the whole: sums, and the first execution of all."""
    merged: dict[tuple[int, str, int], Row] = {}
    distinct = [row for row in rows if row.distinct]
    begun = min((row.unit for row in distinct), default=0)
    for row in rows:
        if row.distinct:
            continue
        key = row.site, row.space, row.cost
        if key not in merged:
            merged[key] = row
            continue
        known = merged[key]
        first = min(known, row, key=lambda each: (each.unit, each.order))
        merged[key] = first._replace(times=known.times + row.times)
    kept = [*merged.values(), *(row for row in distinct if row.unit == begun)]
    return sorted(kept, key=_place_in_list)


def _place_in_list(row: Row) -> tuple[int, ...]:
    by_order = (row.unit, row.order) if row.distinct else (row.cost,)
    return row.site, row.distinct, SPACES.index(row.space), *by_order
