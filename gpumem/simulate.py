"""The stages of the CUDA ladder without a GPU: the launches of the device's code, executed by the lens."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from . import _core, mix
from .arguments import Array, Buffer, Layout, as_array, bounds
from .errors import UsageError, unknown
from .kernel import Kernel, Launch, dims, sampled, size, watches
from .kernel_text import texts_in
from .sass import only_entry
from .stage_table import Stage, lessons, stages
from .trace import EXACT, Site, Trace, added

ALIGNED = 256  # what a device's allocations start at a multiple of


class Image:
    """An array as it would lie on the device.

    All bytes from its first to its last, as far from a multiple of 256 as they are from the start of what owns them.
    """

    def __init__(self, array: Array) -> None:
        from .arguments import base_of

        self.array = array
        low, high = bounds(array)
        lead = (low - bounds(base_of(array))[0]) % ALIGNED
        self._memory = np.zeros(high - low + lead + ALIGNED, np.uint8)
        start = -self._memory.ctypes.data % ALIGNED
        self.bytes = self._memory[start : start + lead + high - low]
        first = int(array.__array_interface__["data"][0]) - low + lead
        self.view: Array = np.lib.stride_tricks.as_strided(
            self.bytes[first:].view(np.uint8)[: array.itemsize or 1].view(array.dtype) if array.size else array,
            array.shape,
            array.strides,
        )
        if array.size:
            np.copyto(self.view, array)

    @property
    def address(self) -> int:
        """Of the first item."""
        return int(self.view.__array_interface__["data"][0])

    def buffer(self, name: str, *, read_only: bool = False) -> Buffer:
        """As the lens is told of it."""
        return Buffer(int(self.bytes.ctypes.data), self.bytes.size, name, read_only)


@lru_cache(maxsize=64)
def kernel_named(name: str) -> Kernel:
    """A kernel of this build, ready to be executed."""
    ptx = _core._kernel_ptx(name)
    assert ptx is not None, name
    kernel = Kernel(only_entry(ptx, name), name, file=f"{name}.ptx")
    kernel.source = texts_in(ptx)
    return kernel


class Simulator:
    """Executes launches on images of arrays, and keeps what each of them did."""

    def __init__(
        self,
        buffers: Sequence[Buffer],
        *,
        sample: float | None = None,
        watch: Sequence[str] = (),
        threads: int | None = None,
        seconds: float | None = None,
        machine_code: bool | None = False,
    ) -> None:
        self.traces: list[Trace] = []
        self._machine_code = machine_code
        self._buffers, self._sample = [buffer for buffer in buffers if buffer.size], sample
        used = _core.get_num_threads() if threads is None else size("threads", threads, 1 << 16)
        self._options = (used, watches(watch), None, 0, 0, float(seconds or 0.0))

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        arguments: int,
        memory: list[tuple[int, int]],
    ) -> None:
        """One launch; `arguments` is the address of a list of pointers, as the driver takes it."""
        kernel = kernel_named(name)
        buffers = self._buffers + [Buffer(address, count, "scratch", False) for address, count in memory]
        values = bytearray(kernel._kernel["parameter_bytes"])
        for i, parameter in enumerate(kernel.parameters):
            pointer = ctypes.c_void_p.from_address(arguments + 8 * i).value or 0
            values[parameter.offset : parameter.offset + parameter.size] = ctypes.string_at(pointer, parameter.size)
        layout = Layout(values, pointers_in(values, buffers), buffers)
        counted = kernel._counted_rows(self._machine_code)
        launch = Launch(dims("grid", grid), dims("block", block), (0, 0, 0), shared, self._options, counted)
        units = launch.units(kernel._kernel["cluster"])
        step, count = (1, 0) if self._sample is None else sampled(units, self._sample, grid[0])
        self.traces.append(kernel._trace(launch, layout, kernel._run(launch, layout, (0, step, count))))


def pointers_in(block: bytearray, buffers: Sequence[Buffer]) -> list[tuple[int, int, int]]:
    """The words of a parameter block that are addresses of the buffers: (at, buffer, offset) rows.

    An address behind a buffer's last byte is its own too: a kernel is told where its arrays end.
    """
    found = []
    for at in range(0, len(block) - 7, 8):
        word = int.from_bytes(block[at : at + 8], "little")
        inside = [i for i, buffer in enumerate(buffers) if buffer.address <= word <= buffer.address + buffer.size]
        if inside:
            # Where one ends another may begin: the one that it lies in.
            best = max(inside, key=lambda i: buffers[i].address)
            found.append((at, best, word - buffers[best].address))
    return found


def stage_named(lesson: str, name: str) -> Stage:
    """The CUDA stage of that name."""
    if lesson not in lessons():
        raise unknown("lesson", lesson, lessons())
    rows = stages(lesson, "cuda")
    for row in rows:
        if row.name == name:
            return row
    raise unknown(f"cuda stage of {lesson}", name, [row.name for row in rows])


def host(x: Any, what: str = "x") -> Array:
    """An array in host memory, as NumPy sees it."""
    if isinstance(x, np.ndarray) or hasattr(x, "__dlpack__"):
        return as_array(x, what)
    raise TypeError(f"{what} is not an array: pass a numpy.ndarray or an array that has __dlpack__, not {x!r}")


Work = Callable[[Callable[..., object], Array, Array], None]


def executed(x: Array, out: Array, work: Work, index: Array | None = None, **options: Any) -> list[Trace]:
    """Does some work on images of x and out, and copies the result back. Returns what each launch did."""
    if _core._kernel_ptx("move_vectors") is None:
        raise UsageError("device 'sim': this gpumem was built without nvcc, and has no kernels to execute")
    source, result = Image(x), Image(out)
    buffers = [result.buffer("out"), source.buffer("x", read_only=True)]
    if index is not None:
        buffers.append(Buffer(int(index.ctypes.data), index.nbytes, "index", True))
    simulator = Simulator(buffers, **options)
    work(simulator.launch, result.view, source.view)
    if out.size:
        np.copyto(out, result.view)
    return simulator.traces


def moved(lesson: str, x: Array, axes: Sequence[int], out: Array, stage: str, **options: Any) -> list[Trace]:
    """out[...] = x with its axes in that order, by the kernels of a stage."""

    def work(launch: Callable[..., object], result: Array, source: Array) -> None:
        view = source.transpose(axes)
        _core._simulate_move(
            launch,
            lesson,
            stage,
            x.itemsize,
            view.shape,
            view.strides,
            result.strides,
            int(view.__array_interface__["data"][0]),
            int(result.__array_interface__["data"][0]),
        )

    return executed(x, out, work, **options)


def permuted(lesson: str, x: Any, axes: Sequence[int], out: Any, stage: str | None) -> Any:
    """What the operations do with device="sim": a new array, or `out`."""
    source = host(x)
    chosen = stage_named(lesson, stage or stages(lesson, "cuda")[-1].name)
    shape = tuple(source.shape[axis] for axis in axes)
    target = np.empty(shape, source.dtype) if out is None else host(out, "out")
    if target.shape != shape or target.dtype != source.dtype:
        raise ValueError(
            f"out has shape {target.shape} and dtype {target.dtype}, the result {shape} and {source.dtype}"
        )
    if not target.flags.writeable:
        raise ValueError("out is read-only")
    if source.size:
        moved(lesson, source, axes, target, chosen.name)
    return target if out is None else out


def run_stage(
    row: Stage, x: Array, work: Any, out: Array | None, index: Array | None, **options: Any
) -> tuple[Array, list[Trace]]:
    """A stage as `gpumem.run` has it: the result, and what each launch did."""
    dtype = x.dtype
    if row.bytes == 1:
        dtype = np.dtype({"b": "i8", "i": "i8", "u": "u8"}.get(x.dtype.kind, x.dtype.str))
    target = np.empty(work.shape, dtype) if out is None else out
    if target.shape != tuple(work.shape) or target.dtype != dtype:
        raise UsageError(f"out has shape {target.shape} and dtype {target.dtype}: {work.shape} and {dtype} are needed")
    if not target.flags.writeable:
        raise UsageError("out is read-only")

    def call(launch: Callable[..., object], result: Array, source: Array) -> None:
        _core._simulate_stage(
            launch,
            row.lesson,
            row.name,
            x.itemsize,
            x.dtype.name,
            work.figures,
            int(source.__array_interface__["data"][0]),
            int(result.__array_interface__["data"][0]),
            (0, 0) if index is None else (int(index.ctypes.data), index.itemsize),
        )

    traces = executed(x, target, call, index, **options) if target.size else []
    return target, traces


def trace_stage(
    lesson: str,
    stage: str,
    shape: tuple[int, ...] | None = None,
    dtype: Any = "float32",
    *,
    stride: int | None = None,
    offset: int = 0,
    field: int = 0,
    **options: Any,
) -> Trace:
    """Executes a stage of the ladder on random data, and reports what its kernels did.

    shape: as for `gpumem.ladder`, (records, fields) for the lesson `layout`; by default small. options: sample, watch,
    threads, seconds and machine_code of `Kernel.trace`. Stages of several launches give one report, whose counters are
    sums.

    Raises UsageError for names that do not exist, and what `gpumem.run` raises.

    >>> trace = gpumem.trace_stage("read", "strided", (1 << 16,), stride=32)
    >>> [(site.kind, site.requests, site.sectors) for site in trace.sites]
    [('load', 64, 2048), ('store', 64, 256)]
    """
    from .lessons import Request, work_of

    row = stage_named(lesson, stage)
    options.setdefault("machine_code", None)
    x, index = staged(row, shape, dtype)
    kind = x.dtype
    if lesson == "transpose" or (lesson == "copy" and row.kernel == "gm_cuda_move"):
        axes = tuple(reversed(range(x.ndim))) if lesson == "transpose" else tuple(range(x.ndim))
        out = np.empty(tuple(x.shape[axis] for axis in axes), kind)
        return combined(moved(lesson, x, axes, out, stage, **options))
    request = Request(row, x.shape, stride, offset, field, None if index is None else index.shape)
    _, traces = run_stage(row, x, work_of(request), None, index, **options)
    return combined(traces)


def staged(row: Stage, shape: tuple[int, ...] | None, dtype: Any) -> tuple[Array, Array | None]:
    """The random array that a stage works on, the same each time, and the indices of one that gathers."""
    from .device_ladder import FIELDS, indices
    from .specs import random

    usual = {"walk2d": (256, 256), "transpose": (256, 256), "layout": (4096, FIELDS)}
    lengths = usual.get(row.lesson, (1 << 16,)) if shape is None else shape
    if row.lesson == "layout" and row.name.startswith("soa"):
        lengths = lengths[::-1]
    x = random(lengths, np.dtype(dtype))
    return x, indices(x.size) if str(row) == "read/gather" else None


def combined(traces: Sequence[Trace]) -> Trace:
    """Several launches as one report: sums of what is counted, site by site for the same kernel."""
    if not traces:
        raise UsageError("nothing was launched: the array has no items")
    if len(traces) == 1:
        return traces[0]
    sites: dict[tuple[str, int], Site] = {}
    for trace in traces:
        for site in trace.sites:
            key = (trace.kernel, site.ptx_line)
            sites[key] = added(sites[key], site) if key in sites else site
    names = list(dict.fromkeys(trace.kernel for trace in traces))
    first = max(traces, key=lambda trace: math.prod(trace.grid))
    return replace(
        first,
        kernel=" + ".join(names),
        sites=tuple(sites.values()),
        instructions=sum(trace.instructions for trace in traces),
        thread_instructions=sum(trace.thread_instructions for trace in traces),
        findings=tuple(finding for trace in traces for finding in trace.findings),
        blocks=sum(trace.blocks for trace in traces),
        blocks_total=sum(trace.blocks_total for trace in traces),
        ended=next((trace.ended for trace in traces if trace.ended), ""),
        why=next((trace.why for trace in traces if trace.ended), ""),
        notes=(f"{len(traces)} launches; the grid is that of the largest.", *first.notes),
        counts="; ".join(dict.fromkeys(t.counts for t in traces if t.counts != EXACT)) or EXACT,
        changes=tuple(dict.fromkeys(change for trace in traces for change in trace.changes)),
        source={name: text for trace in traces for name, text in trace.source.items()},
        mix=mix.added(trace.mix for trace in traces),
        buffers={name: size for trace in traces for name, size in trace.buffers.items()},
        read_only=first.read_only,
    )


def operation(name: str, x: Any, axes: Any, out: Any, stage: str | None) -> Any:
    """What transpose, permute_dims, matrix_transpose and copy do with device="sim"."""
    source = host(x)
    if name == "matrix_transpose":
        if source.ndim < 2:
            raise ValueError(f"matrix_transpose swaps the last two axes: a {source.ndim}-d array has too few")
        axes = (*range(source.ndim - 2), source.ndim - 1, source.ndim - 2)
    elif name == "copy":
        axes = range(source.ndim)
    return permuted("copy" if name == "copy" else "transpose", source, order(axes, source.ndim), out, stage)


def order(axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes as numpy.transpose takes them: none of them left out, negative ones counted from the end."""
    if axes is None:
        return tuple(reversed(range(ndim)))
    given = [operator.index(axis) for axis in axes]
    wrong = [axis for axis in given if not -ndim <= axis < ndim]
    if wrong:
        raise ValueError(f"axis {wrong[0]} of a {ndim}-d array")
    named = tuple(axis % ndim for axis in given)
    if len(named) != ndim:
        raise ValueError(f"{len(named)} {'axis' if len(named) == 1 else 'axes'} for a {ndim}-d array")
    if len(set(named)) != ndim:
        raise ValueError(f"repeated axis in {tuple(axes)}")
    return named
