"""A long measurement, written down part by part, so that one that was stopped goes on where it was.

While it runs, FILE.part holds a line of JSON for what is measured and where, then a line a part. A line that was cut
off is no line. FILE itself appears whole, in one step, when everything is done; then FILE.part goes.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from .errors import UsageError

SCHEMA = "gpumem.part/1"
SAME = (
    "gpumem",
    "commit",
    "cpu",
    "device",
    "cuda",
    "threads",
)  # of the environment: what must not change between parts


class Journal:
    """The parts that are done; a context manager. Without a file it keeps nothing."""

    def __init__(self, path: str | Path | None, setting: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
        self.done: dict[int, dict[str, Any]] = {}
        self._path = None if path is None else Path(path)
        self._head: dict[str, Any] = {"schema": SCHEMA, "setting": dict(setting), "environment": dict(environment)}
        self._file: IO[str] | None = None

    @property
    def part(self) -> Path:
        """Where the parts are while it runs."""
        assert self._path is not None
        return self._path.with_name(self._path.name + ".part")

    def __enter__(self) -> Journal:
        if self._path is None:
            return self
        if self._path.is_dir() or not self._path.absolute().parent.is_dir():
            raise UsageError(f"cannot write {self._path}")
        try:
            self._file = self.part.open("a+", encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise UsageError(f"cannot write {self.part}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UsageError(f"{self.part} is being written by another process") from None
        try:
            self._go_on()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._file:
            self._file.close()

    def _go_on(self) -> None:
        """Takes what an earlier run has left, cuts off what it did not finish, or begins the file."""
        assert self._file is not None
        self._file.seek(0)
        text = self._file.read()
        lines = text[: text.rfind("\n") + 1].splitlines()
        if not lines:
            self._file.truncate(0)
            self._line(self._head)
            return
        try:
            head, *parts = map(json.loads, lines)
            same = head["schema"] == SCHEMA
            theirs, place = dict(head["setting"]), dict(head["environment"])
            self.done = {part["part"]: part["outcome"] for part in parts}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UsageError(f"{self.part} is no half-done sweep: move it away") from None
        ours, here = self._head["setting"], self._head["environment"]
        where = [f"{name} {place.get(name)}" for name in SAME if here.get(name) != place.get(name)]
        other = [f"{name} {theirs.get(name)}" for name in ours if ours[name] != theirs.get(name)]
        if not same or other or where:
            what = ", ".join([*other, *where]) or "another version"
            raise UsageError(f"{self.part} is of another sweep ({what}): move it away, or give another output")
        self._file.truncate(len(text[: text.rfind("\n") + 1].encode(errors="surrogateescape")))

    def _line(self, data: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(data) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def write(self, number: int, outcome: dict[str, Any]) -> None:
        """A part is done: it is on the disk when this returns."""
        if self._file:
            self._line({"part": number, "outcome": outcome})

    def finish(self, text: str) -> None:
        """Everything is done: the file appears, whole."""
        if self._path is None:
            return
        whole = self._path.with_name(self._path.name + ".new")
        whole.write_text(text)
        whole.replace(self._path)
        self.part.unlink()
