"""The notebooks: each .ipynb is its .py with outputs, of one run without an error, and names no place.

They are executed by `make notebooks`.
"""

import hashlib
import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
SCRIPTS = sorted(NOTEBOOKS.glob("[0-9]*.py"))


def cells_of(script):
    """Kind and text of each cell of a percent script (the part of the format that the lessons use)."""
    _, _, body = script.read_text().partition("# ---\n\n")
    made = []
    for part in re.split(r"^# %%", body, flags=re.MULTILINE)[1:]:
        kind, _, text = part.partition("\n")
        text = text.strip("\n")
        if kind.strip() == "[markdown]":
            text = "\n".join(re.sub(r"^# ?", "", line) for line in text.splitlines())
        else:
            text = "\n".join(re.sub(r"^# (?=%)", "", line) for line in text.splitlines())
        made.append(("markdown" if kind.strip() else "code", text))
    return made


def read(script):
    return json.loads(script.with_suffix(".ipynb").read_text())


def test_there_is_one_a_lesson():
    assert len(SCRIPTS) == 10
    assert [script.stem for script in SCRIPTS] == sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_pairs_are_in_sync(script):
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in read(script)["cells"]]
    assert cells == cells_of(script), f"make pairs: {script.stem}.ipynb is not {script.name}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_outputs_are_those_of_one_run_without_an_error(script):
    notebook = read(script)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert "error" not in {output["output_type"] for output in outputs}
    assert "stderr" not in {output.get("name") for output in outputs}
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs) or script.stem.startswith("10")
    assert notebook["metadata"]["jupytext"] == {"formats": "ipynb,py:percent"}


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.rglob("*.ip*")) + sorted(NOTEBOOKS.rglob("*.ptx")), ids=str)
def test_no_place_is_named(path):
    assert not re.findall(r"/(?:tmp|home|root|work|build)/[\w/.]*", path.read_text())


def test_the_ptx_of_kernels_is_kept_for_machines_without_a_compiler():
    """lesson.kernel names a file by a hash of the text: those that stand in the script as they are."""
    (script,) = [each for each in SCRIPTS if each.stem.startswith("10")]
    kept = {path.stem.split("-")[1] for path in (NOTEBOOKS / "data" / "ptx").glob("*.ptx")}
    texts = re.findall(r'= r"""(.*?)"""', script.read_text(), re.DOTALL)
    assert texts
    assert {hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts} <= kept
    assert len(kept) == 5
