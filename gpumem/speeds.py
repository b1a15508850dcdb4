"""What this machine reaches, measured once a process: the fastest copy on its GPU and on its CPU; the CPU's arithmetic.

Bytes read and written count together, as everywhere in gpumem. The arrays are several times as large as any cache and
hold random data; the copies take turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from timeit import Timer
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, machine
from .timing import ROUNDS, Spread, fastest, interleave
from .work import MEMCPY, OWN_COPY, STREAMING

if TYPE_CHECKING:
    from .device_clock import Clock

LARGEST, SMALLEST = 512 << 20, 128 << 20  # bytes of an array on a device
HOST_BYTES = 256 << 20  # of an array on the host, or eight times the last cache where that is more
SIDE = 1024  # of the matrices whose product says what a CPU can do


@dataclass(frozen=True)
class CopySpeed:
    """What a copy reached: bytes a second, read and written; by which copy, of arrays of how many bytes."""

    rate: Spread
    by: str
    size: int

    def __str__(self) -> str:
        return (
            f"{self.rate.median / 1e9:,.0f} GB/s ({self.rate.low / 1e9:,.0f} to {self.rate.high / 1e9:,.0f}) by a copy "
            f"({self.by}) of {self.size >> 20} MiB, measured on this machine"
        )


def of_samples(samples: dict[str, list[float]], size: int) -> CopySpeed:
    """The faster of the copies."""
    best = fastest(samples, list(samples))
    return CopySpeed(Spread.of([2 * size / seconds for seconds in samples[best]]), best, size)


@cache
def of_gpu() -> CopySpeed:
    """Of the first CUDA device: the driver's copy, or gpumem's own.

    Raises UsageError where there is no driver, DriverError (a RuntimeError) where it has no memory to give.
    """
    from .device_clock import OUT_OF_MEMORY, Clock
    from .launch import DriverError

    with Clock() as clock:
        size = LARGEST
        while True:
            try:
                return on_device(clock, size)
            except DriverError as error:
                if error.code != OUT_OF_MEMORY or size <= SMALLEST:
                    raise
                size //= 2


def on_device(clock: Clock, size: int) -> CopySpeed:
    """Of a device, with arrays of so many bytes."""
    from .device_clock import LEGACY, Lent

    with clock.device.memory(size, size) as (source, to):
        clock.randomise(source, size)
        x, out = Lent(source, (size,)), Lent(to, (size,))
        calls = {
            MEMCPY: clock.timer(lambda: clock.copy(to, source, size)),
            OWN_COPY: clock.timer(lambda: _core.copy(x, out=out, stream=LEGACY)),
        }
        return of_samples(interleave(calls, ROUNDS), size)


@cache
def of_cpu() -> CopySpeed:
    """Of the host's memory: memcpy, a copy with non-temporal stores, or gpumem's own, on as many threads as it uses.

    Raises MemoryError where there is no room for the arrays.
    """
    size = max(HOST_BYTES, 8 * machine.last_cache())
    source = np.frombuffer(bytearray(np.random.default_rng(0).bytes(1 << 20)), np.uint8)
    x = np.tile(source, -(-size >> 20))
    out = np.ones_like(x)  # its pages exist before anything is timed
    calls: dict[str, Any] = {
        MEMCPY: Timer(lambda: _core._reference_copy(out, x, "memcpy")),
        STREAMING: Timer(lambda: _core._reference_copy(out, x, "streaming")),
        OWN_COPY: Timer(lambda: _core.copy(x, out=out)),
    }
    return of_samples(interleave(calls, ROUNDS), x.size)


@cache
def cpu_arithmetic() -> dict[str, float]:
    """Operations a second of the host in fp32 and fp64: those of NumPy's matrix product, whose BLAS uses all cores."""
    reached = {}
    for kind, dtype in (("fp32", np.float32), ("fp64", np.float64)):
        a, b = (np.random.default_rng(seed).random((SIDE, SIDE)).astype(dtype) for seed in range(2))
        timer = Timer("a @ b", globals={"a": a, "b": b})
        reached[kind] = 2.0 * SIDE**3 / Spread.of(interleave({kind: timer}, ROUNDS)[kind]).median
    return reached
