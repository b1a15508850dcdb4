"""The stage table of csrc/base/stages.def as Python objects."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache

from . import _core
from .errors import unknown
from .table import Column, Shown, Table

DEVICES = ("cpu", "cuda", "sim")


@dataclass(frozen=True)
class Stage:
    """One step of a lesson: a kernel of its own that can be called, verified and timed.

    `bytes` is how often each item of the input must cross the memory bus: 2 to read and write it, 1 to read it.
    """

    lesson: str
    name: str
    device: str
    kernel: str
    idea: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.lesson}/{self.name}"

    def to_dict(self) -> dict[str, str | int]:
        """The fields by name."""
        return asdict(self)


class Stages(list[Stage], Shown):
    """A list of stages that prints as a table."""

    def tables(self) -> list[Table]:
        """One row a stage, in the order of the stage table."""
        rows = [(stage.lesson, stage.name, stage.device, stage.idea) for stage in self]
        columns = (Column("lesson", "left"), Column("stage", "left"), Column("device", "left"))
        return [Table("", (*columns, Column("idea", "left", prose=True)), rows)]

    __str__ = Shown.__str__
    __repr__ = Shown.__str__


@cache
def _table() -> tuple[Stage, ...]:
    """All rows; the build does not change any more."""
    return tuple(Stage(*row) for row in _core._stages())


def stages(lesson: str | None = None, device: str | None = None) -> Stages:
    """The stages there are, slow to fast within a lesson: of every lesson or of one, for every device or for one.

    Raises UsageError (a ValueError) for a lesson or device that does not exist, naming those that do.

    >>> print(gpumem.stages("transpose")[0])
    transpose/naive
    >>> [stage.name for stage in gpumem.stages("transpose", "cpu")][-1]
    'tuned'
    """
    if lesson is not None and lesson not in lessons():
        raise unknown("lesson", lesson, lessons())
    if device is not None and device not in DEVICES:
        raise unknown("device", device, DEVICES)
    return Stages(s for s in _table() if lesson in (None, s.lesson) and device in (None, s.device))


def lessons() -> list[str]:
    """The lessons of the stage table, each once, in its order."""
    return list(dict.fromkeys(row.lesson for row in _table()))
