"""The terminal: results to stdout, progress to stderr, rich where it is installed, plain text where it is not."""

from __future__ import annotations

import importlib.util
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from .table import Shown

if TYPE_CHECKING:
    import rich.progress

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BEFORE_GUESSING = 1.0


def has_rich() -> bool:
    """Whether rich can be imported."""
    return importlib.util.find_spec("rich") is not None


def show(result: Shown) -> None:
    """Prints a result to stdout: by rich on a terminal, as plain text into pipes and files."""
    if sys.stdout.isatty() and has_rich():
        from rich.console import Console

        Console().print(result)
    else:
        print(result)


class Progress:
    """A line on stderr that says what runs now and how far it is; a context manager.

    `enabled=None` means: only where stderr is a terminal. Into a log it writes a line every few seconds.
    """

    def __init__(self, title: str, total: int, enabled: bool | None = None) -> None:
        self._title, self._total, self._done = title, max(total, 1), 0
        self._began, self._before = time.monotonic(), 0
        self._tty = sys.stderr.isatty()
        self._enabled = self._tty if enabled is None else enabled
        self._last_line = 0.0
        self._bar: rich.progress.Progress | None = None

    def __enter__(self) -> Progress:
        if self._enabled and self._tty and has_rich():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.fields[title]}", markup=False),
                BarColumn(bar_width=30),
                TextColumn("{task.percentage:>3.0f}%"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}", markup=False),
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=self._total, title=self._title, left="")
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()
        elif self._enabled and self._tty:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def step(self, what: str, done: int = 1) -> None:
        """Says what runs now; `done` parts of the total have ended since the last call."""
        self._done = min(self._done + done, self._total)
        if not self._enabled:
            return
        if self._bar:
            self._bar.update(self._task, completed=self._done, description=what, left=self._left())
            return
        line = f"{self._title}: {100 * self._done // self._total:3d}%  {' '.join([self._left(), what]).strip()}"
        now = time.monotonic()
        if self._tty:
            sys.stderr.write(f"\r\033[K{line[:118]}")
        elif now - self._last_line >= SECONDS_BETWEEN_LINES:
            sys.stderr.write(f"{line}\n")
            self._last_line = now
        sys.stderr.flush()

    def _left(self) -> str:
        """About how long the rest will take, once some of it is done."""
        spent = time.monotonic() - self._began
        done = self._done - self._before
        if done <= 0 or spent < SECONDS_BEFORE_GUESSING:
            return ""
        return f"{duration(spent / done * (self._total - self._done))} left"

    def already(self, done: int) -> None:
        """So many parts were done before: they say nothing of how long the rest will take."""
        self._before = done
        self.step("going on where it stopped" if done else "", done)


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(7.4), duration(95), duration(7300)
    ('7 s', '1:35', '2:01:40')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
