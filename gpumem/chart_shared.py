"""The chart's question about shared memory: whether banks conflict, and what padding or swizzle ends it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .advice import Advice, item
from .chart_sites import LEAST, others, place_of
from .pattern import DISTINCT
from .steps import shape_of
from .swizzle import Access, Remedy, search

if TYPE_CHECKING:
    from .pattern import Pattern
    from .trace import Site, Trace


def conflicts(trace: Trace) -> Iterable[Advice]:
    """Bank conflicts, array by array."""
    total = sum(site.wavefronts for site in trace.sites) or 1
    done: set[int] = set()
    costly = [i for i, site in enumerate(trace.sites) if site.conflicts and site.kind not in ("atom", "red")]
    for number in sorted(costly, key=lambda i: -trace.sites[i].conflicts):
        if number in done:
            continue
        array = [i for i in same_array(trace.sites, number) if i not in done]
        done.update(array)
        sites = [trace.sites[i] for i in array]
        if sum(site.conflicts for site in sites) / total >= LEAST:
            yield conflicting(sites, trace.sites[number], total)


def same_array(sites: Sequence[Site], first: int) -> list[int]:
    """The instructions that touch the shared array of one of them: those that recorded addresses of each other's.

    Where nothing was recorded, those of the same line.
    """
    touched = {
        i: {address for pattern in site.patterns if pattern.space == "shared" for address in pattern.addresses} - {None}
        for i, site in enumerate(sites)
        if site.shared
    }
    if not touched[first]:
        return [i for i, site in enumerate(sites) if place_of(site) == place_of(sites[first])]
    found, seen = [first], set(touched[first])
    while True:
        more = [i for i, held in touched.items() if i not in found and overlap(held, seen)]
        if not more:
            return sorted(found)
        found += more
        for i in more:
            seen |= touched[i]


def overlap(held: set[int | None], seen: set[int | None]) -> bool:
    """Whether two sets of addresses share one."""
    return not held.isdisjoint(seen)


def accesses_of(sites: Sequence[Site]) -> tuple[list[Access], bool]:
    """What the search is given, and whether it stands for all that was executed.

    The lens keeps the different accesses of the first block, with how often each was executed there. Where their costs
    add up to those of all blocks, each block did as the first one.
    """
    made, whole = [], True
    for site in sites:
        ways: dict[tuple[str, int], list[Pattern]] = {}
        for pattern in site.distinct:
            ways.setdefault((pattern.rule, pattern.width), []).append(pattern)
        seen = sum(pattern.times for pattern in site.distinct)
        scale = site.shared / seen if seen else 0.0
        costs = [0, 0]
        for (rule, width), rows in ways.items():
            times = [scale * pattern.times for pattern in rows]
            access = Access.of(rule, width, [pattern.addresses for pattern in rows], times)
            costs = [had + cost for had, cost in zip(costs, access.cost(), strict=True)]
            made.append(access)
        whole = whole and len(site.distinct) < DISTINCT and costs == [site.wavefronts, site.conflicts]
    return made, whole


def conflicting(sites: Sequence[Site], site: Site, total: int) -> Advice:
    """The answer for one array in shared memory."""
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
        ways.append("let neighbouring threads take neighbouring words (sequential addressing)")
    left = f" {after['conflicts']:,} conflicts remain." if after["conflicts"] else ""
    return item(
        "conflicts",
        site,
        text,
        f"For every access to this array: {', or '.join(ways)}.{left}",
        share=(now["wavefronts"] - after["wavefronts"]) / total,
        after=after,
        sure="proven" if whole else "computed",
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
    items = "" if remedy.unit == 1 else f", of items of {remedy.unit} bytes"
    return f"swizzle: {remedy.element(pitch) or remedy.index()}", f"CUTLASS: {remedy.cutlass()}{items}"


def doubling(site: Site) -> bool:
    """Whether a site's steps are of several lengths: a reduction that strides."""
    steps = {shape.step for pattern in site.distinct if (shape := shape_of(pattern.addresses, site.width)).even}
    return len({step for step in steps if step > site.width}) > 1
