"""Nsight Compute's report in the shape of the lens's: pages that it printed on an H200, and the commands.

tests/data/ncu/tile-*.csv are the source pages of k17_w32 (tests/data/truth/kernels), 2 x 2 blocks of 32 x 8 threads.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from sizes import not_small

import gpumem
from gpumem import ncu
from gpumem.arguments import lay_out
from gpumem.errors import UsageError
from gpumem.launch import Job, write_back
from gpumem.metrics import METRICS

DATA = Path(__file__).parent / "data"
TILE = DATA / "ptx" / "truth_17_classic_transpose_tile.ptx"


def site_rows():
    from gpumem.profile import source_lines, source_rows

    rows = source_rows((DATA / "ncu" / "tile-sass.csv").read_text())
    lines = source_lines((DATA / "ncu" / "tile-cuda-sass.csv").read_text())
    for row in rows:
        row["file"], row["line"] = lines.get(row["Address"], ("", "0"))
    return rows


def counted():
    from gpumem.profile import COUNTED, trace_of

    launch = ncu.Launch("k17_w32", (2, 2, 1), (32, 8, 1), "", dict.fromkeys(COUNTED, 7))
    return trace_of([launch], site_rows(), 0, "sm_90", {})


def test_instructions_and_their_costs_are_read():
    sites = counted().sites
    assert [(site.opcode, site.kind, site.space, site.width) for site in sites] == [
        ("LDG.E.CONSTANT", "load", "global", 4),
        ("STS", "store", "shared", 4),
        ("LDS", "load", "shared", 4),
        ("STG.E", "store", "global", 4),
    ]
    assert {site.where for site in sites} == {"17_classic_transpose_tile.cu:11"}
    assert [site.executions for site in sites] == [128] * 4
    assert [site.sectors for site in sites] == [512, 0, 0, 512]
    assert [site.conflicts for site in sites] == [0, 0, 128 * 31, 0]


def test_the_lens_says_the_same_of_each_instruction():
    kernel = gpumem.Kernel(TILE, "k17_w32")
    x = np.arange(4096, dtype="f4")
    trace = kernel.trace((2, 2), (32, 8), x, np.zeros_like(x), 64, machine_code=False)
    names = ("kind", "space", "width", "executions", "lanes", "sectors", "sectors_ideal", "wavefronts", "conflicts")
    ours, theirs = ([[getattr(site, name) for name in names] for site in each.sites] for each in (trace, counted()))
    assert ours == theirs


def test_a_profile_is_a_trace_from_elsewhere():
    trace = counted()
    assert trace.origin == "ncu"
    assert set(trace.counters) > {metric.name for metric in METRICS}
    assert set(trace.counters.values()) == {7}
    assert "counted by Nsight Compute" in str(trace)
    assert gpumem.Trace.from_dict(json.loads(trace.to_json())).counters == trace.counters


def test_results_of_a_launch_go_back_into_the_arrays():
    kernel = gpumem.Kernel(gpumem.examples.COPY)
    out, x = np.zeros(4, "f4"), np.ones(4, "f4")
    x.flags.writeable = False
    layout = lay_out(kernel.parameters, 20, [out, x, 4])
    write_back(layout.buffers, [np.full(4, 3, "f4").tobytes(), np.full(4, 5, "f4").tobytes()])
    assert (out.tolist(), x.tolist()) == ([3] * 4, [1] * 4)
    assert Job.__dataclass_params__.frozen


def test_without_ncu_the_reason_is_told(monkeypatch):
    monkeypatch.setenv("NCU", "/nowhere/ncu")
    kernel = gpumem.Kernel(gpumem.examples.COPY)
    with pytest.raises(UsageError, match="NCU is '/nowhere/ncu'"):
        gpumem.profile(kernel, 1, 32, None, None, 0)


# --- the commands ----------------------------------------------------------------------------------------------------


LAUNCH = ("--kernel", "k17_w33", "--grid", "2,2", "--block", "32,8", "--arg", "x:f32[64,64]=random")


def test_trace_prints_writes_and_saves(said, tmp_path):
    page, saved = tmp_path / "a.html", tmp_path / "out.npy"
    arguments = [TILE, *LAUNCH, "--arg", "out:f32[64,64]", "--arg", "64", "--html", page, "--save", f"out={saved}"]
    status, out, err = said("trace", *arguments)
    assert (status, err) == (0, "")
    assert "k17_w33: 2 x 2 x 1 blocks" in out
    assert page.read_text().startswith("<!doctype html>")
    assert (np.load(saved) == gpumem.run("transpose", "naive", np.load(saved)).T).all()
    status, out, err = said("trace", *arguments, "--json")
    data = json.loads(out)
    assert data["counters"]["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 128


def test_hazards_end_the_command_with_1(said):
    status, out, err = said("trace", TILE, *LAUNCH, "--arg", "out:f32[32,64]", "--arg", "64")
    assert status == 1
    assert "What would go wrong on a GPU" in out
    assert err == "gpumem trace: hazards in k17_w33: out-of-bounds; see the report\n"


@pytest.mark.parametrize(
    "arguments, line",
    [
        (["trace"], "give a FILE, or --stage LESSON/STAGE"),
        (["trace", "/nowhere.cu", "--grid", "1", "--block", "1"], "cannot read /nowhere.cu: No such file or directory"),
        (["trace", TILE], "give --grid and --block"),
        (["trace", TILE, "--grid", "1", "--block", "1"], "the PTX has no such kernel|give one|several"),
        (["trace", TILE, *LAUNCH], "the kernel takes 3 arguments"),
        (["trace", TILE, *LAUNCH, "--save", "y=a.npy"], "--save 'y=a.npy': NAME=FILE.npy with the name of an array: x"),
        (["trace", TILE, *LAUNCH[:2], "--grid", "a", "--block", "1"], "--grid 'a': one to three lengths"),
        (["trace", "--stage", "transpose"], "--stage 'transpose': such as transpose/padded"),
        (["trace", "--stage", "transpose/paded"], "no cuda stage of transpose 'paded'"),
        (["profile", TILE, *LAUNCH, "--cluster", "2"], "--cluster: a profile takes"),
    ],
    ids=str,
)
def test_errors_are_one_line(said, arguments, line):
    import re

    status, out, err = said(*arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert re.search(line, err)


@not_small("another profiler")
@pytest.mark.gpu
def test_the_lens_and_the_hardware_agree(cuda_device):
    try:
        ncu.find()
    except UsageError as error:
        pytest.skip(str(error))
    kernel = gpumem.Kernel(TILE, "k17_w32")
    x, out, there = np.arange(4096, dtype="f4"), np.zeros(4096, "f4"), np.zeros(4096, "f4")
    trace = kernel.trace((2, 2), (32, 8), x, out, 64)
    kernel.launch((2, 2), (32, 8), x, there, 64)
    assert (out == there).all()
    assert trace.compare(gpumem.profile(kernel, (2, 2), (32, 8), x, out, 64)).equal
