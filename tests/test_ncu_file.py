"""Reports that Nsight Compute wrote (.ncu-rep), read without a GPU, and which chips have which metrics.

tests/data/ncu/names.json: which chips have which metric. tile.ncu-rep: k17_w32 of tests/data/truth/kernels, 2 x 2
blocks of 32 x 8 threads, as Nsight Compute 2025.3.1 recorded it on an H200.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import gpumem
from gpumem import ncu, ncu_file
from gpumem.cli import main
from gpumem.errors import UsageError
from gpumem.explain import EXPLAINED
from gpumem.metrics import INSTRUCTIONS, METRICS, known_to

DATA = Path(__file__).parent / "data"
NAMES = json.loads((DATA / "ncu" / "names.json").read_text())
REPORT = DATA / "ncu" / "tile.ncu-rep"


@pytest.mark.parametrize("row", EXPLAINED, ids=lambda row: row.name)
def test_every_chip_has_what_is_explained_or_that_is_said(row):
    absent = set(NAMES["chips"]) - set(NAMES["metrics"][row.name])
    assert all(f"sm_{chip}" in row.formula for chip in absent)


@pytest.mark.parametrize("chip", NAMES["chips"])
def test_a_profile_asks_a_chip_for_what_it_has(chip):
    has = [name for name in ncu_file.WANTED if chip in NAMES["metrics"][name]]
    assert known_to(int(chip), ncu_file.WANTED) == has
    assert known_to(None, ncu_file.WANTED) == list(ncu_file.WANTED)


# --- reports ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def ncu_report():
    return pytest.importorskip("ncu_report", reason="needs pip install 'gpumem[ncu]'", exc_type=ImportError)


def test_a_report_is_a_trace(ncu_report):
    (trace,) = ncu_file.read(REPORT)
    assert (trace.kernel, trace.grid, trace.block, trace.arch) == ("k17_w32", (2, 2, 1), (32, 8, 1), "sm_90")
    assert trace.origin == "ncu"
    assert trace.counters[INSTRUCTIONS] == trace.instructions == 2880
    assert [(s.opcode, s.kind, s.space, s.width, s.where) for s in trace.sites] == [
        (opcode, kind, space, 4, "17_classic_transpose_tile.cu:11")
        for opcode, kind, space in [
            ("LDG.E.CONSTANT", "load", "global"), ("STS", "store", "shared"),
            ("LDS", "load", "shared"), ("STG.E", "store", "global"),
        ]
    ]  # fmt: skip
    assert [site.sectors for site in trace.sites] == [512, 0, 0, 512]
    assert [site.conflicts for site in trace.sites] == [0, 0, 128 * 31, 0]


def test_the_lens_agrees_with_the_report(ncu_report):
    (profile,) = ncu_file.read(REPORT)
    kernel_ = gpumem.Kernel(DATA / "ptx" / "truth_17_classic_transpose_tile.ptx", "k17_w32")
    trace = kernel_.trace((2, 2), (32, 8), np.arange(4096, dtype="f4"), np.zeros(4096, "f4"), 64)
    comparison = trace.compare(profile)
    assert comparison.equal
    assert len([name for name in trace.counters if name in profile.counters]) == len(METRICS)
    assert gpumem.Trace.from_dict(json.loads(profile.to_json())).counters == profile.counters


def test_the_command_reads_and_explains(ncu_report, capsys):
    assert main(["profile", str(REPORT)]) == 0
    assert (
        "k17_w32: 2 x 2 x 1 blocks of 32 x 8 x 1 threads, counted by Nsight Compute (sm_90)" in capsys.readouterr().out
    )
    assert main(["profile", str(REPORT), "--explain", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["counters"]}
    load = rows["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"]
    assert (load["value"], load["ideal_value"]) == (4096, 128)


@pytest.mark.parametrize("content", [b"", b"no report"])
def test_what_is_no_report_is_refused(ncu_report, content, tmp_path):
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"a\.ncu-rep is no report of Nsight Compute"):
        ncu_file.read(path)


def test_a_missing_report_is_named():
    with pytest.raises(UsageError, match=r"cannot read /nowhere\.ncu-rep"):
        ncu_file.read("/nowhere.ncu-rep")


def test_without_the_package_and_the_program_both_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    monkeypatch.setenv("NCU", "/nowhere/ncu")
    with pytest.raises(UsageError, match=r"no package ncu-report, and NCU is '/nowhere/ncu'.*gpumem\[ncu\]"):
        ncu_file.read(REPORT)


def test_the_program_reads_it_where_the_package_is_missing(monkeypatch, tmp_path):
    """Its pages are those of the recorded ladder `transpose`: eight launches, which make one trace."""
    program = tmp_path / "ncu"
    program.write_text(f"#!/bin/sh\ncat {DATA / 'ncu' / 'transpose.csv'}\n")
    program.chmod(0o755)
    monkeypatch.setenv("NCU", str(program))
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    (trace,) = ncu_file.read(REPORT)
    launches = ncu.parse_raw((DATA / "ncu" / "transpose.csv").read_text())
    assert trace.counters[ncu.SECTORS["ld"]] == sum(launch.counters[ncu.SECTORS["ld"]] for launch in launches) > 0
    assert trace.origin == "ncu"
    assert trace.sites == ()
