"""The rows of the benchmark: which arrays, how they are permuted, copied or summed, and what a group should reach."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .errors import UsageError, unknown

FILL = 130_000_000  # bytes of an array whose size is free: several times a last cache of 32 MB, and no power of two
THIN = range(2, 34)
BATCHED = (3, 16, 100, 1024)  # sides of square matrices of which there are many
BY_SIZE = {1: "uint8", 2: "uint16", 4: "float32", 8: "float64", 16: "complex128"}


@dataclass(frozen=True)
class Group:
    """Rows that share a goal: a fraction of what `against` names, reached by every row; by half of them, `median_`.

    The goals are the project's own, for arrays far larger than the caches; no promise for every machine.
    """

    name: str
    against: Literal["copy", "read", "peers", "numpy"]
    at_least: float
    aim: float
    median_at_least: float | None = None
    median_aim: float | None = None
    cold: bool = True  # whether the arrays lie in memory, not in a cache, when a sample begins

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


GROUPS = {
    group.name: group
    for group in (
        Group("2d even", "copy", 0.65, 0.90),
        Group("2d odd", "copy", 0.55, 0.80),
        Group("2d even, 1-2 bytes", "copy", 0.45, 0.75),
        Group("2d odd, 1-2 bytes", "copy", 0.40, 0.65),
        Group("thin to rows", "copy", 0.75, 0.95),
        Group("thin to columns, k<16", "copy", 0.75, 0.95),
        Group("thin to columns, k>=16", "copy", 0.60, 0.95),
        Group("in place", "copy", 0.65, 0.90),
        Group("in place, 1-2 bytes", "copy", 0.45, 0.75),
        Group("in place odd", "copy", 0.55, 0.80),
        Group("in place odd, 1-2 bytes", "copy", 0.40, 0.65),
        Group("ttc57", "copy", 0.40, 0.70, 0.60, 0.85),
        Group("applications", "copy", 0.40, 0.70, 0.60, 0.85),
        Group("in cache", "peers", 1.0, 1.5, cold=False),
        Group("tiny", "numpy", 1.0, 2.0, cold=False),
        Group("dense", "copy", 0.90, 1.0),
        Group("strided", "copy", 0.60, 0.80),
        Group("sum of everything", "read", 0.90, 1.0),
        Group("sum over an axis", "read", 0.70, 0.90),
    )
}


@dataclass(frozen=True)
class Case:
    """One row. Of `axes` (transpose), `step` (copy) and `axis` (sum) it uses what the operation needs."""

    op: str
    group: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    quick: bool = False
    axes: tuple[int, ...] = ()
    step: tuple[int, ...] = ()
    axis: int | None = None
    offset: int = 0  # bytes from an aligned address to the array
    in_place: bool = False

    @property
    def label(self) -> str:
        """What a filter is compared with: group/name dtype."""
        return f"{self.group}/{self.name} {self.dtype}"

    def to_dict(self) -> dict[str, Any]:
        """What stands in a recorded result."""
        own = {"transpose": ("axes", list(self.axes)), "copy": ("step", list(self.step)), "sum": ("axis", self.axis)}
        key, value = own[self.op]
        offset = {"offset": self.offset} if self.offset else {}
        head = {"group": self.group, "name": self.name, "shape": list(self.shape), "dtype": self.dtype}
        in_place = {"in_place": True} if self.in_place else {}
        return {**head, key: value, **offset, **in_place}


def transposed(group: str, name: str, shape: Sequence[int], axes: Sequence[int], dtype: str, quick: bool) -> Case:
    """A row of the transpose benchmark."""
    return Case("transpose", group, name, tuple(shape), dtype, quick, axes=tuple(axes))


def matrices() -> Iterator[Case]:
    """Square matrices, even and odd, of every item size."""
    for size, dtype in BY_SIZE.items():
        for rows, cols in ((4096, 4096), (8192, 8192), (4095, 4097), (8191, 8193)):
            group = f"2d {'even' if rows == cols else 'odd'}{', 1-2 bytes' if size < 4 else ''}"
            yield transposed(group, f"{rows}x{cols}", (rows, cols), (1, 0), dtype, rows > 8000 and size < 16)


def thin() -> Iterator[Case]:
    """Few columns or few rows: interleaved channels to planes, and back."""
    for dtype in list(BY_SIZE.values())[:4]:
        for k in THIN:
            n = FILL // (k * np.dtype(dtype).itemsize)
            quick = k in (2, 3, 4, 8, 16, 33) and dtype in ("uint8", "float32")
            back = f"thin to columns, k{'<' if k < 16 else '>='}16"
            yield transposed("thin to rows", f"(n,{k}) to ({k},n)", (n, k), (1, 0), dtype, quick)
            yield transposed(back, f"({k},n) to (n,{k})", (k, n), (1, 0), dtype, quick)


def published() -> Iterator[Case]:
    """The TTC benchmark's permutations, and those of applications."""
    table = json.loads((Path(__file__).parent / "data" / "permutations.json").read_text())
    for i, row in enumerate(table["ttc57"]):
        name = f"{i:02d} {'x'.join(map(str, row['shape']))} to {','.join(map(str, row['axes']))}"
        yield transposed("ttc57", name, row["shape"], row["axes"], "float32", i % 8 == 0)
    for i, row in enumerate(table["applications"]):
        for dtype in list(BY_SIZE.values())[:4]:
            quick = dtype == "float32" and i % 3 == 0
            yield transposed("applications", row["name"], row["shape"], row["axes"], dtype, quick)


def squares(large: Sequence[int], fill: int, dtype: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of square matrices of a type, and of as many smaller ones as hold `fill` bytes."""
    for n in large:
        yield f"{n}x{n}", (n, n)
    for n in BATCHED:
        yield f"(n,{n},{n})", (max(1, fill // (n * n * np.dtype(dtype).itemsize)), n, n)


def in_place() -> Iterator[Case]:
    """Square matrices into themselves, one and many: the bytes are read once and written once, as in a copy."""
    for size, dtype in BY_SIZE.items():
        for name, shape in squares((4096, 8192, 4095, 8191), FILL, dtype):
            n = shape[-1]
            group = f"in place{'' if n % 16 == 0 else ' odd'}{', 1-2 bytes' if size < 4 else ''}"
            axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
            yield Case("transpose", group, name, shape, dtype, n == 4096 and size < 16, axes, in_place=True)


def small() -> Iterator[Case]:
    """Matrices that fit into the caches, and whole calls on tiny ones."""
    for n in (256, 384, 512, 768, 1024):
        yield transposed("in cache", f"{n}x{n}", (n, n), (1, 0), "float32", n in (256, 1024))
    for n in (8, 12, 16, 24, 32):
        yield transposed("tiny", f"whole call {n}x{n}", (n, n), (1, 0), "float32", n in (8, 32))


def copies() -> Iterator[Case]:
    """Dense, strided and reversed arrays to dense ones; a strided side counts the cache lines that it touches."""
    ways = {
        "dense": (1, 1),
        "every second column": (1, 2),
        "every third column": (1, 3),
        "every second row": (2, 1),
        "columns reversed": (1, -1),
        "rows reversed": (-1, 1),
        "both reversed": (-1, -1),
        "every second column, reversed": (1, -2),
    }
    for size in (1, 2, 4, 8):
        side = math.isqrt(FILL // size)
        for name, step in ways.items():
            group = "dense" if name == "dense" else "strided"
            yield Case("copy", group, name, (side, side), BY_SIZE[size], size == 4, step=step)


def sums() -> Iterator[Case]:
    """Along everything for each type, and over either axis of a matrix."""
    integers = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
    for dtype in (*integers, "float16", "float32", "float64", "complex64", "complex128"):
        n = FILL // np.dtype(dtype).itemsize
        quick = dtype in ("uint8", "int32", "float32", "float64")
        yield Case("sum", "sum of everything", f"({n},)", (n,), dtype, quick)
    for dtype in ("int8", "int16", "int32", "float16", "float32", "float64", "complex64"):
        shape = (6000, FILL // 6000 // np.dtype(dtype).itemsize)
        for axis in (0, 1):
            yield Case("sum", "sum over an axis", f"{shape}, {axis}", shape, dtype, dtype == "float32", axis=axis)
    for dtype in ("int8", "int16", "int32", "float16", "float32", "float64"):
        for shape, axis in (((20_000_000, 4), 1), ((20_000_000, 4), 0), ((4, 20_000_000), 0)):
            yield Case("sum", "sum over an axis", f"{shape}, {axis}", shape, dtype, dtype == "float32", axis=axis)


OPS = {"transpose": (matrices, thin, in_place, published, small), "copy": (copies,), "sum": (sums,)}
ALIASES = {"permute_dims": "transpose", "matrix_transpose": "transpose", "reduce": "sum"}


def ops_of(device: str) -> Mapping[str, Sequence[Callable[[], Iterator[Case]]]]:
    """What makes the rows of each operation on a device."""
    if device == "cpu":
        return OPS
    if device != "cuda":
        raise unknown("device", device, ("cpu", "cuda"))
    from . import device_cases

    return device_cases.OPS


def group_of(name: str) -> Group:
    """A group with its goals; KeyError where there is none of that name."""
    if name in GROUPS:
        return GROUPS[name]
    from . import device_cases

    return {group.name: group for group in device_cases.GROUPS}[name]


def cases(op: str, *, quick: bool = False, only: Sequence[str] = (), device: str = "cpu") -> list[Case]:
    """The rows of an operation, all or the quick ones, whose label contains one of `only`, which may be patterns (* ?).

    Raises UsageError for an operation that does not exist, and where nothing is left.

    >>> [case.label for case in cases("transpose", only=["ttc57/0[01]"])]
    ['ttc57/00 7264x7264 to 1,0 float32', 'ttc57/01 1216x43408 to 1,0 float32']
    """
    op = ALIASES.get(op, op)
    ops = ops_of(device)
    if op not in ops:
        raise unknown("operation", op, ops)
    every = [case for make in ops[op] for case in make()]
    found = [
        case
        for case in every
        if (case.quick or not quick) and (not only or any(fnmatch(case.label, f"*{part}*") for part in only))
    ]
    if not found:
        groups = ", ".join(dict.fromkeys(case.group for case in every))
        raise UsageError(f"no row matches {' or '.join(map(repr, only))}; the groups of {op!r} are: {groups}")
    return found
