"""The speed of light of a trace: the time that each resource of a device alone would need, and so what binds.

==============  ====================================================================================================
memory          bytes that must come from it and go to it, in granules of 64 bytes, by the measured copy's bandwidth
L2              32-byte sectors and 128-byte lines of loads and stores, by what a probe measured (`Device.l2`)
L1 wavefronts   passes through shared memory, and one for 128 bytes of global memory: one a multiprocessor and clock
issue slots     warp instructions of the PTX: four a multiprocessor and clock
latency         bytes that lanes load, by those that are under way on all multiprocessors in the time of one read;
                only for traces that know the machine code (`trace.fit`)
==============  ====================================================================================================

No kernel that is traced exactly is faster than the slowest of these, but for loads that the first-level cache answers,
which are counted as if they went on to L2. Many are slower. What is not looked at: how phases between barriers keep
one resource idle while another works, what ptxas makes of the PTX, reads all over an array that is larger than the
cache. tests/test_light.py holds the error against 91 recorded stages of an H200.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .devices import SECTOR, Device, device
from .errors import UsageError
from .table import Column, Shown, Table

if TYPE_CHECKING:
    from .trace import Site, Trace

READS, WRITES = ("load", "copy", "bulk"), ("store",)
ATOMS = ("atom", "red")
GRANULE = 64  # bytes that memory hands out together: half a line


@dataclass(frozen=True)
class Bound:
    """A resource: what is asked of it, and the seconds that this takes it; 0 where its rate is not known."""

    resource: str
    amount: float
    unit: str
    seconds: float

    @property
    def rate(self) -> float:
        """Units a second; 0 where it is not known."""
        return self.amount / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, repr=False)
class SpeedOfLight(Shown):
    """The least time of a launch on a device, resource by resource."""

    kernel: str
    device: Device
    bounds: tuple[Bound, ...]

    @property
    def seconds(self) -> float:
        """The time below which the launch cannot be."""
        return max(bound.seconds for bound in self.bounds)

    @property
    def binds(self) -> str:
        """The resource that needs most."""
        return max(self.bounds, key=lambda bound: bound.seconds).resource

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "schema": "gpumem.light/1",
            "kernel": self.kernel,
            "device": self.device.to_dict(),
            "seconds": self.seconds,
            "binds": self.binds,
            "bounds": [{**vars(bound), "rate": bound.rate} for bound in self.bounds],
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def tables(self) -> list[Table]:
        """A row a resource."""
        columns = (Column("resource", "left"), Column("asked"), Column("", "left"), Column("a second"), Column("ms"))
        rows = [
            (
                b.resource,
                f"{b.amount:,.0f}",
                b.unit,
                f"{b.rate:.3g}" if b.rate else "not known",
                f"{b.seconds * 1e3:.4f}",
            )
            for b in self.bounds
        ]
        strong = frozenset(i for i, bound in enumerate(self.bounds) if bound.resource == self.binds)
        left_out = (
            "Reuse in L1 is" if any(b.resource == "latency" for b in self.bounds) else "Latency and reuse in L1 are"
        )
        note = f"At least {self.seconds * 1e3:.4f} ms: {self.binds} binds. {left_out} not looked at."
        return [Table(f"{self.kernel} at the speed of light of {self.device.name}", columns, rows, [note], strong)]


def speed_of_light(trace: Trace, on: str | Device | Mapping[str, Any] | None = None) -> SpeedOfLight:
    """The least time that a launch can take on a device (a name such as "H200", or a Device; None: this machine's GPU).

    Raises UsageError for a device that is not known, and for a profile, which has no instructions of the PTX.

    >>> x, out = np.zeros(1 << 16, "f4"), np.zeros(1 << 16, "f4")
    >>> trace = gpumem.Kernel(gpumem.examples.COPY).trace(512, 128, out, x, 1 << 16)
    >>> light = speed_of_light(trace, "H200")
    >>> light.binds, [round(bound.amount) for bound in light.bounds][:2]
    ('memory', [524288, 16384])
    """
    if trace.origin != "lens":
        raise UsageError("the speed of light is that of a trace of the lens: a profile has been timed by the hardware")
    where = device(on)
    if not where.capability:
        raise UsageError(f"the speed of light is that of a GPU, and {where.name} is none")
    read, written = memory_bytes(trace)
    return SpeedOfLight(
        trace.kernel,
        where,
        (
            Bound("memory", read + written, "bytes", (read + written) / where.bandwidth),
            second_level(trace, where),
            over("L1 wavefronts", sum(map(wavefronts, trace.sites)) * trace.scale, "passes", where.l1_wavefronts),
            over("issue slots", trace.instructions * trace.scale, "warp instructions", where.issue),
            *latency(trace, where),
        ),
    )


def over(resource: str, amount: float, unit: str, rate: float) -> Bound:
    """A bound by its rate, where that is known."""
    return Bound(resource, amount, unit, amount / rate if rate else 0.0)


def second_level(trace: Trace, where: Device) -> Bound:
    """Loads and stores share the way to L2: each takes the longer of what its sectors and its lines need."""
    sectors, seconds = 0.0, 0.0
    for kinds, side in ((READS + ATOMS, where.l2[:2]), (WRITES + ATOMS, where.l2[2:])):
        for site in trace.sites:
            if site.kind in kinds:
                sectors += site.sectors * trace.scale
                if side:
                    seconds += max(site.sectors / side[0], site.lines / side[1]) * trace.scale
    return Bound("L2", sectors, "sectors", seconds)


def latency(trace: Trace, where: Device) -> list[Bound]:
    """How long the loads take with so many bytes of their lanes under way, where that is known."""
    held = trace.fit.get("bytes_in_flight", 0)
    if not held or not where.latency or any(site.kind == "bulk" for site in trace.sites):
        return []
    asked = sum(site.lanes * site.width for site in trace.sites if site.kind == "load" and site.requests) * trace.scale
    return [over("latency", asked, "bytes of lanes", held * where.multiprocessors / where.latency)]


def memory_bytes(trace: Trace) -> tuple[float, float]:
    """Bytes that must be read from memory and written to it: whole granules, and no more than the arrays hold.

    What a kernel reads or writes more often than once, the caches are taken to keep. The copy engine's traffic is in no
    sector: where a kernel uses it to read, it reads all that it may not write.
    """
    made = []
    for kinds in (READS + ATOMS, WRITES + ATOMS):
        writes = kinds[0] == "store"
        sites = [site for site in trace.sites if site.kind in kinds and site.sectors]
        names = buffers_of(sites)
        if writes:
            names = {name for name in names or trace.buffers if name not in trace.read_only}
        held = sum(size for name, size in trace.buffers.items() if not names or name in names)
        if any(site.kind == "bulk" and site.executions for site in trace.sites) and not sites:
            mine = [size for name, size in trace.buffers.items() if (name in trace.read_only) != writes]
            made.append(float(sum(mine)))
            continue
        # Two sectors of a line that lie apart cost two granules, four side by side two as well.
        fetched = sum(min(site.sectors, 2 * site.lines) for site in sites) * GRANULE
        touched = (sum(site.sectors for site in sites) * SECTOR if writes else fetched) * trace.scale
        made.append(min(touched, held) if held else touched)
    return made[0], made[1]


def buffers_of(sites: list[Site]) -> set[str]:
    """The arrays that sites touch, where each of them tells; else none."""
    names: set[str] = set()
    for site in sites:
        seen = {pattern.buffer for pattern in getattr(site, "patterns", ())}
        if not seen or None in seen:
            return set()
        names |= {str(name) for name in seen}
    return names


def wavefronts(site: Site) -> float:
    """Passes of a site through its multiprocessor's first level: of shared memory as counted, of global 128 bytes."""
    return site.wavefronts + site.sectors / 4
