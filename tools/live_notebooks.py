"""Runs notebooks/*.py as they stand, without Jupyter, and keeps what their cells show: for machines with a GPU.

usage: python tools/live_notebooks.py OUT [NAME...] [--need-gpu]      (such as 03_layouts; by default all)

Writes OUT/NAME.txt with what was printed, a picture for each figure, and OUT/notebooks.json: for each notebook its
seconds, what its ladders were measured on, and its error, where it stopped. Exits with 1 where one did. --need-gpu:
also where a ladder was not measured but read from notebooks/data.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "notebooks"
LIMIT = 60.0  # seconds that a notebook may take

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path[:0] = [str(ROOT), str(FOLDER)]


def cells_of(script: Path) -> list[tuple[int, str]]:
    """The code cells of a percent script: the line before the first, and the text."""
    found: list[tuple[int, list[str]]] = []
    kept = False
    for number, line in enumerate(script.read_text().splitlines(), 1):
        if line.startswith("# %%"):
            kept = line.strip() == "# %%"
            if kept:
                found.append((number, []))
        elif kept:
            found[-1][1].append(line)
    return [(number, "\n".join(lines)) for number, lines in found]


def run_cell(text: str, where: str, above: int, names: dict[str, Any]) -> Any:
    """Executes a cell, and returns what it ends with: the value of an expression, or None."""
    tree = ast.parse("\n" * above + text, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return eval(compile(ast.Expression(last.value), where, "eval"), names) if last else None


def keep(value: Any, folder: Path, stem: str, figures: int) -> int:
    """Writes what a cell shows: figures as PNG, pictures as SVG, all else as text. Returns how many there are."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    shown = [plt.figure(number) for number in plt.get_fignums()]
    if isinstance(value, Figure) and value not in shown:
        shown.append(value)
    for figure in shown:
        figure.savefig(folder / f"{stem}-{figures}.png", dpi=72)
        figures += 1
    plt.close("all")
    if value is None or isinstance(value, Figure):
        return figures
    if svg := getattr(value, "_repr_svg_", None):
        (folder / f"{stem}-{figures}.svg").write_text(svg(), encoding="utf-8")
        return figures + 1
    print(value)
    return figures


def run(script: Path, folder: Path) -> dict[str, Any]:
    """A notebook from top to bottom."""
    import lesson

    recorded, roof, ladder = lesson.recorded, lesson.recorded_roof, lesson.ladder
    read, ladders = [], []

    def asked(*given: Any) -> Any:
        made = ladder(*given)
        ladders.append({"lesson": made.lesson, "dtype": made.dtype, "of_copy": lesson.fractions(made)})
        return made

    lesson.recorded = lambda *given: read.append(" ".join(given)) or recorded(*given)
    lesson.recorded_roof = lambda name: read.append(name) or roof(name)
    lesson.ladder = asked
    printed, error, figures, names = io.StringIO(), None, 0, {"__name__": "__main__"}
    began = time.monotonic()
    try:
        with contextlib.redirect_stdout(printed):
            for above, text in cells_of(script):
                figures = keep(run_cell(text, script.name, above, names), folder, script.stem, figures)
    except Exception:  # whatever a cell raises is the notebook's outcome
        error = traceback.format_exc()
    finally:
        lesson.recorded, lesson.recorded_roof, lesson.ladder = recorded, roof, ladder
    (folder / f"{script.stem}.txt").write_text(printed.getvalue(), encoding="utf-8")
    seconds = round(time.monotonic() - began, 1)
    row = {"notebook": script.stem, "seconds": seconds, "figures": figures, "error": error}
    return {**row, "ladders": ladders, "recorded": read}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--need-gpu", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.names or [path.stem for path in sorted(FOLDER.glob("[0-9]*.py"))]
    rows = []
    for name in names:
        row = run(FOLDER / f"{name}.py", options.out)
        rows.append(row)
        counts = f"{row['figures']} figures, {len(row['ladders'])} ladders, {len(row['recorded'])} of all this recorded"
        print(f"{name}: {row['seconds']} s, {counts}", flush=True)
        if row["error"]:
            print(row["error"], flush=True)
        if row["seconds"] > LIMIT:
            print(f"{name}: more than {LIMIT:.0f} s", flush=True)
    import gpumem

    top = {"schema": "gpumem.notebooks/1", "info": gpumem.info().to_dict(), "notebooks": rows}
    (options.out / "notebooks.json").write_text(json.dumps(top, indent=1) + "\n")
    recorded = [row["notebook"] for row in rows if row["recorded"]]
    if options.need_gpu and recorded:
        print(f"not measured here: {', '.join(recorded)}")
    return int(any(row["error"] for row in rows) or (options.need_gpu and bool(recorded)))


if __name__ == "__main__":
    sys.exit(main())
