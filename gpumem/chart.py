"""The decision chart: its questions in their order, each a function from a trace to advice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .advice import Advice, item
from .chart_global import coalesced
from .chart_shared import conflicts
from .chart_sites import LEAST, SECTOR, WARP, buffer_of, global_patterns, others
from .steps import shape_of

if TYPE_CHECKING:
    from .trace import Finding, Site, Trace

SMALL = 4000  # warp instructions: fewer are over before anything binds
TINY = 128  # sectors: a launch that moves fewer has no use for wider accesses
SCARCE = 0.6  # of the bytes that are needed under way
BUSY = 0.8  # of the lanes: fewer in the mean instruction are worth a line, where instructions bind
VECTOR = 16  # bytes of the widest access
HEAVY = 0.25  # of all sectors: less than this and a second fetch is not worth a line


def hazards(trace: Trace) -> Iterable[Advice]:
    """What the lens found to be wrong, once for each line."""
    each: dict[tuple[str, str], list[Finding]] = {}
    for found in trace.findings:
        each.setdefault((found.kind, found.where), []).append(found)
    for same in each.values():
        found = same[0]
        more = f"; and {len(same) - 1} more of the same line" if len(same) > 1 else ""
        yield Advice(
            "hazards",
            "error",
            f"{found.kind}: {found.text}; {found.example}{more}",
            "Mend this first: what a wrong kernel counts means little.",
            opcode=found.opcode,
            file=found.file,
            line=found.line,
            ptx_line=found.ptx_line,
            calls=found.calls,
        )


def needs(trace: Trace) -> dict[str, float]:
    """Seconds that each resource of an H200 alone would need; nothing for a launch that is over before anything binds.

    Nothing either for a profile, which the hardware has timed, and where the copy engine moves what no sector counts.
    """
    from .light import speed_of_light

    if trace.origin != "lens" or trace.instructions * trace.scale < SMALL or copies_in_bulk(trace):
        return {}
    return {bound.resource: bound.seconds for bound in speed_of_light(trace, "H200").bounds}


def copies_in_bulk(trace: Trace) -> bool:
    """Whether the copy engine moves something, whose traffic is not counted in sectors, by one thread for all."""
    return any(site.kind == "bulk" and site.executions for site in trace.sites)


def issue(trace: Trace) -> Iterable[Advice]:
    """Whether memory binds at all."""
    need = needs(trace)
    slots = need.pop("issue slots", 0.0)
    worst = max(need, key=lambda name: need[name], default="")
    if worst and slots > 2 * need[worst]:
        longer = f"{slots / need[worst]:.1f} times as long" if need[worst] else "longer"
        yield item(
            "issue",
            None,
            f"{trace.instructions:,} warp instructions need {longer} in the issue slots as the traffic does in "
            f"{worst} (on an H200; instructions of the PTX)",
            "Memory does not bind: fewer or wider instructions, less address arithmetic and fewer idle lanes come "
            "before any change of the accesses.",
            sure="likely",
        )


def divergence(trace: Trace) -> Iterable[Advice]:
    """Lanes that take no part, where instructions take the most time or nearly so."""
    need = needs(trace)
    if not need or need["issue slots"] < BUSY * max(need.values()):
        return
    mean = trace.thread_instructions / trace.instructions
    full = min(WARP, math.prod(trace.block))
    if mean < BUSY * full:
        yield item(
            "divergence",
            None,
            f"{mean:.1f} of {full} lanes are at work in the mean instruction",
            "Let neighbouring threads take the same way: threads that are done should fill whole warps "
            "(index by thread < active, not by thread % step).",
            sure="likely",
        )


def flight(trace: Trace) -> Iterable[Advice]:
    """Bytes under way, where the machine code was looked at: too few to hide the memory's latency."""
    held, wanted = (trace.fit.get(name, 0) for name in ("bytes_in_flight", "bytes_needed"))
    loads = [site for site in trace.sites if site.kind == "load" and site.space != "local" and site.requests]
    few = trace.blocks_total < 2 * trace.fit.get("blocks", 1)  # one multiprocessor is not filled
    if few or not wanted or not loads or not 0 < held < SCARCE * wanted or any(site.width < VECTOR for site in loads):
        return
    limits = " and ".join(trace.fit.get("limits", ())) or "the launch"
    yield item(
        "flight",
        max(loads, key=lambda site: site.sectors),
        f"loads keep at most {held:,} bytes under way on a multiprocessor, and its memory needs about {wanted:,}",
        "Let each thread load several vectors before it uses the first one (unroll the loop), or let more blocks fit: "
        f"now {limits} limits them.",
        sure="likely",
    )


def local(trace: Trace) -> Iterable[Advice]:
    """Local memory."""
    total = sum(site.sectors for site in trace.sites) or 1
    sites = [site for site in trace.sites if site.space == "local" and site.sectors]
    moved = sum(site.sectors for site in sites)
    if moved / total >= LEAST:
        site = max(sites, key=lambda each: each.sectors)
        yield item(
            "local",
            site,
            f"{moved:,} sectors ({moved / total:.0%} of all) go to local memory",
            "Index arrays of a thread by constants only (unroll the loops over them), or ask for fewer registers at "
            "once; a launch bound that is too strict spills, too.",
            share=moved / total,
            now={"sectors": moved},
            after={"sectors": 0},
            sure="likely",
            also=others(sites, site),
        )


def atomics(trace: Trace) -> Iterable[Advice]:
    """Atomics that wait for each other."""
    sectors, wavefronts = (sum(getattr(site, name) for site in trace.sites) or 1 for name in ("sectors", "wavefronts"))
    for site in trace.sites:
        if site.kind not in ("atom", "red"):
            continue
        waste = site.sectors - site.sectors_ideal if site.sectors else site.conflicts
        share = waste / (sectors if site.sectors else wavefronts)
        if share < LEAST or waste < site.executions:
            continue
        name = "sectors" if site.sectors else "wavefronts"
        cost = (site.sectors or site.wavefronts) / site.executions
        yield item(
            "atomics",
            site,
            f"atomics wait for each other: {cost:.3g} {name} for {site.lanes / site.executions:.3g} lanes",
            "Add up inside the warp first (__reduce_add_sync, shuffles), and let one lane add for all; for histograms "
            "give each warp bins of its own.",
            share=share,
            now={name: site.sectors or site.wavefronts},
            after={name: site.executions},
            sure="likely",
        )


def vector(trace: Trace) -> Iterable[Advice]:
    """Wider accesses: only where each is coalesced, and its warps' runs begin where the wide ones may."""
    fit = trace.fit
    if fit.get("bytes_needed") and fit.get("bytes_in_flight", 0) >= fit["bytes_needed"]:
        return
    total = sum(site.sectors for site in trace.sites) or 1
    sites = [
        site
        for site in trace.sites
        if site.space in ("global", "generic")
        and site.kind in ("load", "store")
        and site.width < VECTOR
        and 0 < site.sectors <= 1.05 * site.sectors_ideal
        and site.sectors / total >= HEAVY / 2
        and runs_are_long(site)
    ]
    if not sites or total < TINY:
        return
    site = max(sites, key=lambda each: each.sectors)
    now = {"executions": sum(each.executions for each in sites), "sectors": sum(each.sectors for each in sites)}
    fewer = sum(math.ceil(each.executions * each.width / VECTOR) for each in sites)
    kinds = {4: "float4", 8: "double2"}.get(site.width, "uint4")
    yield item(
        "vector",
        site,
        f"accesses of {site.width} bytes, all of them neighbours: the sectors are full, but each lane keeps few bytes "
        "under way",
        f"Take {VECTOR // site.width} items at once ({kinds}): each warp's run begins at a multiple of 16 bytes. The "
        "tail that is left takes single items. (A copy of 1 GiB on an H200: 2,759 GB/s by 4 bytes, 4,052 GB/s by four "
        "accesses of 16.)",
        sure="likely" if any(each.shared for each in trace.sites) else "computed",
        now=now,
        after={"executions": fewer, "sectors": now["sectors"]},
        also=others(sites, site),
    )


def runs_are_long(site: Site) -> bool:
    """Whether a site's executions are runs of neighbours that begin at multiples of a vector.

    Where no addresses were recorded, sectors that are used to the last byte say as much.
    """
    recorded = global_patterns(site)
    if not recorded:
        return SECTOR * site.sectors <= 1.01 * site.lanes * site.width
    full = [pattern for pattern in recorded if sum(a is not None for a in pattern.addresses) == WARP]
    shapes = [shape_of(pattern.addresses, site.width) for pattern in full]
    return bool(shapes) and all(
        shape.even and shape.step == site.width and shape.first % VECTOR == 0 for shape in shapes
    )


def redundant(trace: Trace) -> Iterable[Advice]:
    """Bytes that are moved more often than the buffer has them: at least so often, by counting."""
    total = sum(site.sectors for site in trace.sites) or 1
    for name, size in trace.buffers.items():
        for kinds, verb, said in (
            (("load", "copy"), "loaded", RELOAD),
            (("store",), "stored", RESTORE),
        ):
            sites = [site for site in trace.sites if site.kind in kinds and site.sectors and buffer_of(site) == name]
            sectors = sum(site.sectors for site in sites)
            moved = sum(min(site.lanes * site.width, SECTOR * site.sectors) for site in sites) * trace.scale
            if not size or moved < 1.5 * size or sectors / total < HEAVY:
                continue
            site = max(sites, key=lambda each: each.sectors)
            after = min(math.ceil(size / SECTOR / max(trace.scale, 1)), sectors)
            yield item(
                "redundant",
                site,
                f"{name} has {size:,} bytes, {round(moved):,} are {verb}: each {moved / size:.3g} times in the mean",
                said,
                share=(sectors - after) / total,
                now={"sectors": sectors},
                after={"sectors": after},
                sure="likely",
                also=others(sites, site),
            )


RELOAD = (
    "Keep what is used again in registers, or a tile of it in shared memory; several results a thread share their "
    "inputs. What L1 or L2 still hold costs less than what comes from memory: this is not counted here."
)
RESTORE = "Add up in a register, and store once."

CHART: tuple[Callable[[Trace], Iterable[Advice]], ...] = (
    *(hazards, issue, divergence, coalesced, local, atomics, conflicts, vector, flight, redundant),
)


def ceiling(trace: Trace, found: Sequence[Advice]) -> Iterable[Advice]:
    """At the ceiling: nothing to save, or so little that it is not worth a line."""
    if any(each.level in ("error", "warning") or each.rule in ("redundant", "issue") for each in found):
        return
    sectors = sum(site.sectors for site in trace.sites)
    waves = sum(site.wavefronts for site in trace.sites)
    if not sectors and not waves and not copies_in_bulk(trace):
        return
    ideal = sum(site.sectors_ideal for site in trace.sites if site.sectors)
    said = []
    if sectors:
        used = "all of them needed" if sectors <= ideal else f"{sectors / ideal - 1:.1%} more than needed"
        said.append(f"{sectors:,} sectors ({SECTOR * sectors:,} bytes) of global memory, {used}")
    if waves:
        lost = sum(site.conflicts for site in trace.sites)
        said.append(f"{waves:,} wavefronts of shared memory, {lost:,} of them conflicts")
    if copies_in_bulk(trace):
        said.append("what the copy engine moves is not counted")
    yield item(
        "ceiling",
        None,
        f"at the ceiling of its traffic: {'; '.join(said)}",
        "What remains is to keep enough bytes under way, and to move fewer: fuse it with its neighbours.",
    )
