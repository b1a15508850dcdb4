"""What each stage of the lessons read, walk2d, layout, banks and reduce must make of an array, in NumPy's words."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sizes import sized

import gpumem

DTYPES = ["u1", "i2", "f4", "i8", "c16"]  # items of 1, 2, 4, 8, 16 bytes
LENGTHS = sized([0, 1, 31, 32, 255, 257, 1024, 1025, 3001], [0, 1, 33, 1025])
MATRICES = [(0, 3), (1, 1), (1, 300), (300, 1), (31, 33), (64, 64), (5, 513), (257, 2)]
RECORDS = [(0, 4), (1, 1), (33, 1), (255, 2), (257, 3), (1000, 4), (129, 8), (70, 16), (5, 700)]


@dataclass
class Case:
    stage: str
    x: np.ndarray
    wanted: np.ndarray
    options: dict[str, Any] = field(default_factory=dict)
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.stage} of {self.x.dtype}{list(self.x.shape)} with {list(self.options)}"


def random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random bytes, so that a float is any pattern of bits."""
    rng = np.random.default_rng(sum(shape))
    return rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1").view(dtype)[..., 0]


def read(dtype: str) -> Iterator[Case]:
    for n in LENGTHS:
        x = random((n,), dtype)
        yield Case("coalesced", x, x)
        for stride in sized((1, 2, 3, 4, 8, 31, 32, 5000, -1, -7), (1, 3, 32, -7)):
            yield Case("strided", x, x[::stride], {"stride": stride})
        for offset in {0, 1 % (n + 1), 7 % (n + 1), 8 % (n + 1), n}:
            yield Case("offset", x, x[offset:], {"offset": offset})
    x = random((1000,), dtype)
    yield Case("strided", x, x[::32])
    for index in (np.random.default_rng(1).integers(-1000, 1000, 777), np.arange(6).reshape(2, 3), np.zeros(0, int)):
        for kind in ("i4", "i8"):
            yield Case("gather", x, x[index], {"index": index.astype(kind)})
    outside = np.array([1000, 3, -1001, 2**31 - 1, -(2**31)])
    nothing = np.zeros(1, dtype)[0]
    yield Case("gather", x, np.array([nothing, x[3], nothing, nothing, nothing]), {"index": outside})
    yield Case("gather", x[:0], np.array([nothing]), {"index": np.array([0])})


def walk2d(dtype: str) -> Iterator[Case]:
    for shape in MATRICES:
        x = random(shape, dtype)
        for stage in ("columns", "rows"):
            yield Case(stage, x, x)


def layout(dtype: str) -> Iterator[Case]:
    for n, k in RECORDS:
        x = random((n, k), dtype)
        planes = np.ascontiguousarray(x.T)
        for f in {0, k // 2, k - 1, -1}:
            yield Case("aos_field", x, x[:, f], {"field": f})
            yield Case("soa_field", planes, x[:, f], {"field": f})
        for stage in ("fields", "staged", "vector"):
            if stage != "vector" or k * x.itemsize in (1, 2, 4, 8, 16):
                yield Case(f"aos_{stage}", x, x.T)
                yield Case(f"soa_{stage}", planes, x)


def tiles(x: np.ndarray, stride: int) -> np.ndarray:
    """The order of the lesson `banks`, along the first axis."""
    position = np.arange(len(x))
    tile = position // 1024 * 1024
    inside = position - tile
    return x[tile + (inside % 32 * stride + inside // 32) % np.minimum(1024, len(x) - tile)]


def banks(dtype: str) -> Iterator[Case]:
    for n in LENGTHS:
        x = random((n,), dtype)
        yield Case("broadcast", x, tiles(x, 0))
        for stride in sized((*range(34), 1023), (0, 1, 2, 17, 32, 1023)):
            for stage in ("strided", "padded", "swizzled"):
                yield Case(stage, x, tiles(x, stride), {"stride": stride})
            for access in (4, 8, 16):
                if access >= x.itemsize:
                    each = access // x.itemsize
                    cut = n // each * each
                    moved = tiles(x[:cut].reshape(-1, each), stride).reshape(-1)
                    yield Case(f"access{access}", x, np.concatenate([moved, x[cut:]]), {"stride": stride})
    square = random((32, 32), dtype)
    for stage in ("strided", "padded", "swizzled"):
        yield Case(stage, square, square.T)
    yield Case("access16", square, tiles(square.reshape(-1, 16 // square.itemsize), 1).reshape(32, 32))


def reduce(dtype: str) -> Iterator[Case]:
    if dtype not in ("f4", "i8"):
        return
    rng = np.random.default_rng(1)
    for kind in {"f4": ("f4", "f8"), "i8": ("i8", "i4")}[dtype]:
        for n in LENGTHS:
            numbers = rng.integers(-1000, 1000, n).astype(kind)
            # Small integers: exact in any order, also as floats.
            for stage in ("interleaved", "strided", "sequential", "first_add", "shuffle", "vectorised", "tuned"):
                yield Case(stage, numbers, np.array(numbers.sum(dtype="i8" if kind[0] == "i" else kind)))
        matrix = rng.integers(-99, 99, (33, 65)).astype(kind)
        yield Case("vectorised", matrix, np.array(matrix.sum(dtype="i8" if kind[0] == "i" else kind)))


def copy(dtype: str) -> Iterator[Case]:
    size = np.dtype(dtype).itemsize
    for n in (*LENGTHS, sized(70_000, 9000)):
        x = random((n,), dtype)
        for stage in ("scalar", "peeled", "in_flight", "bulk", "tuned"):
            yield Case(stage, x, x)
        for items in (2, 4):
            if items * size <= 16:
                yield Case(f"vector{items}", x, x)
    x = random((33, 5), dtype)
    yield Case("in_flight", x, x)


def cache(dtype: str) -> Iterator[Case]:
    for n in LENGTHS:
        x = random((n,), dtype)
        for stage in gpumem.stages("cache", "cuda"):
            yield Case(stage.name, x, x)


def transpose(dtype: str) -> Iterator[Case]:
    size = np.dtype(dtype).itemsize
    for shape in [*MATRICES, (128, 64), (96, 272), (65, 70), (256, 144), (144, 256)]:
        x = random(shape, dtype)
        wanted = x.T
        for stage in ("naive", "tiled", "padded", "swizzled", "tuned"):
            yield Case(stage, x, wanted)
        rows, columns = x.shape
        if columns * size % 16 == 0 or rows < 2:
            yield Case("bulk", x, wanted)
        if rows * size % 16 == 0 and columns * size % 16 == 0:
            yield Case("vectorised", x, wanted)


LESSONS = {
    "copy": copy,
    "cache": cache,
    "transpose": transpose,
    "read": read,
    "walk2d": walk2d,
    "layout": layout,
    "banks": banks,
    "reduce": reduce,
}

# Stages whose accesses are wider than an item.
ALIGNED: dict[str, set[str]] = {name: set() for name in LESSONS}
ALIGNED["copy"] = {"vector2", "vector4", "bulk"}
ALIGNED["transpose"] = {"bulk", "vectorised"}
ALIGNED["layout"] = {"aos_vector", "soa_vector"}
ALIGNED["banks"] = {"access4", "access8", "access16"}

# What a stage refuses, and how it says so; x is 16-byte aligned.
REFUSED = [
    (
        "read",
        "strided",
        np.zeros((2, 2)),
        {},
        r"read/strided: x has shape \(2, 2\), and this lesson is about 1-d arrays",
    ),
    ("read", "strided", np.zeros(3), {"stride": 0}, "a stride of 0"),
    ("read", "offset", np.zeros(3), {"offset": 4}, "offset 4 of an array of 3 items"),
    ("read", "gather", np.zeros(3), {}, "needs index="),
    ("read", "gather", np.zeros(3), {"index": np.zeros(2, "f4")}, "index must have dtype int32 or int64"),
    ("read", "fast", np.zeros(3), {}, "no cuda stage of read 'fast': there are strided, offset, gather, coalesced"),
    ("red", "fast", np.zeros(3), {}, "no lesson 'red': there are .*did you mean 'read'"),
    ("walk2d", "rows", np.zeros(3), {}, "this lesson is about 2-d arrays"),
    ("walk2d", "rows", np.zeros((8, 8))[:, ::2], {}, r"x has gaps, .*pass gpumem.copy\(x\)"),
    ("layout", "aos_field", np.zeros((5, 3)), {"field": 3}, "field 3 of 3"),
    ("layout", "aos_vector", np.zeros((5, 3), "f4"), {}, "a record of 12 bytes is not one access"),
    (
        "layout",
        "aos_vector",
        np.zeros(33, "f4")[1:].reshape(8, 4),
        {},
        "16 bytes at a multiple of 16, and x starts 4 bytes past",
    ),
    ("layout", "aos_staged", np.zeros((2, 40_000), "f8"), {}, "a record of 320000 bytes does not fit the 2"),
    ("banks", "strided", np.zeros(9), {"stride": 1024}, "a stride of 1024: within a tile it is 0 to 1023 items"),
    ("banks", "access8", np.zeros(9, "c16"), {}, "items of 16 bytes do not fit accesses of 8"),
    ("banks", "access8", np.zeros(9, "f4")[1:], {}, "8 bytes at a multiple of 8, and x starts 4 bytes past"),
    (
        "reduce",
        "shuffle",
        np.zeros(9, "u1"),
        {},
        "x has dtype uint8: its kernels add float32, float64, int32 and int64",
    ),
]


def covered() -> set[str]:
    """The stages that these cases are about, for a test that none is missing."""
    return {f"{lesson}/{case.stage}" for lesson, cases in LESSONS.items() for case in cases("f4")}


def of_the_table() -> set[str]:
    return {str(stage) for stage in gpumem.stages(device="cuda") if stage.lesson in LESSONS}
