"""Times on the first CUDA device by the driver alone, without PyTorch: its memory, its events, a cold cache.

What is timed is put on the default stream between two events, behind a fill of several times the second-level cache:
the fill makes the cache cold, and takes so long that all is queued before the device gets to it.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from timeit import Timer
from typing import Any

import numpy as np

from .launch import Device, DriverError, Job, start
from .timing import interleave

LEGACY = 1  # the default stream, by the handle that is never mistaken for none
FLUSH = 256 << 20  # bytes that are filled before each call, or four times the cache where that is more
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
L2_BYTES, CLOCK_KHZ = 38, 13  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, _CLOCK_RATE
LONGEST = 60.0  # seconds that a launch may take
RANDOM = 16 << 20  # bytes of random data, which are laid side by side


class Lent:
    """Bytes of the device as an array that gpumem's operations take."""

    def __init__(self, address: ctypes.c_uint64, shape: Sequence[int], dtype: Any = "u1") -> None:
        self.shape = tuple(shape)
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": np.dtype(dtype).str,
            "data": (address.value, False),
            "version": 3,
        }


class Clock:
    """Times calls on the first device. A context manager: what it took of the device's memory it gives back.

    Raises UsageError where there is no driver, DriverError for whatever the driver refuses.
    """

    def __init__(self) -> None:
        self.device = Device()
        self._flush_bytes = max(FLUSH, 4 * self.device.attribute(L2_BYTES))

    def __enter__(self) -> Clock:
        self._memory = self.device.memory(self._flush_bytes)
        (self._flush,) = self._memory.__enter__()
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self._events:
            self.device.call("cuEventCreate", ctypes.byref(event), 0)
        return self

    def __exit__(self, *why: object) -> None:
        for event in [] if self.device.stuck else self._events:
            with suppress(DriverError):  # as for memory
                self.device.call("cuEventDestroy_v2", event)
        self._memory.__exit__(None, None, None)

    def seconds(self, call: Callable[[], object], before: Callable[[], object] | None = None) -> float:
        """What a call takes on the device. before: what must have happened, and is not timed."""
        device, (first, last) = self.device, self._events
        if before:
            before()
        self.fill(self._flush, self._flush_bytes)
        device.call("cuEventRecord", first, None)
        call()
        device.call("cuEventRecord", last, None)
        device.wait(LONGEST)
        took = ctypes.c_float()
        device.call("cuEventElapsedTime", ctypes.byref(took), first, last)
        return took.value / 1e3

    def timer(self, call: Callable[[], object], before: Callable[[], object] | None = None) -> Timer:
        """The same as a timer that takes turns with others."""
        return _DeviceTimer(self, call, before)

    def copy(self, to: ctypes.c_uint64, source: ctypes.c_uint64, count: int) -> None:
        """Puts the driver's own copy of so many bytes on the default stream."""
        self.device.call("cuMemcpyDtoDAsync_v2", to, source, ctypes.c_size_t(count), None)

    def fill(self, address: ctypes.c_uint64, count: int, value: int = 0) -> None:
        """Puts a fill on the default stream."""
        self.device.call("cuMemsetD8Async", address, ctypes.c_ubyte(value), ctypes.c_size_t(count), None)

    def randomise(self, address: ctypes.c_uint64, count: int) -> None:
        """Fills memory with random bytes."""
        data = np.random.default_rng(0).bytes(min(count, RANDOM))
        self.device.upload(address, data)
        done = len(data)
        while done < count:  # what there is, once more behind itself
            more = min(done, count - done)
            self.copy(ctypes.c_uint64(address.value + done), address, more)
            done += more
        self.device.call("cuCtxSynchronize")


class _DeviceTimer(Timer):
    def __init__(self, clock: Clock, call: Callable[[], object], before: Callable[[], object] | None) -> None:
        super().__init__(call)
        self._clock, self._call, self._before = clock, call, before

    def timeit(self, number: int = 1) -> float:
        """The seconds that so many calls take on the device, together."""
        return sum(self._clock.seconds(self._call, self._before) for _ in range(number))


_VARIABLE = re.compile(rb"^\s*(?:\.\w+\s+)*\.global\s+\.", re.MULTILINE)  # that a launch may leave changed


def time_job(job: Job, rounds: int) -> tuple[list[float], list[bytes]]:
    """Seconds of a launch, once a round, each from the same bytes in every buffer; and the buffers after a launch.

    Variables of the module, too, are before each launch as they are declared: the module is loaded anew.
    """
    sizes = [len(data) for data in job.buffers]
    with Clock() as clock:
        device = clock.device
        code = device.loaded(job.code, job.kernel, job.shared)
        anew = _VARIABLE.search(job.code) is not None
        with device.memory(*sizes, *sizes) as pieces:
            used, kept = pieces[: len(sizes)], pieces[len(sizes) :]
            for address, data in zip(kept, job.buffers, strict=True):
                device.upload(address, data)

            def restore() -> None:
                nonlocal code
                if anew:
                    device.call("cuModuleUnload", code[0])
                    code = device.loaded(job.code, job.kernel, job.shared)
                for to, source, count in zip(used, kept, sizes, strict=True):
                    if count:
                        clock.copy(to, source, count)

            timer = clock.timer(lambda: start(device, code[1], job, used), restore)
            timer.timeit(1)
            after = [device.download(address, count) for address, count in zip(used, sizes, strict=True)]
            return interleave({job.kernel: timer}, rounds)[job.kernel], after
