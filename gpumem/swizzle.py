"""Padding and XOR swizzles against bank conflicts, found by trying them on the addresses that a trace has seen.

Each candidate moves every traced address, and the counter that the lens itself uses (the rules measured on an H200)
says what the moved accesses would cost: what is reported is computed, not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core

LANES = 32
ROUND = 128  # bytes of one wavefront: 32 banks of 4
PADS = 8  # multiples of the widest access that are tried behind each row
FARTHEST = 13  # bits of an index that a swizzle may take its rows from
Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Access:
    """What one instruction did to shared memory: rows of 32 byte addresses (-1: inactive lane), and how often each."""

    rule: str
    """How it is counted: "shared load", "shared store", "matrix x4" ..., as `Pattern.rule` has it."""
    width: int
    """Bytes of a lane's access."""
    rows: Rows
    """n x 32"""
    times: np.ndarray[Any, np.dtype[np.float64]]
    """n; a part of a launch may stand for the whole"""

    @classmethod
    def of(cls, rule: str, width: int, rows: Iterable[Sequence[int | None]], times: Iterable[float]) -> Access:
        """From lists, None for inactive lanes."""
        filled = [[-1 if address is None else address for address in row] for row in rows]
        return cls(rule, width, np.array(filled, np.int64).reshape(-1, LANES), np.array(list(times), np.float64))

    def cost(self, moved: Rows | None = None) -> tuple[int, int]:
        """Wavefronts and conflicts of all executions, at the addresses given instead of its own.

        >>> column = Access.of("shared load", 4, [[128 * lane for lane in range(32)]], [10])
        >>> column.cost(), column.cost(column.rows // 128 * 132)
        ((320, 310), (10, 0))
        """
        rows = self.rows if moved is None else moved
        active = ((self.rows >= 0).astype(np.uint32) << np.arange(LANES, dtype=np.uint32)).sum(1, dtype=np.uint32)
        shared = np.where(self.rows >= 0, rows, 0).astype(np.uint32)
        raw = _core._count(self.rule, shared.astype(np.uint64), shared, active, self.width)
        counted = np.frombuffer(raw, np.uint32).reshape(-1, 4).astype(np.int64)
        return round(float(counted[:, 1] @ self.times)), round(float(counted[:, 3] @ self.times))


@dataclass(frozen=True)
class Remedy:
    """A way to lay an array in shared memory, and what all its accesses would cost then.

    Lengths are in items of `unit` bytes. Padding puts `pad` items behind every `pitch` items. A swizzle replaces the
    index i by i ^ ((i >> shift) & (((1 << bits) - 1) << base)): CUTLASS's Swizzle<bits, base, shift>.
    """

    kind: str
    """"padding" or "swizzle"."""
    unit: int
    wavefronts: int
    conflicts: int
    pitch: int = 0
    pad: int = 0
    bits: int = 0
    base: int = 0
    shift: int = 0

    def moved(self, rows: Rows) -> Rows:
        """Byte addresses from the array's start, where this puts them."""
        if self.kind == "padding":
            made = rows + rows // (self.pitch * self.unit) * (self.pad * self.unit)
        else:
            index, rest = rows // self.unit, rows % self.unit
            made = (index ^ ((index >> self.shift) & (((1 << self.bits) - 1) << self.base))) * self.unit + rest
        return np.where(rows >= 0, made, rows)

    @property
    def group(self) -> int:
        """Bytes inside which a swizzle moves items: the array must be a multiple of it."""
        return self.unit << (self.bits + self.base) if self.bits else 0

    @property
    def extra(self) -> float:
        """Additional memory, as a part of the array."""
        return self.pad / self.pitch if self.pitch else 0.0

    def index(self) -> str:
        """The new index of item i, in C.

        >>> Remedy("padding", 4, 0, 0, pitch=32, pad=1).index(), Remedy("swizzle", 4, 0, 0, bits=5, shift=5).index()
        ('i + i / 32', 'i ^ ((i >> 5) & 31)')
        """
        if self.kind == "padding":
            each = f"i / {self.pitch}"
            return f"i + {each if self.pad == 1 else f'{each} * {self.pad}'}"
        return f"i ^ ((i >> {self.shift}) & {((1 << self.bits) - 1) << self.base})"

    def cutlass(self) -> str:
        """A swizzle in CUTLASS's words: of the items that it was searched for, and of bytes.

        >>> Remedy("swizzle", 4, 0, 0, bits=5, shift=5).cutlass()
        'Swizzle<5, 0, 5> of items of 4 bytes, Swizzle<5, 2, 5> of bytes'
        """
        words = f"Swizzle<{self.bits}, {self.base + self.unit.bit_length() - 1}, {self.shift}> of bytes"
        if self.unit == 1:
            return words
        return f"Swizzle<{self.bits}, {self.base}, {self.shift}> of items of {self.unit} bytes, {words}"

    def element(self, pitch: int) -> str:
        """Row and column of an array whose rows have `pitch` items, in C; "" where the swizzle does not follow rows.

        >>> Remedy("swizzle", 4, 0, 0, bits=3, base=2, shift=3).element(32)
        'tile[row][col ^ ((row & 7) << 2)]'
        >>> Remedy("padding", 4, 0, 0, pitch=32, pad=1).element(32)
        'tile[..][32 + 1]'
        """
        if self.kind == "padding":
            return f"tile[..][{self.pitch} + {self.pad}]" if pitch == self.pitch else ""
        width = pitch.bit_length() - 1
        if pitch != 1 << width or self.base + self.shift < width or self.base + self.bits > width:
            return ""
        down = self.base + self.shift - width
        row = f"({'row' if not down else f'(row >> {down})'} & {(1 << self.bits) - 1})"
        return f"tile[row][col ^ {row if not self.base else f'({row} << {self.base})'}]"


def search(accesses: Sequence[Access]) -> tuple[Remedy | None, Remedy | None, int]:
    """The best padding and the best swizzle for an array in shared memory, by trying them on all that was traced.

    accesses: everything that touches the array, so that what mends one instruction does not break another. Returns
    the padding and the swizzle that take the fewest wavefronts (then the least memory, the fewest bits), or None where
    none takes fewer than now, and the distance in items between neighbouring lanes of the accesses that conflict: the
    pitch of the array's rows, as far as can be seen.

    A 32 x 32 tile of float that is written along rows and read along columns:

    >>> rows = Access.of("shared store", 4, [[4 * lane for lane in range(32)]], [32])
    >>> columns = Access.of("shared load", 4, [[128 * lane for lane in range(32)]], [32])
    >>> padding, swizzle, pitch = search([rows, columns])
    >>> padding.element(pitch), swizzle.element(pitch), padding.conflicts, swizzle.conflicts
    ('tile[..][32 + 1]', 'tile[row][col ^ (row & 31)]', 0, 0)
    """
    used = [access for access in accesses if len(access.rows)]
    if not used:
        return None, None, 0
    start = min(int(access.rows[access.rows >= 0].min()) for access in used) // ROUND * ROUND
    used = [Access(a.rule, a.width, np.where(a.rows >= 0, a.rows - start, -1), a.times) for a in used]
    unit, widest = min(access.width for access in used), max(access.width for access in used)
    now = total(used, None)[0]
    steps = distances(used)
    pitch = steps[0] // unit if steps else 0
    found = []
    for tried, rank in (
        (paddings(steps, unit, widest), lambda r: (r.wavefronts, r.extra, r.pad)),
        (swizzles(unit, widest), lambda r: (r.wavefronts, r.bits, r.shift + r.base, -r.base)),
    ):
        best: Remedy | None = None
        for remedy in tried:
            cost = total(used, remedy.moved)
            made = Remedy(remedy.kind, unit, *cost, remedy.pitch, remedy.pad, remedy.bits, remedy.base, remedy.shift)
            if made.wavefronts < now and (best is None or rank(made) < rank(best)):
                best = made
        found.append(best)
    return found[0], found[1], pitch


def total(accesses: Iterable[Access], move: Callable[[Rows], Rows] | None) -> tuple[int, int]:
    """Wavefronts and conflicts of all accesses."""
    costs = [access.cost(None if move is None else move(access.rows)) for access in accesses]
    return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)


def distances(accesses: Iterable[Access]) -> list[int]:
    """Bytes between neighbouring lanes of the rows that conflict, the most expensive first."""
    weight: dict[int, float] = {}
    for access in accesses:
        for row, times in zip(access.rows, access.times, strict=True):
            alone = Access(access.rule, access.width, row[None], np.ones(1))
            conflicts = alone.cost()[1] * float(times)
            steps = np.abs(np.diff(row[row >= 0]))
            steps = steps[steps > access.width]
            if conflicts and len(steps):
                values, often = np.unique(steps, return_counts=True)
                step = int(values[often.argmax()])
                weight[step] = weight.get(step, 0) + conflicts
    return sorted(weight, key=lambda step: (-weight[step], step))


def paddings(steps: Sequence[int], unit: int, widest: int) -> Iterator[Remedy]:
    """Padding behind each row, where rows are as long as lanes are apart; else behind each pass over the banks."""
    for pitch in dict.fromkeys([*steps[:6], ROUND]):
        if pitch % widest == 0:
            for count in range(1, PADS + 1):
                yield Remedy("padding", unit, 0, 0, pitch=pitch // unit, pad=count * widest // unit)


def swizzles(unit: int, widest: int) -> Iterator[Remedy]:
    """Every swizzle that changes banks and keeps the widest access in one piece."""
    top = (ROUND // unit).bit_length() - 1
    for base in range((widest // unit).bit_length() - 1, top):
        for bits in range(1, top - base + 1):
            for shift in range(bits, FARTHEST - base - bits):
                yield Remedy("swizzle", unit, 0, 0, bits=bits, base=base, shift=shift)
