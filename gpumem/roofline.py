"""The roofline: how many operations a kernel does for each byte, and how fast a device could do them.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009. The slanted roof
is the bandwidth of a measured copy (or the data sheet's, where nobody measured one), the flat ones are the arithmetic
of the device, by type: multiprocessors x clock x what one does in a clock. A kernel stands at its operations a byte:
the operations of the instructions that it executed, the bytes of the sectors that it touched. How high it stands is its
measured speed, or, for a trace alone, the speed that no resource of the device forbids (see light.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from . import devices
from .devices import DEVICES, Device
from .errors import UsageError
from .light import memory_bytes, speed_of_light
from .mix import FLOATS, KINDS
from .table import Column, Shown, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .measured import Measured
    from .trace import Trace


MEASURED = ", measured"  # of a point's name, next to the traced one of the same kernel


@dataclass(frozen=True)
class Work:
    """What stands under the roof: operations of a kind, bytes, and seconds, which were measured or are the least."""

    name: str
    kind: str
    operations: float
    bytes: float
    seconds: float = 0.0
    measured: bool = False

    @property
    def kernel(self) -> str:
        """The name, without what tells a measured point from the traced one.

        >>> Work("add, measured", "fp32", 1, 12).kernel
        'add'
        """
        return self.name.removesuffix(MEASURED)

    @property
    def intensity(self) -> float:
        """Operations a byte; infinite for a kernel that moves none."""
        return self.operations / self.bytes if self.bytes else float("inf")

    @property
    def speed(self) -> float:
        """Operations a second; 0 where there is no time."""
        return self.operations / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, repr=False)
class Roofline(Shown):
    """Kernels under the roof of a device. Prints as a table."""

    device: Device
    works: tuple[Work, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Work:
        """The kernel of that name."""
        for work in self.works:
            if work.name == name:
                return work
        raise KeyError(name)

    def attainable(self, work: Work) -> float:
        """Operations a second that the roof allows at a kernel's operations a byte."""
        return min(self.device.peak(work.kind), work.intensity * self.device.bandwidth)

    def ridge(self, kind: str) -> float:
        """Operations a byte from which on the arithmetic is the limit."""
        return self.device.peak(kind) / self.device.bandwidth

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "schema": "gpumem.roofline/1",
            "device": self.device.to_dict(),
            "notes": list(self.notes),
            "works": [
                {
                    **vars(work),
                    "intensity": work.intensity if work.bytes else None,  # JSON has no infinity
                    "attainable": self.attainable(work),
                }
                for work in self.works
            ],
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Roofline:
        """A roofline that was written by `to_dict`. Raises UsageError where `data` is none."""
        if data.get("schema") != "gpumem.roofline/1":
            raise UsageError(f"no roofline: schema {data.get('schema')!r} instead of 'gpumem.roofline/1'")
        drop = ("intensity", "attainable")
        works = tuple(Work(**{k: v for k, v in row.items() if k not in drop}) for row in data["works"])
        return cls(Device.from_dict(data["device"]), works, tuple(data.get("notes", ())))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Both axes logarithmic, a roof for each kind. Needs matplotlib (pip install 'gpumem[plot]')."""
        from .roof_plot import plot_roofline

        return plot_roofline(self, ax)

    def tables(self) -> list[Table]:
        """A row a kernel."""
        columns = (
            Column("kernel", "left"),
            Column("kind", "left"),
            Column("operations"),
            Column("bytes"),
            Column("op/byte"),
            Column("TFLOP/s"),
            Column("attainable"),
            Column("of peak"),
            Column("limited by", "left"),
        )
        rows = []
        for work in self.works:
            reach, peak = self.attainable(work), self.device.peak(work.kind)
            rows.append(
                (
                    work.name,
                    work.kind,
                    f"{work.operations:,.0f}",
                    f"{work.bytes:,.0f}",
                    f"{work.intensity:.4g}",
                    f"{work.speed / 1e12:.4g}{'' if work.measured else ' at most'}" if work.seconds else "",
                    f"{reach / 1e12:.4g}",
                    f"{reach / peak:.2%}",
                    "arithmetic" if work.intensity >= self.ridge(work.kind) else "memory",
                )
            )
        where = self.device
        copy = "measured copy" if where.copy else "data sheet"
        note = f"{where.name}: {where.bandwidth / 1e9:,.0f} GB/s ({copy}). Source: {where.source or 'the driver'}."
        return [Table(f"Under the roof of {where.name}", columns, rows, [note, *self.notes])]


def roofline(
    *traces: Trace | Work | Measured | Iterable[Trace | Work | Measured],
    device: str | Device | Mapping[str, Any] | None = None,
) -> Roofline:
    """Kernels under the roof of a device.

    traces: of the lens; Work objects, which may carry measured seconds; what `Kernel.measure` gave, which stands there
    twice, as traced and as measured on this machine's GPU. device: a name such as "A100", a Device, or a recorded
    environment; "cpu" for Work of this machine's processor; None for this machine's GPU, whose bandwidth is that of a
    copy measured here. A trace without arithmetic on floats stands at the integer operations that it executed.

    Raises UsageError for a device that is not known, and for another one than a launch was measured on.

    The classic example adds two vectors, c = a + b. Each addition of floats reads 8 bytes and writes 4: 1/12 of an
    operation a byte, so that an A100's memory allows 0.05 % of the 312 TFLOP/s that its tensor cores could do:

    >>> kernel = gpumem.Kernel(gpumem.examples.ADD)
    >>> a, b, c = (np.ones(4096, "f4") for _ in range(3))
    >>> roof = gpumem.roofline(kernel.trace(32, 128, c, a, b, 4096), device="A100")
    >>> round(1 / roof["add"].intensity, 3)
    12.0
    >>> peak = roof.device.peak("tensor fp16")
    >>> f"{roof.attainable(roof['add']) / peak:.2%} of {peak / 1e12:.0f} TFLOP/s"
    '0.05% of 312 TFLOP/s'
    """
    from .measured import Measured

    where = devices.device(device)
    flat = [each for given in traces for each in (given if isinstance(given, Iterable) else (given,))]
    if not flat:
        raise UsageError("nothing to put under the roof: give traces")
    works: list[Work] = []
    notes: list[str] = []
    for each in flat:
        if isinstance(each, Measured):
            works += works_of(each, where)
            notes += each.notes
        else:
            works.append(each if isinstance(each, Work) else work_of(each, where))
    return Roofline(where, tuple(works), tuple(notes))


def works_of(taken: Measured, where: Device) -> list[Work]:
    """A launch as it was traced and as it was measured. Raises UsageError under the roof of another device."""
    if where.name != taken.device.name:
        raise UsageError(f"{taken.trace.kernel} was measured on {taken.device.name}, and not on {where.name}")
    traced = work_of(taken.trace, where)
    return [traced, replace(traced, name=traced.name + MEASURED, seconds=taken.seconds, measured=True)]


def work_of(trace: Trace, where: Device, *, seconds: float | None = None, name: str = "") -> Work:
    """A trace as work of its most frequent kind; with the least time of the device where none was measured."""
    kinds = {kind: row["operations"] for kind, row in trace.mix.items() if row["operations"]}
    floats = {kind: count for kind, count in kinds.items() if kind in FLOATS}
    of = floats or {kind: count for kind, count in kinds.items() if kind in KINDS}
    if not of:
        raise UsageError(f"{trace.kernel}: no instruction mix, so no operations: a profile, or an older record")
    kind = max(of, key=lambda each: of[each])
    least = speed_of_light(trace, where).seconds if seconds is None else seconds
    moved = sum(memory_bytes(trace))
    return Work(name or trace.kernel, kind, of[kind] * trace.scale, moved, least, seconds is not None)


class DeviceTable(Shown):
    """The device table, with where its figures stand."""

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps([row.to_dict() for row in DEVICES], indent=1)

    def tables(self) -> list[Table]:
        """A row a device."""
        columns = (
            Column("device", "left"),
            Column("SMs"),
            Column("MHz"),
            Column("GB/s"),
            Column("L2 MiB"),
            Column("fp32 TFLOP/s"),
            Column("fp16 tensor"),
            Column("source", "left", prose=True),
        )
        rows = [
            (
                row.name,
                str(row.multiprocessors),
                f"{row.clock / 1e6:.0f}",
                f"{row.memory_peak / 1e9:,.0f}",
                f"{row.l2_bytes >> 20}",
                f"{row.peak('fp32') / 1e12:.1f}",
                f"{row.peak('tensor fp16') / 1e12:.0f}",
                row.source,
            )
            for row in DEVICES
        ]
        return [Table("Devices", columns, rows)]
