"""What the Python face raises: errors of the caller, and wrong results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .trace import Trace

FOUND = 3  # the exit status of commands where --fail-on names what was found


class UsageError(ValueError):
    """An argument that cannot be meant. One line that says what was given and what there is."""


class RoomError(UsageError):
    """Arrays that do not fit into the memory that is free."""


class WrongResultError(RuntimeError):
    """A kernel's output differs from the reference: a defect in gpumem, or in the machine's memory."""


class LimitError(RuntimeError):
    """A run of the lens that reached a limit. `trace` holds what was counted until then."""

    def __init__(self, message: str, trace: Trace) -> None:
        super().__init__(message)
        self.trace = trace


def unknown(kind: str, given: object, known: Iterable[str]) -> UsageError:
    """The error for a name that is not in a list of names."""
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(str(given), names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return UsageError(f"no {kind} {given!r}: there are {', '.join(names)}{hint}")


def end_command(error: Exception) -> None:
    """Ends the process with one line where it is the command `gpumem`, whose reader has no use for a traceback.

    For errors of the import itself, such as GPUMEM_ISA naming nothing, which come before cli.py can catch any.
    """
    program = sys.orig_argv[-len(sys.argv) :][:1]  # what is to run, also while `python -m` still looks for it
    if program and os.path.basename(program[0]) in ("gpumem", "-mgpumem"):  # noqa: PTH119 - pathlib costs a millisecond
        sys.stderr.write(f"gpumem: {error}\n")
        sys.exit(2)
