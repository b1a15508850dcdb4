"""`gpumem exercises` and `gpumem check`: ten exercises, and whether a solution is one."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from .errors import UsageError

EXAMPLES = "gpumem exercises\ngpumem exercises 5\ngpumem exercises 5 -o my_kernel.cu"
CHECKS = "gpumem check 5 my_kernel.cu\ngpumem check 5 my_kernel.ptx --json\ngpumem check 2 my_answers.txt"
NOT_YET = 1  # the exit status of a solution that is none


def register(command: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Adds both commands."""
    shown = command("exercises", "ten exercises, one for each skill: the list, a text, a starter file", EXAMPLES)
    shown.add_argument("number", nargs="?", type=int, metavar="N", help="print this one's text")
    shown.add_argument("--output", "-o", type=Path, metavar="FILE", help="write its starter file")
    checks = command("check", "execute a solution of an exercise on the CPU, and say what is wrong", CHECKS)
    checks.add_argument("number", type=int, metavar="N", help="the exercise")
    checks.add_argument("file", type=Path, metavar="FILE", help="CUDA C (.cu) or PTX; a text with answers")
    checks.add_argument("--arch", default="sm_90", metavar="SM", help="the chip to compile for (sm_90)")
    checks.add_argument("--seed", type=int, metavar="S", help="of the random data (another one each time)")


def run_exercises(options: argparse.Namespace) -> None:
    """The list, or one exercise."""
    from .console import show
    from .exercises import EXERCISES, exercise
    from .table import Column, Table, Tables

    if options.number is None:
        if options.output:
            raise UsageError("-o writes the starter file of one exercise: give its number")
        if options.json:
            rows = [
                {"number": e.number, "skill": e.skill, "asks": "a kernel" if e.cases else "answers"} for e in EXERCISES
            ]
            print(json.dumps(rows, indent=1))
            return
        columns = (Column(""), Column("skill", "left"), Column("asks for", "left"))
        lines = [(str(e.number), e.skill, f"the kernel {e.kernel}" if e.cases else "answers") for e in EXERCISES]
        notes = [
            "'gpumem exercises N -o FILE' writes a starter file, 'gpumem check N FILE' checks it; no GPU is needed."
        ]
        show(Tables([Table("Exercises", columns, lines, notes)]))
        return
    asked = exercise(options.number)
    if options.output:
        if options.output.exists():
            raise UsageError(f"{options.output} is there already: give another name")
        options.output.write_text(asked.starter)
    if options.json:
        made = {"number": asked.number, "skill": asked.skill, "text": asked.text, "starter": asked.starter}
        if asked.profile:
            made["profile"] = asked.trace().to_dict()
        print(json.dumps(made, indent=1))
        return
    print(f"Exercise {asked.number}: {asked.skill}\n\n{asked.text}", end="", flush=True)
    if asked.profile:
        print()
        show(asked.trace())
    if not options.output:
        print(f"\nThe starter (gpumem exercises {asked.number} -o FILE writes it):\n\n{asked.starter}", end="")


def run_check(options: argparse.Namespace) -> int:
    """Whether a solution is one: the exit status says it, too."""
    from .console import show
    from .exercise_check import check, read

    found = check(options.number, read(options.file), str(options.file), arch=options.arch, seed=options.seed)
    if options.json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        show(found)
    return 0 if found.passed else NOT_YET
