"""Work on a CUDA device: PyTorch holds the arrays and checks them, CUDA's events time what is done."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from timeit import Timer
from typing import Any

import numpy as np

from . import _core, machine
from .cases import Case
from .errors import UsageError, WrongResultError
from .work import MEMCPY, OWN_COPY, touched

SECTOR = 32  # bytes of device memory that are read or written together
FLUSH = 256 << 20  # bytes written before each call: several times the second-level cache
ROOM = 64  # bytes before an array that starts at an odd address

Tensor = Any
Call = Callable[[], object]


def need_torch() -> Any:
    """PyTorch with a device. Raises UsageError where there is none, naming what is missing."""
    cuda = _core._cuda()
    if not cuda["devices"]:
        raise UsageError(f"device 'cuda': {cuda['reason']}")
    if importlib.util.find_spec("torch") is None:
        raise UsageError("device 'cuda': PyTorch holds and checks the benchmark's arrays: pip install torch")
    import torch

    if not torch.cuda.is_available():
        raise UsageError("device 'cuda': this PyTorch sees no CUDA device")
    return torch


class EventTimer(Timer):
    """Times calls by CUDA events, each from a cold second-level cache."""

    def __init__(self, torch: Any, call: Call, flush: Tensor) -> None:
        super().__init__(call)
        self._torch, self._call, self._flush = torch, call, flush

    def timeit(self, number: int = 1) -> float:
        """The seconds that so many calls take on the device, together."""
        total = 0.0
        for _ in range(number):
            first, last = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._flush.zero_()
            first.record()
            self._call()
            last.record()
            last.synchronize()
            total += first.elapsed_time(last) / 1e3
        return total


class DeviceMove:
    """Out = a view of random data, dense; all on the device, checked whole and byte for byte there."""

    def __init__(self, torch: Any, case: Case) -> None:
        dtype = getattr(torch, case.dtype)
        size, count = np.dtype(case.dtype).itemsize, math.prod(case.shape)
        memory = torch.empty(ROOM + count * size, dtype=torch.uint8, device="cuda").random_(0, 256)
        if dtype.is_floating_point or dtype.is_complex:
            # Numbers, as cuBLAS multiplies by 1 what it moves, and NaN would become another NaN.
            memory[ROOM:].view(torch.float64 if dtype.is_complex else dtype).uniform_()
        start = case.offset or ROOM
        self.base = memory[start : start + count * size].view(dtype).reshape(case.shape)
        self.axes = case.axes or tuple(range(len(case.shape)))
        self._step = case.step
        self.torch, self.case = torch, case
        self.x = self._view()
        self.out = torch.empty(self.x.shape, dtype=dtype, device="cuda")
        strides = tuple(step * size for step in self._numpy_strides())
        outline = np.lib.stride_tricks.as_strided(np.empty(1, f"V{size}"), tuple(self.x.shape), strides)
        self.bytes = touched(outline, SECTOR) + self.out.numel() * size
        self._flush = torch.empty(FLUSH, dtype=torch.uint8, device="cuda")
        half = self.bytes // 2
        self._from, self._to = (torch.empty(half, dtype=torch.uint8, device="cuda").random_(0, 256) for _ in range(2))

    def _numpy_strides(self) -> tuple[int, ...]:
        """Strides of what gpumem reads, in items; PyTorch has no negative ones."""
        steps = self._step or (1,) * len(self.axes)
        strides = self.base.stride()
        return tuple(strides[axis] * step for axis, step in zip(self.axes, steps, strict=True))

    def _view(self) -> Tensor:
        """The view as PyTorch makes it; a copy where an axis is reversed."""
        x = self.base.permute(self.axes)
        for axis, step in enumerate(self._step):
            if step < 0:
                x = x.flip(axis)
            x = x[(slice(None),) * axis + (slice(None, None, abs(step)),)]
        return x

    def timer(self, call: Call) -> Timer:
        """The call, timed on the device."""
        return EventTimer(self.torch, call, self._flush)

    def references(self) -> dict[str, Call]:
        """The copies of as many bytes: CUDA's own and ours."""
        return {
            MEMCPY: lambda: self._to.copy_(self._from),
            OWN_COPY: lambda: _core.copy(self._from, out=self._to),
        }

    def gpumem(self) -> Call:
        """Our call."""
        if self.case.op == "transpose":
            return lambda: _core.transpose(self.base, self.axes, out=self.out)
        if min(self._step) > 0:
            return lambda: _core.copy(self.x, out=self.out)
        source: Any = Reversed(self.base, self._step, tuple(self.x.shape))
        return lambda: _core.copy(source, out=self.out)

    def verify(self, who: str, call: Call) -> None:
        """Runs a call into a soiled output and checks the whole of it."""
        self.out.view(self.torch.uint8).fill_(0xA5)
        call()
        wanted = self.x.contiguous().view(self.torch.uint8)
        if not self.torch.equal(self.out.view(self.torch.uint8), wanted):
            raise WrongResultError(f"{who} is wrong: {self.case.label}")


class Reversed:
    """A view with negative strides, which PyTorch has none of: by the CUDA array interface."""

    def __init__(self, base: Tensor, step: tuple[int, ...], shape: tuple[int, ...]) -> None:
        interface = base.__cuda_array_interface__
        size = base.element_size()
        lengths = zip(base.stride(), base.shape, step, strict=True)
        start = sum((length - 1) * stride * size for stride, length, by in lengths if by < 0)
        strides = tuple(stride * by * size for stride, by in zip(base.stride(), step, strict=True))
        data = (interface["data"][0] + start, True)
        self._base = base
        self.__cuda_array_interface__ = {**interface, "shape": shape, "strides": strides, "data": data}


class DevicePeer:
    """One library on the device."""

    def __init__(self, name: str, version: str, make: Callable[[DeviceMove], Call | None]) -> None:
        self.name, self.version, self.make = name, version, make


def torch_peer(torch: Any) -> DevicePeer:
    """PyTorch's copy_ of a permuted view; it cannot reverse without a copy."""

    def make(job: DeviceMove) -> Call | None:
        return None if any(step < 0 for step in job.case.step) else lambda: job.out.copy_(job.x)

    return DevicePeer("torch", str(torch.__version__), make)


def cupy_peers() -> list[DevicePeer]:
    """CuPy's copy of a permuted view, and cuBLAS's geam for matrices, which it reaches by CuPy."""
    if importlib.util.find_spec("cupy") is None:
        return []
    import cupy
    from cupy import cublas

    def views(job: DeviceMove) -> tuple[Any, Any]:
        return cupy.from_dlpack(job.base), cupy.from_dlpack(job.out)

    def copy(job: DeviceMove) -> Call | None:
        base, out = views(job)
        view = base.transpose(job.axes)[tuple(slice(None, None, step) for step in job.case.step)]
        return lambda: cupy.copyto(out, view)

    def geam(job: DeviceMove) -> Call | None:
        case = job.case
        if case.op != "transpose" or case.axes != (1, 0) or case.dtype not in ("float32", "float64", "complex128"):
            return None
        base, out = views(job)
        # Column-major: base.T is what lies in memory, and out.T what comes to lie there.
        return lambda: cublas.geam("T", "N", 1.0, base.T, 0.0, out.T, out.T)

    library = f"CuPy {cupy.__version__}"
    return [DevicePeer("cupy", cupy.__version__, copy), DevicePeer("cublas", f"geam by {library}", geam)]


PEERS = ("torch", "cupy", "cublas")


def present(torch: Any, names: list[str] | None) -> list[DevicePeer]:
    """The peers asked for, or every one that is here (None)."""
    found = [torch_peer(torch), *cupy_peers()]
    if names is None:
        return found
    here = {peer.name: peer for peer in found}
    for name in names:
        if name not in PEERS:
            raise UsageError(f"no peer {name!r} on a CUDA device: there are {', '.join(PEERS)}")
        if name not in here:
            raise UsageError(f"peer {name!r} is not here: pip install cupy-cuda13x")
    return [here[name] for name in names]


def environment() -> dict[str, Any]:
    """What stands beside a measurement on a device."""
    device = _core._cuda()["devices"][0]
    clocks = machine.output("nvidia-smi", "-i", "0", f"--query-gpu={CLOCKS}", "--format=csv,noheader,nounits")
    values = [value.strip() for value in clocks.split(",")] if clocks else []
    return {
        **machine.environment(),
        "device": device["name"],
        "cuda": "{}.{}".format(*device["driver"]),
        "clocks": dict(zip(CLOCKS.split(","), values, strict=False)),
    }


CLOCKS = "driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit"
