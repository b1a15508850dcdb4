"""The counters that matter for memory, one sentence each: what a number means, its formula, and what it should be.

Names are Nsight Compute's, the same from sm_75 to sm_120 where nothing else is said; beside each stands what nvprof
called it, by the tables of metrics and events in NVIDIA's "Nvprof Transition Guide" (manual of Nsight Compute CLI
2022.3). Where a profile has counted one, that is its value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .table import Column, Shown, Table

if TYPE_CHECKING:
    from .trace import Site, Trace

SECTOR = 32
OPS = {"ld": ("load", "copy"), "st": ("store",)}
_LSU = "l1tex__t_{}_pipe_lsu_mem_{}_op_{}.sum"


@dataclass(frozen=True)
class Explained:
    """A counter. `value` gives it for a trace, None where the trace has none; `ideal_of` the ideal of that trace."""

    name: str
    meaning: str
    formula: str
    ideal: str
    nvprof: str = ""
    value: Callable[[Trace], float | None] | None = None
    ideal_of: Callable[[Trace], float | None] | None = None

    def to_dict(self) -> dict[str, Any]:
        """What is said of it."""
        return {name: getattr(self, name) for name in ("name", "meaning", "formula", "ideal", "nvprof")}


def sites(trace: Trace, op: str, space: str = "global") -> list[Site]:
    """The loads, or the stores, that went to a space: "shared", "local", or "global" with what is generic."""
    chosen = [site for site in trace.sites if site.kind in OPS[op]]
    if space == "shared":
        return [site for site in chosen if site.shared]
    return [site for site in chosen if site.requests and (site.space == "local") == (space == "local")]


def summed(op: str, counter: str, space: str = "global") -> Callable[[Trace], float | None]:
    """A counter of all loads, or all stores."""
    return lambda trace: sum(getattr(site, counter) for site in sites(trace, op, space))


def ratio(op: str, upper: str, lower: str) -> Callable[[Trace], float | None]:
    """One counter by another."""

    def value(trace: Trace) -> float | None:
        below = sum(getattr(site, lower) for site in sites(trace, op))
        return sum(getattr(site, upper) for site in sites(trace, op)) / below if below else None

    return value


def bytes_per_sector(op: str) -> Callable[[Trace], float | None]:
    """Distinct bytes that lanes ask for, by sectors. Copies to shared memory are not counted here, as on hardware."""

    def value(trace: Trace) -> float | None:
        chosen = [site for site in sites(trace, op) if site.kind != "copy"]
        moved = sum(site.sectors for site in chosen)
        return sum(distinct_bytes(site) for site in chosen) / moved if moved else None

    return value


def distinct_bytes(site: Site) -> float:
    """Bytes that a site's lanes ask for, each once a request; by lanes, where no addresses were recorded."""
    rows = [row for row in site.patterns if row.space != "shared"]
    seen = sum(row.times for row in rows)
    if not seen:
        return site.lanes * site.width
    once = sum(row.times * row.width * len({place for place in row.addresses if place is not None}) for row in rows)
    return once * site.requests / seen


def lanes_at_work(trace: Trace) -> float | None:
    """Of the mean instruction."""
    return trace.thread_instructions / trace.instructions if trace.instructions else None


def of_loads_and_stores() -> Iterable[Explained]:
    """The rows of which there is one for each direction."""
    for op, word, old in (("ld", "load", "gld"), ("st", "store", "gst")):
        requests, sectors = (_LSU.format(what, "global", op) for what in ("requests", "sectors"))
        yield Explained(
            f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio",
            f"Sectors of 32 bytes that a warp's {word} touches in the mean: the measure of coalescing.",
            f"{sectors} / {requests}",
            "active lanes x bytes of a lane / 32: 4 for 32 lanes of 4 bytes, 16 for 16 bytes",
            f"{old}_transactions_per_request",
            ratio(op, "sectors", "requests"),
            ratio(op, "sectors_ideal", "requests"),
        )
        yield Explained(
            f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.ratio",
            f"Bytes that are used of each sector that a {word} moves; a byte that several lanes want counts once.",
            f"distinct bytes of each request / {sectors}",
            "32",
            f"{old}_efficiency, as a part of 32",
            bytes_per_sector(op),
            lambda trace: 32.0,
        )
        yield Explained(
            sectors,
            f"Sectors that all {word}s together touch, whether a cache holds them or not.",
            "a sum over requests",
            "distinct bytes / 32",
            f"{old}_transactions",
            summed(op, "sectors"),
            summed(op, "sectors_ideal"),
        )
        yield Explained(
            requests,
            f"Warp {word}s with an active lane: wider accesses need fewer.",
            "a sum over instructions",
            "bytes / (32 lanes x 16 bytes)",
            f"global_{word}_requests",
            summed(op, "requests"),
        )
        yield Explained(
            f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",
            f"Passes over the 32 banks that {word}s of shared memory take; "
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum is the same with the noise of arbitration.",
            "a sum over instructions of the most words that one bank has to give",
            "1 a warp for 4 bytes a lane, 2 for 8, 4 for 16",
            f"shared_{word}_transactions",
            summed(op, "wavefronts", "shared"),
            summed(op, "wavefronts_ideal", "shared"),
        )
        yield Explained(
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum",
            f"Passes of shared {word}s beyond those that were needed; on hardware with arbitration's noise, up to a "
            "few per cent where several warps run.",
            "wavefronts - ideal wavefronts",
            "0",
            f"shared_{op}_bank_conflict",
            summed(op, "conflicts", "shared"),
            lambda trace: 0.0,
        )
        yield Explained(
            _LSU.format("sectors", "local", op),
            f"Sectors that {word}s of local memory touch: spilled registers, and arrays that are indexed by unknowns.",
            "a sum over requests",
            "0",
            f"local_{word}_transactions",
            summed(op, "sectors", "local"),
            lambda trace: 0.0,
        )


EXPLAINED: tuple[Explained, ...] = (
    *sorted(of_loads_and_stores(), key=lambda row: ("shared" in row.name, "local" in row.name)),
    Explained(
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "Lanes at work in the mean instruction: what divergence and part-filled warps take away.",
        "smsp__thread_inst_executed.sum / smsp__inst_executed.sum",
        "32",
        "warp_execution_efficiency, as a part of 32",
        lanes_at_work,
        lambda trace: 32.0,
    ),
    Explained(
        "l1tex__t_sector_hit_rate.pct",
        "Sectors that L1 has still; the rest is asked of L2.",
        "hits / sectors",
        "0 for what is used once; the higher the better for what is used again",
        "tex_cache_hit_rate",
    ),
    Explained(
        "lts__t_sectors_op_read.sum",
        "Sectors that L2 is asked for: what L1 did not have.",
        "a sum over the slices of L2",
        "distinct bytes / 32",
        "l2_read_transactions, with those of atomics",
    ),
    Explained(
        "dram__bytes_read.sum",
        "Bytes that come from memory: what no cache had.",
        "a sum over the channels; sm_120 has dram__bytes.sum alone, with those written",
        "each byte of the inputs once",
        "dram_read_bytes",
    ),
    Explained(
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "How near the memory is to its peak: the one number that says whether it binds.",
        "bytes / time / peak",
        "what a copy reaches, about 88 to 92 % of the theoretical peak",
        "dram_utilization, of 10",
    ),
    Explained(
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "Warps that a multiprocessor holds, of those that it could: they hide latency by waiting in turn.",
        "active warps / most warps",
        "enough that bytes under way cover bandwidth x latency, not 100 %",
        "achieved_occupancy",
    ),
    Explained(
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
        "Warps that wait for a value from global or local memory: high where memory binds.",
        "warps that wait so / instructions issued",
        "none: a memory-bound kernel waits",
        "stall_memory_dependency, as a part of all stalls",
    ),
    Explained(
        "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
        "Warps that wait to hand over a global access: too many narrow ones, which wider ones would replace.",
        "warps that wait so / instructions issued",
        "0",
        "stall_memory_throttle, as a part of all stalls and with those that drain",
    ),
)


def explained(name: str) -> Explained:
    """What is said of a counter, by its name today, or nvprof's. Raises UsageError for a name that there is not.

    >>> explained("gld_efficiency").name
    'smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio'
    """
    from .errors import unknown

    for row in EXPLAINED:
        if name == row.name or name == row.nvprof.split(",")[0]:
            return row
    raise unknown("counter", name, [row.name for row in EXPLAINED])


class Explanation(Shown):
    """The counters, explained; with the values of a trace beside their ideals, where one is given.

    >>> copy = gpumem.Kernel(gpumem.examples.COPY)
    >>> x, out = np.arange(1024, dtype="f4"), np.zeros(1024, "f4")
    >>> rows = Explanation(copy.trace(8, 128, out, x, 1024)).to_dict()["counters"]
    >>> rows[0]["value"], rows[0]["ideal_value"]
    (4.0, 4.0)
    """

    def __init__(self, trace: Trace | None = None, rows: Iterable[Explained] = EXPLAINED) -> None:
        self.trace, self.rows = trace, tuple(rows)

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        counters = []
        for row in self.rows:
            value, ideal = self._numbers(row)
            numbers = {} if self.trace is None else {"value": value, "ideal_value": ideal}
            counters.append({**row.to_dict(), **numbers})
        return {"schema": "gpumem.metrics/1", "counters": counters}

    def _numbers(self, row: Explained) -> tuple[float | None, float | None]:
        if self.trace is None:
            return None, None
        ideal = row.ideal_of(self.trace) if row.ideal_of else None
        if row.name in self.trace.measured:
            return self.trace.measured[row.name], ideal
        return (row.value(self.trace), ideal) if row.value else (None, None)

    def tables(self) -> list[Table]:
        """Two lines a counter: its name (and numbers), and what it means."""
        if self.trace is None:
            rows = [
                (row.name, f"{row.meaning} Formula: {row.formula}. Ideal: {row.ideal}. nvprof: {row.nvprof}.")
                for row in self.rows
            ]
            return [Table("Counters of memory", (Column("counter", "left"), Column("", "left", prose=True)), rows)]
        numbers = [(row, *self._numbers(row)) for row in self.rows]
        shown = [
            (row.name, said(value), said(ideal), row.meaning) for row, value, ideal in numbers if value is not None
        ]
        columns = (Column("counter", "left"), Column("value"), Column("ideal"), Column("", "left", prose=True))
        return [Table(f"Counters of memory: {self.trace.kernel}", columns, shown)]


def said(value: float | None) -> str:
    """A number for a table.

    >>> said(4.0), said(12.345), said(1e6), said(None)
    ('4', '12.35', '1,000,000', '')
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
