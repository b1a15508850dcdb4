"""The speed of light of every stage of a ladder, next to what a GPU measured: how far such estimates can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .devices import Device, device
from .errors import UsageError
from .light import speed_of_light
from .table import Column, Shown, Table, json_by_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .ladder import Ladder

SCHEMA = "gpumem.estimates/1"
SMALL = {"transpose": (1024, 1024), "walk2d": (1024, 1024), "layout": (1 << 16, 4)}  # what is traced, and scaled up
ITEMS = 1 << 20


@dataclass(frozen=True)
class Estimate:
    """A stage: the seconds that a GPU took, the least that the device allows, and the resource that binds there."""

    lesson: str
    stage: str
    dtype: str
    measured: float
    least: float
    binds: str

    @property
    def share(self) -> float:
        """The least time by the measured one: 1 for a stage at the speed of light, more where the estimate is wrong."""
        return self.least / self.measured


@dataclass(frozen=True, repr=False)
class Estimates(Shown):
    """Estimates of many stages. Prints as a table with the error in numbers."""

    rows: tuple[Estimate, ...]
    environment: dict[str, Any]

    def within(self, part: float) -> float:
        """The part of the rows whose estimate is wrong by no more than a part of the measured time."""
        return sum(abs(row.share - 1) <= part for row in self.rows) / len(self.rows)

    @property
    def shares(self) -> list[float]:
        """The least by the measured time, of every row."""
        return [row.share for row in self.rows]

    def error(self) -> str:
        """The error in one sentence."""
        low, middle, high = np.percentile(self.shares, (10, 50, 90))
        return (
            f"The least time is {middle:.0%} of the measured one in the median, {low:.0%} to {high:.0%} for 8 of 10 of "
            f"the {len(self.rows)} stages, {min(self.shares):.0%} and {max(self.shares):.0%} at the extremes; "
            f"{self.within(0.1):.0%} of the stages are within a tenth of it, {self.within(0.25):.0%} within a quarter."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        rows = [
            {**vars(row), "measured": float(f"{row.measured:.5g}"), "least": float(f"{row.least:.5g}")}
            for row in self.rows
        ]
        return {"schema": SCHEMA, "error": self.error(), "environment": self.environment, "rows": rows}

    def to_json(self) -> str:
        """The same as JSON, a row a line."""
        return json_by_line(self.to_dict(), "rows")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Estimates:
        """Estimates that were written by `to_dict`. Raises UsageError where `data` is none."""
        if data.get("schema") != SCHEMA:
            raise UsageError(f"no estimates: schema {data.get('schema')!r} instead of {SCHEMA!r}")
        return cls(tuple(Estimate(**row) for row in data["rows"]), dict(data["environment"]))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Measured time against the least, both logarithmic. Needs matplotlib (pip install 'gpumem[plot]')."""
        from .roof_plot import plot_estimates

        return plot_estimates(self, ax)

    def tables(self) -> list[Table]:
        """A row a stage, and the error."""
        columns = (
            Column("lesson", "left"),
            Column("stage", "left"),
            Column("dtype", "left"),
            Column("measured ms"),
            Column("least ms"),
            Column("share"),
            Column("binds", "left"),
        )
        rows = [
            (r.lesson, r.stage, r.dtype, f"{r.measured * 1e3:.3f}", f"{r.least * 1e3:.3f}", f"{r.share:.2f}", r.binds)
            for r in self.rows
        ]
        return [Table("The speed of light, and what was measured", columns, rows, [self.error()])]


def estimates(
    ladders: Iterable[Ladder], on: str | Device | Mapping[str, Any] | None = None, *, machine_code: bool | None = None
) -> Estimates:
    """The speed of light of every stage of recorded ladders, on the device that they were measured on.

    Each stage is executed by the lens on a small array, and what it asks of each resource scaled up to the ladder's.
    machine_code: as for `Kernel.trace`; without it nothing is known of latency.

    Raises UsageError for a ladder of a CPU.
    """
    from .simulate import trace_stage

    rows, environment = [], {}
    for ladder in ladders:
        if "device" not in ladder.environment:
            raise UsageError(f"{ladder.lesson}: a ladder of a CPU, and light is that of a GPU")
        environment = ladder.environment
        where = device(on if on is not None else environment)
        shape = SMALL.get(ladder.lesson, (ITEMS,))
        times = math.prod(ladder.shape) / math.prod(shape)
        for rung in ladder.rungs:
            if rung.kind != "stage":
                continue
            name, *option = rung.name.split()
            options = {"offset" if name == "offset" else "stride": int(option[0])} if option else {}
            trace = trace_stage(ladder.lesson, name, shape, ladder.dtype, machine_code=machine_code, **options)
            light = speed_of_light(trace, where)
            least = light.seconds * times
            rows.append(Estimate(ladder.lesson, rung.name, ladder.dtype, rung.time.median, least, light.binds))
    return Estimates(tuple(rows), environment)
