"""Executes notebooks/*.py and writes them, with their outputs, as notebooks/*.ipynb.

usage: python tools/notebooks.py [NAME...]     (such as 03_layouts; by default all)     needs the extra `notebooks`
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


def main() -> int:
    names = sys.argv[1:] or [path.stem for path in sorted(FOLDER.glob("[0-9]*.py"))]
    os.environ["GPUMEM_KEEP_PTX"] = "1"  # for machines without a compiler
    for name in names:
        began = time.monotonic()
        notebook = jupytext.read(FOLDER / f"{name}.py")
        where = {"metadata": {"path": FOLDER}}
        NotebookClient(notebook, timeout=60, kernel_name="python3", resources=where, coalesce_streams=True).execute()
        notebook.metadata = {
            "jupytext": {"formats": "ipynb,py:percent"},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        for i, cell in enumerate(notebook.cells):
            cell.id = f"cell-{i}"  # the same each time, so that a difference is one
            cell.metadata = {}
        nbformat.validate(notebook)
        (FOLDER / f"{name}.ipynb").write_text(nbformat.writes(notebook) + "\n")
        print(f"{name}: {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
