"""One piece of work: its arrays, its right answer, the copy or read it is measured against, and everyone who can do it.

The ladder and the benchmark are both built of these.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from timeit import Timer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, machine, randomdata
from .errors import RoomError, UsageError, WrongResultError
from .peers import Peer
from .stage_table import Stage
from .timing import calls_per_sample

Array = NDArray[Any]
Call = Callable[[], object]
LINE = 64  # bytes of a cache line
OWN = _core.copy  # makes arrays where gpumem's results lie
MEMCPY, STREAMING, READ, OWN_COPY = REFERENCES = ("memcpy", "streaming copy", "read", "own copy")  # none is a stage


@dataclass(frozen=True)
class Entry:
    """A stage, with options where it has any, as one rung of a ladder."""

    name: str
    stage: Stage
    timer: Timer
    bytes: int  # that it must move
    verify: Callable[[], None]
    once: Callable[[], object]  # one call, and nothing else


@dataclass
class Arena:
    """Memory that successive jobs share, so that its pages are touched long before anything is timed.

    The role "out" lies as gpumem's own results do, from the beginning of a cache line; all else where NumPy puts it.
    """

    _memory: dict[str, Array] = field(default_factory=dict)
    _filled: tuple[tuple[str, float], int] = (("", 0.0), 0)

    def array(self, role: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A dense array of the role's memory; what it held stays in it where the memory is large enough."""
        size = math.prod(shape) * dtype.itemsize
        memory = self._memory.get(role)
        if memory is None or memory.size < size:
            self._memory.pop(role, None)
            nothing = np.broadcast_to(np.uint8(0), size)
            memory = self._memory[role] = OWN(nothing) if role == "out" else nothing.copy()
        return memory[:size].view(dtype).reshape(shape)

    def random(self, shape: tuple[int, ...], dtype: np.dtype[Any], scale: float = 1.0) -> Array:
        """Random data in the role "source". Nobody may write there: what suits the next job too is not made again."""
        x = self.array("source", shape, dtype)
        kind = (dtype.str if dtype.kind in "fcb" else "bytes", scale)
        if self._filled[0] != kind or self._filled[1] < x.nbytes:
            randomdata.fill(x, scale)
            self._filled = (kind, x.nbytes)
        return x

    def empty_caches(self) -> None:
        """Reads so much that nothing of the other arrays is left in the caches."""
        _core._reference_read(self.array("nothing", (machine.last_cache() * 5 // 4,), np.dtype(np.uint8)))


class Job(ABC):
    """Arrays made and the right answer known; `references` are what a gpumem call is measured against."""

    against = "copy"
    exact = True  # whether a peer must give the same bits; where not, it may round as it likes and is not checked
    bytes: int
    before: Callable[[], object] | None = None  # what precedes each sample, outside of what is timed

    @property
    def calls(self) -> int | None:
        """How many calls make a sample; None for as many as the clock's steps ask for."""
        return calls_per_sample(self.bytes)

    def environment(self) -> dict[str, Any]:
        """What stands beside a measurement."""
        return machine.environment()

    @abstractmethod
    def references(self) -> dict[str, Timer]:
        """The fastest ways known to move, or to read, as many bytes."""

    @abstractmethod
    def gpumem(self, stage: str | None = None) -> Timer:
        """The call of gpumem, or of one of its stages."""

    @abstractmethod
    def peer(self, peer: Peer) -> Timer | None:
        """The peer's call; None where it cannot do this work."""

    @abstractmethod
    def check(self, who: str) -> None:
        """Raises WrongResultError unless the output is right, to the last item."""

    def must_check(self, peer: str) -> bool:
        """Whether a peer's output can be compared: NumPy's is what `check` compares with."""
        return self.exact and peer != "numpy"

    @abstractmethod
    def soil(self) -> None:
        """Overwrites the output."""

    def verify(self, who: str, timer: Timer) -> None:
        """Runs a call into a soiled output and checks the whole of it."""
        self.soil()
        timer.timeit(1)
        self.check(who)


class Move(Job):
    """Out = a view of random data, dense; checked byte for byte against what NumPy makes of it."""

    def __init__(self, arena: Arena, view: Callable[[Array], Array], shape: tuple[int, ...], dtype: np.dtype[Any]):
        if dtype.hasobject:
            raise UsageError(f"dtype {dtype}: objects cannot be moved as bytes")
        self.base = arena.random(shape, dtype)
        self.x = view(self.base)
        self.bytes = touched(self.x) + self.x.nbytes
        half = min(self.bytes // 2, self.base.nbytes)
        memory = arena.array("out", (max(half, self.x.nbytes),), np.dtype(np.uint8))
        self._to, self._from = memory[:half], self.base.reshape(-1).view(np.uint8)[:half]
        self.out = memory[: self.x.nbytes].view(dtype).reshape(self.x.shape)
        self.expected = arena.array("expected", self.x.shape, dtype)
        np.copyto(self.expected, self.x)

    def references(self) -> dict[str, Timer]:
        def copy(how: str) -> Timer:
            return Timer(lambda: _core._reference_copy(self._to, self._from, how))

        return {MEMCPY: copy("memcpy"), STREAMING: copy("streaming")}

    def soil(self) -> None:
        randomdata.pattern(self.out)

    def check(self, who: str) -> None:
        same_bytes(who, self.out, self.expected)


class Permute(Move):
    """Out = x.transpose(axes), dense."""

    def __init__(self, arena: Arena, shape: tuple[int, ...], dtype: np.dtype[Any], axes: tuple[int, ...]):
        self.axes = axes
        super().__init__(arena, lambda x: x.transpose(axes), shape, dtype)

    def gpumem(self, stage: str | None = None) -> Timer:
        return Timer(lambda: _core.transpose(self.base, self.axes, out=self.out, stage=stage))

    def peer(self, peer: Peer) -> Timer | None:
        call = peer.permute(self.base, self.axes, self.out)
        return Timer(call) if call else None


class Swap(Permute):
    """Transposes x in place: each call turns what the one before it left.

    The bytes are those of x, read once and written once; the copy that it is measured against goes from another array.
    """

    def gpumem(self, stage: str | None = None) -> Timer:
        return Timer(lambda: _core.transpose(self.out, self.axes, out=self.out, stage=stage))

    def peer(self, peer: Peer) -> Timer | None:
        call = peer.swap(self.out, self.axes)
        return Timer(call) if call else None

    def soil(self) -> None:
        np.copyto(self.out, self.base)


class Copy(Move):
    """Out = x[index], dense."""

    def __init__(self, arena: Arena, shape: tuple[int, ...], dtype: np.dtype[Any], index: tuple[slice, ...] = ()):
        super().__init__(arena, lambda x: x[index], shape, dtype)

    def gpumem(self, stage: str | None = None) -> Timer:
        return Timer(lambda: _core.copy(self.x, out=self.out, stage=stage))

    def peer(self, peer: Peer) -> Timer | None:
        call = peer.copy(self.x, self.out)
        return Timer(call) if call else None


class FreshTranspose(Permute):
    """A whole call on a small matrix: arguments, allocation and all."""

    def gpumem(self, stage: str | None = None) -> Timer:
        return Timer("transpose(x)", globals={"transpose": _core.transpose, "x": self.base})

    def peer(self, peer: Peer) -> Timer | None:
        statement = peer.fresh_transpose(self.base)
        if statement is None:
            return None
        return Timer(statement, globals={"ascontiguousarray": np.ascontiguousarray, "x": self.base})

    def verify(self, who: str, timer: Timer) -> None:
        # A peer's whole call is what `expected` was made by.
        same_bytes(who, _core.transpose(self.base), self.expected)


class Sum(Job):
    """Out = x.sum(axis); measured against reading x and, along an axis, writing the results.

    Bytes are those of x and, along an axis, of the results: a narrow integer's are several times as large as what they
    sum. The reference reads x by the fastest loop that there is, then moves as many bytes as the results have by a copy
    with non-temporal stores, from one half of their memory to the other.
    """

    against = "read"
    exact = False

    def __init__(self, arena: Arena, shape: tuple[int, ...], dtype: np.dtype[Any], axis: int | None = None):
        if dtype.kind not in "biufc":
            raise UsageError(f"dtype {dtype}: cannot be summed; bool, integers, floats and complex can")
        # Ones would sum to more than a float16 can hold: scaled, so that the sum stays finite.
        half = dtype.kind == "f" and dtype.itemsize == 2
        scale = 2.0 ** -max(0, math.ceil(math.log2(math.prod(shape))) - 15) if half else 1.0
        self.x, self.axis = arena.random(shape, dtype, scale), axis
        kind = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(dtype.kind, dtype.newbyteorder("="))
        self.out = np.empty(() if axis is None else np.delete(shape, axis), kind)
        written = 0 if axis is None else self.out.nbytes
        self.bytes = self.x.nbytes + written
        memory = self.out.reshape(-1).view(np.uint8)
        self._from, self._to = memory[: written // 2], memory[written // 2 : written // 2 * 2]
        wide = {"f": np.longdouble, "c": np.clongdouble}.get(dtype.kind)
        self.expected = np.asarray(np.sum(self.x, axis=axis, dtype=wide or kind))
        # One rounding to the result's type, and one in double for each item of a run-of-the-mill accumulation.
        real = np.zeros(0, kind).real.dtype
        items = self.x.size // max(self.expected.size, 1)
        self._tolerance = 0.0 if real.kind in "iu" else np.finfo(real).eps + items * np.finfo(np.float64).eps

    def references(self) -> dict[str, Timer]:
        def read() -> None:
            _core._reference_read(self.x)
            if self._to.size:
                _core._reference_copy(self._to, self._from, "streaming")

        return {READ: Timer(read)}

    def gpumem(self, stage: str | None = None) -> Timer:
        return Timer(lambda: _core.sum(self.x, axis=self.axis, out=self.out, stage=stage))

    def peer(self, peer: Peer) -> Timer | None:
        call = peer.sum(self.x, self.axis, self.out)
        return Timer(call) if call else None

    def soil(self) -> None:
        randomdata.pattern(self.out)

    def check(self, who: str) -> None:
        wrong = ~(np.abs(self.out - self.expected) <= self._tolerance * np.abs(self.expected))
        if self.expected.dtype.kind in "iu":
            wrong = self.out != self.expected
        if np.any(wrong):
            complain(who, self.out, self.expected, np.asarray(wrong))


def need_memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raises RoomError unless the three arrays of a job fit into the memory that is free."""
    need, free = 3 * math.prod(shape) * dtype.itemsize, machine.memory_free()
    if need > free:
        raise RoomError(
            f"shape {shape} of {dtype} needs {need / 1e9:.1f} GB for three arrays: {free / 1e9:.1f} are free"
        )


def same_bytes(who: str, out: Array, expected: Array) -> None:
    """Raises WrongResultError unless both dense arrays hold the same bytes."""
    a, b = (array.reshape(-1).view(np.uint8) for array in (out, expected))
    words = a.size // 8 * 8  # compared eight bytes at a time: the answer takes an eighth of the memory
    same = np.array_equal(a[:words].view(np.uint64), b[:words].view(np.uint64)) and np.array_equal(a[words:], b[words:])
    if not same:
        item = np.flatnonzero(a != b)[0] // out.itemsize
        complain(who, out, expected, np.arange(out.size).reshape(out.shape) == item)


def complain(who: str, out: Array, expected: Array, wrong: NDArray[np.bool_]) -> None:
    """Raises WrongResultError for the first wrong item."""
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise WrongResultError(f"{who} is wrong at {where}: {out[where]!r} instead of {expected[where]!r}")


def touched(x: Array, line: int = LINE) -> int:
    """Bytes of the cache lines that reading a view must bring in, for views whose axes do not interleave.

    A dense view counts its own bytes. Where the smallest step is less than a line, whole lines come in along that axis;
    where it is more, each item brings its own.
    """
    axes = sorted((abs(step), length) for step, length in zip(x.strides, x.shape, strict=True) if length > 1)
    if not axes or x.size == 0:
        return x.nbytes
    run, count = x.itemsize, x.size
    for step, length in axes:
        if step > max(run, line):
            break
        run, count = (length - 1) * step + run, count // length
    lines = -(-run // line) * line if count > 1 and run < line else run
    return lines * count
