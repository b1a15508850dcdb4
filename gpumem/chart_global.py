"""The chart's question about global memory: whether each access is coalesced, and if not, in what way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .advice import Advice, item
from .chart_sites import LEAST, SECTOR, buffer_of, global_patterns, others, place_of
from .steps import Shape, shape_of

if TYPE_CHECKING:
    from .trace import Site, Trace

SPLIT = 1.25  # times the ideal: what runs of 128 bytes cost that begin inside a sector
RECORD = 64  # bytes: a stride up to this is taken for a record, a longer one for a row
VECTORS = {
    (1, 2): "uchar2",
    (1, 4): "uchar4",
    (2, 4): "ushort2",
    (2, 8): "ushort4",
    (4, 8): "float2",
    (4, 16): "float4",
    (8, 16): "double2",
}  # by the bytes of an item and of a record


def coalesced(trace: Trace) -> Iterable[Advice]:
    """Accesses whose lanes touch too many sectors. Instructions that walk the same records are one answer."""
    total = sum(site.sectors for site in trace.sites) or 1
    groups: dict[Any, list[tuple[Site, Shape | None]]] = {}
    for site in trace.sites:
        if site.space == "local" or site.kind in ("atom", "red") or site.sectors <= site.sectors_ideal:
            continue
        shape = wasteful_shape(site)
        alike = shape is not None and shape.lanes > 1 and shape.even and shape.step > site.width
        key = (buffer_of(site), site.kind, shape.step) if alike and shape else place_of(site)
        groups.setdefault(key, []).append((site, shape))
    for members in groups.values():
        group = Group(trace, members)
        if group.waste / total >= LEAST:
            rule, text, remedy, more = next(said for answer in ANSWERS if (said := answer(group)))
            more = {"sure": "likely", "now": group.now, "after": group.after, **more}
            yield item(
                *(rule, group.site, f"{group.whom} {text}: {group.cost}", remedy),
                share=group.waste / total,
                also=others(group.sites, group.site),
                **more,
            )


def wasteful_shape(site: Site) -> Shape | None:
    """How the lanes lie in the executions that waste most; None where nothing was recorded."""
    shapes = [(shape_of(pattern.addresses, site.width), pattern) for pattern in global_patterns(site)]
    return max(shapes, key=lambda pair: pair[1].times * (pair[1].cost - pair[0].ideal))[0] if shapes else None


@dataclass(frozen=True)
class Group:
    """Instructions that waste sectors in the same way."""

    trace: Trace
    members: Sequence[tuple[Site, Shape | None]]

    @property
    def sites(self) -> list[Site]:
        """The instructions."""
        return [site for site, _ in self.members]

    @property
    def worst(self) -> tuple[Site, Shape | None]:
        """The one that wastes most, and how its lanes lie."""
        return max(self.members, key=lambda pair: pair[0].sectors - pair[0].sectors_ideal)

    @property
    def site(self) -> Site:
        """The one that wastes most."""
        return self.worst[0]

    @property
    def waste(self) -> int:
        """Sectors beyond the ideal."""
        return self.now["sectors"] - self.after["sectors"]

    @property
    def now(self) -> dict[str, int]:
        """What they count."""
        return {"sectors": sum(site.sectors for site in self.sites)}

    @property
    def after(self) -> dict[str, int]:
        """What the same bytes would need side by side."""
        return {"sectors": sum(site.sectors_ideal for site in self.sites)}

    @property
    def whom(self) -> str:
        """Loads or stores, and the buffer."""
        verb = "loads from" if self.site.kind in ("load", "copy") else "stores to"
        return f"{verb} {buffer_of(self.site) or 'global memory'}"

    @property
    def cost(self) -> str:
        """What a request costs."""
        each = self.site.sectors / self.site.requests, self.site.sectors_ideal / self.site.requests
        return f"{each[0]:.3g} sectors a request, {each[1]:.3g} would do"

    @property
    def step(self) -> int:
        """Bytes from lane to lane."""
        shape = self.worst[1]
        return abs(shape.step) if shape else 0

    @property
    def filled(self) -> int:
        """Bytes of a record of `step` bytes that the instructions take together."""
        return sum(
            width for _, width in {(shape.first % self.step, site.width) for site, shape in self.members if shape}
        )

    @property
    def starts_aligned(self) -> bool:
        """Whether records of `step` bytes begin at multiples of their size."""
        return min(shape.first for _, shape in self.members if shape) % self.step == 0

    @property
    def takes_all(self) -> bool:
        """Whether they move about as many bytes as the buffer has: what lies between lanes is taken another time."""
        size = self.trace.buffers.get(buffer_of(self.site) or "", 0)
        moved = sum(site.lanes * site.width for site in self.sites) * self.trace.scale
        return size > 0 and 0.9 * size <= moved


Said = tuple[str, str, str, dict[str, Any]]  # rule, text, remedy, further fields


def misaligned(group: Group) -> Said | None:
    """Runs that begin inside a sector."""
    shape = group.worst[1]
    run = shape is not None and shape.runs == 1
    long = shape is None or shape.bytes >= SECTOR * shape.runs
    if not run and not (long and group.site.sectors <= SPLIT * group.site.sectors_ideal):
        return None
    return (
        "misaligned",
        "begin inside a sector",
        "Begin each warp's run at a multiple of 32 bytes: start the array, or pad its rows, so (a pitch that is a "
        "multiple of 32 bytes), or take single items up to the first such address. Where the next warp takes the rest "
        "of the sector soon after, L1 or L2 have it still.",
        {"sure": "computed"},
    )


def unknown(group: Group) -> Said | None:
    """No addresses were recorded: a guess from the counts."""
    if group.worst[1] is not None:
        return None
    guess = min(round(SECTOR * group.site.sectors / max(group.site.lanes, 1)), SECTOR)
    text = f"are {guess}{' or more' if guess == SECTOR else ''} bytes apart from lane to lane"
    return "uncoalesced", text, NEIGHBOURS, {}


def pieces(group: Group) -> Said | None:
    """No even step."""
    shape = group.worst[1]
    if shape is None or shape.even:
        return None
    remedy = "Give a warp whole rows (a block 32 threads wide), and begin rows at multiples of 32 bytes."
    if shape.runs >= shape.lanes // 2:
        remedy = (
            "Let a warp take longer pieces: at least 32 bytes, at a multiple of 32. Where the order is given by an "
            "index, sort the indices, or gather records instead of single items."
        )
    return "uncoalesced", f"lie in {shape.runs} pieces of {shape.bytes / shape.runs:.3g} bytes", remedy, {}


def whole_records(group: Group) -> Said | None:
    """All items of records that a vector can hold, one instruction for each."""
    vector = VECTORS.get((group.site.width, group.step))
    if not vector or len(group.sites) < 2 or group.filled != group.step or not group.starts_aligned:
        return None
    what = buffer_of(group.site) or "pointer"
    executions = sum(site.executions for site in group.sites)
    whole = sum(site.executions * site.width for site in group.sites) // group.step
    return (
        "uncoalesced",
        f"take records of {group.step} bytes to pieces, item by item",
        f"Take the whole record at once, as one access of {group.step} bytes ({vector}): it begins at a multiple of "
        "its size.",
        {
            "sure": "proven",
            "code": (f"reinterpret_cast<{'' if group.site.kind == 'store' else 'const '}{vector} *>({what})[i]",),
            "now": {**group.now, "executions": executions},
            "after": {**group.after, "executions": whole},
        },
    )


def fields(group: Group) -> Said | None:
    """All fields of larger records."""
    if group.step > RECORD or len(group.sites) < 2 or group.filled != group.step:
        return None
    return (
        "uncoalesced",
        f"take each field of records of {group.step} bytes by itself",
        "Keep each field in an array of its own (structure of arrays), or move the block's records through shared "
        "memory: neighbouring lanes move neighbouring words, whatever fields these are, and pick their fields there.",
        {},
    )


def stretches(group: Group) -> Said | None:
    """A stretch for each lane, item after item."""
    if group.step > RECORD or not group.takes_all:
        return None
    wide = VECTORS.get((group.site.width, group.step))
    once = f"Take the {group.step} bytes at once, as one {wide}; or let" if wide and group.starts_aligned else "Let"
    return (
        "uncoalesced",
        f"walk along {group.step} bytes a lane, one item after another",
        f"{once} neighbouring lanes take neighbouring items, and each thread every so many threads' one "
        "(i = thread + k * threads).",
        {},
    )


def one_field(group: Group) -> Said | None:
    """Some fields of records."""
    if group.step > RECORD:
        return None
    return (
        "uncoalesced",
        f"take {min(group.filled, group.step)} of every {group.step} bytes",
        "Keep what is used together side by side: each field in an array of its own (structure of arrays). Where the "
        "layout is given and other kernels use the rest, rearrange it once (gpumem.to_soa).",
        {},
    )


def rows(group: Group) -> Said:
    """Anything farther apart."""
    return "uncoalesced", f"take a row for each lane, {group.step} bytes apart", NEIGHBOURS, {}


NEIGHBOURS = (
    "Let neighbouring lanes take neighbouring items: swap what threadIdx.x and the loop, or threadIdx.y, walk along. "
    "Where the other side of the copy then loses its order, move a tile through shared memory: in along rows, out "
    "along columns. Where these items alone are needed, keep them side by side."
)

# The first that has something to say.
ANSWERS: tuple[Callable[[Group], Said | None], ...] = (
    *(misaligned, unknown, pieces, whole_records, fields, stretches, one_field, rows),
)
