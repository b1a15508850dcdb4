"""Nsight Compute: what it prints is read as it was recorded on an H200, and where it cannot count, the reason is told.

tests/data/ncu holds the raw pages of the ladders `transpose` (8192 x 8192 float32) and `reduce` (2**24 float32) as
Nsight Compute 2025.3.1 printed them, without most of the columns that nobody asked for.
"""

import json
import sys
from pathlib import Path

import pytest
from sizes import not_small

import gpumem
from gpumem import ncu
from gpumem.device_counters import by_rung, command
from gpumem.device_ladder import rungs_of
from gpumem.ladder import Ladder, Rung
from gpumem.ncu import Counters, Launch, UsageError
from gpumem.timing import Spread

DATA = Path(__file__).parent / "data" / "ncu"
WARPS = 8192 * 8192 // 32

# Stands in for ncu: --export runs the command as told by MODE, --import prints the recorded page.
FAKE = """#!{python}
import os, pathlib, subprocess, sys
arguments = sys.argv[1:]
mode = os.environ["FAKE_NCU"]
if "--import" in arguments:
    print(pathlib.Path(os.environ["FAKE_NCU_PAGE"]).read_text(), end="")
elif mode == "counts":
    at = arguments.index("--export")
    pathlib.Path(arguments[at + 1] + ".ncu-rep").write_text("")
    pathlib.Path(os.environ["FAKE_NCU_PAGE"] + ".arguments").write_text("\\n".join(arguments))
else:
    print("==PROF== Connected to process 4321 (/usr/bin/python3.12)")
    print(mode)
    sys.exit(int(os.environ.get("FAKE_NCU_STATUS", "1")))
"""


def launches(lesson):
    return ncu.parse_raw((DATA / f"{lesson}.csv").read_text())


def rungs(lesson):
    groups = by_rung(launches(lesson), [name for name, _, _ in rungs_of(gpumem.stages(lesson, "cuda"))])
    return {name: Counters.of(group) for name, group in groups.items()}


@pytest.fixture
def fake_ncu(tmp_path, monkeypatch):
    """An ncu that prints the page of a lesson, or fails with a text."""
    program = tmp_path / "ncu"
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    page = tmp_path / "page.csv"
    monkeypatch.setenv("NCU", str(program))
    monkeypatch.setenv("FAKE_NCU_PAGE", str(page))

    def behave(mode, text="", status=1):
        page.write_text(text)
        monkeypatch.setenv("FAKE_NCU", mode)
        monkeypatch.setenv("FAKE_NCU_STATUS", str(status))
        return Path(f"{page}.arguments")

    return behave


def test_a_launch_has_its_name_its_dimensions_its_range_and_every_metric():
    first = launches("transpose")[0]
    assert (first.kernel, first.grid, first.block) == ("transpose_naive_4", (65536, 1, 1), (256, 1, 1))
    assert "gpumem-rung-0" in first.label
    assert set(first.counters) == set(ncu.METRICS)
    assert first.counters["smsp__inst_executed.sum"] == 71827456


@pytest.mark.parametrize(
    "stage, load, store, conflicts",
    [
        ("naive", 4, 32, None),
        ("tiled", 4, 4, 31 * WARPS),
        ("padded", 4, 4, 0),
        ("swizzled", 4, 4, 0),
        ("bulk", None, 4, 3 * WARPS),
        ("vectorised", 16, 16, 0),
        ("tuned", 16, 16, 0),
    ],
)
def test_sectors_and_conflicts_of_the_transposes_of_an_h200(stage, load, store, conflicts):
    counted = rungs("transpose")[stage]
    assert (counted.sectors_per_request("ld"), counted.sectors_per_request("st")) == (load, store)
    assert counted.bank_conflicts == conflicts


def test_the_launches_of_a_stage_are_added_up():
    counted = rungs("reduce")
    assert list(counted) == [stage.name for stage in gpumem.stages("reduce", "cuda")]
    # Three launches: 2**24, 2**16 and 2**8 items, 32 of them a load.
    assert counted["interleaved"].metrics[ncu.REQUESTS["ld"]] == (2**24 + 2**16 + 2**8) // 32
    assert counted["interleaved"].bank_conflicts == 0  # it is slow because its warps diverge
    assert counted["strided"].bank_conflicts > 6e6


@pytest.mark.parametrize("cell, value", [("12", 12), ("1,234,567", 1234567), ("1.5", 1.5), ("", 0), ("n/a", 0)])
def test_numbers_as_ncu_prints_them(cell, value):
    assert ncu.number(cell) == value


def test_lines_around_the_table_are_passed_over():
    text = (DATA / "transpose.csv").read_text()
    noisy = f"==PROF== Connected\na program says this\n{text}\nand this\n"
    assert ncu.parse_raw(noisy) == launches("transpose")


@pytest.mark.parametrize("text", ["", "==PROF== Disconnected\n", '"a","b"\n"1","2"\n'])
def test_text_that_is_no_table_is_refused(text):
    with pytest.raises(UsageError, match="no table of launches"):
        ncu.parse_raw(text)


def test_a_metric_that_was_not_counted_is_named():
    with pytest.raises(UsageError, match=r"did not count dram__bytes\.sum: this GPU"):
        ncu.parse_raw((DATA / "transpose.csv").read_text(), ["dram__bytes.sum"])


def test_merged_loads_do_not_make_negative_conflicts():
    # 8-byte loads whose lanes agree in pairs are served in one wavefront, and ncu's ideal says 2.
    assert Counters({ncu.WAVEFRONTS["ld"]: 1, ncu.IDEAL_WAVEFRONTS: 2}).bank_conflicts == 0


def test_a_command_is_run_under_ncu_with_clocks_left_alone(fake_ncu):
    arguments = fake_ncu("counts", (DATA / "transpose.csv").read_text())
    found = ncu.collect(["prog", "--its", "own"], options=["--profile-from-start", "off"])
    assert found == launches("transpose")
    given = arguments.read_text().splitlines()
    assert given[-3:] == ["prog", "--its", "own"]
    assert given[given.index("--clock-control") + 1] == "none"
    assert given[given.index("--profile-from-start") + 1] == "off"
    assert given[given.index("--metrics") + 1].split(",") == list(ncu.METRICS)


@pytest.mark.parametrize(
    "printed, said",
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
            "this user may not read the GPU's counters .ERR_NVGPUCTRPERM.: run it as root, in a container with",
        ),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "does not let programs be profiled"),
        ("==WARNING== No kernels were profiled.", "no kernel ran while Nsight Compute was watching"),
        ("==ERROR== Failed to find metric abc.sum", "does not know a metric: ERROR== Failed to find metric abc.sum"),
        ("error: device 'cuda': no driver", "the program under Nsight Compute failed: error: device 'cuda': no driver"),
        ("", "the program under Nsight Compute failed: it said nothing"),
    ],
)
@pytest.mark.parametrize("status", [0, 1])  # where no kernel ran, ncu ends with 0
def test_the_reason_is_told_where_nothing_was_counted(fake_ncu, printed, said, status):
    fake_ncu(printed, status=status)
    with pytest.raises(UsageError, match=said) as caught:
        ncu.collect(["prog"])
    assert "\n" not in str(caught.value)


def test_a_command_that_does_not_end_is_ended(fake_ncu, tmp_path):
    fake_ncu("counts")
    (tmp_path / "ncu").write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    with pytest.raises(UsageError, match=r"did not end within 0\.5 s"):
        ncu.collect(["prog"], timeout=0.5)


def test_where_ncu_was_looked_for_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("NCU", "/nowhere/ncu")
    with pytest.raises(UsageError, match="NCU is '/nowhere/ncu', which is no program"):
        ncu.find()
    monkeypatch.delenv("NCU")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    if not list(Path("/opt/nvidia/nsight-compute").glob("*/ncu")) and not Path("/usr/local/cuda/bin/ncu").exists():
        with pytest.raises(UsageError, match=rf"no program ncu in the PATH, {tmp_path}/bin, .*: install NVIDIA's"):
            ncu.find()
    (tmp_path / "ncu").write_text("#!/bin/sh\n")
    (tmp_path / "ncu").chmod(0o755)
    assert ncu.find() == tmp_path / "ncu"


def test_the_child_is_the_same_python_and_the_same_gpumem():
    program = command("transpose", (64, 32), "float32")
    assert program[0] == sys.executable
    assert str(Path(gpumem.__file__).parent.parent) in program[2]
    assert program[3:] == ["transpose", "", "float32", "64", "32"]


def test_counters_are_of_a_gpu():
    with pytest.raises(UsageError, match="counters are those of a GPU: give device='cuda'"):
        gpumem.ladder("transpose", (4, 4), counters=True, progress=False)


def test_a_ladder_shows_what_was_counted():
    counted = rungs("transpose")
    one = Spread.of([1.0])
    steps = [
        Rung(name, "stage", "idea", (1.0,), 8, one, None, counted.get(name)) for name in ("naive", "tiled", "memcpy")
    ]
    environment = {"device": "NVIDIA H200", "cuda": "13.0"}
    ladder = Ladder("transpose", (8192, 8192), "float32", "copy", 8, tuple(steps), environment)
    lines = str(ladder).splitlines()
    assert "sectors/load  sectors/store  bank conflicts" in lines[1]
    assert lines[3].split()[-4:] == ["█" * 10, "4.00", "32.00", "idea"]
    assert "65,011,712" in lines[4]
    assert ">65,011,712</td>" in ladder._repr_html_()
    data = json.loads(ladder.to_json())["rungs"]
    assert data[1]["counters"]["bank_conflicts"] == 65011712
    assert data[1]["counters"]["metrics"]["smsp__inst_executed.sum"] == 123207680
    assert "counters" not in data[2]


def test_sums_of_nothing():
    assert Counters.of([]).to_dict() == {
        "sectors_per_load": None,
        "sectors_per_store": None,
        "bank_conflicts": None,
        "metrics": {},
    }
    assert Counters.of([Launch("k", (1,), (1,), "", {"a": 1}), Launch("k", (1,), (1,), "", {"a": 2})]).metrics == {
        "a": 3
    }


# Sectors a load and a store of an H200 and any later chip, for 4-byte items of a large aligned array.
EXPECTED = {
    "transpose": {"naive": (4, 32), "tiled": (4, 4), "padded": (4, 4), "swizzled": (4, 4), "vectorised": (16, 16)},
    "read": {"strided 32": (32, 4), "strided 4": (16, 4), "strided 2": (8, 4), "coalesced": (4, 4)},
    "walk2d": {"columns": (32, 32), "rows": (4, 4)},
}


@not_small("another profiler")
@pytest.mark.gpu
@pytest.mark.parametrize("lesson", EXPECTED)
def test_ladders_count_on_a_gpu(torch, lesson):
    try:
        ncu.find()
    except UsageError as error:
        pytest.skip(str(error))
    shape = (1 << 20,) if lesson == "read" else (1024, 2048)
    ladder = gpumem.ladder(lesson, shape, device="cuda", repeat=3, peers=[], counters=True, progress=False)
    for name, (load, store) in EXPECTED[lesson].items():
        counted = ladder[name].counters
        assert (counted.sectors_per_request("ld"), counted.sectors_per_request("st")) == (load, store), name
    if lesson == "transpose":
        assert ladder["tiled"].counters.bank_conflicts == 31 * 1024 * 2048 // 32
        assert ladder["padded"].counters.bank_conflicts == 0
