"""A lesson under Nsight Compute: each stage runs once in a child process, inside a range that bears its number."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from . import ncu
from .ncu import Counters, Launch

RANGE = "gpumem-rung-"
ONLY_RANGES = ["--profile-from-start", "off"]


def command(lesson: str, shape: Sequence[int] | None, dtype: str) -> list[str]:
    """The child: the same interpreter, which must find the same gpumem wherever it was imported from."""
    here = str(Path(__file__).resolve().parent.parent)
    start = f"import sys; sys.path.insert(0, {here!r}); from gpumem.device_counters import main; main(sys.argv[1:])"
    return [sys.executable, "-c", start, lesson, dtype, *map(str, shape or ())]


def count(lesson: str, shape: Sequence[int] | None, dtype: str) -> dict[str, Counters]:
    """Runs every stage of a lesson once under Nsight Compute: what the hardware counted, by the rungs' names.

    Raises UsageError where there is no ncu, or where it may not read the counters.
    """
    from .device_ladder import rungs_of
    from .stage_table import stages

    names = [name for name, _, _ in rungs_of(stages(lesson, "cuda"))]
    return by_rung(ncu.collect(command(lesson, shape, dtype), options=ONLY_RANGES), names)


def by_rung(launches: Sequence[Launch], names: Sequence[str]) -> dict[str, Counters]:
    """Adds up the launches of each range; a stage that could not take the array has none."""
    found: dict[str, list[Launch]] = {}
    for launch in launches:
        if match := re.search(RANGE + r"(\d+)", launch.label):
            found.setdefault(names[int(match[1])], []).append(launch)
    return {name: Counters.of(group) for name, group in found.items()}


def main(arguments: Sequence[str]) -> None:
    """Each stage once, profiled, after a call that is not: the first one loads the module and takes memory."""
    lesson, dtype, *lengths = arguments
    from .device_ladder import Lesson
    from .errors import UsageError
    from .stage_table import stages

    try:
        job = Lesson(lesson, tuple(map(int, lengths)) or None, dtype, None)
    except (UsageError, MemoryError) as error:
        sys.exit(f"error: {error}")
    torch = job.torch
    for i, entry in enumerate(job.entries(stages(lesson, "cuda"))):
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
