"""A launch that was executed twice: by the lens, which says what it asks for, and on the GPU, which says how long.

A GPU that is told to read where nothing is may take other programs down with this one. So the lens goes first, all
blocks of the launch, and what it finds wrong is not launched: addresses outside of the arrays, deadlocks, and, as such
may become an address the next time, values that were never written and races in shared memory.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .arguments import lay_out
from .device_clock import LEGACY, Clock, Lent, time_job
from .devices import Device, device
from .errors import UsageError
from .kernel import Dim, Kernel, dims, size
from .launch import job_of
from .light import memory_bytes, speed_of_light
from .table import Column, Shown, Table
from .timing import ROUNDS, Spread, interleave

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .trace import Trace


SCHEMA = "gpumem.measured/1"


@dataclass(frozen=True, repr=False)
class Measured(Shown):
    """A launch as the lens traced it and as the first CUDA device timed it. Prints as a table.

    `samples` are seconds of a launch between two events, each from a cold second-level cache and the same bytes in
    every buffer; a launch of next to nothing takes some microseconds there. `notes` say where results differ.

    >>> trace = gpumem.trace_stage("copy", "vector4", (1 << 20,))
    >>> taken = gpumem.Measured(trace, gpumem.devices.device("H200"), (3e-6, 2.5e-6, 2.6e-6))
    >>> taken.seconds, round(taken.least / taken.seconds, 2)
    (2.6e-06, 0.76)
    """

    trace: Trace
    device: Device
    samples: tuple[float, ...]
    notes: tuple[str, ...] = ()

    @property
    def time(self) -> Spread:
        """Median and quartiles of the samples, in seconds."""
        return Spread.of(list(self.samples))

    @property
    def seconds(self) -> float:
        """The median."""
        return self.time.median

    @property
    def least(self) -> float:
        """Seconds below which the launch cannot be on this device (`trace.speed_of_light`)."""
        return speed_of_light(self.trace, self.device).seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "schema": SCHEMA,
            "device": self.device.to_dict(),
            "samples": list(self.samples),
            "least": self.least,
            "notes": list(self.notes),
            "trace": self.trace.to_dict(),
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measured:
        """What `to_dict` wrote. Raises UsageError where `data` is none."""
        from .trace import Trace

        if data.get("schema") != SCHEMA:
            raise UsageError(f"no measured launch: schema {data.get('schema')!r} instead of {SCHEMA!r}")
        where = Device.from_dict(data["device"])
        return cls(Trace.from_dict(data["trace"]), where, tuple(data["samples"]), tuple(data["notes"]))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Under the roof of the device, as traced and as measured. Needs matplotlib (pip install 'gpumem[plot]')."""
        from .roofline import roofline

        return roofline(self, device=self.device).plot(ax)

    def tables(self) -> list[Table]:
        """One row: the time, the bandwidth of the bytes that memory must move, and the least time."""
        columns = (
            Column("kernel", "left"),
            Column("us"),
            Column("quartiles"),
            Column("GB/s"),
            Column("of a copy"),
            Column("least us"),
            Column("least/measured"),
            Column("binds", "left"),
        )
        light, took = speed_of_light(self.trace, self.device), self.time
        rate = sum(memory_bytes(self.trace)) / took.median
        row = (
            self.trace.kernel,
            f"{took.median * 1e6:.2f}",
            f"{took.low * 1e6:.2f} {took.high * 1e6:.2f}",
            f"{rate / 1e9:,.0f}",
            f"{rate / self.device.bandwidth:.2f}",
            f"{light.seconds * 1e6:.2f}",
            f"{light.seconds / took.median:.2f}",
            light.binds,
        )
        said = f"{len(self.samples)} launches, each from a cold cache. {self.device.source}."
        return [Table(f"Measured on {self.device.name}", columns, [row], [said, *self.notes])]


def measure(
    kernel: Kernel, grid: Dim, block: Dim, args: Sequence[Any], *, shared: int = 0, repeat: int = ROUNDS, **options: Any
) -> Measured:
    """`Kernel.measure`."""
    where = here(repeat)
    layout = lay_out(kernel.parameters, kernel._kernel["parameter_bytes"], args, options.get("names", ()))
    shape, dynamic = (dims("grid", grid), dims("block", block)), size("shared", shared, 1 << 32)
    job = job_of(kernel.ptx.encode() + b"\0", kernel.name, *shape, dynamic, layout)  # before the lens writes there
    trace = allowed(kernel.trace(grid, block, *args, shared=shared, **options))
    samples, after = time_job(job, repeat)
    notes = []
    for buffer, data in zip(layout.buffers, after, strict=True):
        if wrong := differing(buffer.address, data):
            notes.append(f"{buffer.name or 'A buffer'}: {wrong:,} of {len(data):,} bytes are not those of the lens.")
    return Measured(trace, where, tuple(samples), tuple(notes))


def measure_stage(
    lesson: str, stage: str, shape: tuple[int, ...] | None = None, dtype: Any = "float32", *, repeat: int = ROUNDS
) -> Measured:
    """A stage of the ladder in the lens and on the GPU, on the same random data."""
    from .lessons import prepared, run
    from .simulate import stage_named, staged, trace_stage

    where = here(repeat)
    trace = allowed(trace_stage(lesson, stage, shape, dtype, watch=()))
    x, index = staged(stage_named(lesson, stage), shape, dtype)
    wanted = np.asarray(run(lesson, stage, x, device="sim", index=index))
    kept = np.zeros(0, np.int32) if index is None else index
    with Clock() as clock, clock.device.memory(x.nbytes, wanted.nbytes, kept.nbytes) as (source, result, at):
        clock.device.upload(source, x.tobytes())
        clock.device.upload(at, kept.tobytes())
        lent, out = Lent(source, x.shape, x.dtype), Lent(result, wanted.shape, wanted.dtype)
        where_from = None if index is None else Lent(at, index.shape, index.dtype)
        call = prepared(lesson, stage, lent, index=where_from, out=out, stream=LEGACY)
        samples = interleave({stage: clock.timer(call)}, repeat)[stage]
        got = np.frombuffer(clock.device.download(result, wanted.nbytes), wanted.dtype)
    same = np.allclose(got, wanted.reshape(-1)) if lesson == "reduce" else got.tobytes() == wanted.tobytes()
    notes = () if same else (f"{lesson}/{stage}: the result is not that of the lens.",)
    return Measured(trace, where, tuple(samples), notes)


def here(repeat: int) -> Device:
    """The GPU of this machine. Raises UsageError where there is none, and for fewer rounds than one."""
    if repeat < 1:
        raise UsageError(f"repeat={repeat}: at least 1 round")
    return device(None)


def allowed(trace: Trace) -> Trace:
    """A trace of a launch that a GPU may be given. Raises UsageError for any other, with what was found."""
    if trace.ended:
        raise UsageError(f"{trace.kernel} is not launched on the GPU: {trace.why or trace.ended}")
    if trace.findings:
        raise UsageError(
            f"{trace.kernel} is not launched on the GPU before this is mended: {trace.findings[0]}"
            + (f"; and {len(trace.findings) - 1} more, which `gpumem trace` lists" if trace.findings[1:] else "")
        )
    if trace.blocks < trace.blocks_total:
        raise UsageError(
            f"{trace.kernel} is not launched on the GPU: {trace.blocks:,} of its {trace.blocks_total:,} blocks were "
            "executed, and of the others nothing is known. Leave `sample` out"
        )
    return trace


def differing(address: int, data: bytes) -> int:
    """How many bytes of memory are not those of `data`."""
    there, given = (np.frombuffer(each, np.uint8) for each in (ctypes.string_at(address, len(data)), data))
    return int(np.count_nonzero(there != given))
