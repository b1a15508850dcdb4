"""The rows of the benchmark on a CUDA device: arrays several times its cache, and a few that fit into it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .cases import THIN, Case, Group, squares, transposed

FILL = 536_870_912  # bytes of an array whose size is free
BY_SIZE = {1: "uint8", 2: "int16", 4: "float32", 8: "float64", 16: "complex128"}

GROUPS = (
    Group("cuda 2d even", "copy", 0.96, 0.99),
    Group("cuda 2d even, 1 byte", "copy", 0.93, 0.97),
    Group("cuda 2d odd", "copy", 0.92, 0.96),
    Group("cuda 2d odd, 1 byte", "copy", 0.85, 0.92),
    Group("cuda thin to rows", "copy", 0.90, 0.95),
    Group("cuda thin to columns", "copy", 0.90, 0.95),
    Group("cuda in place", "copy", 0.90, 0.95),
    Group("cuda ttc57", "copy", 0.86, 0.92, 0.94, 0.97),
    Group("cuda applications", "copy", 0.80, 0.90, 0.93, 0.97),
    Group("cuda in cache", "peers", 1.0, 1.2),
    Group("cuda dense", "copy", 1.0, 1.01),
    Group("cuda misaligned", "copy", 0.95, 0.98),
    Group("cuda strided", "copy", 0.85, 0.95),
    Group("cuda sum", "peers", 1.0, 1.03),
    Group("cuda sum of a type", "read", 0.97, 1.0),
    Group("cuda sum along an axis", "read", 0.92, 0.97),
    Group("cuda sum in cache", "peers", 1.0, 1.2),
)


def matrices() -> Iterator[Case]:
    """Square and odd matrices of every item size."""
    for size, dtype in BY_SIZE.items():
        side = math.isqrt(FILL // size) // 256 * 256
        for rows, cols in ((side, side), (2 * side, side // 2), (side - 1, side + 1), (side - 1, side - 1)):
            group = f"cuda 2d {'even' if rows % 2 == 0 else 'odd'}{', 1 byte' if size == 1 else ''}"
            quick = size in (1, 4) and rows < side * 2
            yield transposed(group, f"{rows}x{cols}", (rows, cols), (1, 0), dtype, quick)


def thin() -> Iterator[Case]:
    """Few columns or few rows."""
    for size, dtype in list(BY_SIZE.items())[:4]:
        for k in (*THIN, 64):
            n = FILL // (k * size)
            quick = k in (3, 4, 33) and size in (1, 4)
            yield transposed("cuda thin to rows", f"(n,{k}) to ({k},n)", (n, k), (1, 0), dtype, quick)
            yield transposed("cuda thin to columns", f"({k},n) to (n,{k})", (k, n), (1, 0), dtype, quick)


def in_place() -> Iterator[Case]:
    """Square matrices into themselves, one and many: the bytes are read once and written once, as in a copy."""
    for size, dtype in BY_SIZE.items():
        side = math.isqrt(FILL // size) // 256 * 256
        for name, shape in squares((side, side - 1), FILL, dtype):
            axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
            quick = shape[-1] == side and size in (1, 4)
            yield Case("transpose", "cuda in place", name, shape, dtype, quick, axes, in_place=True)


def published() -> Iterator[Case]:
    """The TTC benchmark's permutations, and those of applications, as they were published: 100 to 300 MB each."""
    table = json.loads((Path(__file__).parent / "data" / "permutations.json").read_text())
    for i, row in enumerate(table["ttc57"]):
        name = f"{i:02d} {'x'.join(map(str, row['shape']))} to {','.join(map(str, row['axes']))}"
        for size in (4, 1, 2, 8) if i % 3 == 0 else (4,):
            yield transposed("cuda ttc57", name, row["shape"], row["axes"], BY_SIZE[size], i % 8 == 0 and size == 4)
    for i, row in enumerate(table["applications"]):
        for dtype in list(BY_SIZE.values())[:4]:
            quick = dtype == "float32" and i % 3 == 0
            yield transposed("cuda applications", row["name"], row["shape"], row["axes"], dtype, quick)


def small() -> Iterator[Case]:
    """Matrices that the second-level cache would hold; it is emptied before each call."""
    for n in (1024, 2048, 4096):
        yield transposed("cuda in cache", f"{n}x{n}", (n, n), (1, 0), "float32", True)


def copies() -> Iterator[Case]:
    """Dense arrays, bytes from any address, strided and reversed ones; a strided side counts the sectors it touches."""
    for size, dtype in BY_SIZE.items():
        yield Case("copy", "cuda dense", "dense", (FILL // size,), dtype, size in (1, 4), step=(1,))
    for offset in (1, 2, 3, 4, 7, 8, 12):
        yield Case(
            "copy", "cuda misaligned", f"from byte {offset}", (FILL,), "uint8", offset == 3, (), (1,), None, offset
        )
    ways = {"every second column": (1, 2), "every second row": (2, 1), "columns reversed": (1, -1)}
    ways |= {"rows reversed": (-1, 1), "both reversed": (-1, -1)}
    for size in (1, 2, 4, 8):
        side = math.isqrt(FILL // size)
        for name, step in ways.items():
            yield Case("copy", "cuda strided", name, (side, side), BY_SIZE[size], size == 4, step=step)


def sums() -> Iterator[Case]:
    """Everything of a large array, of each type, along each axis, and of arrays that the cache would hold."""
    for power in (28, 30):
        for dtype in ("float32", "int32"):
            yield Case("sum", "cuda sum", f"2^{power}", (1 << power,), dtype, power == 28)
    for dtype in ("int8", "uint8", "int16", "float16", "bfloat16", "int32", "float32", "float64", "int64"):
        size = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
        yield Case("sum", "cuda sum of a type", "1 GiB", ((1 << 30) // size,), dtype, dtype in ("int8", "float16"))
    shapes: list[tuple[int, ...]] = [(16384, 16384), (1 << 26, 4), (4, 1 << 26), (1 << 20, 256), (256, 1 << 20)]
    for shape in [*shapes, (64, 1024, 4096)]:
        for axis in range(len(shape)):
            name = f"{'x'.join(map(str, shape))} axis {axis}"
            yield Case("sum", "cuda sum along an axis", name, shape, "float32", len(set(shape)) == 1, axis=axis)
    for power in (10, 16, 20, 22, 24):
        yield Case("sum", "cuda sum in cache", f"2^{power}", (1 << power,), "float32", True)


OPS = {"transpose": (matrices, thin, in_place, published, small), "copy": (copies,), "sum": (sums,)}
