"""What a kernel did to memory: by instruction and source line, in Nsight Compute's words.

A Trace comes from the lens, which executes PTX on the CPU, or from Nsight Compute on a GPU (`gpumem.profile`); both
have the same shape, so that one can be compared with the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from .demangle import readable
from .metrics import INSTRUCTIONS, METRICS, THREAD_INSTRUCTIONS, add_up
from .occupancy import words as fit_words
from .pattern import Pattern as Pattern
from .pattern import added_patterns
from .table import Column, Shown, Table

if TYPE_CHECKING:
    from .advice import Advice
    from .binding import Counted
    from .devices import Device
    from .light import SpeedOfLight
    from .pictures import Picture

PATTERNS = ("patterns", "distinct")
EXACT = "exact"  # counts that are the machine code's
FEW = 3  # of a long list, printed
COUNTS = (
    *("executions", "lanes", "requests", "sectors", "sectors_ideal", "lines"),
    *("shared", "wavefronts", "wavefronts_ideal", "conflicts"),
)  # in the order of gm_lens_counts


def where(file: str | None, line: int, ptx_line: int) -> str:
    """The source line where it is known, else the PTX's."""
    return f"{PurePath(file).name}:{line}" if file and line else f"ptx:{ptx_line}"


def place(at: str, calls: Sequence[str]) -> str:
    """A place with the lines of the calls that it was inlined into, the innermost first.

    >>> place("k.cu:3", ["src/k.cu:7", "src/k.cu:13"]), place("math.h:40", ["src/k.cu:7"]), place("k.cu:3", [])
    ('k.cu:3 < 7 < 13', 'math.h:40 < k.cu:7', 'k.cu:3')
    """
    said, last = at, at.rpartition(":")[0]
    for call in calls:
        file, _, line = call.rpartition(":")
        name = PurePath(file).name
        said += f" < {line}" if name == last else f" < {name}:{line}"
        last = name
    return said


@dataclass(frozen=True)
class Site:
    """A memory instruction of the kernel, and what all its executions cost.

    `kind` is load, store, atom, red, copy, bulk, ldsm or stsm; `width` the bytes of one lane's access. `executions`
    are warp instructions, `lanes` the active lanes of these. `requests`, `sectors` (32 bytes) and `lines` (128 bytes)
    are of global and local memory, `shared` counts executions that went to shared memory, `wavefronts` the passes that
    these took, `conflicts` the passes beyond the ideal. The ideals are what the same lanes would need, had their items
    lain side by side.

    `patterns` are executions, one for each cost (of each space that the site went to), cheapest first; `distinct` the
    different accesses to shared memory of the first block (or cluster), in the order of execution: at most 64, of the
    first 4,096 executions. Both are of the lens alone. `calls` are the lines ("k.cu:13") that the function with this
    line was inlined into, the innermost first.
    """

    opcode: str
    kind: str
    space: str
    width: int
    file: str | None
    line: int
    ptx_line: int
    executions: int = 0
    lanes: int = 0
    requests: int = 0
    sectors: int = 0
    sectors_ideal: int = 0
    lines: int = 0
    shared: int = 0
    wavefronts: int = 0
    wavefronts_ideal: int = 0
    conflicts: int = 0
    patterns: Sequence[Pattern] = ()
    distinct: Sequence[Pattern] = ()
    calls: tuple[str, ...] = ()

    def spaces(self) -> tuple[str, ...]:
        """The spaces of the patterns: one, but for cp.async and generic accesses."""
        return tuple(dict.fromkeys(pattern.space for pattern in self.patterns))

    def worst(self, space: str | None = None) -> Pattern | None:
        """The dearest execution, in the first space if none is named. None where nothing was recorded."""
        return self._of_space(space)[-1] if self.patterns else None

    def median(self, space: str | None = None) -> Pattern | None:
        """An execution of the median cost: half of all cost as much or less."""
        rows = self._of_space(space) if self.patterns else ()
        half, before = sum(pattern.times for pattern in rows) / 2, 0
        for pattern in rows:
            before += pattern.times
            if before >= half:
                return pattern
        return None

    def _of_space(self, space: str | None) -> Sequence[Pattern]:
        space = space or self.patterns[0].space
        rows = tuple(pattern for pattern in self.patterns if pattern.space == space)
        if not rows:
            raise ValueError(f"{self.where}: nothing in {space} memory; there is {', '.join(self.spaces())}")
        return rows

    @property
    def where(self) -> str:
        """The source line where it is known, else the PTX's.

        >>> Site("ld.global.f32", "load", "global", 4, "src/k.cu", 7, 40).where
        'k.cu:7'
        """
        return where(self.file, self.line, self.ptx_line)

    @property
    def place(self) -> str:
        """`where`, and the lines of the calls that it was inlined into: "k.cu:3 < 7 < 13"."""
        return place(self.where, self.calls)

    @property
    def active(self) -> int:
        """Executions with an active lane, of instructions that the machine has: what Nsight Compute calls executed."""
        return self.shared if self.space == "shared" else self.requests

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        lists = {name: [pattern.to_dict() for pattern in getattr(self, name)] for name in PATTERNS}
        return {**asdict(replace(self, patterns=(), distinct=())), **lists}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Site:
        """What `to_dict` wrote."""
        lists = {name: tuple(Pattern.from_dict(row) for row in data.get(name, ())) for name in PATTERNS}
        return cls(**{**data, **lists, "calls": tuple(data.get("calls", ()))})


@dataclass(frozen=True)
class Finding:
    """Something that would be wrong on a GPU: what, at which instruction, how often, and the first examples.

    Each example has `block`, `thread`, `other_thread` (of a race), `other_block` (None where it is the same), `buffer`,
    `address` and `offset` (bytes from the buffer's start).
    """

    kind: str
    text: str
    space: str
    writes: bool
    width: int
    opcode: str
    file: str | None
    line: int
    ptx_line: int
    other: str
    lanes: int
    times: int
    examples: tuple[Mapping[str, Any], ...]
    calls: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The source line where it is known, else the PTX's."""
        return where(self.file, self.line, self.ptx_line) if self.opcode else ""

    @property
    def place(self) -> str:
        """`where`, and the lines of the calls that it was inlined into: "k.cu:3 < 7 < 13"."""
        return place(self.where, self.calls)

    def __str__(self) -> str:
        head = f"{self.place}: " if self.where else ""
        access = f" ({self.opcode})" if self.opcode else ""
        return f"{head}{self.kind}{access}: {self.text}; {self.example}"

    @property
    def example(self) -> str:
        """How often it was seen, and the first time in words."""
        seen = f"{self.lanes:,} times" if self.lanes != 1 else "once"
        if not self.examples:
            return seen
        first = self.examples[0]
        block, thread = ("({})".format(", ".join(map(str, first[name]))) for name in ("block", "thread"))
        words = [f"{seen}, first in block {block}, thread {thread}"]
        if first["other_thread"] is not None:
            words.append("after thread ({})".format(", ".join(map(str, first["other_thread"]))))
        if first.get("other_block") is not None:
            words[-1] += " of block ({})".format(", ".join(map(str, first["other_block"])))
        if self.other:
            words.append(f"against {self.other}")
        if self.width and first["buffer"] is not None:
            words.append(f"{self.width} bytes at {first['buffer']} {first['offset']:+d}")
        elif self.width:
            words.append(f"{self.width} bytes at {self.space} {first['address']:#x}")
        return ", ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {**asdict(self), "examples": [dict(example) for example in self.examples]}


@dataclass(frozen=True, repr=False)
class Trace(Shown):
    """What one launch did: its sites, totals, findings, and how it ended.

    sites: every memory instruction of the kernel, in the order of the text. counters: totals by Nsight Compute's metric
    names. instructions: warp instructions executed, of the PTX or of the machine code (counters have none of the PTX's:
    ptxas makes others of them). findings: hazards; empty for a kernel without. blocks of blocks_total were executed;
    where these are fewer (`sample=`), `counters` are scaled to the whole grid, and sites are not. ended is "" for a run
    that came to its end, "deadlock" else, with the reason in `why`. origin is "lens" or "ncu".
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arch: str
    sites: tuple[Site, ...]
    instructions: int
    thread_instructions: int
    findings: tuple[Finding, ...] = ()
    blocks: int = 1
    blocks_total: int = 1
    ended: str = ""
    why: str = ""
    origin: str = "lens"
    measured: Mapping[str, Any] = field(default_factory=dict)  # by Nsight Compute, where that is the origin
    notes: tuple[str, ...] = ()
    source: Mapping[str, str] = field(default_factory=dict)  # texts by file name, for the listing
    counts: str = ""  # "exact" for the chip's machine code, "approximate: ..." with the lines, or not compared with it
    changes: tuple[str, ...] = ()  # what ptxas made of the accesses, which are counted so
    fit: Mapping[str, Any] = field(default_factory=dict)  # registers, shared memory, occupancy, bytes in flight
    buffers: Mapping[str, int] = field(default_factory=dict)  # bytes of the launch's buffers, by the arguments' names
    mix: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # PTX instructions executed, by kind
    read_only: tuple[str, ...] = ()  # the names of buffers that the kernel may not write

    @property
    def scale(self) -> float:
        """The blocks of the grid by the blocks that were executed."""
        return self.blocks_total / self.blocks if self.blocks else 0.0

    @property
    def counters(self) -> dict[str, int]:
        """Totals by Nsight Compute's names; scaled to the whole grid where a part was executed."""
        if self.measured:
            return dict(self.measured)
        own = add_up(self.sites)
        if self.blocks == self.blocks_total:
            return own
        return {name: round(value * self.scale) for name, value in own.items()}

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What to change, and what the counts would be then: the decision chart's answers (`gpumem.advice`).

        >>> site = Site("ld.global.f32", "load", "global", 4, "k.cu", 7, 40, 1, 32, 1, 32, 4, 32)
        >>> one = Trace("k", (1, 1, 1), (32, 1, 1), 0, "sm_90", (site,), 20, 640)
        >>> [(item.rule, item.where, item.now, item.after) for item in one.advice]
        [('uncoalesced', 'k.cu:7', {'sectors': 32}, {'sectors': 4})]
        """
        from .advice import advise

        return advise(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the launch, totals, sites, findings, and the texts that have memory instructions."""
        from .listing import texts_of

        return {
            "schema": "gpumem.trace/1",
            "origin": self.origin,
            "kernel": self.kernel,
            "arch": self.arch,
            "grid": list(self.grid),
            "block": list(self.block),
            "shared": self.shared,
            "blocks": self.blocks,
            "blocks_total": self.blocks_total,
            "ended": self.ended,
            "why": self.why,
            "instructions": self.instructions,
            "thread_instructions": self.thread_instructions,
            "counters": self.counters,
            "sites": [site.to_dict() for site in self.sites],
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
            "counts": self.counts,
            "changes": list(self.changes),
            "fit": dict(self.fit),
            "source": texts_of(self),
            "buffers": dict(self.buffers),
            "mix": {kind: dict(row) for kind, row in self.mix.items()},
            "read_only": list(self.read_only),
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trace:
        """A trace that was written by `to_dict`. Raises ValueError for data that was not."""
        from .listing import texts_from

        if data.get("schema") != "gpumem.trace/1":
            raise ValueError(f"no trace: its schema is {data.get('schema')!r}, not 'gpumem.trace/1'")
        plain = {entry.name: data[entry.name] for entry in fields(cls) if entry.name in data}
        plain["grid"], plain["block"] = tuple(data["grid"]), tuple(data["block"])
        plain["sites"] = tuple(Site.from_dict(site) for site in data["sites"])
        plain["findings"] = tuple(
            Finding(**{**finding, **{name: tuple(finding.get(name, ())) for name in ("examples", "calls")}})
            for finding in data["findings"]
        )
        plain["source"] = texts_from(data.get("source", {}))
        plain["notes"] = tuple(data["notes"])
        plain["changes"] = tuple(data.get("changes", ()))
        plain["read_only"] = tuple(data.get("read_only", ()))
        if data["origin"] != "lens":
            plain["measured"] = data["counters"]
        return cls(**plain)

    def compare(self, other: Trace) -> Comparison:
        """Both side by side, with the differences: two layouts of one kernel, or the lens and a profile.

        >>> site = Site("ld.global.f32", "load", "global", 4, "k.cu", 7, 40, requests=2, sectors=64)
        >>> one = Trace("k", (1, 1, 1), (64, 1, 1), 0, "sm_90", (site,), 20, 640)
        >>> two = one.with_sites([replace(site, sectors=8)])
        >>> one.compare(two).changed["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
        (64, 8)
        """
        return Comparison(self, other)

    def plot(self, line: int | str | None = None, which: str = "worst") -> Picture:
        """Pictures of what the memory instructions of a line did: lanes against sectors, or banks against wavefronts.

        line: its number, or "file.cu:7"; of the instruction that costs most, where it is left out. which: "worst",
        "median" or "both" executions. The picture shows itself in a notebook; `.save("picture.svg")` writes it.
        Raises UsageError (a ValueError) for a line without accesses, and for a trace of Nsight Compute's.

        >>> copy = gpumem.Kernel(gpumem.examples.COPY)
        >>> x, out = np.arange(1024, dtype="f4"), np.zeros(1024, "f4")
        >>> copy.trace(8, 128, out, x, 1024).plot(24)  # doctest: +ELLIPSIS
        ptx:24: ld.global.f32: Lanes 0–31, 4 bytes each, side by side: 4 sectors, none too many. 0 of 128 bytes ...
        """
        from .pictures import plot

        return plot(self, line, which)

    def speed_of_light(self, device: str | Device | Mapping[str, Any] | None = None) -> SpeedOfLight:
        """The time that each resource of a device alone would need for this launch, and so what binds.

        device: a name such as "H200", a `gpumem.devices.Device`, or None for this machine's GPU. See gpumem/light.py.
        """
        from .light import speed_of_light

        return speed_of_light(self, device)

    def with_sites(self, sites: Sequence[Site]) -> Trace:
        """The same with other sites."""
        return replace(self, sites=tuple(sites))

    def tables(self) -> list[Table]:
        """The sites, the totals, and what was found."""
        return [*self.count_tables(), self._finding_table()] if self.findings else self.count_tables()

    def count_tables(self) -> list[Table]:
        """The sites and the totals."""
        return [self._site_table(), self._total_table()]

    def _title(self) -> str:
        place = "executed by the lens" if self.origin == "lens" else "counted by Nsight Compute"
        shape = " x ".join(str(n) for n in self.grid), " x ".join(str(n) for n in self.block)
        return f"{readable(self.kernel)}: {shape[0]} blocks of {shape[1]} threads, {place} ({self.arch})"

    def _site_table(self) -> Table:
        columns = (
            Column("line", "left"),
            Column("instruction", "left"),
            Column("executed"),
            Column("lanes"),
            Column("sectors"),
            Column("ideal"),
            Column("lines"),
            Column("wavefronts"),
            Column("ideal"),
            Column("conflicts"),
            Column("share"),
        )
        rows = [
            (
                site.place,
                site.opcode,
                f"{site.executions:,}",
                per(site.lanes, site.executions),
                per(site.sectors, site.requests),
                per(site.sectors_ideal, site.requests),
                per(site.lines, site.requests),
                per(site.wavefronts, site.shared),
                per(site.wavefronts_ideal, site.shared),
                f"{site.conflicts:,}" if site.shared else "",
                f"{self.share(site):.0%}" if self.share(site) else "",
            )
            for site in self.sites
        ]
        wasteful = [
            i
            for i, site in enumerate(self.sites)
            if site.sectors > 1.5 * site.sectors_ideal or site.conflicts > site.wavefronts_ideal / 2
        ]
        notes = [
            "Lanes, sectors (32 bytes), lines (128 bytes) and wavefronts are per executed warp instruction; the share "
            "is of all sectors, for shared memory of all wavefronts."
        ]
        return Table(self._title(), columns, rows, [*notes, *self._remarks()], frozenset(wasteful))

    def _remarks(self) -> list[str]:
        said = []
        if self.ended:
            said.append(f"The run did not come to its end: {self.why}.")
        if self.blocks != self.blocks_total:
            said.append(
                f"{self.blocks:,} of {self.blocks_total:,} blocks were executed: the totals are scaled by "
                f"{self.scale:.6g}, what stands beside an instruction is not."
            )
        if self.counts == EXACT:
            said.append(f"Counts: exact, each access bound to the machine code of {self.arch}.")
        elif self.counts:
            said.append(f"Counts: {self.counts}.")
        if self.changes:
            more = f"; and {len(self.changes) - FEW} more" if len(self.changes) > FEW else ""
            said.append(f"The assembler's changes, counted so: {'; '.join(self.changes[:FEW])}{more}.")
        if self.fit:
            said.append(f"A launch of this kind: {fit_words(self.fit)}.")
        return [*said, *self.notes]

    def _total_table(self) -> Table:
        words = {metric.name: metric.what for metric in METRICS}
        words |= {INSTRUCTIONS: "warp instructions", THREAD_INSTRUCTIONS: "thread instructions"}
        rows = [
            (name, f"{value:,}" if isinstance(value, int) else f"{value:,.2f}", words.get(name, ""))
            for name, value in self.counters.items()
            if value
        ]
        return Table("Totals", (Column("metric", "left"), Column("count"), Column("", "left", prose=True)), rows)

    def _finding_table(self) -> Table:
        rows = [(found.place, found.kind, f"{found.text}; {found.example}") for found in self.findings]
        columns = (Column("line", "left"), Column("hazard", "left"), Column("", "left", prose=True))
        return Table("What would go wrong on a GPU", columns, rows)

    def share(self, site: Site) -> float:
        """The part of all sectors, or for shared memory of all wavefronts, that a site takes."""
        if site.sectors:
            return site.sectors / sum(each.sectors for each in self.sites)
        return site.wavefronts / sum(each.wavefronts for each in self.sites) if site.wavefronts else 0.0

    def _repr_html_(self) -> str:
        from .listing import STYLE, listing

        return f"<style>{STYLE}</style>{super()._repr_html_()}{listing(self)}"


def per(total: int, count: int) -> str:
    """A mean; nothing where nothing was counted.

    >>> per(64, 16), per(0, 0)
    ('4.00', '')
    """
    return f"{total / count:.2f}" if count else ""


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Two traces side by side."""

    first: Trace
    second: Trace

    @property
    def changed(self) -> dict[str, tuple[int, int]]:
        """The metrics that both have and that differ, with both values."""
        ours, theirs = self.first.counters, self.second.counters
        return {name: (ours[name], theirs[name]) for name in ours if name in theirs and ours[name] != theirs[name]}

    @property
    def equal(self) -> bool:
        """Whether every metric that both have is the same."""
        return not self.changed

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "schema": "gpumem.comparison/1",
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "changed": {name: list(pair) for name, pair in self.changed.items()},
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def tables(self) -> list[Table]:
        """One row a metric that either has."""
        ours, theirs = self.first.counters, self.second.counters
        names = [name for name in dict.fromkeys([*ours, *theirs]) if ours.get(name) or theirs.get(name)]
        heads = [f"{readable(trace.kernel)} ({trace.origin})" for trace in (self.first, self.second)]
        columns = (Column("metric", "left"), Column(heads[0]), Column(heads[1]), Column("difference"))
        rows = [
            (
                name,
                f"{ours[name]:,}" if name in ours else "not counted",
                f"{theirs[name]:,}" if name in theirs else "not counted",
                difference(ours.get(name), theirs.get(name)),
            )
            for name in names
        ]
        strong = frozenset(i for i, name in enumerate(names) if name in self.changed)
        return [Table("", columns, rows, (), strong)]


def difference(ours: int | None, theirs: int | None) -> str:
    """What the second is against the first, in words.

    >>> difference(4, 8), difference(4, 4), difference(0, 8), difference(None, 1)
    ('+100.0 %', '=', '+8', '')
    """
    if ours is None or theirs is None:
        return ""
    if ours == theirs:
        return "="
    return f"{100 * (theirs - ours) / ours:+.1f} %" if ours else f"{theirs - ours:+,}"


def sites_of(
    rows: Sequence[Sequence[Any]],
    counts: Sequence[Sequence[int]],
    bound: Sequence[Counted | None] = (),
    patterns: Mapping[int, tuple[Sequence[Pattern], Sequence[Pattern]]] | None = None,
) -> tuple[Site, ...]:
    """Sites from `describe()["sites"]`, the counters and patterns of a run, and what the machine code makes of each."""
    made = []
    for i, ((opcode, file, ptx_line, line, kind, space, width, calls), row, machine) in enumerate(
        zip(rows, counts, bound or [None] * len(rows), strict=True)
    ):
        numbers = dict(zip(COUNTS, map(int, row), strict=True))
        looks = (patterns or {}).get(i, ((), ()))
        if machine and machine.kind.startswith("red."):
            kind = "red"
        if machine and machine.bytes is not None:
            width = machine.bytes
        made.append(
            Site(
                opcode,
                kind,
                space,
                width,
                file,
                line,
                ptx_line,
                **numbers,
                patterns=looks[0],
                distinct=looks[1],
                calls=calls_of(calls),
            )
        )
    return tuple(made)


def calls_of(text: str | None) -> tuple[str, ...]:
    """The calls of a place, from the lines that the lens has them in."""
    return tuple(text.split("\n")) if text else ()


def added(site: Site, other: Site) -> Site:
    """Two instructions, or the same one in two launches, as one: sums."""
    sums = {name: getattr(site, name) + getattr(other, name) for name in COUNTS}
    return replace(site, **sums, patterns=added_patterns(site.patterns, other.patterns))


def together(sites: Iterable[Site]) -> list[tuple[Site, int]]:
    """Instructions of one line and opcode as one, as an unrolled loop has them; and how many each stands for."""
    made: dict[tuple[str, str], tuple[Site, int]] = {}
    for site in sites:
        key = site.place, site.opcode
        known = made.get(key)
        made[key] = (added(known[0], site), known[1] + 1) if known else (site, 1)
    return list(made.values())


def place_of(row: Mapping[str, Any]) -> str:
    """A place of the lens in words."""
    return place(where(row["file"], row["file_line"], row["line"]), calls_of(row["calls"]))


def findings_of(rows: Sequence[Mapping[str, Any]], buffers: Sequence[str]) -> tuple[Finding, ...]:
    """Findings from the rows of a run; `buffers` are the names of the launch's buffers."""
    made = []
    for row in rows:
        at, other = row["place"] or {}, row["other"] or {}
        examples = tuple(
            {**example, "buffer": None if example["buffer"] is None else buffers[example["buffer"]]}
            for example in row["examples"]
        )
        made.append(
            Finding(
                row["kind"],
                row["text"],
                row["space"],
                row["writes"],
                row["bytes"],
                at.get("opcode") or "",
                at.get("file"),
                at.get("file_line", 0),
                at.get("line", 0),
                f"{other['opcode']} at {place_of(other)}" if other else "",
                row["lanes"],
                row["times"],
                examples,
                calls_of(at.get("calls")),
            )
        )
    return tuple(made)
