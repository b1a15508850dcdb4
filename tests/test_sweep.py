"""Sweeps: every value and stage is measured, what was stopped goes on, and comparing two says when nothing changed."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import gpumem
from gpumem import _core, sweep_result
from gpumem.amounts import format_bytes, parse_bytes, parse_values
from gpumem.journal import Journal
from gpumem.sweep import in_flight, shape_of
from gpumem.sweep_result import Point, Sweep, by_chance

DATA = Path(__file__).parent.parent / "notebooks" / "data"
RECORDED = sorted(DATA.glob("*/sweep-*.json"))


def small(lesson="copy", over="size", values="4K:16K", **options):
    return gpumem.sweep(lesson, over, values, **{"repeat": 3, "progress": False, **options})


def counted(over="stride", values=(1, 2, 8, 32), **options):
    lesson = options.pop("lesson", "read")
    return gpumem.sweep(lesson, over, values, device="sim", progress=False, **{"shape": 1 << 14, **options})


# --- what is measured ------------------------------------------------------------------------------------------------


def test_every_stage_at_every_size_between_peers_and_copies():
    sweep = small(peers=["numpy"])
    stages = [stage.name for stage in gpumem.stages("copy", "cpu")]
    for size in (4096, 8192, 16384):
        kinds = {p.name: p.kind for p in sweep.points if p.x == size}
        assert kinds == {
            "numpy": "peer",
            **dict.fromkeys(stages, "stage"),
            **dict.fromkeys(("memcpy", "streaming copy"), "reference"),
        }
    assert all(len(p.seconds) == 3 and min(p.seconds) > 0 and p.bytes == 2 * p.x for p in sweep.points)
    assert {p.shape for p in sweep.points if p.x == 8192} == {(2048,)}
    assert sweep.setting["values"] == [4096, 8192, 16384]


@pytest.mark.parametrize("lesson, crossings", [("transpose", 2), ("copy", 2), ("reduce", 1), ("sum", 1)])
def test_bytes_are_those_that_must_move(lesson, crossings):
    point = small(lesson, values=[65536], stages="tuned").points[0]
    assert point.bytes == crossings * 65536


def test_strides_and_offsets_count_what_is_of_use():
    strides = small(over="stride", values="1,3", shape=3000, stages=["naive"])
    assert {p.x: p.bytes for p in strides.points if p.kind == "stage"} == {1: 2 * 12000, 3: 2 * 4000}
    offsets = small(over="offset", values=[0, 5], shape=3000, stages=["naive"])
    assert {p.x: p.bytes for p in offsets.points if p.kind == "stage"} == {0: 2 * 12000, 5: 2 * 4 * 2995}


def test_widths_are_those_of_items_and_threads_are_set_and_put_back():
    widths = small(over="width", values=[1, 8], shape=4096, stages="tuned")
    assert {(p.x, p.dtype) for p in widths.points} == {(1, "uint8"), (8, "float64")}
    before = _core.get_num_threads()
    seen = []
    sweep = small(over="threads", values=[1, 2], shape=4096, stages="tuned", output=None)
    seen = [p.x for p in sweep.points if p.name == "tuned"]
    assert seen == [1, 2]
    assert _core.get_num_threads() == before


def test_outputs_are_verified_before_anything_is_timed(monkeypatch):
    right = _core.copy

    def wrong(x, *, out, stage):
        right(x, out=out, stage=stage)
        if stage == "tuned" and x.size == 2048:
            out[7] += 1

    monkeypatch.setattr(_core, "copy", wrong)
    with pytest.raises(gpumem.WrongResultError, match=r"copy/tuned is wrong at \(7,\)"):
        small()


def test_what_does_not_fit_is_left_out_with_the_reason(monkeypatch):
    monkeypatch.setattr("gpumem.machine.memory_free", lambda: 100_000)
    sweep = small(values="4K:64K")
    assert max(p.x for p in sweep.points) == 32768
    assert any("65536 of float32" in note or "needs 0.0 GB" in note for note in sweep.notes)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"lesson": "copi"}, "lesson with stages for cpu"),
        ({"lesson": "read"}, "lesson with stages for cpu"),
        ({"over": "sizes"}, "axis"),
        ({"over": "flight"}, "on a GPU"),
        ({"over": "stride", "lesson": "transpose"}, "this axis is for the lesson copy"),
        ({"over": "threads", "device": "sim"}, "on a CPU"),
        ({"device": "tpu"}, "device"),
        ({"values": "8K:4K"}, "from the smaller to the larger"),
        ({"values": "1Q"}, "size '1Q'"),
        ({"values": []}, "no value"),
        ({"values": [2]}, "at least 4"),
        ({"over": "stride", "values": [0]}, "at least 1"),
        ({"over": "offset", "values": [9], "shape": 9}, "offset 9 of an array of 9 items"),
        ({"over": "width", "values": [3]}, "items of 3 bytes"),
        ({"stages": "tund"}, "stage of copy"),
        ({"stages": []}, "none is named"),
        ({"repeat": 0}, "at least 1 round"),
        ({"shape": (3, 4)}, "makes its own"),
        ({"dtype": "object"}, "dtype"),
        ({"executor": ThreadPoolExecutor(1)}, "for device='sim'"),
        ({"output": "/nowhere/at/all.json"}, "cannot write"),
    ],
)
def test_bad_input_is_refused(options, said):
    with pytest.raises(gpumem.UsageError, match=said):
        small(**options)


@pytest.mark.parametrize("lesson, size, shape", [("copy", 1000, (250,)), ("layout", 64, (4, 4)), ("walk2d", 8, (1, 2))])
def test_shapes_of_sizes(lesson, size, shape):
    assert shape_of(lesson, size, 4) == shape


def test_ranges_as_people_write_them():
    assert parse_values("1:10:x2") == (1, 2, 4, 8)
    assert parse_values("4K:1M:x4", sizes=True) == (4096, 16384, 65536, 262144, 1048576)
    assert parse_values("1,1,2:3") == (1, 2, 3)
    for text in ("", "1:2:3:4", "1:5:0", "0:4:x2", "x", "1.5"):
        with pytest.raises(gpumem.UsageError):
            parse_values(text)
    assert [parse_bytes(text) for text in ("1.5K", "2 MiB", "7b")] == [1536, 2 << 20, 7]
    assert [parse_bytes(text) for text in ("9007199254740993", "1" * 400)] == [2**53 + 1, int("1" * 400)]
    assert [format_bytes(n) for n in (1, 1023, 1 << 31, 3 << 19, 12345678)] == [
        *("1 B", "1023 B", "2 GiB", "1.5 MiB"),
        "11.77 MiB",
    ]


# --- counted by the lens ---------------------------------------------------------------------------------------------


def test_the_lens_counts_sectors_by_stride_and_offset():
    assert [p.counters["sectors_per_load"] for p in counted().points] == [4, 8, 32, 32]
    assert [
        p.counters["sectors_per_load"] for p in counted("offset", [0, 1, 8], shape=1 << 14).points
    ] == pytest.approx([4, 5, 4], abs=0.02)
    banks = counted(lesson="banks", values=(1, 2, 32, 33))
    assert [p.counters["wavefronts_per_load"] for p in banks.points] == [1, 2, 32, 1]
    assert "counted by the lens" in str(banks)


def test_widths_are_bytes_of_an_access_and_what_is_too_wide_is_left_out():
    sweep = counted("width", [4, 8], lesson="copy", shape=4096)
    assert {(p.name, p.dtype, p.x) for p in sweep.points} == {
        *(("scalar", "float32", 4), ("vector2", "float32", 8), ("vector4", "float32", 16)),
        *(("scalar", "float64", 8), ("vector2", "float64", 16)),
    }
    assert any("32 bytes" in note for note in sweep.notes)


def test_an_executor_changes_nothing():
    with ThreadPoolExecutor(3) as pool:
        assert counted(executor=pool).points == counted().points


def test_bytes_in_flight_follow_from_the_machine_code():
    try:
        found = in_flight("scalar", "float32"), in_flight("vector4", "float32")
    except gpumem.UsageError as why:
        pytest.skip(str(why))
    assert found == (8192, 32768)


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_sweep_comes_back_from_its_json(tmp_path):
    sweep = small(output=tmp_path / "a.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json"]
    again = Sweep.read(tmp_path / "a.json")
    assert again.to_dict() == sweep.to_dict()
    assert again.points == sweep.points
    assert json.loads(sweep.to_json())["schema"] == "gpumem.sweep/1"
    assert again.environment["cpu"]


def test_a_sweep_of_several_types_is_a_table_of_them():
    text = str(Sweep.read(DATA / "h200" / "sweep-flight.json")).splitlines()
    assert text[1].split() == ["stage", "uint8", "int16", "float32", "float64", "complex128"]
    lines = {line.split()[0]: line.split() for line in text[3:]}
    assert lines["scalar"][1:6] == ["2", "KiB:", "830.1", "4", "KiB:"]
    assert lines["memcpy"][1:3] == ["4216", "4227"]
    assert max(map(len, text)) < 120


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "gpumem.bench/1"}', '{"schema": "gpumem.sweep/1"}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(gpumem.UsageError, match=r"a\.json (holds|is) no "):
        Sweep.read(tmp_path / "a.json")
    with pytest.raises(gpumem.UsageError, match="cannot read"):
        Sweep.read(tmp_path / "b.json")


class StoppedError(Exception):
    pass


def stop_after(monkeypatch, parts):
    right = Journal.write

    def write(self, number, outcome):
        right(self, number, outcome)
        if len(self.part.read_text().splitlines()) > parts:
            raise StoppedError

    monkeypatch.setattr(Journal, "write", write)


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(StoppedError):
            small(values="4K:32K", output=path)
    assert not path.exists()
    lines = (tmp_path / "a.json.part").read_text().splitlines()
    assert len(lines) == 3
    kept = json.loads(lines[1])["outcome"]["points"]
    # A line that was cut off is measured again.
    (tmp_path / "a.json.part").write_text("\n".join(lines) + '\n{"part": 2, "outco')
    sweep = small(values="4K:32K", output=path)
    assert [p.to_dict() for p in sweep.points if p.cell == 0] == kept
    assert {p.x for p in sweep.points} == {4096, 8192, 16384, 32768}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


# Waits after its second part, to be killed there however fast the machine is.
WAITING = """
import sys, time
from gpumem.cli import main
from gpumem.journal import Journal
right = Journal.write
def write(self, number, outcome):
    right(self, number, outcome)
    if len(self.part.read_text().splitlines()) > 2:
        time.sleep(600)
Journal.write = write
sys.exit(main())
"""


def test_a_killed_process_leaves_what_it_had(tmp_path):
    path = tmp_path / "a.json"
    command = [sys.executable, "-c", WAITING, "sweep", "copy", "--sizes", "4K:32K", "--repeat", "3", "-q"]
    process = subprocess.Popen([*command, "-o", str(path)], stdout=subprocess.DEVNULL)
    part = tmp_path / "a.json.part"
    try:
        while not part.exists() or part.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert not path.exists()
    first = json.loads(part.read_text().splitlines()[1])["outcome"]["points"]
    sweep = small(values="4K:32K", output=path)
    assert [p.to_dict() for p in sweep.points if p.cell == 0] == first
    assert max(p.x for p in sweep.points) == 32 << 10


@pytest.mark.parametrize("options", [{"repeat": 4}, {"dtype": "uint8"}, {"values": "4K:32K:x4"}, {"stages": "tuned"}])
def test_a_half_done_sweep_of_another_setting_is_not_mixed_in(tmp_path, monkeypatch, options):
    path = tmp_path / "a.json"
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StoppedError):
            small(values="4K:32K", output=path)
    before = (tmp_path / "a.json.part").read_bytes()
    with pytest.raises(gpumem.UsageError, match="is of another sweep"):
        small(**{"values": "4K:32K", **options}, output=path)
    assert (tmp_path / "a.json.part").read_bytes() == before


@pytest.mark.parametrize(
    "notes", [b"my notes\n", b"\xff\xfe\x00\n", b'{"schema": "gpumem.part/1"}\n', b"[" * 5000 + b"\n"], ids=len
)
def test_a_foreign_part_file_is_left_alone(tmp_path, notes):
    (tmp_path / "a.json.part").write_bytes(notes)
    with pytest.raises(gpumem.UsageError, match="no half-done sweep"):
        small(output=tmp_path / "a.json")
    assert (tmp_path / "a.json.part").read_bytes() == notes


def test_two_processes_do_not_write_one_file(tmp_path):
    with Journal(tmp_path / "a.json", {}, {}), pytest.raises(gpumem.UsageError, match="by another process"):
        small(output=tmp_path / "a.json")


# --- results ---------------------------------------------------------------------------------------------------------


def measured(*seconds, x=1, name="tuned"):
    return Point(x, 0, name, "stage", "float32", (4,), 32, tuple(seconds))


def of(*points):
    return Sweep("copy", "size", "copy", {"device": "cpu", "repeat": 7}, points, {"cpu": "a CPU"})


SLOW = (1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01)


def test_a_sweep_does_not_differ_from_itself_nor_from_noise():
    one = of(measured(*SLOW))
    assert one.compare(one).equal
    noise = of(measured(1.01, 0.98, 1.00, 1.02, 0.99, 1.01, 1.00))
    assert noise.compare(one).equal
    assert "no difference in any of 1 points" in str(noise.compare(one))


def test_what_is_faster_is_told_with_its_spread():
    fast = of(measured(*(s / 1.25 for s in SLOW)))
    found = fast.compare(of(measured(*SLOW)))
    (point,) = found.points
    assert point.differs
    assert point.ratio.median == pytest.approx(1.25, rel=0.01)
    assert point.ratio.low < point.ratio.median < point.ratio.high
    assert "1.25 times as fast" in str(found)
    assert json.loads(found.to_json())["points"][0]["verdict"] == point.verdict


def test_a_difference_smaller_than_asked_for_or_of_too_few_rounds_is_none():
    little = of(measured(*(s / 1.25 for s in SLOW)))
    assert little.compare(of(measured(*SLOW)), least=0.3).equal
    few = of(measured(0.5, 0.51, 0.49)).compare(of(measured(1, 1.01, 0.99)))
    assert few.equal
    assert "too few to tell" in str(few)


def test_counted_points_differ_where_they_are_not_the_same():
    one = counted()
    assert one.compare(counted()).equal
    other = replace(one, points=(replace(one.points[0], counters={"sectors_per_load": 5.0}), *one.points[1:]))
    assert [p.differs for p in one.compare(other).points] == [True, False, False, False]


def test_sweeps_that_cannot_be_compared_are_refused():
    with pytest.raises(gpumem.UsageError, match="no point in common"):
        of(measured(1.0)).compare(of(measured(1.0, x=2)))
    with pytest.raises(gpumem.UsageError, match="a sweep over size on cpu"):
        counted().compare(of(measured(1.0)))


def test_the_test_of_ranks_is_exact():
    assert by_chance([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert by_chance([1, 3, 5, 7], [2, 4, 6, 8]) > 0.5
    assert sum(sweep_result.ways(7, 7)) == 3432
    assert by_chance([1, 1, 1], [1, 1, 1]) == 1


def test_a_data_frame_has_a_row_a_sample():
    pandas = pytest.importorskip("pandas")
    sweep = small(values=[4096], stages="tuned")
    frame = sweep.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 3 * len(sweep.points)
    assert set(frame) >= {"size", "name", "kind", "dtype", "bytes", "round", "seconds", "gb_per_s"}
    assert "sectors_per_load" in counted().to_dataframe()


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(gpumem.UsageError, match="pip install pandas"):
        of(measured(1.0)).to_dataframe()


# --- what was recorded on an H200 and its CPU ------------------------------------------------------------------------


def test_every_lesson_of_the_gpu_was_recorded():
    sweeps = [Sweep.read(path) for path in RECORDED]
    assert {s.lesson for s in sweeps if s.device == "cuda"} == {stage.lesson for stage in gpumem.stages(device="cuda")}
    assert {s.lesson for s in sweeps if s.device == "cpu"} == {stage.lesson for stage in gpumem.stages(device="cpu")}
    assert {s.over for s in sweeps} == set(sweep_result.AXES)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_recorded_sweeps_are_whole(path):
    sweep = Sweep.read(path)
    assert sweep.environment["commit"]
    assert set(sweep.best) == {point.cell for point in sweep.points}
    for point in sweep.points:
        assert len(point.seconds) >= 3
        assert point.gb_per_s.low > 0
        assert sweep.of_copy(point).median < 1.2 or sweep.device == "cpu" or point.bytes < 1 << 28


def test_recorded_strides_fall_until_a_lane_has_its_granule_alone():
    strides = Sweep.read(DATA / "h200" / "sweep-stride.json").series()["strided", "float32"]
    speed = {point.x: point.gb_per_s.median for point in strides}
    assert list(speed) == list(range(1, 65))
    assert speed[1] > 1.5 * speed[4] > 2 * speed[8]
    assert speed[8] > 1.7 * speed[16]  # 64 bytes: memory hands out no less
    assert speed[16] < 1.3 * speed[32]
