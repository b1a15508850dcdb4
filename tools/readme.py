"""Writes the generated parts of README.md and docs/*.md anew: the stage table, recorded figures, lessons, pictures.

usage: python tools/readme.py [--check]     (--check: exit status 1 where a file is stale, and change nothing)

A part stands between <!-- NAME --> and <!-- /NAME -->. The figures come from notebooks/data/*/*.json, which
`gpumem bench ... -o` wrote, or tools/gpu_tests.py (tests/*.json); where there is no such file the README says how to
make one.
"""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pictures

import gpumem
from gpumem.cases import group_of
from gpumem.result import Result

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "notebooks" / "data"


def markdown(head: list[str], rows: list[list[str]], right: set[int] = frozenset()) -> str:
    """A Markdown table."""
    rule = ["---:" if i in right else "---" for i in range(len(head))]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in [head, rule, *rows])


def stage_table() -> str:
    """Every stage of the table that the package was built from."""
    rows = [[stage.lesson, f"`{stage.name}`", stage.device, stage.idea] for stage in gpumem.stages()]
    return markdown(["lesson", "stage", "device", "what it changes"], rows)


def benchmarks(machine: str) -> list[Result]:
    """The benchmarks recorded on a machine; ladders and sweeps lie beside them."""
    recorded = [json.loads(path.read_text()) for path in sorted((RECORDED / machine).glob("*.json"))]
    return [Result.from_dict(data) for data in recorded if data.get("schema") == "gpumem.bench/1"]


def place(result: Result) -> str:
    """Where it was measured, in few words."""
    on = result.environment
    return on.get("device") or f"{on['cpu']}, {on['threads']} threads"


def figures(machine: str) -> str:
    """A row for each group of each benchmark recorded on a machine: what was reached, next to the peers."""
    results = benchmarks(machine)
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
    gpu = "device" in results[0].environment
    on = "{device}, driver {clocks[driver_version]}" if gpu else "{cpu}, {threads} threads, {isa}"
    where = dict.fromkeys(
        f"{on}, NumPy {{numpy}}, gpumem {{gpumem}} at {{commit}}, {{day}}".format(
            **result.environment, day=result.environment["date"][:10]
        )
        for result in results
    )
    return "\n\n".join([markdown(head, rows, set(range(2, len(head))) - {3}), "Measured on " + "; ".join(where) + "."])


def beside(machine: str, peer: str) -> str:
    """A row for each group that a peer takes part in: both medians over the same rows, and where it is the faster."""
    rows = []
    results = benchmarks(machine)
    for result in results:
        for name, group in result.groups().items():
            both = [(row.figure().median, row.figure(peer).median) for row in group if peer in row.seconds]
            if not both:
                continue
            ours, theirs = np.median(both, axis=0)
            lead = [theirs / ours - 1 for ours, theirs in both if theirs > ours]
            behind = f"{len(lead)}, by {max(lead):.1%} at most" if lead else "0"
            rows.append([result.op, name, str(len(both)), f"{ours:.2f}", f"{theirs:.2f}", behind])
    return markdown([place(results[0]), "rows", "how many", "gpumem, median", peer, "behind"], rows, {2, 3, 4})


def gpu_tests() -> str:
    """How the tests that need a GPU went on each machine where they were recorded."""
    lines = []
    for path in sorted((RECORDED / "tests").glob("*.json")):
        record = json.loads(path.read_text())
        on = record["environment"]
        if record["schema"] == "gpumem.sanitizer/1":
            what = "compute-sanitizer over them, in small sizes,"
            parts = [
                f"{tool}: {ran['passed']} passed, {ran['failed']} failed, {sum(ran['left_out'].values())} left out, "
                f"{ran['not_reached']} not reached, {ran['reports']} reports"
                for tool, ran in record["tools"].items()
            ]
        else:
            what, tests = "`pytest -m gpu`", record["tests"]
            skipped = sum(tests["skipped"].values())
            parts = [f"{tests['passed']} passed, {tests['failed']} failed, {skipped} skipped"]
        where = (
            f"{on['device']}, driver {on['clocks']['driver_version']}, gpumem at {on['commit']}, {record['date'][:10]}"
        )
        lines.append(f"- {what} on {where}: {'; '.join(parts)}.")
    return "\n".join(lines) or "No run on a GPU is recorded yet: `python tools/gpu_tests.py -o FILE` makes one."


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


HOSTS = ("cpu", "xeon")  # folders of what was recorded on CPUs

# Of the README: words for a group, the group, and the peers that people would use.
GROUPS = {
    "gpu": [
        ("copy, strided and sliced", "cuda strided"),
        ("transpose of a matrix, 2 to 16 bytes an item", "cuda 2d even"),
        ("the same, 1 byte", "cuda 2d even, 1 byte"),
        ("the same, odd lengths", "cuda 2d odd"),
        ("records to planes", "cuda thin to rows"),
        ("planes to records", "cuda thin to columns"),
        ("permutations of 2 to 6 axes (TTC)", "cuda ttc57"),
        ("layouts of images, attention, batches", "cuda applications"),
        ("sum along an axis", "cuda sum along an axis"),
    ],
    "cpu": [
        ("copy, strided and sliced", "strided"),
        ("transpose of a matrix, 2 to 16 bytes an item", "2d even"),
        ("the same, 1 and 2 bytes", "2d even, 1-2 bytes"),
        ("records to planes", "thin to rows"),
        ("permutations of 2 to 6 axes (TTC)", "ttc57"),
        ("layouts of images, attention, batches", "applications"),
        ("sum of everything", "sum of everything"),
        ("sum along an axis", "sum over an axis"),
    ],
}
PEERS = {
    "gpu": {"torch": "PyTorch", "cupy": "CuPy", "cublas": "cuBLAS", "cutensor": "cuTENSOR"},
    "cpu": {"numpy": "NumPy", "hptt": "HPTT"},
}


def speed() -> str:
    """The README's tables: a few groups of each machine, next to what people would use instead."""
    parts = []
    for machine in ("h200", *HOSTS):
        results = benchmarks(machine)
        groups = {name: rows for result in results for name, rows in result.groups().items()}
        kind = "gpu" if "device" in results[0].environment else "cpu"
        rows = []
        for words, name in GROUPS[kind]:
            if name not in groups:
                continue
            medians = [
                [row.figure(peer).median for row in groups[name] if peer in row.seconds]
                for peer in ("gpumem", *PEERS[kind])
            ]
            rows.append([words, *(f"{np.median(each):.2f}" if each else "" for each in medians)])
        head = [place(results[0]), "gpumem", *PEERS[kind].values()]
        parts.append(markdown(head, rows, set(range(1, len(head)))))
    return "\n\n".join(parts)


def lessons() -> str:
    """The notebooks, by their first heading, and the sentence below it."""
    rows = []
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.py")):
        found = re.search(r"^# # (.+)\n#\n((?:# .+\n)+)", path.read_text(), re.MULTILINE)
        if not found:
            raise SystemExit(f"{path}: no heading with a sentence below it")
        sentence = " ".join(line.removeprefix("# ") for line in found[2].splitlines())
        rows.append([f"[{found[1]}](notebooks/{path.stem}.ipynb)", sentence])
    return markdown(["lesson", "what it shows"], rows)


PARTS = {
    "speed": speed,
    "lessons": lessons,
    "ladders": ladders,
    "stages": stage_table,
    "figures": lambda: "\n\n".join(map(figures, HOSTS)),
    "h200": partial(figures, "h200"),
    "cutensor": partial(beside, "h200", "cutensor"),
    "hptt": lambda: "\n\n".join(beside(host, "hptt") for host in HOSTS),
    "gpu-tests": gpu_tests,
}
FILES = {
    "README.md": ("speed", "lessons"),
    "docs/ladder.md": ("stages", "ladders"),
    "docs/figures.md": ("figures", "hptt", "h200", "cutensor", "gpu-tests"),
}


def renewed(file: str) -> str:
    """The text of a file with every generated part made anew."""
    text = (ROOT / file).read_text()
    for name in FILES[file]:
        before, opening, rest = text.partition(f"<!-- {name} -->\n")
        _, closing, after = rest.partition(f"<!-- /{name} -->")
        if not (opening and closing):
            raise SystemExit(f"{file}: nothing between <!-- {name} --> and <!-- /{name} -->")
        text = f"{before}{opening}{PARTS[name]()}\n{closing}{after}"
    return text


def main() -> int:
    """Checks or writes."""
    made = {file: renewed(file) for file in FILES}
    made |= {f"docs/pictures/{name}.svg": make(RECORDED) for name, make in pictures.PICTURES.items()}
    stale = [file for file, text in made.items() if not (ROOT / file).exists() or (ROOT / file).read_text() != text]
    if "--check" in sys.argv[1:]:
        sys.stderr.write("".join(f"stale: {file}\n" for file in stale))
        return int(bool(stale))
    for file in stale:
        (ROOT / file).write_text(made[file])
    return 0


if __name__ == "__main__":
    sys.exit(main())
