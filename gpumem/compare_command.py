"""`gpumem compare`: two traces, or two sweeps, side by side."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import FOUND, UsageError
from .recorded import made_from, read_json

if TYPE_CHECKING:
    from .sweep_result import SweepComparison
    from .trace import Comparison

EXAMPLES = (
    "gpumem trace old.cu ... --json > a.json; gpumem trace new.cu ... --json > b.json; gpumem compare a.json b.json\n"
    "gpumem compare before.json after.json --html compared.html\n"
    "gpumem compare before.json after.json --fail-on worse"
)


def register(command: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Adds the command."""
    made = command("compare", "two traces or two sweeps side by side: what a change has changed", EXAMPLES)
    made.add_argument("first", type=Path, metavar="BEFORE", help="JSON of gpumem trace, profile or sweep")
    made.add_argument("second", type=Path, metavar="AFTER", help="the same of another kernel or another time")
    made.add_argument("--html", type=Path, metavar="FILE", help="also write a page: sources and pictures side by side")
    made.add_argument(
        "--fail-on",
        choices=("different", "worse"),
        help=f"end with status {FOUND} where a count differs, or where one of AFTER is larger",
    )


def run(options: argparse.Namespace) -> int:
    """Prints the comparison, writes the page, and returns the exit status."""
    from .cli import put

    compared = comparison(options.first, options.second)
    if options.html:
        write_page(compared, options.html)
    put(compared, options, compared.to_json())
    failed = {None: False, "different": not compared.equal, "worse": options.fail_on == "worse" and worse(compared)}
    return FOUND if failed[options.fail_on] else 0


def comparison(first: Path, second: Path) -> Comparison | SweepComparison:
    """What two files hold, compared. Raises UsageError for files that cannot be."""
    from .sweep_result import SCHEMA, Sweep
    from .trace import Trace

    readers: dict[str, Callable[[dict[str, Any]], Any]] = {"gpumem.trace/1": Trace.from_dict, SCHEMA: Sweep.from_dict}
    both = [plain(path) for path in (first, second)]
    kinds = [data.get("schema") for data in both]
    for path, kind in zip((first, second), kinds, strict=True):
        if kind not in readers:
            raise UsageError(f"{path}: nothing to compare: schema {kind!r}; there are {', '.join(readers)}")
    if kinds[0] != kinds[1]:
        raise UsageError(f"{first} and {second} are of different kinds: {kinds[0]} and {kinds[1]}")
    made = []
    for path, data in zip((first, second), both, strict=True):
        made.append(made_from(data, readers[data["schema"]], f"{path} is no whole {data['schema']}"))
    compared: Comparison | SweepComparison = made[0].compare(made[1])
    return compared


def plain(path: Path) -> dict[str, Any]:
    """The JSON object of a file."""
    data = read_json(path)
    return data if isinstance(data, dict) else {}


def write_page(compared: Comparison | SweepComparison, path: Path) -> None:
    """Two kernels as a page. Raises UsageError for sweeps, which `gpumem plot` draws."""
    from .report import comparison_page
    from .trace import Comparison

    if not isinstance(compared, Comparison):
        raise UsageError("--html is for two traces; gpumem plot draws sweeps")
    path.write_text(comparison_page(compared), encoding="utf-8")


def worse(compared: Comparison | SweepComparison) -> bool:
    """Whether the second trace counts more of anything that both have. Raises UsageError for sweeps."""
    from .trace import Comparison

    if not isinstance(compared, Comparison):
        raise UsageError("--fail-on worse is for two traces")
    return any(after > before for before, after in compared.changed.values())
