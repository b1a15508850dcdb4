"""Work on a CUDA device: PyTorch holds the arrays and checks them, CUDA's events time what is done."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from timeit import Timer
from typing import Any

import numpy as np

from . import _core, machine
from .cases import Case
from .device_peers import Reversed, Tensor, present
from .errors import UsageError, WrongResultError
from .peers import Call, Peer
from .result import US
from .work import MEMCPY, OWN_COPY, READ, Job, touched

SECTOR = 32  # bytes of device memory that are read or written together
FLUSH = 256 << 20  # bytes written before each call: several times the second-level cache
ROOM = 512  # bytes before an array that starts at an odd address; what PyTorch itself aligns to


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


class DeviceJob(Job):
    """A case's arrays on the device; what is common to all operations."""

    calls = 1

    def __init__(self, torch: Any, case: Case) -> None:
        self.torch, self.case = torch, case
        torch.cuda.empty_cache()  # what the case before has let go
        self._flush = torch.empty(FLUSH, dtype=torch.uint8, device="cuda")

    def timer(self, call: Call) -> Timer:
        """The call, timed on the device."""
        return EventTimer(self.torch, call, self._flush)

    def random(self, shape: tuple[int, ...], dtype: str, offset: int = 0) -> Tensor:
        """A dense array of random data that starts `offset` bytes after an aligned address."""
        torch, kind = self.torch, getattr(self.torch, dtype)
        count = math.prod(shape) * kind.itemsize
        start = offset or ROOM
        memory = torch.empty(ROOM + count, dtype=torch.uint8, device="cuda").random_(0, 256)
        # Numbers, as cuBLAS and cuTENSOR multiply by 1 what they move, and NaN would become another NaN.
        real = torch.float64 if kind.is_complex else torch.float16 if dtype == "int16" else kind
        if real.is_floating_point:
            memory[ROOM:].view(real).uniform_()
        return memory[start : start + count].view(kind).reshape(shape)


class DeviceMove(DeviceJob):
    """Out = a view of random data, dense; all on the device, checked whole and byte for byte there."""

    def __init__(self, torch: Any, case: Case) -> None:
        super().__init__(torch, case)
        self.base = self.random(case.shape, case.dtype, case.offset)
        self.axes = case.axes or tuple(range(len(case.shape)))
        self.index = tuple(slice(None, None, step) for step in case.step or (1,) * len(case.shape))
        self.x = self._view()
        self.out = torch.empty(self.x.shape, dtype=self.base.dtype, device="cuda")
        size = self.base.element_size()
        strides = tuple(self.base.stride(axis) * size * self.index[axis].step for axis in self.axes)
        outline = np.lib.stride_tricks.as_strided(np.empty(1, f"V{size}"), tuple(self.x.shape), strides)
        self.bytes = touched(outline, SECTOR) + self.out.numel() * size
        half = self.bytes // 2
        self._from, self._to = (torch.empty(half, dtype=torch.uint8, device="cuda").random_(0, 256) for _ in range(2))

    def _view(self) -> Tensor:
        """The view as PyTorch makes it; a copy where an axis is reversed."""
        x = self.base.permute(self.axes)
        for axis, by in enumerate(self.case.step):
            if by < 0:
                x = x.flip(axis)
            x = x[(slice(None),) * axis + (slice(None, None, abs(by)),)]
        return x

    def references(self) -> dict[str, Timer]:
        """The copies of as many bytes: CUDA's own and ours."""
        return {
            MEMCPY: self.timer(lambda: self._to.copy_(self._from)),
            OWN_COPY: self.timer(lambda: _core.copy(self._from, out=self._to)),
        }

    def _source(self) -> Any:
        """The strided view, without a copy."""
        return Reversed(self.base, self.index) if any(axis.step < 0 for axis in self.index) else self.x

    def gpumem(self, stage: str | None = None) -> Timer:
        if self.case.op == "transpose":
            return self.timer(lambda: _core.transpose(self.base, self.axes, out=self.out, stage=stage))
        source = self._source()
        return self.timer(lambda: _core.copy(source, out=self.out, stage=stage))

    def peer(self, peer: Peer) -> Timer | None:
        if self.case.op == "transpose":
            call = peer.permute(self.base, self.axes, self.out)
        else:
            call = peer.copy(self._source(), self.out)
        return self.timer(call) if call else None

    def soil(self) -> None:
        self.out.view(self.torch.uint8).fill_(0xA5)

    def check(self, who: str) -> None:
        wanted = self.x.contiguous().view(self.torch.uint8)
        if not self.torch.equal(self.out.view(self.torch.uint8), wanted):
            raise WrongResultError(f"{who} is wrong")


class DeviceSwap(DeviceMove):
    """Transposes x in place: each call turns what the one before it left."""

    def gpumem(self, stage: str | None = None) -> Timer:
        return self.timer(lambda: _core.transpose(self.out, self.axes, out=self.out, stage=stage))

    def peer(self, peer: Peer) -> Timer | None:
        call = peer.swap(self.out, self.axes)
        return self.timer(call) if call else None

    def soil(self) -> None:
        self.out.copy_(self.base)


class DeviceSum(DeviceJob):
    """Out = the sum of random numbers, along an axis or of everything, checked against PyTorch's in a wider type.

    Bytes are those of x and of the results. The reference is gpumem's own sum of as many bytes of float32: no type and
    no axis should be slower to read.
    """

    against = "read"

    def __init__(self, torch: Any, case: Case) -> None:
        super().__init__(torch, case)
        kind = getattr(torch, case.dtype)
        integers = not kind.is_floating_point
        if integers:
            limits = torch.iinfo(kind)
            self.x = torch.randint(max(limits.min, -(1 << 30)), min(limits.max, 1 << 30), case.shape, device="cuda")
            self.x = self.x.to(kind)
        else:
            self.x = (
                torch.rand(case.shape, device="cuda").sub_(0.5 if kind.itemsize == 2 else 0.25).to(kind)
            )  # halves overflow
        self.axis = case.axis
        total = torch.uint64 if case.dtype == "uint8" else torch.int64 if integers else kind
        shape = () if self.axis is None else np.delete(case.shape, self.axis).tolist()
        self.out = torch.empty(shape, dtype=total, device="cuda")
        self.bytes = self.x.nbytes + (0 if self.axis is None else self.out.nbytes)
        # In parts: a copy of all items in float64 would not fit.
        wide = torch.int64 if integers else torch.float64
        if self.axis is None:
            parts = self.x.reshape(-1).split(1 << 26)
            self._wanted = sum(part.sum(dtype=wide) for part in parts)
        else:
            self._wanted = torch.sum(self.x, dim=self.axis, dtype=wide)
        self._floats = torch.rand(self.bytes // 4, device="cuda")

    def references(self) -> dict[str, Timer]:
        """The same bytes as float32, all of them added up."""
        return {READ: self.timer(lambda: _core.sum(self._floats))}

    def gpumem(self, stage: str | None = None) -> Timer:
        return self.timer(lambda: _core.sum(self.x, axis=self.axis, out=self.out, stage=stage))

    def peer(self, peer: Peer) -> Timer | None:
        call = peer.sum(self.x, self.axis, self.out)
        return self.timer(call) if call else None

    def must_check(self, name: str) -> bool:
        """What others make of float16 and of long float32 sums is theirs."""
        return name == US

    def soil(self) -> None:
        self.out.fill_(77)

    def check(self, who: str) -> None:
        torch, out = self.torch, self.out
        out = out.view(torch.int64) if out.dtype == torch.uint64 else out
        if out.dtype.is_floating_point:
            items = self.x.numel() // max(self.out.numel(), 1)
            error = 2 * torch.finfo(out.dtype).eps * self._wanted.abs() + items * 2.0**-24 * 0.5
            right = ((out.double() - self._wanted).abs() <= error).all()
        else:
            right = (out == self._wanted).all()
        if not bool(right):
            raise WrongResultError(f"{who} is wrong")


class Cuda:
    """The first CUDA device as the benchmark's place."""

    def __init__(self, peers: Sequence[str] | None) -> None:
        self._torch = need_torch()
        self.peers = present(peers)
        self.full: type[Exception] = self._torch.OutOfMemoryError
        self.environment = environment

    def job(self, case: Case) -> Job:
        """The arrays and calls of a case."""
        return (DeviceSwap if case.in_place else JOBS[case.op])(self._torch, case)


JOBS: dict[str, type[DeviceJob]] = {"transpose": DeviceMove, "copy": DeviceMove, "sum": DeviceSum}


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
