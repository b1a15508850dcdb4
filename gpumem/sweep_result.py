"""What a sweep measured or counted: points of raw samples, their JSON, table, data frame, comparison and plot."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .amounts import format_bytes
from .errors import UsageError
from .recorded import made_from, read_json
from .table import Column, Shown, Table, json_by_line
from .timing import Spread, fastest, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA = "gpumem.sweep/1"
NO_DIFFERENCE = "no difference"
CERTAIN = 0.01  # two sets of samples differ where chance alone would sort them so less often
LEAST = 0.02  # and where their medians differ by more than two runs of the same do
AXES = {
    "size": "bytes of the array",
    "stride": "items from one to the next",
    "offset": "items before the first",
    "width": "bytes of an access",
    "flight": "bytes under way on a multiprocessor",
    "threads": "threads",
}


@dataclass(frozen=True)
class Point:
    """What one contestant did at one value of the axis.

    `name` is a stage's, a peer's or a reference's, as `kind` says; `cell` numbers the rounds in which it took turns
    with others. `seconds` are the raw samples of a call; a point that was counted by the lens has `counters` instead.
    """

    x: float
    cell: int
    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    seconds: tuple[float, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)

    @property
    def gb_per_s(self) -> Spread:
        """Bytes that must move by the time, median and quartiles; 1 GB is 10**9 bytes."""
        return Spread.of([self.bytes / taken / 1e9 for taken in self.seconds])

    def to_dict(self) -> dict[str, Any]:
        """The fields by name; those that are empty are left out."""
        plain = {
            **vars(self),
            "shape": list(self.shape),
            "seconds": list(self.seconds),
            "counters": dict(self.counters),
        }
        return {name: value for name, value in plain.items() if value not in ([], {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Point:
        """A point that was written by `to_dict`."""
        return cls(**{**data, "shape": tuple(data["shape"]), "seconds": tuple(data.get("seconds", ()))})


@dataclass(frozen=True, repr=False)
class Sweep(Shown):
    """Points along an axis: size, stride, offset, width, flight or threads.

    `setting` is all that was asked for; `against` is what the references do: a copy, or a read. Prints as a table.
    """

    lesson: str
    over: str
    against: str
    setting: dict[str, Any]
    points: tuple[Point, ...]
    environment: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def device(self) -> str:
        """Where: cpu, cuda or sim."""
        return str(self.setting["device"])

    @property
    def counted(self) -> bool:
        """Whether the points were counted by the lens, and not timed."""
        return self.device == "sim"

    @property
    def place(self) -> str:
        """The device in words."""
        return "counted by the lens" if self.counted else str(self.environment.get("device") or self.environment["cpu"])

    @cached_property
    def best(self) -> dict[int, Point]:
        """The fastest reference of each cell."""
        found: dict[int, Point] = {}
        for cell in {point.cell for point in self.points}:
            those = {p.name: p for p in self.points if p.cell == cell and p.kind == "reference"}
            if those:
                found[cell] = those[fastest({n: list(p.seconds) for n, p in those.items()}, list(those))]
        return found

    def series(self) -> dict[tuple[str, str], list[Point]]:
        """The points of each contestant and type, in the order of the axis."""
        found: dict[tuple[str, str], list[Point]] = {}
        for point in self.points:
            found.setdefault((point.name, point.dtype), []).append(point)
        return {key: sorted(points, key=lambda point: point.x) for key, points in found.items()}

    def of_copy(self, point: Point) -> Spread:
        """How fast a point is as a fraction of the best reference of the same rounds, byte for byte."""
        best = self.best[point.cell]
        return ratio([taken * (point.bytes / best.bytes) for taken in best.seconds], list(point.seconds))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the raw samples."""
        return {
            "schema": SCHEMA,
            "lesson": self.lesson,
            "over": self.over,
            "against": self.against,
            "setting": self.setting,
            "environment": self.environment,
            "notes": list(self.notes),
            "points": [point.to_dict() for point in self.points],
        }

    def to_json(self) -> str:
        """The same as JSON, a point a line."""
        return json_by_line(self.to_dict(), "points")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sweep:
        """A recorded sweep. Raises UsageError where `data` is none."""
        if data.get("schema") != SCHEMA:
            raise UsageError(f"not a recorded sweep: schema {data.get('schema')!r} instead of {SCHEMA!r}")
        return cls(
            data["lesson"],
            data["over"],
            data["against"],
            dict(data["setting"]),
            tuple(map(Point.from_dict, data["points"])),
            dict(data["environment"]),
            tuple(data["notes"]),
        )

    @classmethod
    def from_json(cls, text: str) -> Sweep:
        """A sweep from its JSON. Raises UsageError for a text that is none."""
        return made_from(text, lambda text: cls.from_dict(json.loads(text)), "no recorded sweep")

    @classmethod
    def read(cls, path: str | Path) -> Sweep:
        """A sweep from a file. Raises UsageError where it holds none."""
        return made_from(read_json(path), cls.from_dict, f"{path} holds no recorded sweep")

    def to_dataframe(self) -> Any:
        """A pandas.DataFrame with a row a sample, or a row a point where the points were counted. Needs pandas."""
        try:
            import pandas
        except ImportError:
            raise UsageError("to_dataframe needs pandas: pip install pandas") from None
        rows = []
        for point in self.points:
            head = {self.over: point.x, "name": point.name, "kind": point.kind, "dtype": point.dtype}
            head |= {"cell": point.cell, "bytes": point.bytes}
            if self.counted:
                rows.append({**head, **point.counters})
            for round_, taken in enumerate(point.seconds):
                rows.append({**head, "round": round_, "seconds": taken, "gb_per_s": point.bytes / taken / 1e9})
        return pandas.DataFrame(rows)

    def compare(self, other: Sweep, *, least: float = LEAST) -> SweepComparison:
        """How fast the points of this sweep are, as multiples of those of another one, where both have them.

        Samples are sorted together: only where chance alone would put the two sets so far apart in less than 1 of 100
        cases (Mann and Whitney's test), and where their medians differ by more than `least`, is there a difference.
        Counted points differ where they are not the same.

        Raises UsageError for sweeps over other axes or with no point in common.
        """
        if (self.over, self.counted) != (other.over, other.counted):
            raise UsageError(f"a sweep over {other.over} on {other.device} and one over {self.over} on {self.device}")
        theirs = {(point.x, point.name, point.dtype): point for point in other.points}
        pairs = [(p, theirs[p.x, p.name, p.dtype]) for p in self.points if (p.x, p.name, p.dtype) in theirs]
        if not pairs:
            raise UsageError("the sweeps have no point in common")
        return SweepComparison(self, other, tuple(Difference.of(a, b, least) for a, b in pairs))

    def plot(self, ax: Axes | None = None) -> Axes:
        """The curves, with their quartiles as bands. Needs matplotlib (pip install 'gpumem[plot]')."""
        from .plot import plot_sweep

        return plot_sweep(self, ax)

    def tables(self) -> list[Table]:
        """A row a value of the axis, a column a contestant: GB/s, or what was counted.

        Of several types a row a contestant, a column a type, and in each cell where on the axis it stands, too.
        """
        series = self.series()
        types = list(dict.fromkeys(dtype for _, dtype in series))
        if len(types) > 1:
            columns = [Column("stage", "left"), *(Column(dtype) for dtype in types)]
            names = dict.fromkeys(name for name, _ in series)
            rows = [[name, *(self._placed(series.get((name, dtype), [])) for dtype in types)] for name in names]
        else:
            columns = [Column(self.over), *(Column(name) for name, _ in series)]
            by = {key: {point.x: point for point in points} for key, points in series.items()}
            values = sorted({point.x for point in self.points})
            rows = [[label(self.over, x), *(self._cell(found.get(x)) for found in by.values())] for x in values]
        what = "sectors of an executed load, store" if self.counted else "GB/s that must move, medians"
        title = f"{self.lesson} over {AXES[self.over]}, {self.place}"
        return [Table(f"{title}: {what}", columns, rows, self.notes)]

    def _placed(self, points: Sequence[Point]) -> str:
        """The cells of some points, each behind its value of the axis; a reference has none."""
        cells = [(f"{label(self.over, p.x)}: " if p.kind == "stage" else "") + self._cell(p) for p in points]
        return ", ".join(cells)

    def _cell(self, point: Point | None) -> str:
        if point is None:
            return ""
        return counted_text(point) if self.counted else f"{point.gb_per_s.median:.4g}"


def counted_text(point: Point) -> str:
    """What a counted point says in a table."""
    names = ("sectors_per_load", "sectors_per_store", "wavefronts_per_load")
    return " ".join(f"{point.counters[name]:.3g}" for name in names if name in point.counters)


def label(over: str, x: float) -> str:
    """A value of the axis in words.

    >>> label("size", 4096), label("stride", 3.0)
    ('4 KiB', '3')
    """
    return format_bytes(x) if over in ("size", "flight") else f"{x:g}"


@dataclass(frozen=True)
class Difference:
    """A point of two sweeps: the ratio of the first to the second, and whether that is more than chance."""

    x: float
    name: str
    dtype: str
    ratio: Spread
    differs: bool

    @classmethod
    def of(cls, ours: Point, theirs: Point, least: float) -> Difference:
        """Compares two points. Each sample of one by each of the other gives the spread of the ratio."""
        if ours.counters or theirs.counters:
            same = ours.counters == theirs.counters
            return cls(ours.x, ours.name, ours.dtype, Spread(1.0, 1.0, 1.0), not same)
        ratios = [b / theirs.bytes / (a / ours.bytes) for a in ours.seconds for b in theirs.seconds]
        spread = Spread.of(ratios)
        chance = by_chance(*([taken / p.bytes for taken in p.seconds] for p in (ours, theirs)))
        return cls(ours.x, ours.name, ours.dtype, spread, chance < CERTAIN and abs(spread.median - 1) > least)

    @property
    def verdict(self) -> str:
        """In words.

        >>> Difference(1, "tuned", "float32", Spread(1.25, 1.2, 1.3), True).verdict
        '1.25 times as fast (1.20 to 1.30)'
        """
        if not self.differs:
            return NO_DIFFERENCE
        r = self.ratio
        return f"{r.median:.2f} times as fast ({r.low:.2f} to {r.high:.2f})" if r.median != 1 else "other counts"


def by_chance(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How probable it is that two sets of samples from one source sort as far apart as these, either way.

    Mann and Whitney's test, exact: all ways to deal the ranks are counted. Ties count half.

    >>> by_chance([1, 2, 3], [4, 5, 6]), by_chance([1, 4], [2, 3])
    (0.1, 1.0)
    """
    n, m = len(ours), len(theirs)
    u = sum((a < b) + 0.5 * (a == b) for a in ours for b in theirs)
    low = math.floor(min(u, n * m - u))
    return min(1.0, 2 * sum(ways(n, m)[: low + 1]) / math.comb(n + m, n))


def ways(n: int, m: int) -> list[int]:
    """In how many orders of n and m samples 0, 1, 2, ... pairs are the wrong way round.

    >>> ways(2, 2)
    [1, 1, 2, 1, 1]
    """
    found = [1] + [0] * (n * m)
    for i in range(1, n + 1):  # times (1 - q**(m + i)) / (1 - q**i)
        for k in range(n * m, m + i - 1, -1):
            found[k] -= found[k - m - i]
        for k in range(i, n * m + 1):
            found[k] += found[k - i]
    return found


@dataclass(frozen=True, repr=False)
class SweepComparison(Shown):
    """Two sweeps, point by point."""

    first: Sweep
    second: Sweep
    points: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        """Whether no point differs."""
        return not any(point.differs for point in self.points)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        rows = [{**vars(p), "ratio": p.ratio.to_dict(), "verdict": p.verdict} for p in self.points]
        return {"schema": "gpumem.sweep-comparison/1", "over": self.first.over, "points": rows}

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def tables(self) -> list[Table]:
        """The points that differ, and how many do not."""
        over = self.first.over
        changed = [point for point in self.points if point.differs]
        columns = (Column(over), Column("contestant", "left"), Column("dtype", "left"), Column("the first is", "left"))
        rows = [(label(over, p.x), p.name, p.dtype, p.verdict) for p in changed]
        same = len(self.points) - len(changed)
        few = min((len(p.seconds) for s in (self.first, self.second) for p in s.points if p.seconds), default=5)
        notes = [f"{same} of {len(self.points)} points: {NO_DIFFERENCE}." if changed else ""]
        if few < 5:
            notes.append(f"{few} rounds are too few to tell: 5 of each are the fewest that can.")
        title = f"{self.first.lesson} over {AXES[over]}"
        title += "" if changed else f": {NO_DIFFERENCE} in any of {len(self.points)} points"
        return [Table(title, columns if changed else (), rows, [note for note in notes if note])]
