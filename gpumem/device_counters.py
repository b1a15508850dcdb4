"""A lesson under Nsight Compute: each stage runs once in a child process, inside a range that bears its number."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import ncu
from .ncu import Counters, Launch

RANGE = "gpumem-rung-"
ONLY_RANGES = ("--profile-from-start", "off")


def child(module: str, call: str) -> str:
    """Python that calls a function of the same gpumem as this one, wherever it was imported from."""
    here = str(Path(__file__).resolve().parent.parent)
    return f"import sys; sys.path.insert(0, {here!r}); from {module} import main; {call}"


def command(lesson: str, shape: Sequence[int] | None, dtype: Any, rung: str = "") -> list[str]:
    """The child: every stage of a lesson, or one rung of its ladder."""
    start = child("gpumem.device_counters", "main(sys.argv[1:])")
    return [sys.executable, "-c", start, lesson, rung, str(dtype), *map(str, shape or ())]


def count(lesson: str, shape: Sequence[int] | None, dtype: str) -> dict[str, Counters]:
    """Runs every stage of a lesson once under Nsight Compute: what the hardware counted, by the rungs' names.

    Raises UsageError where there is no ncu, or where it may not read the counters.
    """
    from .device_ladder import rungs_of
    from .stage_table import stages

    names = [name for name, _, _ in rungs_of(stages(lesson, "cuda"))]
    groups = by_rung(ncu.collect(command(lesson, shape, dtype), options=ONLY_RANGES), names)
    return {name: Counters.of(group) for name, group in groups.items()}


def by_rung(launches: Sequence[Launch], names: Sequence[str]) -> dict[str, list[Launch]]:
    """The launches of each range; a stage that could not take the array has none."""
    found: dict[str, list[Launch]] = {}
    for launch in launches:
        if match := re.search(RANGE + r"(\d+)", launch.label):
            found.setdefault(names[int(match[1])], []).append(launch)
    return found


def main(arguments: Sequence[str]) -> None:
    """Each stage once, profiled, after a call that is not: the first one loads the module and takes memory."""
    lesson, rung, dtype, *lengths = arguments
    from .device_ladder import Lesson
    from .errors import UsageError
    from .stage_table import stages

    try:
        job = Lesson(lesson, tuple(map(int, lengths)) or None, dtype, None)
    except (UsageError, MemoryError) as error:
        sys.exit(f"error: {error}")
    torch = job.torch
    entries = [entry for entry in job.entries(stages(lesson, "cuda")) if rung in ("", entry.name)]
    for i, entry in enumerate(entries):
        try:
            entry.once()
        except ValueError:  # what a stage by its nature cannot take: the ladder gives the reason
            continue
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_push(f"{RANGE}{i}")
        torch.cuda.profiler.start()
        entry.once()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        torch.cuda.nvtx.range_pop()
