"""What a benchmark measured: rows of raw samples, the figures they make, their tables and their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .cases import Group, group_of
from .errors import UsageError
from .recorded import made_from, read_json
from .table import Column, Shown, Table, Tables, bar, json_by_line
from .timing import Spread, fastest, ratio
from .work import REFERENCES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

US = "gpumem"


@dataclass(frozen=True)
class Row:
    """One measured case: for each contestant the raw samples, seconds a call."""

    case: dict[str, Any]
    bytes: int
    reference: str
    seconds: dict[str, list[float]]

    @property
    def group(self) -> Group:
        """The group, with its goals."""
        return group_of(self.case["group"])

    def against(self) -> str:
        """The contestant that the group's figure is a fraction of; the fastest peer for in-cache rows."""
        if self.group.against == "numpy":
            return "numpy"
        others = [name for name in self.seconds if name not in (US, *REFERENCES)]
        return fastest(self.seconds, others) if self.group.against == "peers" and others else self.reference

    def figure(self, name: str = US, against: str | None = None) -> Spread:
        """How fast a contestant is, as a fraction of what the group is measured against, round by round."""
        return ratio(self.seconds[against or self.against()], self.seconds[name])

    def reference_gb_per_s(self) -> float:
        """What the copy, or the read, of the same bytes reached in the same rounds."""
        return self.bytes / Spread.of(self.seconds[self.reference]).median / 1e9

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the figures are there for readers, the samples are what was measured."""
        against = self.against()
        return {
            **self.case,
            "bytes": self.bytes,
            "reference": self.reference,
            "reference_gb_per_s": float(f"{self.reference_gb_per_s():.4g}"),
            "against": against,
            "figures": {name: self.figure(name).to_dict() for name in self.seconds},
            "seconds": {name: list(taken) for name, taken in self.seconds.items()},
        }


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """A benchmark's rows and where they were measured. Prints as a table of groups; `every_row()` prints more."""

    op: str
    rows: tuple[Row, ...]
    environment: dict[str, Any]
    peers: dict[str, str]
    skipped: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with raw samples."""
        return {
            "schema": "gpumem.bench/1",
            "op": self.op,
            "environment": self.environment,
            "peers": self.peers,
            "skipped": list(self.skipped),
            "groups": {name: group_of(name).to_dict() for name in self.groups()},
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_json(self) -> str:
        """The same as JSON, a row a line."""
        return json_by_line(self.to_dict(), "rows")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Result:
        """A recorded result. Raises UsageError where `data` is none."""
        if data.get("schema") != "gpumem.bench/1":
            raise UsageError(f"not a recorded benchmark: schema {data.get('schema')!r} instead of 'gpumem.bench/1'")
        derived = ("bytes", "reference", "reference_gb_per_s", "against", "figures", "seconds")
        rows = tuple(
            Row({k: v for k, v in r.items() if k not in derived}, r["bytes"], r["reference"], r["seconds"])
            for r in data["rows"]
        )
        return cls(data["op"], rows, dict(data["environment"]), dict(data["peers"]), tuple(data["skipped"]))

    @classmethod
    def read(cls, path: Path) -> Result:
        """A result that was written as JSON. Raises UsageError where the file holds none."""
        return made_from(read_json(path), cls.from_dict, f"{path} holds no recorded benchmark")

    def groups(self) -> dict[str, list[Row]]:
        """The rows by group, in the order of the rows."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.case["group"], []).append(row)
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """Every row as a dot in its group's line, gpumem against its peers. Needs matplotlib."""
        from .plot import plot_result

        return plot_result(self, ax)

    def tables(self) -> list[Table]:
        """One row a group: median and worst, next to the goals and to the peers."""
        columns = (
            Column("group", "left"),
            Column("rows"),
            Column("figure is", "left"),
            Column("median"),
            Column("", "left"),
            Column("worst"),
            Column("worst row", "left"),
            Column("at least"),
            Column("aim"),
            Column("below"),
            *(Column(name) for name in self.peers),
            *([Column("behind a peer")] if self.peers else []),
        )
        body = [self._group_row(group_of(name), rows) for name, rows in self.groups().items()]
        return [Table(self._title(), columns, body, self._notes())]

    def _group_row(self, group: Group, rows: list[Row]) -> list[str]:
        figures = [row.figure().median for row in rows]
        worst = int(np.argmin(figures))
        median = float(np.median(figures))
        below = sum(figure < group.at_least for figure in figures)
        missed = group.median_at_least is not None and median < group.median_at_least
        behind = sum(
            any(row.figure(name).median > figure for name in row.seconds if name in self.peers)
            for row, figure in zip(rows, figures, strict=True)
        )
        return [
            group.name,
            str(len(rows)),
            {"copy": "of copy", "read": "of read", "peers": "× best peer", "numpy": "× NumPy"}[group.against],
            f"{median:.2f}",
            bar(median / max(1.0, group.aim)),
            f"{figures[worst]:.2f}",
            f"{rows[worst].case['name']} {rows[worst].case['dtype']}",
            goal_text(group.at_least, group.median_at_least),
            goal_text(group.aim, group.median_aim),
            ("median, " if missed else "") + str(below),
            *(peer_median(rows, name) for name in self.peers),
            *([str(behind)] if self.peers else []),
        ]

    def every_row(self) -> Tables:
        """Every row, then the groups: prints like the result itself."""
        return Tables([self.rows_table(), *self.tables()])

    def rows_table(self) -> Table:
        """One row a case: the copy's speed of the moment, the figure with its quartiles, and the peers'."""
        columns = (
            Column("group", "left"),
            Column("case", "left"),
            Column("dtype", "left"),
            Column("MB"),
            Column("reference GB/s"),
            Column("figure"),
            Column("quartiles"),
            Column("", "left"),
            *(Column(name) for name in self.peers),
        )
        body = []
        for row in self.rows:
            figure = row.figure()
            body.append(
                [
                    row.case["group"],
                    row.case["name"],
                    row.case["dtype"],
                    f"{row.bytes / 1e6:.0f}" if row.bytes >= 1e7 else f"{row.bytes / 1e6:.2g}",
                    f"{row.reference_gb_per_s():.1f}",
                    f"{figure.median:.2f}",
                    f"{figure.low:.2f}-{figure.high:.2f}",
                    bar(figure.median / max(1.0, row.group.aim)),
                    *(peer_median([row], name) for name in self.peers),
                ]
            )
        return Table(self._title(), columns, body, self._notes())

    def _title(self) -> str:
        env = self.environment
        when = env["date"][:10]
        if "device" in env:
            clocks = env["clocks"].get("clocks.sm", "unknown")
            return f"{self.op} on {env['device']} (CUDA {env['cuda']}, {clocks} MHz), gpumem {env['gpumem']}, {when}"
        return f"{self.op} on {env['cpu']}, {env['threads']} threads, {env['isa']}, gpumem {env['gpumem']}, {when}"

    def _notes(self) -> list[str]:
        against = (
            "a read of the same bytes"
            if self.op == "sum"
            else "a copy of the same bytes, the better of memcpy and streaming stores"
        )
        notes = [
            f"A figure is a fraction of {against} on the same threads, unless the table says otherwise: medians over "
            "rounds in which all take turns, random data from cold caches (in cache and tiny: from warm ones), outputs "
            "verified whole and touched before. Larger is faster."
            if "device" not in self.environment
            else "A figure is a fraction of a copy of the same bytes, the better of cudaMemcpyAsync and gpumem's own, "
            "unless the table says otherwise: medians over rounds in which all take turns, times by CUDA events from a "
            "cold cache, random data, outputs verified whole on the device. Larger is faster.",
            *(f"{name}: {version}" for name, version in self.peers.items()),
        ]
        if self.skipped:
            notes.append("Skipped: " + "; ".join(self.skipped))
        return notes


def peer_median(rows: list[Row], name: str) -> str:
    """A peer's median figure over the rows that it can do."""
    figures = [row.figure(name).median for row in rows if name in row.seconds]
    return f"{float(np.median(figures)):.2f}" if figures else ""


def goal_text(row: float, median: float | None) -> str:
    """A goal for every row; where half of the rows have a higher one, that one first."""
    return f"{row:.2f}" if median is None else f"{median:.2f}/{row:.2f}"
