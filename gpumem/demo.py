"""The demonstration: a photograph into colour planes and back, checked against NumPy, and how many times faster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from timeit import Timer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, machine
from .console import Progress
from .errors import UsageError
from .table import Column, Shown, Table
from .timing import Spread, interleave, ratio
from .work import same_bytes

BYTES = 400_000_000
ROUNDS = 5
TO_PLANES, TO_PIXELS = (2, 0, 1), (1, 2, 0)


@dataclass(frozen=True, repr=False)
class Demo(Shown):
    """Both directions, gpumem, NumPy and a copy of the same bytes: raw samples, seconds a call."""

    shape: tuple[int, ...]
    tiles: tuple[int, int]
    seconds: dict[str, list[float]]
    environment: dict[str, Any]

    def faster(self, direction: str) -> Spread:
        """How many times faster gpumem is, compared within each round."""
        return ratio(self.seconds[f"NumPy {direction}"], self.seconds[f"gpumem {direction}"])

    def of_copy(self, direction: str) -> Spread:
        """How fast gpumem is as a fraction of a copy of the same bytes."""
        return ratio(self.seconds["copy"], self.seconds[f"gpumem {direction}"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with raw samples."""
        directions = ("to planes", "to pixels")
        return {
            "schema": "gpumem.demo/1",
            "shape": list(self.shape),
            "of_copy": {direction: self.of_copy(direction).to_dict() for direction in directions},
            "times_faster": {direction: self.faster(direction).to_dict() for direction in directions},
            "seconds": self.seconds,
            "environment": self.environment,
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def tables(self) -> list[Table]:
        """One row a direction."""
        height, width, _ = self.shape
        size = height * width * 3
        title = (
            f"A photograph ({self.tiles[0]} x {self.tiles[1]} tiles of it: {height} x {width} pixels, "
            f"{size / 1e6:.0f} MB) on {self.environment['cpu']}, {self.environment['threads']} threads"
        )
        what = {"to planes": f"permute_dims(photo, {TO_PLANES})", "to pixels": f"permute_dims(planes, {TO_PIXELS})"}
        rows = []
        for direction, call in what.items():
            ours, theirs = (Spread.of(self.seconds[f"{who} {direction}"]) for who in ("gpumem", "NumPy"))
            rows.append(
                (
                    direction,
                    call,
                    f"{ours.median * 1e3:.1f} ms",
                    f"{2 * size / ours.median / 1e9:.1f}",
                    f"{self.of_copy(direction).median:.2f}",
                    f"{theirs.median * 1e3:.1f} ms",
                    f"{2 * size / theirs.median / 1e9:.1f}",
                    f"{self.faster(direction).median:.1f}×",
                )
            )
        columns = (
            Column("", "left"),
            Column("call", "left"),
            Column("gpumem"),
            Column("GB/s"),
            Column("of copy"),
            Column("NumPy"),
            Column("GB/s"),
            Column("faster"),
        )
        note = (
            "Every byte equals NumPy's (copyto of the transposed view), and the way back gives the photograph. Medians "
            f"of {ROUNDS} rounds in which all take turns, each into an output written before, so that nobody waits for "
            "the system to hand out memory. GB/s count bytes read and written; the copy is one of as many bytes on the "
            "same threads with stores that pass the caches by."
        )
        return [Table(title, columns, rows, [note], frozenset([0, 1]))]


def photograph() -> NDArray[np.uint8]:
    """The portrait of Grace Hopper that matplotlib carries: (height, width, 3) uint8. Needs matplotlib and pillow."""
    try:
        from matplotlib.cbook import get_sample_data
        from PIL import Image
    except ImportError:
        raise UsageError("the demo needs matplotlib and pillow: pip install 'gpumem[demo]'") from None
    path = str(get_sample_data("grace_hopper.jpg", asfileobj=False))
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def demo(*, size: int = BYTES, progress: bool | None = None) -> Demo:
    """Tiles a photograph to `size` bytes or a little more, permutes it to planes and back, checks and times it.

    Takes four times `size` of memory, and less where memory is short. Raises WrongResultError where a byte is wrong.
    """
    small = photograph()
    size = min(size, machine.memory_free() // 6)
    side = max(1, round((size / small.size) ** 0.5))
    while side * side * small.size < size:
        side += 1
    with Progress("demo", 3 + 5 * (ROUNDS + 1), progress) as line:
        line.step(f"tiling a photograph of {small.shape[1]} x {small.shape[0]} pixels to {size / 1e6:.0f} MB", 0)
        photo = np.tile(small, (side, side, 1))
        planes, wanted = (np.empty((3, *photo.shape[:2]), np.uint8) for _ in range(2))
        back = np.empty_like(photo)
        line.step("NumPy's planes, as what is right")
        np.copyto(wanted, photo.transpose(TO_PLANES))
        line.step("checking every byte of the planes")
        _core.permute_dims(photo, TO_PLANES, out=planes)
        same_bytes("photograph to planes", planes, wanted)
        line.step("checking every byte of the way back")
        _core.permute_dims(planes, TO_PIXELS, out=back)
        same_bytes("planes to photograph", back, photo)
        timers = {
            "copy": Timer(lambda: _core._reference_copy(back, photo, "streaming")),
            "gpumem to planes": Timer(lambda: _core.permute_dims(photo, TO_PLANES, out=planes)),
            "NumPy to planes": Timer(lambda: np.copyto(wanted, photo.transpose(TO_PLANES))),
            "gpumem to pixels": Timer(lambda: _core.permute_dims(planes, TO_PIXELS, out=back)),
            "NumPy to pixels": Timer(lambda: np.copyto(back, planes.transpose(TO_PIXELS))),
        }
        seconds = interleave(timers, ROUNDS, seconds_each=10.0, step=line.step)
    return Demo(photo.shape, (side, side), seconds, machine.environment())
