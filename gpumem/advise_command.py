"""`gpumem advise`: what to change in a kernel, as text, JSON or SARIF, and a status that CI can act on."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import FOUND, WrongResultError, unknown
from .recorded import made_from, read_json

if TYPE_CHECKING:
    from .advice import Advice
    from .trace import Trace

EXAMPLES = (
    "gpumem advise tile.cu --grid 32,32 --block 32,8 --arg out:f32[1024,1024] --arg in:f32[1024,1024] --arg 1024\n"
    "gpumem advise --stage transpose/tiled --shape 256,256\n"
    "gpumem trace tile.cu ... --json > before.json; gpumem advise before.json\n"
    "gpumem advise tile.cu ... --sarif advice.sarif --fail-on conflicts,uncoalesced"
)


def register(command: Callable[[str, str, str], argparse.ArgumentParser], launched: Callable[[Any], None]) -> None:
    """Adds the command; `launched` adds the options of a launch."""
    made = command("advise", "execute a kernel on the CPU and say what to change in its memory accesses", EXAMPLES)
    launched(made)
    made.add_argument("--sample", type=float, metavar="PART", help="execute this fraction of the blocks")
    made.add_argument("--seconds", type=float, metavar="S", help="give up after so long")
    made.add_argument(
        "--sarif", type=Path, metavar="FILE", help="also write SARIF 2.1.0 for editors and CI (-: stdout)"
    )
    made.add_argument(
        "--fail-on",
        metavar="A,B",
        help=f"end with status {FOUND} where this is found: hazards, uncoalesced, conflicts, local, atomics, "
        "misaligned, divergence, vector, flight, redundant, issue; warnings: all that are warnings",
    )
    made.set_defaults(save=[], html=None, watch="shared,registers", threads=None)


def run(options: argparse.Namespace) -> int:
    """Traces, prints, and returns the exit status. Raises WrongResultError for a kernel with hazards."""
    from .advice import SURE

    asked = rules_of(options.fail_on)
    trace = traced(options)
    advice = trace.advice
    if options.sarif:
        from .sarif import sarif

        log = json.dumps(sarif(trace, str(options.file) if options.file else None), indent=1)
        if str(options.sarif) == "-":
            print(log)
        else:
            options.sarif.write_text(log + "\n")
    if options.json:
        plain = {
            "schema": "gpumem.advice/1",
            "kernel": trace.kernel,
            "arch": trace.arch,
            "grid": list(trace.grid),
            "block": list(trace.block),
            "advice": [item.to_dict() for item in advice],
            "sure": SURE,
        }
        print(json.dumps(plain, indent=1))
    elif str(options.sarif) != "-":
        print(report(trace, advice))
    if trace.findings:
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in trace.findings))
        raise WrongResultError(f"hazards in {trace.kernel}: {kinds}; see the report")
    return FOUND if any(item.rule in asked for item in advice) else 0


def traced(options: argparse.Namespace) -> Trace:
    """The trace of a launch, or one that was written before."""
    from .trace_command import run as traced_launch

    if options.file and options.file.suffix == ".json":
        return saved_trace(options.file)
    return traced_launch(options)


def saved_trace(file: Path) -> Trace:
    """What `gpumem trace --json` printed into a file. Raises UsageError for another file."""
    from .trace import Trace

    return made_from(read_json(file), Trace.from_dict, f"{file} holds no trace of gpumem")


def rules_of(text: str | None) -> set[str]:
    """The rules that --fail-on names. Raises UsageError for a name that there is not."""
    from .advice import RULES

    failing = [name for name, rule in RULES.items() if rule.level != "none"]
    asked: set[str] = set()
    for name in text.split(",") if text else []:
        if name == "warnings":
            asked |= {rule.name for rule in RULES.values() if rule.level in ("error", "warning")}
        elif name in failing:
            asked.add(name)
        else:
            raise unknown("advice to fail on", name, [*failing, "warnings"])
    return asked


def report(trace: Trace, advice: tuple[Advice, ...]) -> str:
    """As compilers put it: a line that begins with FILE:LINE, and what belongs to it indented below, to the width."""
    if not advice:
        return f"{trace.kernel}: no access to memory was traced"
    width = max(shutil.get_terminal_size((120, 24)).columns, 60)
    lines = []
    for item in advice:
        first, *more = str(item).splitlines()
        lines.append(first)
        for line in more:
            indent = " " * (len(line) - len(line.lstrip()))
            lines.append(textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False))
    return "\n".join(lines)
