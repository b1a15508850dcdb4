"""The ladder: every stage of a lesson, verified, then timed in turns with the copy of the same bytes and with NumPy."""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from . import machine
from .console import Progress
from .errors import UsageError, unknown
from .peers import Peer, present
from .recorded import made_from, read_json
from .stage_table import DEVICES, Stage, lessons, stages
from .table import Column, Shown, Table, bar
from .timing import ROUNDS, Spread, fastest, interleave, ratio
from .work import MEMCPY, OWN_COPY, READ, STREAMING, Arena, Copy, Entry, Job, Permute, Sum, need_memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .ncu import Counters

LESSONS = ("transpose", "copy", "reduce")  # of the CPU; a CUDA device has those of the stage table
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
IDEAS = {
    "numpy": "what NumPy does",
    "hptt": "what HPTT does, planned beforehand",
    "openblas": "OpenBLAS's somatcopy",
    "torch": "what PyTorch does",
    MEMCPY: "memcpy of as many bytes, on the same threads",
    STREAMING: "a copy of as many bytes with stores that pass the caches by, on the same threads",
    OWN_COPY: "gpumem's own copy of as many bytes",
    READ: "reading as many bytes, on the same threads",
}
COUNTED = (
    "Sectors of 32 bytes that a warp's instruction touches, and wavefronts of shared memory beyond those that accesses "
    "without conflicts need: counted by Nsight Compute in one call of each stage."
)


@dataclass(frozen=True)
class Rung(Shown):
    """One line of a ladder. `kind` is "stage", "peer" or "reference"; `seconds` are the raw samples of a call."""

    name: str
    kind: str
    idea: str
    seconds: tuple[float, ...]
    bytes: int
    of_copy: Spread
    speedup: float | None
    counters: Counters | None = None  # what the hardware counted in one call, where it was asked for

    @property
    def time(self) -> Spread:
        """Median and quartiles of the seconds a call takes."""
        return Spread.of(list(self.seconds))

    @property
    def gb_per_s(self) -> float:
        """Bytes that must move, read and written, by the median time; 1 GB is 10**9 bytes."""
        return self.bytes / self.time.median / 1e9

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rung:
        """A rung that was written by `to_dict`. Older records have no bytes: these follow from the speed."""
        from .ncu import Counters

        of = data["of_copy"]
        seconds = tuple(data["seconds"])
        moved = data.get("bytes") or round(data["gb_per_s"] * 1e9 * Spread.of(list(seconds)).median)
        counters = Counters(data["counters"]["metrics"]) if "counters" in data else None
        return cls(
            data["name"],
            data["kind"],
            data["idea"],
            seconds,
            moved,
            Spread(of["median"], of["q1"], of["q3"]),
            data["speedup_over_previous"],
            counters,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the raw samples."""
        return {
            "name": self.name,
            "kind": self.kind,
            "idea": self.idea,
            "bytes": self.bytes,
            "ms": self.time.median * 1e3,
            "gb_per_s": self.gb_per_s,
            "of_copy": self.of_copy.to_dict(),
            "speedup_over_previous": self.speedup,
            "seconds": list(self.seconds),
            **({"counters": self.counters.to_dict()} if self.counters else {}),
        }


@dataclass(frozen=True, repr=False)
class Ladder(Shown):
    """The rungs of a lesson, slow to fast, between the peers and the reference: a copy, or for sums a read."""

    lesson: str
    shape: tuple[int, ...]
    dtype: str
    against: str
    bytes: int
    rungs: tuple[Rung, ...]
    environment: dict[str, Any]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Rung:
        """The rung of that name: a stage, a peer or a reference."""
        for rung in self.rungs:
            if rung.name == name:
                return rung
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what was measured, on what, every rung with its raw samples."""
        return {
            "schema": "gpumem.ladder/1",
            "lesson": self.lesson,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "against": self.against,
            "bytes": self.bytes,
            "environment": self.environment,
            "notes": list(self.notes),
            "rungs": [rung.to_dict() for rung in self.rungs],
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ladder:
        """A recorded ladder. Raises UsageError where `data` is none."""
        if data.get("schema") != "gpumem.ladder/1":
            raise UsageError(f"not a recorded ladder: schema {data.get('schema')!r} instead of 'gpumem.ladder/1'")
        top = [data[name] for name in ("lesson", "shape", "dtype", "against", "bytes", "rungs", "environment", "notes")]
        lesson, shape, dtype, against, size, rows, environment, notes = top
        rungs = tuple(Rung.from_dict(row) for row in rows)
        return cls(lesson, tuple(shape), dtype, against, size, rungs, dict(environment), tuple(notes))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Ladder:
        """A ladder that was written as JSON. Raises UsageError where the file holds none."""
        return made_from(read_json(Path(path)), cls.from_dict, f"{path} holds no recorded ladder")

    def plot(self, ax: Axes | None = None) -> Axes:
        """A bar for each rung, as a fraction of the reference. Needs matplotlib (pip install 'gpumem[plot]')."""
        from .plot import plot_ladder

        return plot_ladder(self, ax)

    def tables(self) -> list[Table]:
        """One row a rung."""
        env = self.environment
        shape = " x ".join(map(str, self.shape))
        title = f"{self.lesson}: {shape} {self.dtype} on {place_of(env)}"
        counted = any(rung.counters for rung in self.rungs)
        columns = (
            Column("stage", "left"),
            Column("ms"),
            Column("GB/s"),
            Column(f"of {self.against}"),
            Column("", "left"),
            Column("× previous"),
            *((Column("sectors/load"), Column("sectors/store"), Column("bank conflicts")) if counted else ()),
            Column("what it changes", "left", prose=True),
        )
        rows = [
            (
                rung.name,
                f"{rung.time.median * 1e3:.2f}",
                f"{rung.gb_per_s:.1f}",
                f"{rung.of_copy.median:.2f}",
                bar(rung.of_copy.median),
                f"{rung.speedup:.2f}" if rung.speedup else "",
                *(counter_cells(rung.counters) if counted else ()),
                rung.idea,
            )
            for rung in self.rungs
        ]
        fewest, most = (f(len(rung.seconds) for rung in self.rungs) for f in (min, max))
        rounds = f"{most} rounds" if fewest == most else f"{fewest} to {most} rounds"
        verb = "read" if self.against == "read" else "read and written"
        sizes = {rung.bytes for rung in self.rungs}
        moved = " to ".join(f"{size / 1e6:.4g}" for size in sorted({min(sizes), max(sizes)}))
        by_byte = ", byte for byte" if len(sizes) > 1 else ""
        note = (
            f"Every output was verified whole. Medians of {rounds} in which all take turns, into "
            f"memory touched before. GB/s count the {moved} MB that must be {verb}; the fraction is "
            f"of the best {self.against} of the same round{by_byte}."
        )
        if "device" in env:
            note += " Each call was timed on the device, from a cold second-level cache."
        notes = [note]
        if counted:
            notes.append(COUNTED)
        if "device" not in env and self.bytes < 4 * max(env["caches"].values(), default=0):
            notes.append(
                "The arrays are less than several times the last cache, so caches play a part in these figures."
            )
        notes += self.notes
        best = max((i for i, rung in enumerate(self.rungs) if rung.kind == "stage"), default=0)
        return [Table(title, columns, rows, notes, frozenset([best]))]


def counter_cells(counters: Counters | None) -> tuple[str, str, str]:
    """Sectors of a load and of a store, and the bank conflicts; empty where a kernel has none of the kind."""
    if counters is None:
        return "", "", ""
    loads, stores = (counters.sectors_per_request(op) for op in ("ld", "st"))
    conflicts = counters.bank_conflicts
    return (
        "" if loads is None else f"{loads:.2f}",
        "" if stores is None else f"{stores:.2f}",
        "" if conflicts is None else f"{conflicts:,.0f}",
    )


def place_of(environment: dict[str, Any]) -> str:
    """The device of a measurement, in words."""
    if "device" in environment:
        return f"{environment['device']}, CUDA {environment['cuda']}"
    return f"{environment['cpu']}, {environment['threads']} threads, {environment['isa']}"


def ladder(
    lesson: str = "transpose",
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike = "float32",
    device: str | None = None,
    *,
    repeat: int = ROUNDS,
    peers: Sequence[str] | None = ("numpy",),
    counters: bool = False,
    progress: bool | None = None,
) -> Ladder:
    """Verifies every stage of a lesson, times all in turns, and compares them with a copy of the same bytes.

    lesson: "transpose" (all axes reversed), "copy" (dense to dense) or "reduce" (the sum of everything, compared with
    reading the same bytes); on a CUDA device any lesson of the stage table, some of its stages with several options.
    shape: by default so large that the caches do not matter. dtype: anything of fixed size; for "reduce" one that can
    be summed. device: None or "cpu", or "cuda", where PyTorch holds the arrays and what a stage cannot take by its
    nature is left out, with the reason. repeat: rounds; slow stages sit some out. peers: whom to compare with, out of
    "numpy", "hptt", "openblas", "torch" (cuda, copy and transpose: "torch", "cupy", "cublas", "cutensor"); None for
    all that are present. counters: also run each stage once under Nsight Compute (`ncu`), in a child process, and
    report its sectors per request and bank conflicts; on CUDA devices. progress: a line on stderr; None where that is
    a terminal.

    Raises UsageError (a ValueError) for unknown names and where the counters cannot be read, WrongResultError if a
    stage's output differs from NumPy's.

    >>> ladder = gpumem.ladder("transpose", shape=(64, 100), dtype="uint16", repeat=3, progress=False)
    >>> [rung.kind for rung in ladder.rungs][0], ladder["tuned"].bytes
    ('peer', 25600)
    """
    if repeat < 1:
        raise UsageError(f"repeat={repeat}: at least 1 round")
    where = device_named(device)
    known = [name for name in lessons() if stages(name, where)]
    if lesson not in known:
        raise unknown("lesson", lesson, known)
    rows = stages(lesson, where)
    kind = checked_dtype(dtype)
    dims = None if shape is None else checked_shape(shape)
    make = on_device if where == "cuda" else on_host
    if counters and where != "cuda":
        raise UsageError("counters are those of a GPU: give device='cuda'")
    with Progress(f"{lesson} ladder", 2 * (len(rows) + 3) * (repeat + 2), progress) as line:
        counted = count_on_device(lesson, dims, kind, line) if counters else {}
        line.step("making random data", 0)
        job, dims, entries, others = make(lesson, dims, kind, rows, peers)
        taken = climb(lesson, job, entries, others, repeat, line.step)

    samples, best = taken.samples, taken.best
    rungs: list[Rung] = []
    for name in taken.order:
        own = taken.entries.get(name)
        kind_of = taken.kind(name)
        moved = own.bytes if own else job.bytes
        before = next((rung for rung in reversed(rungs) if rung.kind == "stage"), None) if own else None
        seconds = Spread.of(samples[name]).median
        # By what a byte takes: stages of some lessons move fewer than others.
        speedup = before.time.median / before.bytes / (seconds / moved) if before else None
        of = ratio([each * (moved / job.bytes) for each in samples[best]], samples[name])
        idea = own.stage.idea if own else IDEAS[name]
        rungs.append(Rung(name, kind_of, idea, tuple(samples[name]), moved, of, speedup, counted.get(name)))
    notes = tuple(f"Left out: {why}." for why in taken.left_out)
    return Ladder(lesson, dims, kind.name, job.against, job.bytes, tuple(rungs), job.environment(), notes)


@dataclass(frozen=True)
class Climbed:
    """The samples of everyone who took turns, and why some did not."""

    samples: dict[str, list[float]]  # seconds a call: peers, stages, references
    entries: dict[str, Entry]  # of the stages
    references: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def best(self) -> str:
        """The fastest reference."""
        return fastest(self.samples, list(self.references))

    @property
    def order(self) -> list[str]:
        """Peers and stages, slow to fast as the stage table has them, then the references, the best one last."""
        others = [name for name in self.samples if name not in self.references]
        return [*others, *sorted(self.references, key=lambda name: name == self.best)]

    def kind(self, name: str) -> str:
        """What a contestant is: "stage", "peer" or "reference"."""
        return "stage" if name in self.entries else "reference" if name in self.references else "peer"


def climb(
    lesson: str,
    job: Job,
    entries: Sequence[Entry],
    others: Sequence[Peer],
    repeat: int,
    step: Callable[[str], None],
) -> Climbed:
    """Verifies the peers and the stages of a job, leaves out what cannot take its arrays, and times the rest in turns.

    Raises UsageError where no stage is left, WrongResultError for a wrong output.
    """
    timers = {peer.name: timer for peer in others if (timer := job.peer(peer))}
    for name, timer in timers.items():
        step(f"verifying {name}")
        if job.must_check(name):
            job.verify(f"{lesson}/{name}", timer)
    fit: dict[str, Entry] = {}
    left_out = []
    for entry in entries:
        step(f"verifying {entry.name}")
        try:
            entry.verify()
        except ValueError as why:  # what a stage by its nature cannot take
            left_out.append(str(why))
        else:
            fit[entry.name] = entry
    if not fit:
        raise UsageError(left_out[0])
    references = job.references()
    contestants = timers | {name: entry.timer for name, entry in fit.items()}
    with np.errstate(over="ignore", invalid="ignore"):  # a peer's float16 sum may overflow
        samples = interleave(references | contestants, repeat, calls=job.calls, step=step)
    return Climbed(samples, fit, tuple(references), tuple(left_out))


Made = tuple[Job, tuple[int, ...], list[Entry], Sequence[Peer]]


def device_named(device: str | None) -> str:
    """The name of a device that can be timed. Raises UsageError for a device that nothing is timed on."""
    if device in (None, "cpu", "cuda"):
        return device or "cpu"
    if device in DEVICES:
        raise UsageError(f"device {device!r}: its kernels are counted, not timed; give 'cpu' or 'cuda'")
    raise unknown("device", device, DEVICES)


def on_host(
    lesson: str,
    shape: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    rows: Sequence[Stage],
    peers: Sequence[str] | None,
) -> Made:
    """The lesson's arrays in host memory, an entry for each stage, and the peers."""
    others = present(peers)
    dims = shape or default_shape(lesson, dtype)
    need_memory(dims, dtype)
    job = make_job(lesson, dims, dtype)

    def entry(stage: Stage) -> Entry:
        timer = job.gpumem(stage.name)
        return Entry(
            stage.name, stage, timer, job.bytes, lambda: job.verify(str(stage), timer), lambda: timer.timeit(1)
        )

    return job, dims, [entry(stage) for stage in rows], others


def on_device(
    lesson: str,
    shape: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    rows: Sequence[Stage],
    peers: Sequence[str] | None,
) -> Made:
    """The same on a CUDA device, where NumPy is no peer."""
    from .device_ladder import Lesson

    names = None if peers is None else [name for name in peers if name != "numpy"]
    job = Lesson(lesson, shape, dtype.name, names)
    return job, job.shape, job.entries(rows), job.peers


def count_on_device(
    lesson: str, shape: tuple[int, ...] | None, dtype: np.dtype[Any], line: Progress
) -> dict[str, Counters]:
    """What Nsight Compute counts, by rung; before this process takes memory of the device."""
    from .device_counters import count
    from .device_work import need_torch

    need_torch()
    line.step("counting under Nsight Compute", 0)
    return count(lesson, shape, dtype.name)


def make_job(lesson: str, shape: tuple[int, ...], dtype: np.dtype[Any], arena: Arena | None = None) -> Job:
    """The lesson's work on an array of that shape and type, in memory of its own or in an arena's."""
    arena = arena or Arena()
    if lesson == "reduce":
        return Sum(arena, shape, dtype)
    if lesson == "copy":
        return Copy(arena, shape, dtype)
    return Permute(arena, shape, dtype, tuple(reversed(range(len(shape)))))


def default_shape(lesson: str, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """A square matrix, or a vector, of at least four times the last cache; less where memory is short."""
    want = min(4 * machine.last_cache(), machine.memory_free() // 8)
    items = max(want // max(dtype.itemsize, 1), 1)
    if lesson != "transpose":
        return (items,)
    side = 1 << math.isqrt(items).bit_length()
    while side > 1 and side * side * dtype.itemsize > machine.memory_free() // 6:
        side //= 2
    return (side, side)


def checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """The shape as a tuple of lengths, none of them negative or 0: there is nothing to time in an empty array."""
    dims = (shape,) if isinstance(shape, int) else tuple(map(operator.index, shape))
    if not dims or min(dims) < 1:
        raise UsageError(f"shape {dims}: at least one axis, and every length at least 1")
    return dims


def checked_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype, if its items have a fixed size that is more than 0."""
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        raise unknown("dtype", dtype, DTYPES) from None
    if kind.hasobject or kind.itemsize == 0:
        raise UsageError(f"dtype {kind}: items must have a fixed size, such as {', '.join(DTYPES)}")
    return kind
