"""Sweeps: the bandwidth of every stage against size, stride, offset, access width, bytes in flight or threads.

A sweep is cut into cells. In a cell all contestants do the same work on the same arrays, verified first and then timed
in turns with a copy of as many bytes, as a ladder's rungs are. A cell that is done is written down at once, so that a
sweep that was stopped goes on where it was.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from . import _core, machine
from .amounts import format_bytes, parse_values
from .console import Progress
from .errors import RoomError, UsageError, unknown
from .journal import Journal
from .ladder import checked_dtype, checked_shape, climb, default_shape, make_job
from .stage_table import DEVICES, Stage, lessons, stages
from .sweep_result import AXES, Point, Sweep
from .timing import ROUNDS
from .work import Arena, Copy, Entry, Job, need_memory

ALIASES = {"sum": "reduce", "permute_dims": "transpose", "matrix_transpose": "transpose"}
SIZED = {1: "uint8", 2: "int16", 4: "float32", 8: "float64", 16: "complex128"}
WIDTHS = {"scalar": 1, "vector2": 2, "vector4": 4}  # items of an access; other stages take what fits 16 bytes
FLOOR = 1 << 12  # bytes of the smallest array that is measured unless asked for
COUNTED_BYTES = 1 << 20  # of the array that the lens works on, where no size is given


@dataclass(frozen=True)
class Cell:
    """One round of turns: who takes part, and on what."""

    number: int
    x: int
    dtype: str
    shape: tuple[int, ...]
    stages: tuple[str, ...]
    options: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def sweep(
    lesson: str = "copy",
    over: str = "size",
    values: str | Sequence[int] | None = None,
    *,
    stages: str | Sequence[str] = "all",
    shape: int | Sequence[int] | None = None,
    dtype: DTypeLike = "float32",
    device: str | None = None,
    repeat: int = ROUNDS,
    peers: Sequence[str] | None = (),
    output: str | Path | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Measures every stage of a lesson along an axis, next to a copy of as many bytes.

    lesson: as for `gpumem.ladder`, or an operation: transpose, copy, sum. values: numbers, or a text such as "1,2,33",
    "1:64", "1K:4G", "1K:4G:x4". over:

    =========  ==============================================================================================
    size       bytes of the array
    stride     items from one read to the next: lesson "read" or "banks" on a GPU, "copy" (of x[::n]) on a CPU
    offset     items before the first that is read: lesson "read" on a GPU, "copy" (of x[n:]) on a CPU
    width      bytes of an access, for items of 1, 2, 4, 8 and 16 bytes (`values`) and each vector length
    flight     the same against the bytes under way on a multiprocessor; needs ptxas
    threads    threads of the CPU
    =========  ==============================================================================================

    stages: "all", or names. shape, dtype: of the array, where the axis leaves them free. device: "cpu" (default),
    "cuda", where PyTorch holds the arrays, or "sim": the lens counts what a GPU's memory would have to do, and times
    nothing. repeat: rounds. peers: whom to compare with, as for `gpumem.ladder`.

    output: a file for the result. Each cell is written to output.part as soon as it is done; a sweep of the same
    setting that finds such a file goes on with it. executor: a `concurrent.futures` executor (or a Dask client's) over
    which the cells of device="sim" are spread. progress: a line on stderr with the time left; None: on a terminal.

    Raises UsageError (a ValueError) for what there is not, for a range that makes no sense, and for a half-done sweep
    of another setting; WrongResultError where an output is wrong.

    >>> result = gpumem.sweep("copy", "size", "4K:16K", repeat=3, progress=False)
    >>> sorted({point.x for point in result.points})
    [4096, 8192, 16384]
    >>> counted = gpumem.sweep("read", "stride", [1, 2, 8], shape=4096, device="sim", progress=False)
    >>> [point.counters["sectors_per_load"] for point in counted.points]
    [4.0, 8.0, 32.0]
    """
    setting, cells = planned(lesson, over, values, stages, shape, dtype, device, repeat, peers)
    if executor is not None and setting["device"] != "sim":
        raise UsageError("executor: for device='sim'; what is timed must not run beside other work")
    where = environment(setting["device"])
    done: dict[int, dict[str, Any]] = {}
    with Journal(output, setting, where) as journal, Progress(f"sweep {lesson}", total(cells), progress) as line:
        done |= journal.done
        line.already(sum(weight(cells[number]) for number in done))
        left = [cell for cell in cells if cell.number not in done]
        run = counted if setting["device"] == "sim" else measured
        for number, outcome in run(setting, left, line, executor):
            journal.write(number, outcome)
            done[number] = outcome
            line.step("", weight(cells[number]))
        result = gathered(setting, cells, done, where)
        journal.finish(result.to_json() + "\n")
    return result


# --- what is to be done ----------------------------------------------------------------------------------------------


def planned(
    lesson: str,
    over: str,
    values: str | Sequence[int] | None,
    names: str | Sequence[str],
    shape: int | Sequence[int] | None,
    dtype: DTypeLike,
    device: str | None,
    repeat: int,
    peers: Sequence[str] | None,
) -> tuple[dict[str, Any], list[Cell]]:
    """The setting, which says all that was asked for, and the cells that it makes."""
    lesson = ALIASES.get(lesson, lesson)
    where = device or "cpu"
    if where not in DEVICES:
        raise unknown("device", where, DEVICES)
    if over not in AXES:
        raise unknown("axis", over, AXES)
    if repeat < 1:
        raise UsageError(f"repeat={repeat}: at least 1 round")
    table = "cpu" if where == "cpu" else "cuda"
    known = [name for name in lessons() if stages(name, table)]
    if lesson not in known:
        raise unknown(f"lesson with stages for {where}", lesson, known)
    check_axis(lesson, over, where)
    rows = chosen(lesson, over, names, table)
    kind = checked_dtype(dtype)
    dims = None if shape is None else checked_shape(shape)
    if over == "size" and dims:
        raise UsageError("shape: a sweep over size makes its own; leave it out")
    along = checked_values(over, values, lesson, kind, where)
    setting = {
        "lesson": lesson,
        "over": over,
        "values": list(along),
        "stages": [row.name for row in rows],
        "shape": None if dims is None else list(dims),
        "dtype": kind.name,
        "device": where,
        "repeat": 0 if where == "sim" else repeat,
        "peers": None if peers is None else list(peers),
    }
    return setting, list(cells_of(setting, rows))


def check_axis(lesson: str, over: str, device: str) -> None:
    """Raises UsageError where a lesson cannot be swept over an axis, naming those that can."""
    cpu = device == "cpu"
    can = {
        "stride": ("copy",) if cpu else ("read", "banks"),
        "offset": ("copy",) if cpu else ("read",),
        "width": ("copy", "transpose", "reduce") if cpu else ("copy",),
        "flight": () if cpu else ("copy",),
        "threads": ("copy", "transpose", "reduce") if cpu else (),
    }.get(over, (lesson,))
    if not can:
        raise UsageError(f"over {over!r}: on a {'GPU' if cpu else 'CPU'}")
    if lesson not in can:
        raise UsageError(f"{lesson} over {over!r} on {device}: this axis is for the lesson {' or '.join(can)}")


def chosen(lesson: str, over: str, names: str | Sequence[str], device: str) -> list[Stage]:
    """The stages that are meant, in the order of the stage table."""
    rows = list(stages(lesson, device))
    if device == "cuda" and over in ("stride", "offset"):
        about = {"read": {"stride": "strided", "offset": "offset"}[over]}.get(lesson, "strided")
        rows = [row for row in rows if row.name == about]
    if over in ("width", "flight") and device == "cuda":
        # What the copy engine has under way, no register holds.
        rows = [row for row in rows if row.name in WIDTHS or (over == "flight" and row.name != "bulk")]
    if names == "all":
        return rows
    wanted = [names] if isinstance(names, str) else list(names)
    known = [row.name for row in rows]
    for name in wanted:
        if name not in known:
            raise unknown(f"stage of {lesson} over {over}", name, known)
    if not wanted:
        raise UsageError(f"stages: none is named; there are {', '.join(known)}")
    return [row for row in rows if row.name in wanted]


def checked_values(
    over: str, values: str | Sequence[int] | None, lesson: str, dtype: np.dtype[Any], device: str
) -> tuple[int, ...]:
    """The values of the axis, each once, from the smallest."""
    if values is None:
        found = usual_values(over, device)
    elif isinstance(values, str):
        found = parse_values(values, sizes=over == "size")
    else:
        found = tuple(int(value) for value in values)
    if not found:
        raise UsageError(f"no value to sweep {over} over")
    least = {"size": dtype.itemsize, "offset": 0}.get(over, 1)
    if min(found) < least:
        raise UsageError(f"{over} {min(found)}: at least {least}")
    if over == "stride" and lesson == "banks" and max(found) > 1023:
        raise UsageError(f"stride {max(found)}: the tiles of this lesson have 1024 items")
    if over in ("width", "flight") and (wrong := [value for value in found if value not in SIZED]):
        raise UsageError(f"{over}: items of {wrong[0]} bytes; there are those of {', '.join(map(str, SIZED))}")
    if over == "threads" and max(found) > 1024:
        raise UsageError(f"threads {max(found)}: at most 1024")
    return tuple(sorted(set(found)))


def usual_values(over: str, device: str) -> tuple[int, ...]:
    """What is swept over where nothing is said."""
    if over == "size":
        top = {"cpu": 4 * machine.last_cache(), "cuda": 1 << 30}.get(device, COUNTED_BYTES)
        return tuple(1 << power for power in range(12, top.bit_length()))
    if over == "threads":
        cores = machine.cores_allowed()
        return tuple(sorted({*(1 << p for p in range(cores.bit_length())), cores}))
    return {"stride": tuple(range(1, 65)), "offset": tuple(range(34))}.get(over, tuple(SIZED))


def cells_of(setting: dict[str, Any], rows: Sequence[Stage]) -> Iterator[Cell]:
    """The cells, from the first to the last value."""
    over, lesson, given = setting["over"], setting["lesson"], setting["shape"]
    names = tuple(row.name for row in rows)
    for number, value in enumerate(setting["values"]):
        dtype = SIZED[value] if over in ("width", "flight") else setting["dtype"]
        kind = np.dtype(dtype)
        if over == "size":
            shape = shape_of(lesson, value, kind.itemsize)
        elif given:
            shape = tuple(given)
        else:
            shape = usual_shape(lesson, kind, setting["device"])
        options = {over: value} if over in ("stride", "offset", "threads") else {}
        if over == "offset" and value >= math.prod(shape):
            raise UsageError(f"offset {value} of an array of {math.prod(shape)} items")
        yield Cell(number, value, dtype, shape, names, options)


def usual_shape(lesson: str, dtype: np.dtype[Any], device: str) -> tuple[int, ...]:
    """An array that is several times the caches; for the lens a small one."""
    if device == "cpu":
        return default_shape(lesson, dtype)
    if device == "sim":
        return shape_of(lesson, COUNTED_BYTES, dtype.itemsize)
    from .device_ladder import default_shape as on_device

    return on_device(lesson, dtype.itemsize)


def shape_of(lesson: str, size: int, itemsize: int) -> tuple[int, ...]:
    """An array of about so many bytes: a vector, a matrix about as wide as high, or records of four fields.

    >>> shape_of("copy", 4096, 4), shape_of("transpose", 4096, 4), shape_of("transpose", 3000, 4)
    ((1024,), (32, 32), (27, 27))
    """
    items = max(size // itemsize, 1)
    if lesson == "layout":
        return (max(items // 4, 1), 4)
    if lesson not in ("transpose", "walk2d"):
        return (items,)
    if items & (items - 1) == 0:
        rows = 1 << (items.bit_length() - 1) // 2
        return (rows, items // rows)
    rows = math.isqrt(items)
    return (rows, items // rows)


# --- doing it --------------------------------------------------------------------------------------------------------

Outcome = dict[str, Any]  # a cell's points as plain data, and why some are missing
Outcomes = Iterator[tuple[int, Outcome]]


def measured(setting: dict[str, Any], cells: Sequence[Cell], line: Progress, _: Executor | None) -> Outcomes:
    """Times the cells, one after another."""
    place = OnDevice(setting) if setting["device"] == "cuda" else OnHost(setting)
    threads = _core.get_num_threads()
    for cell in cells:
        what = f"{setting['over']} {format_bytes(cell.x) if setting['over'] == 'size' else cell.x}"
        line.step(what, 0)
        try:
            if setting["over"] == "threads":
                _core.set_num_threads(cell.x)
            job, entries, others = place.work(cell)
            points, left_out = timed(setting, cell, job, entries, others, said(line, what))
        except UsageError as why:
            points, left_out = [], [str(why)]
        except place.full as why:  # a library's own error, which does not say of what
            points, left_out = [], [f"shape {cell.shape} of {cell.dtype}: {str(why).partition(chr(10))[0]}"]
        finally:
            _core.set_num_threads(threads)
        yield cell.number, {"points": points, "left_out": left_out}


def said(line: Progress, what: str) -> Callable[[str], None]:
    """Tells what happens at a value of the axis."""
    return lambda step: line.step(f"{what}: {step}", 0)


def timed(
    setting: dict[str, Any],
    cell: Cell,
    job: Job,
    entries: Sequence[Entry],
    others: Sequence[Any],
    step: Callable[[str], None],
) -> tuple[list[dict[str, Any]], list[str]]:
    """One cell: verified, then timed in turns."""
    taken = climb(setting["lesson"], job, entries, others, setting["repeat"], step)
    points = []
    for name in taken.order:
        moved = taken.entries[name].bytes if name in taken.entries else job.bytes
        seconds = tuple(float(f"{sample:.5g}") for sample in taken.samples[name])
        x = position(setting, cell, name)
        points.append(Point(x, cell.number, name, taken.kind(name), cell.dtype, cell.shape, moved, seconds).to_dict())
    return points, list(taken.left_out)


def position(setting: dict[str, Any], cell: Cell, name: str) -> float:
    """Where on the axis a contestant of a cell stands."""
    if setting["device"] == "cpu" or name not in cell.stages:
        return cell.x
    if setting["over"] == "width":
        return cell.x * WIDTHS.get(name, 1)
    return in_flight(name, cell.dtype) if setting["over"] == "flight" else cell.x


@cache
def in_flight(stage: str, dtype: str) -> int:
    """Bytes that a copy's stage keeps under way on a multiprocessor, by its machine code and its occupancy.

    Raises UsageError where ptxas or nvdisasm is missing.
    """
    from .binding import bind
    from .simulate import trace_stage

    trace = trace_stage("copy", stage, (1 << 16,), dtype, sample=0.01)
    kernel = trace.kernel.partition(" + ")[0]
    ptx = _core._kernel_ptx(kernel) or ""
    return int(bind(ptx, kernel).fit(math.prod(trace.block), trace.shared).get("bytes_in_flight", 0))


class OnHost:
    """Arrays in host memory; all cells share them."""

    full = RoomError

    def __init__(self, setting: dict[str, Any]) -> None:
        from .peers import present

        self._setting, self._arena = setting, Arena()
        self._peers = present(setting["peers"])

    def work(self, cell: Cell) -> tuple[Job, list[Entry], Sequence[Any]]:
        """The job of a cell, its stages, and the peers. Raises RoomError where the arrays do not fit."""
        kind = np.dtype(cell.dtype)
        need_memory(cell.shape, kind)
        lesson = self._setting["lesson"]
        if "stride" in cell.options or "offset" in cell.options:
            where = slice(cell.options.get("offset"), None, cell.options.get("stride"))
            job: Job = Copy(self._arena, cell.shape, kind, (where,))
        else:
            job = make_job(lesson, cell.shape, kind, self._arena)
        entries = [self._entry(job, row) for row in stages(lesson, "cpu") if row.name in cell.stages]
        return job, entries, self._peers

    def _entry(self, job: Job, row: Stage) -> Entry:
        timer = job.gpumem(row.name)
        # Bytes that are wanted: what a stride brings in besides is the cost that a sweep shows.
        moved = 2 * job.x.nbytes if isinstance(job, Copy) else job.bytes
        return Entry(row.name, row, timer, moved, lambda: job.verify(str(row), timer), lambda: timer.timeit(1))


class OnDevice:
    """Arrays on the first CUDA device, held by PyTorch; cells of one shape share them."""

    def __init__(self, setting: dict[str, Any]) -> None:
        from .device_work import need_torch

        self.full: type[Exception] = need_torch().OutOfMemoryError
        self._setting = setting
        self._job: tuple[tuple[str, tuple[int, ...]], Any] | None = None

    def work(self, cell: Cell) -> tuple[Job, list[Entry], Sequence[Any]]:
        """The job of a cell, its stages, and the peers."""
        from .device_ladder import Lesson, rungs_of

        names = self._setting["peers"]
        key = (cell.dtype, cell.shape)
        if self._job is None or self._job[0] != key:
            self._job = None  # before the next one takes its memory
            others = None if names is None else [name for name in names if name != "numpy"]
            self._job = key, Lesson(self._setting["lesson"], cell.shape, cell.dtype, others)
        job = self._job[1]
        rows = [row for row in stages(self._setting["lesson"], "cuda") if row.name in cell.stages]
        if cell.options:
            return job, [job.entry(row.name, row, cell.options) for row in rows], ()
        return job, [job.entry(*rung) for rung in rungs_of(rows)], job.peers


def counted(setting: dict[str, Any], cells: Sequence[Cell], line: Progress, executor: Executor | None) -> Outcomes:
    """Counts the cells, here or on an executor's workers; then in the order in which they are done."""
    if executor is None:
        for cell in cells:
            line.step(f"{setting['over']} {cell.x}", 0)
            yield cell.number, count_cell(setting, cell)
        return
    futures = {executor.submit(count_cell, setting, cell): cell for cell in cells}
    try:
        for future in as_completed(futures):
            yield futures[future].number, future.result()
    finally:
        for future in futures:
            future.cancel()


def count_cell(setting: dict[str, Any], cell: Cell) -> Outcome:
    """What the lens counts for each stage of a cell."""
    from .device_ladder import rungs_of
    from .simulate import trace_stage

    points, left_out = [], []
    lesson = setting["lesson"]
    rows = [row for row in stages(lesson, "cuda") if row.name in cell.stages]
    rungs = [(row.name, row, cell.options) for row in rows] if cell.options else rungs_of(rows)
    for name, row, options in rungs:
        given = {key: value for key, value in options.items() if key != "index"}
        try:
            trace = trace_stage(lesson, row.name, cell.shape, cell.dtype, **given)
        except ValueError as why:  # what a stage by its nature cannot take
            left_out.append(str(why))
            continue
        kind = np.dtype(cell.dtype)
        counts = {**trace.counters, "instructions": trace.instructions, **per_access(trace)}
        moved = row.bytes * math.prod(cell.shape) * kind.itemsize
        x = position(setting, cell, row.name)
        points.append(Point(x, cell.number, name, "stage", cell.dtype, cell.shape, moved, (), counts).to_dict())
    return {"points": points, "left_out": left_out}


def per_access(trace: Any) -> dict[str, float]:
    """Sectors and wavefronts of an executed load and store, where there are any."""
    made = {}
    for name, counter, count, kind in (
        ("sectors_per_load", "sectors", "requests", "load"),
        ("sectors_per_store", "sectors", "requests", "store"),
        ("wavefronts_per_load", "wavefronts", "shared", "load"),
        ("wavefronts_per_store", "wavefronts", "shared", "store"),
    ):
        those = [site for site in trace.sites if site.kind == kind and getattr(site, count)]
        if those:
            total_of = sum(getattr(site, counter) for site in those)
            made[name] = round(total_of / sum(getattr(site, count) for site in those), 4)
    return made


def gathered(setting: dict[str, Any], cells: Sequence[Cell], done: dict[int, Outcome], where: dict[str, Any]) -> Sweep:
    """The outcomes of all cells as one result. Raises UsageError where nothing could be measured."""
    points = [Point.from_dict(point) for cell in cells for point in done[cell.number]["points"]]
    reasons = dict.fromkeys(why for cell in cells for why in done[cell.number]["left_out"])
    if not points:
        raise UsageError("; ".join(reasons) or "nothing to measure")
    against = "read" if setting["lesson"] == "reduce" and setting["device"] == "cpu" else "copy"
    notes = tuple(f"Left out: {why}." for why in reasons)
    return Sweep(setting["lesson"], setting["over"], against, setting, tuple(points), where, notes)


def environment(device: str) -> dict[str, Any]:
    """What stands beside the points."""
    if device == "cuda":
        from .device_work import environment as on_device
        from .device_work import need_torch

        need_torch()
        found = on_device()
    else:
        found = machine.environment()
    return {**found, "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}


def weight(cell: Cell) -> int:
    """About how long a cell takes, next to others."""
    return 1 + (cell.size >> 22)


def total(cells: Sequence[Cell]) -> int:
    """The weight of all cells."""
    return sum(map(weight, cells))
