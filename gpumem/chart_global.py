"""The chart's question about global memory: whether each access is coalesced, and if not, in what way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .advice import Advice, item
from .chart_sites import LEAST, SECTOR, WARP, buffer_of, others, place_of
from .steps import Shape, shape_of

if TYPE_CHECKING:
    from .trace import Site, Trace

SPLIT = 1.25  # times the ideal: what runs of 128 bytes cost that begin inside a sector
VECTORS = {
    (1, 2): "uchar2",
    (1, 4): "uchar4",
    (2, 4): "ushort2",
    (2, 8): "ushort4",
    (4, 8): "float2",
    (4, 16): "float4",
    (8, 16): "double2",
}  # by the bytes of an item and of a record
RECORD = 64  # bytes: a stride up to this is taken for a record, a longer one for a row


def coalesced(trace: Trace) -> Iterable[Advice]:
    """Accesses whose lanes touch too many sectors. Instructions that walk the same records are one answer."""
    total = sum(site.sectors for site in trace.sites) or 1
    groups: dict[Any, list[tuple[Site, Shape | None]]] = {}
    for site in trace.sites:
        if site.space == "local" or site.kind in ("atom", "red") or site.sectors <= site.sectors_ideal:
            continue
        shape = wasteful_shape(site)
        alike = shape is not None and WARP >= shape.lanes > 1 and shape.even and shape.step > site.width
        key = (buffer_of(site), site.kind, shape.step) if alike and shape else place_of(site)
        groups.setdefault(key, []).append((site, shape))
    for members in groups.values():
        sites = [site for site, _ in members]
        waste = sum(site.sectors - site.sectors_ideal for site in sites)
        if waste / total >= LEAST:
            yield uncoalesced(trace, members, waste / total)


def wasteful_shape(site: Site) -> Shape | None:
    """How the lanes lie in the executions that waste most; None where nothing was recorded."""
    recorded = [pattern for pattern in site.patterns if any(address is not None for address in pattern.addresses)]
    if not recorded:
        return None
    shapes = [(shape_of(pattern.addresses, site.width), pattern) for pattern in recorded]
    return max(shapes, key=lambda pair: pair[1].times * (pair[1].cost - pair[0].ideal))[0]


def uncoalesced(trace: Trace, members: Sequence[tuple[Site, Shape | None]], share: float) -> Advice:
    """One answer for instructions of one shape."""
    sites = [site for site, _ in members]
    site, shape = max(members, key=lambda pair: pair[0].sectors - pair[0].sectors_ideal)
    now = {"sectors": sum(each.sectors for each in sites)}
    after = {"sectors": sum(each.sectors_ideal for each in sites)}
    what, verb = buffer_of(site) or "global memory", "loads from" if site.kind in ("load", "copy") else "stores to"
    cost = f"{site.sectors / site.requests:.3g} sectors a request, {site.sectors_ideal / site.requests:.3g} would do"
    also = others(sites, site)
    more: dict[str, Any] = {"share": share, "now": now, "after": after, "also": also}
    run = shape is not None and shape.even and shape.step == site.width
    long = shape is None or shape.bytes >= SECTOR * shape.runs
    if run or (long and site.sectors <= SPLIT * site.sectors_ideal):
        return item(
            "misaligned",
            site,
            f"{verb} {what} begin inside a sector: {cost}",
            "Begin each warp's run at a multiple of 32 bytes: start the array, or pad its rows, so (a pitch that is a "
            "multiple of 32 bytes), or take single items up to the first such address. Where the next warp takes the "
            "rest of the sector soon after, L1 or L2 have it still.",
            sure="computed",
            **more,
        )
    if shape is None:
        guess = min(round(SECTOR * site.sectors / max(site.lanes, 1)), SECTOR)
        return item(
            "uncoalesced",
            site,
            f"{verb} {what} are {guess}{' or more' if guess == SECTOR else ''} bytes apart from lane to lane: {cost}",
            STAGE,
            sure="likely",
            **more,
        )
    if shape.runs > 1 and not shape.even:
        return item(
            "uncoalesced",
            site,
            f"{verb} {what} lie in {shape.runs} pieces of {shape.bytes / shape.runs:.3g} bytes: {cost}",
            "Let a warp take longer pieces: at least 32 bytes, at a multiple of 32. Where the order is given by an "
            "index, sort the indices, or gather records instead of single items."
            if shape.runs >= shape.lanes // 2
            else "Give a warp whole rows (a block 32 threads wide), and begin rows at multiples of 32 bytes.",
            sure="likely",
            **more,
        )
    step = abs(shape.step)
    offsets = {(pair[1].first % step, pair[0].width) for pair in members if pair[1]}
    filled = sum(width for _, width in offsets)
    apart = f"lanes are {step} bytes apart: {cost}"
    if step <= RECORD and filled == step and len(sites) > 1 and (site.width, step) in VECTORS:
        vector = VECTORS[site.width, step]
        whole = sum(each.executions * each.width for each in sites) // step
        return item(
            "uncoalesced",
            site,
            f"{len(sites)} {verb} {what} take a record of {step} bytes apart, item by item: {apart}",
            f"Take the whole record at once, as one access of {step} bytes ({vector}): "
            "its start is a multiple of its size.",
            sure="proven",
            code=(f"reinterpret_cast<{'' if site.kind == 'store' else 'const '}{vector} *>({what})[i]",),
            **{
                **more,
                "now": {**now, "executions": sum(each.executions for each in sites)},
                "after": {**after, "executions": whole},
            },
        )
    if step <= RECORD and len(sites) > 1 and filled == step:
        return item(
            "uncoalesced",
            site,
            f"{verb} {what} take each field of records of {step} bytes by itself: {apart}",
            "Keep each field in an array of its own (structure of arrays), or move the block's records through shared "
            "memory: neighbouring lanes move neighbouring words, whatever fields these are, and pick their fields "
            "there.",
            sure="likely",
            **more,
        )
    if step <= RECORD and touches_all(trace, what, sites):
        wide = VECTORS.get((site.width, step))
        once = f"Take the {step} bytes at once, as one {wide}; or let" if wide else "Let"
        return item(
            "uncoalesced",
            site,
            f"{verb} {what} walk along {step} bytes a lane, one item after another: {apart}",
            f"{once} neighbouring lanes take neighbouring items, and each thread every so many threads' one "
            "(i = thread + k * threads).",
            sure="likely",
            **more,
        )
    if step <= RECORD:
        used = f"{filled} of {step} bytes are used" if filled < step else f"{site.width} of {step} bytes are used"
        return item(
            "uncoalesced",
            site,
            f"{verb} {what} take one item of every {step} bytes ({used}): {apart}",
            "Keep what is used together side by side: each field in an array of its own (structure of arrays). Where "
            "the layout is given and other kernels use the rest, rearrange it once (gpumem.to_soa).",
            sure="likely",
            **more,
        )
    return item(
        "uncoalesced",
        site,
        f"{verb} {what} take a row for each lane: {apart}",
        STAGE,
        sure="likely",
        **more,
    )


def touches_all(trace: Trace, name: str, sites: Sequence[Site]) -> bool:
    """Whether instructions move about as many bytes as a buffer has: what lies between lanes is used another time."""
    size = trace.buffers.get(name, 0)
    moved = sum(site.lanes * site.width for site in sites) * trace.scale
    return size > 0 and 0.9 * size <= moved


STAGE = (
    "Let neighbouring lanes take neighbouring items: swap what threadIdx.x and the loop, or threadIdx.y, walk along. "
    "Where the other side of the copy then loses its order, move a tile through shared memory: in along rows, out "
    "along columns. Where these items alone are needed, keep them side by side."
)
