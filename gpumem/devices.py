"""What GPUs can do at most: bandwidth, caches, and arithmetic by multiprocessors, clock and compute capability.

Each row names where its figures stand: NVIDIA's data sheets and white papers. Peaks of arithmetic follow from the
number of multiprocessors, the clock, and what one of them does in a clock, so that a device that is in no table has
them too: its multiprocessors and clock are read from the driver. The bandwidth of this machine's own device, whether
it is in the table or not, is that of a copy that is measured here (speeds.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import UsageError, unknown

GB = 1e9
MIB = 1 << 20
SECTOR = 32

# Results a clock of one multiprocessor, from the table "Throughput of Native Arithmetic Instructions" of the CUDA C++
# Programming Guide; fp16 and bf16 as pairs. Matrix products: multiply-adds a clock without sparsity, from the white
# papers: Volta's and Turing's 8 tensor cores of 64, Ampere's GA100 4 of 256, its GA10x and Ada 4 of 128, Hopper's 4 of
# 512, Blackwell's (10.0) 4 of 1024, its GeForce (12.0) as Ada's. Sums are in single precision, which GeForce does at
# half this rate (Device.slow_sums).
RATES: dict[int, dict[str, int]] = {
    70: {"fp32": 64, "fp64": 32, "fp16": 128, "int": 64, "tensor fp16": 512},
    75: {"fp32": 64, "fp64": 2, "fp16": 128, "int": 64, "tensor fp16": 512, "tensor int": 1024},
    80: {"fp32": 64, "fp64": 32, "fp16": 256, "bf16": 128, "int": 64, "tensor fp16": 1024, "tensor fp64": 64},
    86: {"fp32": 128, "fp64": 2, "fp16": 128, "bf16": 128, "int": 64, "tensor fp16": 512},
    89: {"fp32": 128, "fp64": 2, "fp16": 128, "bf16": 128, "int": 64, "tensor fp16": 512, "tensor fp8": 1024},
    90: {"fp32": 128, "fp64": 64, "fp16": 256, "bf16": 256, "int": 64, "tensor fp16": 2048, "tensor fp64": 128},
    100: {"fp32": 128, "fp64": 64, "fp16": 256, "bf16": 256, "int": 64, "tensor fp16": 4096, "tensor fp64": 128},
    120: {"fp32": 128, "fp64": 2, "fp16": 128, "bf16": 128, "int": 128, "tensor fp16": 512, "tensor fp8": 1024},
}
for _rates in RATES.values():
    if _rates["tensor fp16"] >= 1024 or "tensor fp8" in _rates or "bf16" in _rates:  # Ampere and later
        _rates |= {"tensor bf16": _rates["tensor fp16"], "tensor tf32": _rates["tensor fp16"] // 2}
        _rates.setdefault("tensor int", 2 * _rates["tensor fp16"])
HALVED = ("tensor fp16", "tensor bf16", "tensor tf32", "tensor fp8")  # where sums are slow
RATES[90]["tensor fp8"] = 2 * RATES[90]["tensor fp16"]
RATES[100]["tensor fp8"] = 2 * RATES[100]["tensor fp16"]


@dataclass(frozen=True)
class Device:
    """A GPU's limits. Bandwidths are bytes a second, clocks hertz.

    `memory_peak` is the data sheet's; `copy` what a copy reached, read and written bytes together, 0 where nobody
    measured it. `l2` is what a probe measured of the second-level cache: sectors (32 bytes) and lines (128 bytes) that
    loads get of it in a second, then those that stores bring to it; empty where nobody did. `latency` is the time of
    one read of memory that waits for no other, in seconds, 0 where it is not known. `peaks` holds arithmetic that was
    measured, operations a second by kind, for what has no rates by compute capability: a CPU, whose `capability` is 0
    and whose `multiprocessors` are its cores. `slow_sums`: matrix products of floats run at half the chip's rate where
    their sums are in single precision, as on GeForce cards.
    """

    name: str
    capability: int
    multiprocessors: int
    clock: float
    memory_peak: float
    l2_bytes: int
    memory_bytes: int = 0
    tensor_clock: float = 0.0
    copy: float = 0.0
    l2: tuple[float, ...] = ()
    latency: float = 0.0
    source: str = ""
    peaks: Mapping[str, float] = field(default_factory=dict)
    slow_sums: bool = False

    @property
    def bandwidth(self) -> float:
        """Of the memory: the measured copy's where there is one, else the data sheet's."""
        return self.copy or self.memory_peak

    def peak(self, kind: str) -> float:
        """Operations a second of a kind such as "fp32" or "tensor fp16"; a multiply-add is two.

        Raises UsageError for what the chip has no units for, naming what it has.

        >>> round(device("A100").peak("tensor fp16") / 1e12), round(device("H200").peak("fp32") / 1e12)
        (312, 67)
        """
        if kind not in self.kinds:
            raise unknown(f"arithmetic of {self.name}", kind, self.kinds)
        if self.peaks:
            return self.peaks[kind]
        if not self.clock:
            raise UsageError(f"{self.name}: neither its driver nor nvidia-smi tells its clock, so no arithmetic either")
        # Of the clocks of the data sheets: double precision keeps the higher one.
        slow = kind.startswith("tensor") and kind != "tensor fp64" and self.tensor_clock
        clock = self.tensor_clock if slow else self.clock
        halved = self.slow_sums and kind in HALVED
        return 2.0 * rates_of(self.capability)[kind] * self.multiprocessors * clock / (2 if halved else 1)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of arithmetic that it has units for."""
        return tuple(self.peaks or rates_of(self.capability))

    @property
    def issue(self) -> float:
        """Warp instructions a second: four schedulers a multiprocessor, one each a clock."""
        return 4.0 * self.multiprocessors * self.clock

    @property
    def l1_wavefronts(self) -> float:
        """Passes a second through the first-level caches and shared memory: one a multiprocessor and clock."""
        return self.multiprocessors * self.clock

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {**vars(self), "l2": list(self.l2), "peaks": dict(self.peaks)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Device:
        """What `to_dict` wrote."""
        return cls(**{**data, "l2": tuple(data["l2"])})


def rates_of(capability: int) -> Mapping[str, int]:
    """The rates of a compute capability, or of the newest one before it."""
    known = [number for number in RATES if number <= capability]
    if not known:
        raise UsageError(f"compute capability {capability / 10:.1f}: 7.0 is the oldest that there are rates for")
    return RATES[max(known)]


def _row(
    name: str, capability: int, sms: int, mhz: float, gb: float, l2_mib: int, memory: int, source: str, **more: Any
) -> Device:
    return Device(name, capability, sms, mhz * 1e6, gb * GB, l2_mib * MIB, memory << 30, source=source, **more)


_VOLTA = "NVIDIA Tesla V100 GPU Architecture (WP-08608-001), table 1; V100 data sheet"
_TURING = "NVIDIA Turing GPU Architecture (WP-09183-001), appendix; T4 data sheet"
_AMPERE = "NVIDIA A100 Tensor Core GPU Architecture white paper, tables 4 and 5; A100 data sheet (80 GB: 2,039 GB/s)"
_GA10X = "NVIDIA Ampere GA102 GPU Architecture white paper, table 2"
_ADA = "NVIDIA Ada GPU Architecture white paper, appendix A; data sheet"
_HOPPER = "NVIDIA H100 Tensor Core GPU Architecture white paper, table 3; data sheet"
_H200 = "NVIDIA H200 data sheet; clock and L2 as the driver tells them"
_BLACKWELL = (
    "NVIDIA HGX B200 data sheet (memory, arithmetic); multiprocessors, L2 (126.5 MiB), clock as a driver tells them, "
    "whose bus of 7,680 bits at 3,996 MHz makes 7,672 GB/s of the sheet's 8 TB/s (pytorch/ao, pull request 4002)"
)
_GEFORCE50 = "NVIDIA RTX Blackwell GPU Architecture white paper, appendix A (by its figures in the press)"

# Of notebooks/data/h200: device.json has the probe's patterns (lanes 32 to 1024 bytes apart), sweep-flight.json the
# copies that keep 2 KiB under way, whose reads take so long.
_H200_MEASURED: dict[str, Any] = {"l2": (270e9, 153e9, 125e9, 76e9), "latency": 650e-9}

# Names as the driver has them, without "NVIDIA" and "Tesla"; the first that a device's name contains is its row.
DEVICES: tuple[Device, ...] = (
    _row("V100-PCIE", 70, 80, 1380, 900, 6, 32, _VOLTA),
    _row("V100", 70, 80, 1530, 900, 6, 32, _VOLTA),
    _row("T4", 75, 40, 1590, 320, 4, 16, _TURING),
    _row("A100-PCIE-40GB", 80, 108, 1410, 1555, 40, 40, _AMPERE),
    _row("A100-SXM4-40GB", 80, 108, 1410, 1555, 40, 40, _AMPERE),
    _row("A100 80GB PCIe", 80, 108, 1410, 1935, 40, 80, _AMPERE),
    _row("A100", 80, 108, 1410, 2039, 40, 80, _AMPERE),
    _row("A10", 86, 72, 1695, 600, 6, 24, f"NVIDIA A10 data sheet; {_GA10X}"),
    _row("RTX 3090", 86, 82, 1695, 936, 6, 24, _GA10X, slow_sums=True),
    _row("RTX 4090", 89, 128, 2520, 1008, 72, 24, _ADA, slow_sums=True),
    _row("L40S", 89, 142, 2520, 864, 96, 48, _ADA),
    _row("L4", 89, 58, 2040, 300, 48, 24, _ADA),
    _row("H100 PCIe", 90, 114, 1755, 2039, 50, 80, _HOPPER, tensor_clock=1.62e9),
    _row("H100 NVL", 90, 132, 1785, 3938, 50, 94, _HOPPER, tensor_clock=1.545e9),
    _row("H100", 90, 132, 1980, 3352, 50, 80, _HOPPER, tensor_clock=1.83e9),
    _row("H200", 90, 132, 1980, 4800, 60, 141, _H200, tensor_clock=1.83e9, copy=4.25e12, **_H200_MEASURED),
    _row("B200", 100, 148, 1965, 8000, 126, 180, _BLACKWELL, tensor_clock=1.85e9),
    _row("RTX 5090", 120, 170, 2407, 1792, 96, 32, _GEFORCE50, slow_sums=True),
)


def device(name: str | Device | Mapping[str, Any] | None = None) -> Device:
    """A device of the table by its name or a part of it; without one, the GPU of this machine.

    A mapping is a recorded environment. The GPU of this machine is described by what its driver tells, and by a copy
    that is measured; the table has what neither says. A device that is named has the table's figures alone. "cpu" is
    the processor of this machine: its copy, and its arithmetic as NumPy's matrix product reaches it, are measured.

    Raises UsageError for a name that is in no table and where there is no GPU.

    >>> device("A100").multiprocessors, device("NVIDIA H100 PCIe").memory_peak / 1e9
    (108, 2039.0)
    """
    if isinstance(name, Device):
        return name
    if isinstance(name, Mapping):
        return replace(device(str(name["device"])), name=str(name["device"]))
    if name is None:
        return of_this_machine()
    if name.strip().lower() == "cpu":
        return of_host()
    plain = re.sub(r"\b(NVIDIA|Tesla|GeForce|GPU)\b", "", name).strip().lower()
    for row in DEVICES:
        if has_words(plain, row.name.lower()):
            return row
    for row in reversed(DEVICES):
        if plain and has_words(row.name.lower(), plain):
            return row
    raise unknown("device", name, [row.name for row in DEVICES])


def has_words(text: str, words: str) -> bool:
    """Whether words stand in a text, whole.

    >>> has_words("a100-sxm4-80gb", "a100"), has_words("l40s", "l40")
    (True, False)
    """
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def of_this_machine() -> Device:
    """The first CUDA device, with the bandwidth of a copy that is measured here, once a process.

    Raises UsageError where there is none.
    """
    from . import _core

    cuda = _core._cuda()
    if not cuda["devices"]:
        raise UsageError(
            f"no GPU here ({cuda['reason']}): name a device, such as {', '.join(d.name for d in DEVICES[-4:])}"
        )
    return measured(of_driver(cuda["devices"][0]))


def measured(known: Device) -> Device:
    """The first CUDA device with its copy measured; as it was, with the reason, where that cannot be."""
    from . import speeds

    try:
        speed = speeds.of_gpu()
    except (UsageError, RuntimeError) as why:
        return replace(known, source=f"{known.source}; its copy could not be measured: {why}")
    return replace(known, copy=speed.rate.median, source=f"{known.source}; bandwidth: {speed}")


def of_host() -> Device:
    """The processor of this machine. Raises UsageError where there is no room to measure its copy."""
    from . import machine, speeds

    try:
        speed, peaks = speeds.of_cpu(), speeds.cpu_arithmetic()
    except MemoryError:
        raise UsageError("device 'cpu': no memory for the arrays of a copy") from None
    cores, cache = machine.cores_allowed(), machine.last_cache()
    source = f"bandwidth: {speed}; arithmetic: NumPy's matrix product"
    rate = speed.rate.median
    return Device(machine.cpu_model(), 0, cores, 0.0, rate, cache, copy=rate, source=source, peaks=peaks)


def driver_clock() -> float:
    """The highest clock of the first device, in hertz; 0 where neither the driver nor nvidia-smi tells."""
    from .device_clock import CLOCK_KHZ
    from .launch import Device as Opened
    from .machine import output

    try:
        if kilohertz := Opened().attribute(CLOCK_KHZ):
            return kilohertz * 1e3
    except (UsageError, RuntimeError):
        pass
    megahertz = output("nvidia-smi", "-i", "0", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits")
    return float(megahertz or 0) * 1e6


def of_driver(row: Mapping[str, Any]) -> Device:
    """A device from what its driver tells; what it does not tell is the table's, where it is in the table.

    A device that is in no table has, until a copy was measured, the peak of its memory clock.
    """
    major, minor = row["capability"]
    told = {name: row[key] for name, key in TOLD.items()}
    clock = driver_clock()
    try:
        known = device(row["name"])
    except UsageError:
        source = "multiprocessors, clock and L2 as the driver tells them"
        return Device(capability=10 * major + minor, clock=clock, memory_peak=row["peak"], source=source, **told)
    return replace(known, clock=clock or known.clock, **told)


TOLD = {"name": "name", "multiprocessors": "multiprocessors", "l2_bytes": "l2", "memory_bytes": "memory"}
