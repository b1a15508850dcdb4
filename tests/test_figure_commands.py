"""gpumem sweep, plot and roofline: data to stdout, files where they are asked for, one line for an error."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "notebooks" / "data" / "h200"
SMALL = ("sweep", "copy", "--sizes", "4K:8K", "--repeat", "3", "-q")
COUNTED = ("sweep", "read", "--device", "sim", "--shape", "4096", "-q")


def test_a_sweep_is_a_table_or_json(said):
    status, out, err = said(*SMALL, "--stages", "simd,tuned")
    assert (status, err) == (0, "")
    assert "4 KiB" in out
    assert "naive" not in out
    data = json.loads(said(*SMALL, "--json")[1])
    assert data["schema"] == "gpumem.sweep/1"
    assert {point["x"] for point in data["points"]} == {4096, 8192}


def test_a_sweep_is_written_and_drawn(said, tmp_path):
    pytest.importorskip("matplotlib")
    record, plot = tmp_path / "a.json", tmp_path / "a.svg"
    assert said(*SMALL, "-o", record, "--plot", plot)[0] == 0
    assert json.loads(record.read_text())["setting"]["values"] == [4096, 8192]
    assert plot.read_text().startswith("<?xml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.svg"]
    status, out, _ = said("plot", record, DATA / "sweep-stride.json", "--to", tmp_path, "--format", "png")
    assert status == 0
    assert out.split() == [str(tmp_path / "a.png"), str(tmp_path / "sweep-stride.png")]


def test_one_file_is_drawn_where_it_is_asked_for(said, tmp_path):
    pytest.importorskip("matplotlib")
    to = tmp_path / "curve.png"
    assert said("plot", DATA / "sweep-stride.json", "-o", to) == (0, f"{to}\n", "")
    assert to.read_bytes().startswith(b"\x89PNG")


def test_progress_says_the_time_left_on_stderr(said, monkeypatch):
    monkeypatch.setattr("gpumem.console.SECONDS_BEFORE_GUESSING", 0.0)
    monkeypatch.setattr("gpumem.console.SECONDS_BETWEEN_LINES", 0.0)
    status, out, err = said(*[each for each in SMALL if each != "-q"])
    assert status == 0
    assert "sweep copy: " in err
    assert " s left" in err
    assert "left" not in out.replace("Left out", "")


def test_counting_is_spread_over_processes(said):
    alone = json.loads(said(*COUNTED, "--strides", "1,8", "--json")[1])
    spread = json.loads(said(*COUNTED, "--strides", "1,8", "--json", "--jobs", "2")[1])
    assert spread["points"] == alone["points"]


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("sweep", "--sizes", "4K", "--strides", "1:2"), "one axis at a time: size, stride"),
        (("sweep", "--over", "size", "--threads", "1"), "one axis at a time"),
        (("sweep", "--over", "colour"), "axis"),
        (("sweep", "--sizes", "1Z"), "size '1Z'"),
        ((*SMALL, "-o", "/nowhere/a.json"), "cannot write"),
        ((*SMALL, "--plot", "a.xyz"), "its name must end in one of"),
        ((*SMALL, "--jobs", "2"), "for device='sim'"),
        ((*COUNTED, "--jobs", "0"), "--jobs 0"),
        (("plot", "/nowhere/a.json", "--to", "/tmp"), "cannot read"),
        (("plot", DATA / "sweep-stride.json", "--to", "/nowhere/at/all"), "no such directory"),
        (("plot", DATA / "sweep-stride.json", DATA / "sweep-stride.json", "--to", "/tmp"), "the same name"),
        (("plot", DATA / "sweep-stride.json", "--format", "xyz", "--to", "/tmp"), "must end in one of"),
        (("plot", DATA / "sweep-stride.json", "-o", "/tmp/a.xyz"), "must end in one of"),
        (("plot", DATA / "sweep-stride.json", "-o", "/nowhere/a.svg"), "no such directory"),
        (("plot", DATA / "sweep-stride.json", "-o", "/tmp/a.svg", "--format", "png"), "leave --to and --format out"),
        (
            ("plot", DATA / "sweep-stride.json", DATA / "sweep-width.json", "-o", "/tmp/a.svg"),
            "--to DIR takes them all",
        ),
        (("roofline", "--stage", "copy/scalar", "--on", "Voodoo2"), "device"),
        (("roofline", "--on", "H200"), "give a FILE"),
    ],
)
def test_errors_are_one_line(said, arguments, text):
    pytest.importorskip("matplotlib")
    status, out, err = said(*arguments)
    assert (status, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_the_help_s_example_of_many_files_makes_its_folder(said, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    example = next(line for line in said("plot", "--help")[1].splitlines() if "*" in line)
    _, command, pattern, *options = example.split()
    monkeypatch.chdir(tmp_path)
    files = sorted((DATA.parents[2] / pattern).parent.glob(Path(pattern).name))[:2]
    assert said(command, *files, *options)[0] == 0
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [f"{path.stem}.png" for path in files]


def test_a_stage_under_a_roof(said, tmp_path):
    pytest.importorskip("matplotlib")
    plot = tmp_path / "a.svg"
    status, out, _ = said("roofline", "--stage", "reduce/shuffle", "--shape", "4096", "--on", "H200", "--plot", plot)
    assert status == 0
    assert "fp32" in out
    assert "measured copy" in plot.read_text()


def test_the_device_table_names_its_sources(said):
    _, out, _ = said("roofline", "--devices")
    for name in ("A100", "H100", "H200", "B200", "RTX 4090", "L40S", "T4", "V100"):
        assert name in out
    assert all(row["source"] for row in json.loads(said("roofline", "--devices", "--json")[1]))
