"""Binding to machine code (gpumem/binding.py): what ptxas changed is counted as changed, what is not clear is named."""

import re
from pathlib import Path

import numpy as np
import pytest

import gpumem
from gpumem import _core, ptxas
from gpumem.binding import Binding, bind, bind_accesses
from gpumem.errors import UsageError
from gpumem.occupancy import CHIPS, Occupancy, occupancy
from gpumem.ptxas import Resources
from gpumem.sass import Access, only_entry, ptx_accesses, sass_accesses, sass_instructions

DATA = Path(__file__).parent / "data"
PTX = DATA / "ptx"
has_tools = pytest.mark.skipif(not ptxas.tool("ptxas"), reason="needs ptxas: pip's, or a toolkit's")


def load(line: int, offset: int, base: str = "%r1", what: str = "ld.shared 4") -> Access:
    return Access(what, line, base, offset)


def made(line: int, what: str = "ld.shared 4", **how: bool) -> Access:
    return Access(what, line, **how)


def bytes_of(binding: Binding) -> list[int]:
    return [site.bytes for site in binding.sites]


FOUR = [load(10, 0), load(11, 4), load(12, 8), load(13, 12)]


@pytest.mark.parametrize(
    "sites, machine, wanted, changes",
    [
        (FOUR[:1], [made(10)], [4], 0),
        (FOUR[:1], [made(10), made(10)], [4], 0),  # an unrolled loop has it twice and executes it as often
        (FOUR[:2], [made(10, "ld.shared 8")], [8, 0], 1),
        (FOUR[:2], [made(11, "ld.shared 8")], [8, 0], 1),
        (FOUR[:2][::-1], [made(10, "ld.shared 8")], [0, 8], 1),
        (FOUR, [made(12, "ld.shared 16")], [16, 0, 0, 0], 1),
        (FOUR, [made(10, "ld.shared 8"), made(12, "ld.shared 8")], [8, 0, 8, 0], 2),
        (FOUR[1:], [made(11), made(12, "ld.shared 8")], [4, 8, 0], 1),
        ([load(10, 0), load(11, 4, "%r2"), load(12, 4)], [made(10, "ld.shared 8"), made(11)], [8, 4, 0], 1),
        (FOUR[:2], [made(10)], [4, 0], 1),
    ],
)
def test_what_can_be_told_is_bound(sites, machine, wanted, changes):
    binding = bind_accesses(sites, machine, "sm_90")
    assert binding.exact
    assert str(binding) == "exact"
    assert bytes_of(binding) == wanted
    assert len(binding.changes) == changes


@pytest.mark.parametrize(
    "sites, machine, said",
    [
        (FOUR[:2], [made(10, "ld.shared 8"), made(11)], "line 10: ld.shared 4 became ld.shared 8, with which others"),
        (FOUR[:3], [made(11, "ld.shared 16")], "line 11: ld.shared 4 became ld.shared 16"),
        (FOUR[:1], [made(10), made(10, "ld.shared 16")], "1 x ld.shared 16, 1 x ld.shared 4"),
        (FOUR[:1], [made(10), made(99, "st.local 4")], "1 x st.local 4 at line 99, where the PTX accesses no memory"),
        (FOUR[:1], [made(10, "ld.global 4")], "line 10: ld.shared 4 became 1 x ld.global 4"),
        ([load(10, 0), load(10, 4)], [made(10, "ld.shared 8")], "line 10: 2 x ld.shared 4 in PTX alone"),
        (FOUR[:2], [made(0, "ld.shared 8")], "2 x ld.shared 4 in PTX alone; 1 x ld.shared 8 in machine code alone"),
    ],
)
def test_what_cannot_be_told_is_named(sites, machine, said):
    binding = bind_accesses(sites, machine, "sm_90")
    assert not binding.exact
    assert said in str(binding)
    assert str(binding).startswith("approximate: ")
    assert bytes_of(binding) == [site.bytes for site in sites]  # counted as written


def test_atomics_are_bound_to_what_they_become():
    sites = [
        load(1, 0, what="atom.global.add 4"),
        load(2, 0, what="atom.shared.add 4"),
        load(3, 0, what="atom.global.add 4"),
    ]
    machine = [
        made(1, "red.global.add 4"),
        made(2, "atom.shared.add 4", counter=True),
        made(3, "red.global.add 4", elected=True),
    ]
    binding = bind_accesses(sites, machine, "sm_90")
    assert binding.exact
    assert [(s.kind, s.counter, s.elected) for s in binding.sites] == [
        ("red.global.add", False, False), ("atom.shared.add", True, False), ("red.global.add", False, True),
    ]  # fmt: skip


def test_generic_accesses_take_the_space_that_the_machine_has():
    binding = bind_accesses([load(1, 0, what="ld.generic 4")], [made(1, "ld.global 4")], "sm_90")
    assert binding.exact
    assert binding.sites[0].kind == "ld.global"


# with the assembler


@has_tools
@pytest.mark.parametrize(
    "kernel, changes, unbound",
    [
        ("two", ["lines 49, 50: 2 x ld.shared 4 became ld.shared 8"], []),
        ("unrolled", 8, []),
        (
            "histogram",
            ["atom.shared.add 4 counts the lanes of each word at once", "is done by one lane", "became red.global"],
            [],
        ),
        ("shared_float_sum", [], ["atom.shared.add 4 became 1 x atom.shared.cas 4, 1 x ld.shared 4"]),
    ],
)
def test_kernels_that_the_assembler_changes(kernel, changes, unbound):
    binding = bind((PTX / "fused.ptx").read_text(), kernel, "sm_90")
    if isinstance(changes, int):
        assert len(binding.changes) == changes
    else:
        assert all(said in got for said, got in zip(changes, binding.changes, strict=True))
    assert all(said in got for said, got in zip(unbound, binding.unbound, strict=True))
    assert binding.exact == (not unbound)


TRUTH = sorted(PTX.glob("truth_*.ptx")) + sorted((DATA / "truth" / "front").glob("*.ptx"))


@has_tools
@pytest.mark.parametrize("path", TRUTH, ids=lambda path: path.stem)
def test_every_kernel_that_was_measured_is_bound_exactly(path):
    text = path.read_text()
    entries = re.findall(r"\.entry\s+([\w$]+)", text)
    assert entries
    assert {name: str(bind(text, name)) for name in entries} == dict.fromkeys(entries, "exact")


@has_tools
def test_measured_launches_keep_bytes_in_flight():
    binding = bind((PTX / "truth_lesson_kernels.ptx").read_text(), "_Z5copy4PfPKfi")
    assert binding.thread_bytes == 16
    assert binding.fit(256, 0)["bytes_in_flight"] == 16 * 256 * binding.fit(256, 0)["blocks"]


@has_tools
def test_an_unknown_kernel_or_bad_text_is_refused():
    with pytest.raises(UsageError, match="no kernel 'three'"):
        bind((PTX / "fused.ptx").read_text(), "three")
    with pytest.raises(UsageError, match="ptxas refuses this for sm_90"):
        bind(".version 9.0\n.target sm_90\n.address_size 64\nnonsense", "three")


@has_tools
def test_text_that_the_assembler_refuses_is_traced_as_it_is_written(monkeypatch, tmp_path):
    refusing = tmp_path / "ptxas"
    refusing.write_text("#!/bin/sh\necho 'ptxas fatal   : too new' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("GPUMEM_PTXAS", str(refusing))
    monkeypatch.delenv("GPUMEM_MACHINE_CODE")
    ptxas.assemble.cache_clear()
    kernel = gpumem.Kernel((PTX / "fused.ptx").read_text(), "two")
    x, out = np.ones(64, np.float32), np.zeros(32, np.float32)
    assert (
        kernel.trace(1, 32, out, x).counts
        == "as the PTX is written: ptxas refuses this for sm_90: ptxas fatal   : too new"
    )
    with pytest.raises(UsageError, match="too new"):
        kernel.trace(1, 32, out, x, machine_code=True)


def test_a_missing_tool_says_what_brings_it(monkeypatch):
    monkeypatch.setenv("GPUMEM_PTXAS", "/nowhere/ptxas")
    with pytest.raises(UsageError, match="pip install nvidia-cuda-nvcc, or set GPUMEM_PTXAS"):
        ptxas.needed("ptxas")


def test_lines_of_the_ptx_are_read_from_the_disassembly():
    text = """
.text.k:
	//## File ".nv_debug_ptx_txt", line 7
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File ".nv_debug_ptx_txt", line 9
        /*0010*/                   VOTEU.ANY UR4, UPT, PT ;
        /*0020*/                   UFLO.U32 UR5, UR4 ;
.L_x_1:
        /*0030*/              @P0  REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R5 ;
	//## File ".nv_debug_ptx_txt", line 11
        /*0040*/                   ATOMS.POPC.INC.32 RZ, [R5+URZ] ;
"""
    found = sass_instructions(text)["k"]
    assert [each.line for each in found] == [7, 9, 9, 9, 11]
    assert [each.label for each in found] == [False, False, False, True, False]
    assert sass_accesses(found) == [
        Access("red.global.add 4", 9, elected=True), Access("atom.shared.add 4", 11, counter=True),
    ]  # fmt: skip


# occupancy


@pytest.mark.parametrize(
    "arch, threads, registers, shared, wanted",
    [
        ("sm_90", 256, 32, 0, Occupancy(8, 64, 1.0, ("warps", "registers"))),
        ("sm_90", 384, 162, 0, Occupancy(1, 12, 12 / 64, ("registers",))),
        ("sm_90", 384, 156, 0, Occupancy(1, 12, 12 / 64, ("registers",))),
        ("sm_90", 128, 16, 100 * 1024, Occupancy(2, 8, 8 / 64, ("shared memory",))),
        ("sm_90", 32, 16, 0, Occupancy(32, 32, 0.5, ("blocks",))),
        ("sm_80", 1024, 32, 33 * 1024, Occupancy(2, 64, 1.0, ("warps", "registers"))),
        ("sm_75", 1024, 40, 0, Occupancy(1, 32, 1.0, ("warps", "registers"))),
        ("sm_90a", 33, 20, 0, Occupancy(32, 64, 1.0, ("warps", "blocks"))),
    ],
)
def test_occupancy(arch, threads, registers, shared, wanted):
    assert occupancy(arch, threads, Resources(registers, 0, 0, 0, shared, 1)) == wanted


@pytest.mark.parametrize(
    "arch, threads, registers, shared, said",
    [
        ("sm_90", 512, 156, 0, "156 registers a thread: at most 384 threads"),
        ("sm_90", 405, 162, 0, "162 registers a thread: at most 384 threads"),
        ("sm_90", 32, 16, 227 * 1024 + 1, "232449 bytes of shared memory a block: sm_90 has 232448"),
        ("sm_90", 1025, 16, 0, "1025 threads in a block"),
        ("sm_20", 32, 16, 0, "no table for sm_20"),
    ],
)
def test_blocks_that_do_not_fit_name_the_limit(arch, threads, registers, shared, said):
    with pytest.raises(UsageError, match=said):
        occupancy(arch, threads, Resources(registers, 0, 0, 0, 0, 1), shared)


def test_no_chip_holds_more_than_its_warps():
    for number, chip in CHIPS.items():
        for threads in (1, 32, 33, 96, 1024):
            got = occupancy(f"sm_{number}", threads, Resources(24, 0, 0, 0, 0, 0))
            assert 0 < got.warps <= chip.warps
            assert got.limits


@has_tools
def test_resources_are_those_that_ptxas_reports():
    code = ptxas.assemble((PTX / "truth_17_classic_transpose_tile.ptx").read_text())
    assert code.arch == "sm_90"
    assert code.resources["k17_w33"].shared_bytes == 33 * 32 * 4
    assert code.resources["k17_w33"].spill_load_bytes == 0
    assert 8 <= code.resources["k17_w33"].registers <= 64


# parts of a text, and the stages


def test_other_entries_are_left_out_and_lines_stay():
    text = (PTX / "fused.ptx").read_text()
    alone = only_entry(text, "histogram")
    assert re.findall(r"\.entry\s+(\w+)", alone) == ["histogram"]
    assert alone.count("\n") == text.count("\n")
    assert {line for line in enumerate(alone.splitlines()) if line[1]} < set(enumerate(text.splitlines()))
    assert ptx_accesses(alone)["histogram"] == ptx_accesses(text)["histogram"]


def test_functions_stay_beside_the_entry_that_may_call_them():
    func = ".func f() {\n ret; }\n// .entry in a comment {\n"
    weak, visible = ".weak .entry a()\n{ { ret; } }", ".visible .entry b()\n{ call f; }"
    text = f"{func}{weak}\n{visible}\n"
    assert only_entry(text, "b") == f"{func}\n\n{visible}\n"
    assert only_entry(text, "f") == f"{func}\n\n\n\n"


@has_tools
@pytest.mark.skipif(_core._kernel_ptx("move_vectors") is None, reason="built without nvcc: no kernels")
@pytest.mark.parametrize("stage", gpumem.stages(device="cuda"), ids=str)
def test_every_stage_of_the_ladder_is_counted_exactly(stage):
    trace = gpumem.trace_stage(stage.lesson, stage.name, machine_code=True)
    assert (trace.counts, trace.changes) == ("exact", ())
    assert 0 < trace.fit["occupancy"] <= 1
    assert not trace.fit["spill_bytes"]
