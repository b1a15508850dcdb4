"""Writes the generated parts of README.md anew: the stage table, the tables of recorded figures, and the tests on GPUs.

usage: python tools/readme.py [--check]     (--check: exit status 1 where the file is stale, and change nothing)

A part stands between <!-- NAME --> and <!-- /NAME -->. The figures come from notebooks/data/*/*.json, which
`gpumem bench ... -o` wrote, or tools/gpu_tests.py (tests/*.json); where there is no such file the README says how to
make one.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np

import gpumem
from gpumem.cases import group_of
from gpumem.result import Result

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RECORDED = ROOT / "notebooks" / "data"


def markdown(head: list[str], rows: list[list[str]], right: set[int] = frozenset()) -> str:
    """A Markdown table."""
    rule = ["---:" if i in right else "---" for i in range(len(head))]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in [head, rule, *rows])


def stage_table() -> str:
    """Every stage of the table that the package was built from."""
    rows = [[stage.lesson, f"`{stage.name}`", stage.device, stage.idea] for stage in gpumem.stages()]
    return markdown(["lesson", "stage", "device", "what it changes"], rows)


def figures(machine: str) -> str:
    """A row for each group of each benchmark recorded on a machine: what was reached, next to the peers."""
    results = [
        Result.read(path) for path in sorted((RECORDED / machine).glob("[!l]*.json"))
    ]  # ladder-*.json are ladders
    if not results:
        return (
            f"None recorded yet: `mkdir -p notebooks/data/{machine}`, "
            f"`gpumem bench transpose -o notebooks/data/{machine}/transpose.json`, then `make readme`."
        )
    peers = list(dict.fromkeys(peer for result in results for peer in result.peers))
    rows = []
    for result in results:
        for name, group in result.groups().items():
            reached = [row.figure().median for row in group]
            cells = []
            for peer in peers:
                theirs = [row.figure(peer).median for row in group if peer in row.seconds]
                cells.append(f"{np.median(theirs):.2f}" if theirs else "")
            against = {"peers": "the fastest peer", "numpy": "NumPy"}.get(
                group_of(name).against, group_of(name).against
            )
            rows.append(
                [result.op, name, str(len(group)), against, f"{np.median(reached):.2f}", f"{min(reached):.2f}", *cells]
            )
    head = ["operation", "rows", "how many", "1.00 is", "gpumem, median", "worst", *peers]
    on = "{device}, driver {clocks[driver_version]}" if machine != "cpu" else "{cpu}, {threads} threads, {isa}"
    where = dict.fromkeys(
        f"{on}, NumPy {{numpy}}, gpumem {{gpumem}} at {{commit}}, {{day}}".format(
            **result.environment, day=result.environment["date"][:10]
        )
        for result in results
    )
    return "\n\n".join([markdown(head, rows, set(range(2, len(head))) - {3}), "Measured on " + "; ".join(where) + "."])


def gpu_tests() -> str:
    """How the tests that need a GPU went on each machine where they were recorded."""
    lines = []
    for path in sorted((RECORDED / "tests").glob("*.json")):
        record = json.loads(path.read_text())
        tests, on = record["tests"], record["environment"]
        skipped = sum(tests["skipped"].values())
        parts = [f"{tests['passed']} passed, {tests['failed']} failed, {skipped} skipped"]
        for tool, ran in record["sanitizer"].items():
            parts.append(f"under compute-sanitizer's {tool} {ran['passed']} passed, {ran['reports']} reports")
        where = (
            f"{on['device']}, driver {on['clocks']['driver_version']}, gpumem at {on['commit']}, {record['date'][:10]}"
        )
        lines.append(f"- `pytest -m gpu` on {where}: {'; '.join(parts)}.")
    return (
        "\n".join(lines) or "No run on a GPU is recorded yet: `python tools/gpu_tests.py --sanitize -o FILE` makes one."
    )


def ladders() -> str:
    """A row for each stage of each ladder recorded on an H200, a column for each type: fractions of a copy."""
    parts = []
    for lesson in ("transpose", "copy", "reduce", "read", "walk2d", "layout", "banks", "cache"):
        found = [json.loads(path.read_text()) for path in sorted((RECORDED / "h200").glob(f"ladder-{lesson}-*.json"))]
        if not found:
            continue
        names = list(dict.fromkeys(rung["name"] for each in found for rung in each["rungs"] if rung["kind"] == "stage"))
        rungs = [{rung["name"]: rung for rung in each["rungs"]} for each in found]
        cells = [[f"{row[name]['of_copy']['median']:.2f}" if name in row else "" for row in rungs] for name in names]
        rows = [[f"`{name}`", *row] for name, row in zip(names, cells, strict=True)]
        parts.append(markdown([lesson, *(each["dtype"] for each in found)], rows, set(range(1, len(found) + 1))))
    return "\n\n".join(parts)


PARTS = {
    "ladders": ladders,
    "stages": stage_table,
    "figures": partial(figures, "cpu"),
    "h200": partial(figures, "h200"),
    "gpu-tests": gpu_tests,
}


def renewed(text: str) -> str:
    """The README's text with every generated part made anew."""
    for name, make in PARTS.items():
        before, opening, rest = text.partition(f"<!-- {name} -->\n")
        _, closing, after = rest.partition(f"<!-- /{name} -->")
        if not (opening and closing):
            raise SystemExit(f"README.md: nothing between <!-- {name} --> and <!-- /{name} -->")
        text = f"{before}{opening}{make()}\n{closing}{after}"
    return text


def main() -> int:
    """Checks or writes."""
    old = README.read_text()
    new = renewed(old)
    if "--check" in sys.argv[1:]:
        return int(new != old)
    README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
