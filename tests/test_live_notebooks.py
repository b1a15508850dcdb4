"""tools/live_notebooks.py: the notebooks as plain scripts, what their cells show, and what stopped them."""

import json
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"
sys.path.insert(0, str(TOOLS))

pytest.importorskip("matplotlib")
import live_notebooks  # noqa: E402


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Runs the tool on the names, and returns its status and what it wrote."""

    def run(*arguments: str) -> tuple[int, dict]:
        monkeypatch.setattr(sys, "argv", ["live_notebooks.py", str(tmp_path), *arguments])
        status = live_notebooks.main()
        return status, json.loads((tmp_path / "notebooks.json").read_text())

    return run


def test_a_notebook_runs_and_its_figures_are_kept(call, tmp_path):
    status, made = call("03_layouts")
    (row,) = made["notebooks"]
    assert status == 0
    assert row["error"] is None
    assert len(list(tmp_path.glob("03_layouts-*.*"))) == row["figures"] == 2
    assert [ladder["lesson"] for ladder in row["ladders"]] == ["layout"]
    assert "aos_field" in (tmp_path / "03_layouts.txt").read_text()


def test_what_was_not_measured_is_told_where_it_must_be(call, monkeypatch, capsys):
    import lesson

    monkeypatch.setattr(lesson, "GPU", False)
    status, made = call("03_layouts", "--need-gpu")
    assert status == 1
    assert made["notebooks"][0]["recorded"] == ["layout float32"]
    assert "not measured here: 03_layouts" in capsys.readouterr().out


def test_a_cell_that_fails_stops_its_notebook_alone(call, monkeypatch, tmp_path):
    wrong, right = tmp_path / "00_wrong.py", tmp_path / "01_right.py"
    wrong.write_text("# %% [markdown]\n# # Text\n\n# %%\nx = 1\n\n# %%\nx / 0\n\n# %%\nprint('not here')\n")
    right.write_text("# %%\nprint('seen')\n1 + 1\n")
    monkeypatch.setattr(live_notebooks, "FOLDER", tmp_path)
    status, made = call()
    assert status == 1
    assert "line 8" in made["notebooks"][0]["error"]
    assert "ZeroDivisionError" in made["notebooks"][0]["error"]
    assert (tmp_path / "00_wrong.txt").read_text() == ""
    assert made["notebooks"][1]["error"] is None
    assert (tmp_path / "01_right.txt").read_text() == "seen\n2\n"
