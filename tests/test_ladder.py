"""The ladder verifies before it times, names its rungs by the stage table, and says what it measured."""

import json

import numpy as np
import pytest

import gpumem
from gpumem import _core
from gpumem.ladder import LESSONS, default_shape
from gpumem.machine import last_cache

COPIES = {"memcpy", "streaming copy"}
REFERENCES = {"transpose": COPIES, "copy": COPIES, "reduce": {"read"}}


def small(lesson="transpose", **options):
    return gpumem.ladder(lesson, **{"shape": (65, 130), "repeat": 3, "progress": False, **options})


@pytest.mark.parametrize("lesson", LESSONS)
def test_peers_then_stages_then_references(lesson):
    ladder = small(lesson)
    rungs = {kind: [r.name for r in ladder.rungs if r.kind == kind] for kind in ("peer", "stage", "reference")}
    assert [r.name for r in ladder.rungs] == rungs["peer"] + rungs["stage"] + rungs["reference"]
    assert len({r.name for r in ladder.rungs}) == len(ladder.rungs)
    assert rungs["peer"] == ["numpy"]
    assert rungs["stage"] == [stage.name for stage in gpumem.stages(lesson, "cpu")]
    assert set(rungs["reference"]) == REFERENCES[lesson]
    for rung in ladder.rungs:
        assert len(rung.seconds) == 3
        assert min(rung.seconds) > 0
        assert rung.idea
    assert ladder.rungs[-1].of_copy.median == 1.0


@pytest.mark.parametrize("lesson, crossings", [("transpose", 2), ("copy", 2), ("reduce", 1)])
def test_bytes_are_those_that_must_move(lesson, crossings):
    assert small(lesson, dtype="float64").bytes == crossings * 65 * 130 * 8
    assert {stage.bytes for stage in gpumem.stages(lesson)} == {crossings}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "V3", ">i2", "float16", "complex128", "datetime64[us]", "V24"])
def test_any_type_of_fixed_size_moves(dtype):
    assert small(dtype=dtype)["tuned"].gb_per_s > 0


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", ">i2", ">f8", "float16", "float32", "float64", "complex64"]
)
def test_any_number_is_summed(dtype):
    assert small("reduce", dtype=dtype)["tuned"].gb_per_s > 0


@pytest.mark.parametrize("shape", [7, (1,), (2, 3, 4), (1, 1, 1, 5)])
def test_any_shape(shape):
    ladder = small(shape=shape)
    assert ladder.shape == ((shape,) if isinstance(shape, int) else shape)


def test_a_stage_that_errs_in_one_item_is_found_before_anything_is_timed(monkeypatch):
    right = _core.transpose

    def wrong(x, axes, *, out, stage):
        right(x, axes, out=out, stage=stage)
        if stage == "tuned":
            out[129, 64] += 1

    monkeypatch.setattr(_core, "transpose", wrong)
    with pytest.raises(gpumem.WrongResultError, match=r"transpose/tuned is wrong at \(129, 64\): .* instead of"):
        small()


def test_a_stage_that_leaves_an_item_out_is_found(monkeypatch):
    right = _core.copy

    def lazy(x, *, out, stage):
        right(x[:-1], out=out[:-1], stage=stage)

    monkeypatch.setattr(_core, "copy", lazy)
    with pytest.raises(gpumem.WrongResultError, match=r"copy/naive is wrong at \(64, 0\)"):
        small("copy")


def test_a_sum_that_is_slightly_wrong_is_found(monkeypatch):
    right = _core.sum

    def sloppy(x, *, axis, out, stage):
        right(x, axis=axis, out=out, stage=stage)
        up = out.dtype.type(np.inf)  # of the same type: NumPy 1 would compute in float64
        out[...] = np.nextafter(np.nextafter(out, up), up)

    monkeypatch.setattr(_core, "sum", sloppy)
    with pytest.raises(gpumem.WrongResultError, match="reduce/naive"):
        small("reduce", dtype="float32")


@pytest.mark.parametrize(
    "options, said",
    [
        (
            {"lesson": "transpsoe"},
            "no lesson 'transpsoe': there are copy, transpose, reduce; did you mean 'transpose'?",
        ),
        ({"device": "sim"}, "device 'sim': its kernels are counted, not timed; give 'cpu' or 'cuda'"),
        ({"device": "tpu"}, "no device 'tpu': there are cpu, cuda, sim"),
        ({"dtype": "flot32"}, "no dtype 'flot32': there are bool, int8, .*did you mean 'float32'"),
        ({"dtype": object}, "dtype object: items must have a fixed size"),
        ({"dtype": "V0"}, "dtype .*: items must have a fixed size"),
        ({"lesson": "reduce", "dtype": "V3"}, "cannot be summed"),
        ({"shape": (0, 3)}, r"shape \(0, 3\): at least one axis, and every length at least 1"),
        ({"shape": ()}, r"shape \(\): at least one axis"),
        ({"shape": (1 << 31, 1 << 31)}, "needs .* GB for three arrays"),
        ({"repeat": 0}, "repeat=0: at least 1 round"),
        ({"peers": ["nump"]}, "no peer 'nump': there are numpy, hptt, openblas, torch; did you mean 'numpy'?"),
    ],
)
def test_errors_name_what_there_is(options, said):
    with pytest.raises(ValueError, match=said):
        small(**options)


def test_json_holds_everything_that_was_measured():
    ladder = small()
    data = json.loads(ladder.to_json())
    assert data == json.loads(json.dumps(ladder.to_dict()))
    assert data["schema"] == "gpumem.ladder/1"
    assert data["environment"]["threads"] == gpumem.get_num_threads()
    assert [rung["name"] for rung in data["rungs"]] == [rung.name for rung in ladder.rungs]
    assert data["rungs"][1]["seconds"] == list(ladder.rungs[1].seconds)


def test_text_and_html_have_a_line_a_rung():
    ladder = small()
    text, page = str(ladder), ladder._repr_html_()
    for rung in ladder.rungs:
        assert f"\n{rung.name} " in text
        assert f">{rung.name}</td>" in page
    assert repr(ladder) == text


def test_progress_is_on_stderr_only(capsys):
    small(progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "transpose ladder" in err
    small(progress=False)
    assert capsys.readouterr() == ("", "")


def test_plot_has_a_bar_a_rung():
    pytest.importorskip("matplotlib")
    ladder = small()
    ax = ladder.plot()
    drawn = [rung for rung in ladder.rungs if rung.kind != "reference"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([rung.gb_per_s for rung in drawn])
    assert [label.get_text() for label in ax.get_yticklabels()] == [rung.name for rung in drawn]
    copy = max(rung.gb_per_s for rung in ladder.rungs if rung.kind == "reference")
    assert any(line.get_xdata()[0] == pytest.approx(copy) for line in ax.lines)
    assert ax.get_xlim()[0] == 0


def test_a_ladder_comes_back_from_its_json(tmp_path):
    ladder = small()
    (tmp_path / "a.json").write_text(ladder.to_json())
    again = gpumem.Ladder.read(tmp_path / "a.json")
    assert again.to_dict() == ladder.to_dict()
    (tmp_path / "a.json").write_text('{"schema": "gpumem.bench/1"}')
    with pytest.raises(gpumem.UsageError, match=r"a.json holds no recorded ladder: .*gpumem.bench/1"):
        gpumem.Ladder.read(tmp_path / "a.json")


@pytest.mark.parametrize("dtype", ["uint8", "float32", "V24"])
def test_default_arrays_are_several_times_the_last_cache(dtype, monkeypatch):
    monkeypatch.setattr("gpumem.machine.memory_free", lambda: 1 << 40)
    for lesson in LESSONS:
        shape = default_shape(lesson, np.dtype(dtype))
        assert np.prod(shape) * np.dtype(dtype).itemsize > 4 * last_cache() - 24


def test_default_arrays_fit_into_memory(monkeypatch):
    monkeypatch.setattr("gpumem.machine.memory_free", lambda: 1 << 26)
    for lesson in LESSONS:
        assert 3 * np.prod(default_shape(lesson, np.dtype("float32"))) * 4 < 1 << 26


def test_stages_of_a_lesson_and_a_device():
    every = gpumem.stages()
    assert {stage.lesson for stage in every} >= set(LESSONS)
    assert [str(stage) for stage in gpumem.stages("copy", "cpu")] == [
        f"copy/{s.name}" for s in every if s.lesson == "copy" and s.device == "cpu"
    ]
    assert every[0].to_dict().keys() == {"lesson", "name", "device", "kernel", "idea", "bytes"}
    with pytest.raises(ValueError, match="no lesson 'x': there are"):
        gpumem.stages("x")
    with pytest.raises(ValueError, match="no device 'x': there are cpu, cuda, sim"):
        gpumem.stages(device="x")
