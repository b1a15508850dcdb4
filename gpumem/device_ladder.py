"""The rungs of a ladder on a CUDA device: each stage, some with several options, on PyTorch's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from timeit import Timer
from typing import Any

import numpy as np

from . import _core
from .cases import Case
from .device_peers import Tensor, present
from .device_work import DeviceJob, environment, need_torch
from .errors import WrongResultError
from .lessons import prepared
from .peers import Peer
from .stage_table import Stage
from .work import MEMCPY, OWN_COPY, Entry

BYTES = 1 << 30  # of the array that a ladder works on, where no shape is given: several times any cache
FIELDS = 4
TILE = 1024  # items that the lesson `banks` turns at a time
# Stages that show what they are about with several options, in the order of their rungs.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "read/strided": [{"stride": stride} for stride in (32, 16, 8, 4, 2, 1)],
    "read/offset": [{"offset": 1}],
    "read/gather": [{"index": None}],
    "banks/strided": [{"stride": stride} for stride in (32, 16, 8, 4, 2, 1, 33)],
}


def rungs_of(rows: Sequence[Stage]) -> list[tuple[str, Stage, dict[str, Any]]]:
    """The rungs of stages, in the order of the stage table: each with its name and the options of the call."""
    return [
        (" ".join([row.name, *(str(value) for name, value in options.items() if name != "index")]), row, options)
        for row in rows
        for options in OPTIONS.get(str(row), [{}])
    ]


def indices(count: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Where the stage `gather` reads: anywhere, and the same in every run."""
    return np.random.default_rng(0).integers(0, count, count, dtype=np.int32)


def tiles(torch: Any, x: Tensor, stride: int) -> Tensor:
    """The order of the lesson `banks`, along the first axis."""
    position = torch.arange(len(x), device="cuda")
    inside = position % TILE
    size = (len(x) - position + inside).clamp(max=TILE)
    return x[position - inside + (inside % 32 * stride + inside // 32) % size]


def right_answer(torch: Any, stage: Stage, x: Tensor, options: dict[str, Any]) -> Tensor:
    """What a stage must make of x, by PyTorch."""
    if stage.lesson == "read" and options:
        ((name, value),) = options.items()
        return {"stride": lambda: x[::value], "offset": lambda: x[value:], "index": lambda: x[value.long()]}[name]()
    if stage.lesson == "transpose" or (stage.lesson == "layout" and not stage.name.endswith("_field")):
        return x.permute(*range(x.ndim)[::-1])
    if stage.lesson == "layout":
        return x[:, 0] if stage.name == "aos_field" else x[0]
    if stage.lesson == "reduce":
        return x.double().sum() if x.is_floating_point() else x.sum(dtype=torch.int64)
    if stage.lesson == "banks":
        if stage.name.startswith("access"):
            each = max(int(stage.name.removeprefix("access")) // x.element_size(), 1)
            cut = x.numel() // each * each
            moved = tiles(torch, x.reshape(-1)[:cut].reshape(-1, each), 1).reshape(-1)
            return torch.cat([moved, x.reshape(-1)[cut:]]).reshape(x.shape)
        stride = 0 if stage.name == "broadcast" else options.get("stride", 32)
        return tiles(torch, x.reshape(-1), stride).reshape(x.shape)
    return x


class Lesson(DeviceJob):
    """A lesson's array on the device, the copy of as many bytes, and a rung for each stage and its options."""

    def __init__(self, lesson: str, shape: tuple[int, ...] | None, dtype: str, peers: Sequence[str] | None) -> None:
        torch = need_torch()
        self.shape = shape or default_shape(lesson, np.dtype(dtype).itemsize)
        super().__init__(torch, Case("ladder", lesson, lesson, self.shape, dtype))
        self.lesson = lesson
        self.x = self.random(self.shape, dtype)
        count = self.x.numel() * self.x.element_size()
        self.bytes = count if lesson == "reduce" else 2 * count
        self._memory = torch.empty(max(count, 64), dtype=torch.uint8, device="cuda")
        self._copied = torch.empty(self.bytes // 2, dtype=torch.uint8, device="cuda").random_(0, 256)
        moves = lesson in ("copy", "transpose")
        self.peers = [peer for peer in present(peers) if moves] if peers is not None else []

    def environment(self) -> dict[str, Any]:
        return environment()

    def references(self) -> dict[str, Timer]:
        to, source = self._memory[: self.bytes // 2], self._copied
        return {
            MEMCPY: self.timer(lambda: to.copy_(source)),
            OWN_COPY: self.timer(lambda: _core.copy(source, out=to)),
        }

    def entries(self, rows: Sequence[Stage]) -> list[Entry]:
        """The rungs, in the order of the stage table."""
        return [self.entry(*rung) for rung in rungs_of(rows)]

    def entry(self, name: str, stage: Stage, options: dict[str, Any]) -> Entry:
        """A stage with its options as a rung."""
        torch = self.torch
        x = self.x
        if stage.lesson == "layout" and stage.name.startswith("soa"):
            x = x.reshape(self.shape[::-1])
        if "index" in options:
            options = {"index": torch.from_numpy(indices(x.numel())).cuda()}
        wanted = right_answer(torch, stage, x, options)
        kind = x.dtype if stage.lesson == "reduce" and x.is_floating_point() else wanted.dtype
        size = wanted.numel() * torch.empty(0, dtype=kind, device="cuda").element_size()
        out = self._memory[:size].view(kind).reshape(wanted.shape)
        moved = self.bytes if stage.lesson == "reduce" else 2 * size + (4 * x.numel() if "index" in options else 0)
        # The device is idle while the host finds out what to do: that is not what a ladder is about.
        call = prepared(stage.lesson, stage.name, x, out=out, **options)
        timer = self.timer(call)

        def verify() -> None:
            self.soil()
            timer.timeit(1)
            compare(torch, str(stage), out, right_answer(torch, stage, x, options))

        return Entry(name, stage, timer, moved, verify, call)

    def gpumem(self, stage: str | None = None) -> Timer:
        raise NotImplementedError("a lesson has entries")

    def peer(self, peer: Peer) -> Timer | None:
        wanted = self.x.permute(*range(self.x.ndim)[::-1]) if self.lesson == "transpose" else self.x
        out = self._memory.view(self.x.dtype).reshape(wanted.shape)
        call: Callable[[], object] | None
        if self.lesson == "transpose":
            call = peer.permute(self.x, tuple(range(self.x.ndim))[::-1], out)
        else:
            call = peer.copy(self.x, out)
        return self.timer(call) if call else None

    def soil(self) -> None:
        self._memory.fill_(0xA5)

    def check(self, who: str) -> None:
        wanted = self.x.permute(*range(self.x.ndim)[::-1]) if self.lesson == "transpose" else self.x
        compare(self.torch, who, self._memory.view(self.x.dtype).reshape(wanted.shape), wanted)


def compare(torch: Any, who: str, out: Tensor, wanted: Tensor) -> None:
    """Raises WrongResultError unless all bytes are the same; a sum of floats may be rounded."""
    if out.ndim == 0 and out.is_floating_point():  # a sum of floats: all are positive
        right = abs(float(out) - float(wanted)) <= 1e-5 * abs(float(wanted))
    else:
        a, b = (array.contiguous().reshape(-1).view(torch.uint8) for array in (out, wanted))
        right = torch.equal(a, b)
    if not right:
        raise WrongResultError(f"{who} is wrong")


def default_shape(lesson: str, itemsize: int) -> tuple[int, ...]:
    """A vector, a square matrix or records of four fields that take 1 GiB."""
    items = BYTES // itemsize
    if lesson in ("walk2d", "transpose"):
        side = 1 << (items.bit_length() - 1) // 2
        return (side, items // side)
    return (items // FIELDS, FIELDS) if lesson == "layout" else (items,)
