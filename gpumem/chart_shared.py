"""The chart's question about shared memory: whether banks conflict, and what padding or swizzle ends it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .advice import Advice, item
from .chart_sites import LEAST, others, place_of
from .pattern import DISTINCT
from .steps import shape_of
from .swizzle import ROUND, Access, Remedy, search

if TYPE_CHECKING:
    from .pattern import Pattern
    from .trace import Site, Trace


def conflicts(trace: Trace) -> Iterable[Advice]:
    """Bank conflicts: one answer for the arrays that the same lines touch."""
    total = sum(site.wavefronts for site in trace.sites) or 1
    engine = any(site.kind == "bulk" and site.executions for site in trace.sites)
    for group in groups(trace.sites):
        sites = [trace.sites[i] for i in group]
        worst = max(sites, key=lambda site: site.conflicts)
        if sum(site.conflicts for site in sites) / total >= LEAST:
            yield conflicting(sites, worst, total, engine)


def groups(sites: Sequence[Site]) -> list[list[int]]:
    """The instructions of each shared array: those that recorded each other's addresses, and those of the same line."""
    used = [i for i, site in enumerate(sites) if site.shared and site.kind not in ("atom", "red")]
    return [[used[i] for i in group] for group in joined([{place_of(sites[i]), *touched(sites[i])} for i in used])]


def touched(site: Site) -> set[Any]:
    """The addresses that a site recorded."""
    return {address for row in site.distinct for address in row.addresses if address is not None}


def joined(marks: Sequence[set[Any]]) -> list[list[int]]:
    """The numbers of sets that share something, directly or by way of others.

    >>> joined([{1, 2}, {3}, {2, 4}, {4}])
    [[1], [0, 2, 3]]
    """
    found: list[tuple[list[int], set[Any]]] = []
    for number, own in enumerate(marks):
        together, all_marks, apart = [number], set(own), []
        for numbers, held in found:
            if own.isdisjoint(held):
                apart.append((numbers, held))
            else:
                together, all_marks = [*numbers, *together], all_marks | held
        found = [*apart, (together, all_marks)]
    return [sorted(numbers) for numbers, _ in found]


def accesses_of(sites: Sequence[Site]) -> tuple[list[Access], bool]:
    """What the search is given, each array from its own start, and whether it stands for all that was executed.

    The lens keeps the different accesses of the first block, with how often each was executed there. Where their costs
    add up to those of all blocks, each block did as the first one.
    """
    made, whole = [], True
    marks = [touched(site) for site in sites]
    for group in joined(marks):
        start = min(set().union(*(marks[i] for i in group)), default=0) // ROUND * ROUND
        for site in (sites[i] for i in group):
            own = accesses_of_site(site, start)
            costs = [sum(cost) for cost in zip(*(access.cost() for access in own), strict=True)]
            whole = whole and len(site.distinct) < DISTINCT and costs == [site.wavefronts, site.conflicts]
            made += own
    return made, whole


def accesses_of_site(site: Site, start: int) -> list[Access]:
    """One for each way in which a site's executions were counted; times are those of all blocks."""
    ways: dict[tuple[str, int], list[Pattern]] = {}
    for pattern in site.distinct:
        ways.setdefault((pattern.rule, pattern.width), []).append(pattern)
    seen = sum(pattern.times for pattern in site.distinct)
    made = []
    for (rule, width), rows in ways.items():
        places = [[None if address is None else address - start for address in row.addresses] for row in rows]
        made.append(Access.of(rule, width, places, [site.shared / seen * row.times for row in rows]))
    return made


def conflicting(sites: Sequence[Site], site: Site, total: int, engine: bool) -> Advice:
    """The answer for one array in shared memory. engine: whether bulk copies may have filled it."""
    now = {name: sum(getattr(each, name) for each in sites) for name in ("wavefronts", "conflicts")}
    accesses, whole = accesses_of(sites)
    padding, swizzle, pitch = search(accesses)
    verb = {"load": "loads", "ldsm": "loads", "store": "stores", "stsm": "stores"}.get(site.kind, "copies")
    apart = f" (lanes {pitch * min(access.width for access in accesses)} bytes apart)" if pitch else ""
    cost = f"{site.wavefronts / site.shared:.3g} wavefronts, {site.wavefronts_ideal / site.shared:.3g} would do"
    text = f"{verb} of shared memory conflict{apart}: {cost}"
    more: dict[str, Any] = {"now": now, "also": others(sites, site)}
    found = [remedy for remedy in (padding, swizzle) if remedy]
    if not found:
        tried = " No padding and no XOR of index bits helps the accesses that were traced." if accesses else ""
        return item(
            "conflicts",
            site,
            text,
            f"Let the lanes of a warp take words of different banks: neighbouring lanes neighbouring words.{tried}",
            share=now["conflicts"] / total,
            after={"wavefronts": now["wavefronts"] - now["conflicts"], "conflicts": 0},
            sure="likely",
            **more,
        )
    least = min(remedy.wavefronts for remedy in found)
    best = [remedy for remedy in found if remedy.wavefronts == least]
    after = {"wavefronts": least, "conflicts": best[0].conflicts}
    ways = [said_of(remedy) for remedy in best]
    if doubling(site):
        pitch = 0  # no row of an array
        ways.append("let neighbouring threads take neighbouring words (sequential addressing)")
    filled = " What a bulk copy fills has to be laid out so by the copy: a tensor map's swizzle, or row by row."
    left = f" {after['conflicts']:,} conflicts remain." if after["conflicts"] else ""
    return item(
        "conflicts",
        site,
        text,
        f"For every access to this array: {', or '.join(ways)}.{left}{filled if engine else ''}",
        share=(now["wavefronts"] - after["wavefronts"]) / total,
        after=after,
        sure="likely" if engine else "proven" if whole else "computed",
        code=tuple(line for remedy in best for line in code_of(remedy, pitch)),
        **more,
    )


def said_of(remedy: Remedy) -> str:
    """A way to lay the array, in words."""
    if remedy.kind == "padding":
        row, pad = remedy.pitch * remedy.unit, remedy.pad * remedy.unit
        return f"pad each {row} bytes by {pad} ({remedy.extra:.1%} more memory)"
    return f"exchange columns by an XOR with the row (no memory; the array a multiple of {remedy.group} bytes)"


def code_of(remedy: Remedy, pitch: int) -> tuple[str, ...]:
    """The same as expressions; of rows and columns where the array's pitch is known and allows it."""
    if remedy.kind == "padding":
        return (f"padding: {remedy.element(pitch) or remedy.index()}",)
    return f"swizzle: {remedy.element(pitch) or remedy.index()}", f"CUTLASS: {remedy.cutlass()}"


def doubling(site: Site) -> bool:
    """Whether a site's steps are of several lengths: a reduction that strides."""
    steps = {shape.step for pattern in site.distinct if (shape := shape_of(pattern.addresses, site.width)).even}
    return len({step for step in steps if step > site.width}) > 1
