"""The speed of light of a trace: the time that each resource of a device alone would need, and so what binds.

Five resources, each with what the trace asks of it and what the device gives of it in a second:

==============  ==================================================================  ====================================
memory          bytes that must come from it and go to it                           the measured copy, else the peak
L2 reads        32-byte sectors that loads and atomics touch                        `Device.l2_reads`
L2 writes       32-byte sectors that stores and atomics touch                       `Device.l2_writes`
L1 wavefronts   passes through shared memory and the first-level cache              one a multiprocessor and clock
issue slots     warp instructions, of the PTX                                       four a multiprocessor and clock
==============  ==================================================================  ====================================

No kernel is faster than the slowest of these. Many are slower: an estimate knows nothing of latency that too few bytes
under way do not hide, of what ptxas makes of the PTX, and of reads that the first-level cache answers.
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

READS, WRITES = ("load", "copy", "bulk"), ("store", "bulk")
ATOMS = ("atom", "red")
LINE_PASSES = 1  # passes of the first-level cache for each line of 128 bytes that an access touches


@dataclass(frozen=True)
class Bound:
    """A resource: what is asked of it, how much there is of it in a second, and the time that this takes."""

    resource: str
    amount: float
    unit: str
    rate: float

    @property
    def seconds(self) -> float:
        """The time that this resource alone would need; 0 where its rate is not known."""
        return self.amount / self.rate if self.rate else 0.0


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
            "bounds": [{**vars(bound), "seconds": bound.seconds} for bound in self.bounds],
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
        note = f"At least {self.seconds * 1e3:.4f} ms: {self.binds} binds. Latency and reuse in L1 are not looked at."
        return [Table(f"{self.kernel} at the speed of light of {self.device.name}", columns, rows, [note], strong)]


def speed_of_light(trace: Trace, on: str | Device | Mapping[str, Any] | None = None) -> SpeedOfLight:
    """The least time that a launch can take on a device (a name such as "H200", or a Device; None: this machine's GPU).

    Raises UsageError for a device that is not known, and for a profile, which has no instructions of the PTX.

    >>> x, out = np.zeros(1 << 16, "f4"), np.zeros(1 << 16, "f4")
    >>> trace = gpumem.Kernel(gpumem.examples.COPY).trace(512, 128, out, x, 1 << 16)
    >>> light = speed_of_light(trace, "H200")
    >>> light.binds, [round(bound.amount) for bound in light.bounds][:2]
    ('memory', [524288, 8192])
    """
    if trace.origin != "lens":
        raise UsageError("the speed of light is that of a trace of the lens: a profile has been timed by the hardware")
    where = device(on)
    read, written = memory_bytes(trace)
    loads, stores = (
        sum(site.sectors for site in trace.sites if site.kind in kinds + ATOMS) * trace.scale
        for kinds in (READS, WRITES)
    )
    passes = sum(map(wavefronts, trace.sites)) * trace.scale
    return SpeedOfLight(
        trace.kernel,
        where,
        (
            Bound("memory", read + written, "bytes", where.bandwidth),
            Bound("L2 reads", loads, "sectors", where.l2_reads),
            Bound("L2 writes", stores, "sectors", where.l2_writes),
            Bound("L1 wavefronts", passes, "passes", where.l1_wavefronts),
            Bound("issue slots", trace.instructions * trace.scale, "warp instructions", where.issue),
        ),
    )


def memory_bytes(trace: Trace) -> tuple[float, float]:
    """Bytes that must be read from memory and written to it: what the sectors hold, and no more than the arrays do.

    What a kernel reads or writes more often than once, the caches are taken to keep.
    """
    made = []
    for kinds in (READS + ATOMS, WRITES + ATOMS):
        sites = [site for site in trace.sites if site.kind in kinds and site.sectors]
        touched = sum(site.sectors for site in sites) * SECTOR * trace.scale
        names = buffers_of(sites)
        if kinds[0] == "store":
            names = {name for name in names or trace.buffers if name not in trace.read_only}
        held = sum(size for name, size in trace.buffers.items() if not names or name in names)
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
    """Passes of a site through its multiprocessor's first level.

    Of shared memory as counted; of global memory a pass for every 128 bytes, and one for every line that is touched.
    """
    return site.wavefronts + max(site.sectors / 4, LINE_PASSES * site.lines)
