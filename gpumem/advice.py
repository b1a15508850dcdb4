"""What to change: the decision chart of memory-bound kernels as a program over a trace.

The chart's questions, in its order: is something wrong with the kernel? does memory bind it? are the accesses to
global memory coalesced? does shared memory have conflicts? could accesses be wider? is anything fetched twice? else the
traffic is at its ceiling. Each answer names the line, what it counts now, what it would count after the change, and how
sure that is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trace import Site, Trace


@dataclass(frozen=True)
class Rule:
    """A kind of advice."""

    name: str
    level: str
    """"error" (the kernel is wrong), "warning", "note" (may help), or "none": nothing to change."""
    title: str
    help: str


RULES = {
    rule.name: rule
    for rule in (
        Rule("hazards", "error", "The kernel would go wrong", "Races, wrong addresses, barriers: mend these first."),
        Rule(
            "uncoalesced",
            "warning",
            "Uncoalesced access to global memory",
            "A warp's lanes touch more 32-byte sectors than their bytes fill: each sector is moved whole.",
        ),
        Rule(
            "conflicts",
            "warning",
            "Bank conflicts in shared memory",
            "Lanes ask for different words of one of the 32 banks, and are served one after another.",
        ),
        Rule(
            "local",
            "warning",
            "Local memory",
            "Registers were spilled, or an array is indexed by what the compiler does not know: it lies in memory.",
        ),
        Rule(
            "atomics",
            "warning",
            "Atomics of one warp on one address",
            "Lanes that add to the same address are served one after another.",
        ),
        Rule(
            "misaligned",
            "note",
            "Accesses that begin inside a sector",
            "A warp's run of bytes does not begin at a multiple of 32 bytes: it touches one sector more.",
        ),
        Rule(
            "divergence",
            "note",
            "Few lanes at work",
            "Warps execute instructions with most of their lanes switched off.",
        ),
        Rule(
            "vector",
            "note",
            "Narrow accesses",
            "Wider accesses move the same sectors with fewer instructions and keep more bytes under way.",
        ),
        Rule(
            "flight",
            "note",
            "Few bytes under way",
            "Loads that wait for one another leave the memory idle: bytes under way must cover bandwidth x latency.",
        ),
        Rule(
            "redundant",
            "note",
            "Bytes that are moved more than once",
            "More bytes are asked for than the buffer holds.",
        ),
        Rule("issue", "note", "Instructions bind", "The issue slots need longer than the memory does."),
        Rule("ceiling", "none", "At the ceiling", "Each sector is used in full, and none is moved twice."),
    )
}

SURE = {
    "proven": "counted at the addresses of the first block, whose costs add up to those of all, moved as described",
    "computed": "counted from the addresses that were recorded, taken to stand for all",
    "likely": "holds if the accesses can be arranged as described",
}


@dataclass(frozen=True)
class Advice:
    """One thing to change, or that nothing is to be changed.

    rule: a key of RULES; level: "error", "warning", "note" or "none". text: what is so, with its counts. remedy: what
    to do. sure: a key of SURE, of the predicted counts. The instruction that costs most is named by opcode, file, line
    (0: not known) and ptx_line; `calls` are the lines that this was inlined into, `also` other places of the same kind.
    share: the part of all sectors (of shared memory: of all wavefronts) that the change saves. now, after: counts by
    name (sectors, wavefronts, conflicts, executions) of the instructions in question, before and after. code:
    expressions in C and in CUTLASS's words.
    """

    rule: str
    level: str
    text: str
    remedy: str = ""
    sure: str = ""
    opcode: str = ""
    file: str | None = None
    line: int = 0
    ptx_line: int = 0
    share: float = 0.0
    now: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    code: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The source line where it is known, else the PTX's; "" for what belongs to no line.

        >>> Advice("conflicts", "warning", "", file="src/k.cu", line=7).where
        'k.cu:7'
        """
        from .trace import where

        return where(self.file, self.line, self.ptx_line) if self.line or self.ptx_line else ""

    @property
    def place(self) -> str:
        """`where`, and the lines of the calls that it was inlined into.

        >>> Advice("conflicts", "warning", "", file="src/k.cu", line=7, calls=("src/k.cu:20",)).place
        'k.cu:7 < 20'
        """
        from .trace import place

        return place(self.where, self.calls)

    @property
    def title(self) -> str:
        """The rule's."""
        return RULES[self.rule].title

    @property
    def predicted(self) -> str:
        """The counts before and after, and what that saves; "" where none are predicted.

        >>> Advice("conflicts", "warning", "", share=0.94, now={"wavefronts": 64}, after={"wavefronts": 2}).predicted
        '64 -> 2 wavefronts; saves 94% of all wavefronts'
        """
        was = ", ".join(f"{self.now[name]:,} -> {count:,} {name}" for name, count in self.after.items())
        saved = f"; saves {self.share:.0%} of all {next(iter(self.after))}" if self.after and self.share else ""
        return was + saved

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = asdict(self)
        return {**plain, "now": dict(self.now), "after": dict(self.after), "code": list(self.code)} | {
            "also": list(self.also),
            "calls": list(self.calls),
            "where": self.where,
        }

    def __str__(self) -> str:
        head = f"{self.place}: " if self.where else ""
        said = [f"{head}{self.level if self.level != 'none' else 'good'}: {self.text} [{self.rule}]"]
        if self.remedy:
            said.append(f"  {self.remedy}")
        said += [f"    {line}" for line in self.code]
        if self.after:
            said.append(f"  predicted: {self.predicted} ({self.sure}: {SURE[self.sure]})")
        if self.also:
            said.append(f"  also: {', '.join(self.also)}")
        return "\n".join(said)


def advise(trace: Trace) -> tuple[Advice, ...]:
    """The chart's answers for a trace: what is wrong first, then by what a change would save.

    A trace that was not recorded with its access patterns (by Nsight Compute) is judged by its counts alone.

    >>> copy = gpumem.Kernel(gpumem.examples.COPY)
    >>> x, out = np.arange(1024, dtype="f4"), np.zeros(1024, "f4")
    >>> [item.rule for item in advise(copy.trace(8, 128, out, x, 1024))]
    ['vector', 'ceiling']
    """
    from .chart import CHART, ceiling

    found = [item for answer in CHART for item in answer(trace)]
    order = ("error", "warning", "note")
    found.sort(key=lambda item: (order.index(item.level), -item.share))
    return (*found, *ceiling(trace, found))


def item(rule: str, site: Site | None, text: str, remedy: str, **more: Any) -> Advice:
    """Advice at a site."""
    names = ("opcode", "file", "line", "ptx_line", "calls")
    place = {} if site is None else {name: getattr(site, name) for name in names}
    return Advice(rule, RULES[rule].level, text, remedy, **place, **more)
