"""The site: `make docs`. What is generated (the command line, the notebooks) is written to docs/generated first."""

import argparse
import re
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

import gpumem
from gpumem.cli import parser

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ROOT / "docs" / "generated"

project = "gpumem"
author = "the authors of gpumem"
copyright = "2026, the authors of gpumem"
release = version = gpumem.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["generated/notebooks/data"]
default_role = "literal"  # docstrings name code by `single` backticks
highlight_language = "python"

html_theme = "furo"
html_title = "gpumem"
html_static_path = ["static"]
html_css_files = ["gpumem.css"]

autodoc_typehints = "none"  # docstrings say types, shapes and units in words
autodoc_member_order = "bysource"
nitpick_ignore_regex = [("py:class", r"(dict|list|tuple|object|ValueError|RuntimeError|Exception)")]

myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks hold their outputs; CI executes them
suppress_warnings = ["mystnb.unknown_mime_type", "myst.strikethrough"]


def command_line() -> str:
    """A section for each command, as --help has it."""
    top = parser()
    subparsers = next(action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    parts = [
        "# The command line",
        "Results go to stdout, progress to stderr. Exit status: 0 done; 1 a result was wrong, or a hazard was found; "
        "2 the command was wrong or cannot be done here; 3 `advise --fail-on` found what it was to fail on; "
        "130 interrupted. `python -m gpumem` is the same as `gpumem`.",
    ]
    for name, each in subparsers.choices.items():
        each.prog = f"gpumem {name}"
        text = re.sub(r"\x1b\[[0-9;]*m", "", each.format_help())
        parts += [f"## gpumem {name}", f"```text\n{text}```"]
    return "\n\n".join(parts) + "\n"


def generate(app: Sphinx) -> None:
    """Writes docs/generated where it would change: Sphinx reads again what is newer."""
    import os

    os.environ["COLUMNS"] = "100"
    os.environ["NO_COLOR"] = "1"
    folder = GENERATED / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    made = {GENERATED / "command-line.md": command_line()}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        made[folder / path.name] = path.read_text().replace("(../docs/", "(../../")
    for path, text in made.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in folder.iterdir():
        if path not in made:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def parameters_as_fields(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Makes a field list of paragraphs such as "x: an array ..." whose further lines are indented."""
    at = 0
    while at < len(lines):
        end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
        heads = [re.match(r"\w+: ", line) for line in lines[at:end]]
        if (
            heads
            and heads[0]
            and all(head or line.startswith("    ") for head, line in zip(heads, lines[at:end], strict=True))
        ):
            lines[at:end] = [f":{line}" if head else line for head, line in zip(heads, lines[at:end], strict=True)]
        at = end + 1


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    sys.path.insert(0, str(ROOT))
    app.connect("builder-inited", generate)
    app.connect("autodoc-process-docstring", parameters_as_fields)
