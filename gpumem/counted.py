"""A ladder without a GPU: every stage of a lesson executed by the lens, and counted instead of timed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import DTypeLike

from .errors import UsageError, unknown
from .ladder import checked_dtype, counter_cells
from .ncu import IDEAL_WAVEFRONTS, Counters
from .stage_table import lessons, stages
from .table import Column, Shown, Table
from .trace import Trace

COUNTED = (
    "Sectors of 32 bytes that a warp's instruction touches, and wavefronts of shared memory beyond those that accesses "
    "without conflicts need, as an H200 counts them; findings are hazards. Results are compared with NumPy's by the "
    "tests, not here."
)


@dataclass(frozen=True, repr=False)
class TracedLadder(Shown):
    """What each rung of a ladder costs: its trace by its name, slow stages first. Those left out have a reason."""

    lesson: str
    dtype: str
    traces: dict[str, Trace]
    ideas: dict[str, str]
    left_out: dict[str, str]

    def __getitem__(self, name: str) -> Trace:
        """The trace of a rung."""
        return self.traces[name]

    def counters(self, name: str) -> Counters:
        """A rung's counters, by Nsight Compute's names."""
        trace = self.traces[name]
        conflicts = round(sum(site.conflicts for site in trace.sites) * trace.scale)
        return Counters({**trace.counters, IDEAL_WAVEFRONTS: Counters(trace.counters).wavefronts - conflicts})

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the counters of every rung, and how much was found that is wrong."""
        return {
            "schema": "gpumem.traced_ladder/1",
            "lesson": self.lesson,
            "dtype": self.dtype,
            "rungs": [
                {
                    "name": name,
                    "idea": self.ideas[name],
                    "kernel": trace.kernel,
                    "instructions": trace.instructions,
                    "findings": len(trace.findings),
                    "counters": self.counters(name).to_dict(),
                }
                for name, trace in self.traces.items()
            ],
            "left_out": dict(self.left_out),
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def tables(self) -> list[Table]:
        """One row a rung."""
        columns = (
            Column("stage", "left"),
            Column("instructions"),
            Column("sectors/load"),
            Column("sectors/store"),
            Column("bank conflicts"),
            Column("findings"),
            Column("what it changes", "left", prose=True),
        )
        rows = [
            (
                name,
                f"{trace.instructions:,}",
                *counter_cells(self.counters(name)),
                str(len(trace.findings) or ""),
                self.ideas[name],
            )
            for name, trace in self.traces.items()
        ]
        notes = [COUNTED, *(f"Left out: {why}." for why in self.left_out.values())]
        return [Table(f"{self.lesson}: {self.dtype}, executed on the CPU", columns, rows, notes)]


def trace_ladder(
    lesson: str, shape: Sequence[int] | None = None, dtype: DTypeLike = "float32", **options: Any
) -> TracedLadder:
    """Executes every stage of a lesson by the lens: sectors per request and bank conflicts of each, without a GPU.

    lesson, shape and dtype as for `trace_stage`, small by default. options: sample, watch, threads, seconds and
    machine_code of `Kernel.trace`. What a stage by its nature cannot take is left out, with the reason.

    Raises UsageError for a lesson without stages, and where no stage takes such an array.

    >>> ladder = gpumem.trace_ladder("transpose", (64, 64), "uint8")
    >>> [ladder.counters(name).sectors_per_request("st") for name in ("naive", "padded")]
    [32.0, 1.0]
    """
    from .device_ladder import rungs_of
    from .simulate import trace_stage

    known = [name for name in lessons() if stages(name, "cuda")]
    if lesson not in known:
        raise unknown("lesson", lesson, known)
    dims = None if shape is None else tuple(shape)
    kind = checked_dtype(dtype)
    traces: dict[str, Trace] = {}
    ideas: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name, stage, given in rungs_of(stages(lesson, "cuda")):
        how = {key: value for key, value in given.items() if key != "index"}  # trace_stage makes one
        try:
            traces[name] = trace_stage(lesson, stage.name, dims, kind, **how, **options)
        except ValueError as why:
            left_out[name] = str(why)
        ideas[name] = stage.idea
    if not traces:
        raise UsageError(next(iter(left_out.values()), f"{lesson} has no stages"))
    return TracedLadder(lesson, kind.name, traces, ideas, left_out)
