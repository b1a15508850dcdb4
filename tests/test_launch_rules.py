"""What CUDA asks of a launch beside its arguments: shared memory beyond 48 KiB, and registers (gpumem/occupancy.py)."""

from pathlib import Path

import numpy as np
import pytest

import gpumem
from gpumem import ptxas
from gpumem.cli import main
from gpumem.occupancy import CHIPS, launch_notes
from gpumem.ptxas import Resources

DYNAMIC = Path(__file__).parent / "data" / "ptx" / "truth_37_dynamic_shared.ptx"
KIB = 1024


def registers(count: int) -> Resources:
    return Resources(count, 0, 0, 0, 0, 1)


@pytest.mark.parametrize(
    "arch, static, dynamic, said",
    [
        ("sm_90", 0, 48 * KIB, ""),
        ("sm_90", KIB, 47 * KIB, ""),
        ("sm_90", KIB, 48 * KIB, "49152) before this launch, or CUDA refuses it; sm_90 has at most 232448"),
        ("sm_90", KIB, 226 * KIB, "sm_90 has at most 232448"),
        ("sm_86", 0, 99 * KIB, "sm_86 has at most 101376"),
        ("sm_75", 0, 64 * KIB, "sm_75 has at most 65536"),
        ("sm_130", 0, 64 * KIB, "cudaFuncAttributeMaxDynamicSharedMemorySize, 65536) before this launch"),
    ],
)
def test_more_than_48_kib_needs_an_opt_in(arch, static, dynamic, said):
    notes = launch_notes(arch, 32, static, dynamic, None, None)
    assert bool(notes) == bool(said)
    assert said in "".join(notes)
    assert launch_notes(arch, 32, static, dynamic, None, True) == ()
    if said:
        with pytest.raises(ValueError, match=r"need cudaFuncSetAttribute\(.*error 1, invalid value"):
            launch_notes(arch, 32, static, dynamic, None, False)
    else:
        assert launch_notes(arch, 32, static, dynamic, None, False) == ()


@pytest.mark.parametrize("number", CHIPS)
def test_no_opt_in_goes_beyond_the_chip(number):
    most = CHIPS[number].shared_most
    assert launch_notes(f"sm_{number}", 32, 1, most - 1, None, True) == ()
    with pytest.raises(ValueError, match=f"a block of sm_{number} has at most {most} together"):
        launch_notes(f"sm_{number}", 32, 1, most, None, True)


def test_static_shared_memory_ends_at_48_kib():
    with pytest.raises(ValueError, match="50176 bytes of static shared memory: at most 49152"):
        launch_notes("sm_90", 32, 0xC400, 0, None, True)


@pytest.mark.parametrize(
    "count, threads, most",
    [(156, 384, None), (156, 385, 384), (156, 512, 384), (162, 384, None), (162, 404, 384), (255, 256, None),
     (255, 257, 256), (64, 1024, None), (65, 1024, 896), (0, 1024, None)],
)  # fmt: skip
def test_registers_are_given_out_to_warps(count, threads, most):
    if most is None:
        assert launch_notes("sm_90", threads, 0, 0, registers(count), None) == ()
        return
    with pytest.raises(ValueError, match=f"{count} registers a thread: at most {most} threads .* not {threads} .*701"):
        launch_notes("sm_90", threads, 0, 0, registers(count), None)


def test_a_trace_says_what_the_launch_needs():
    kernel = gpumem.Kernel(DYNAMIC, "k37_dyn")
    out = np.zeros(32, np.int32)
    trace = kernel.trace(1, 32, out, shared=48 * KIB)
    assert trace.notes == launch_notes("sm_90", 32, KIB, 48 * KIB, None, None)
    assert "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 49152)" in str(trace)
    assert kernel.trace(1, 32, out, shared=48 * KIB, opt_in=True).notes == ()
    assert kernel.trace(1, 32, out, shared=47 * KIB, opt_in=False).notes == ()
    with pytest.raises(ValueError, match="invalid value"):
        kernel.trace(1, 32, out, shared=48 * KIB, opt_in=False)


def test_the_limit_is_that_of_the_chip():
    text = DYNAMIC.read_text().replace("sm_90", "sm_86")
    kernel, out = gpumem.Kernel(text, "k37_dyn"), np.zeros(32, np.int32)
    kernel.trace(1, 32, out, shared=98 * KIB)
    with pytest.raises(ValueError, match="a block of sm_86 has at most 101376 together"):
        kernel.trace(1, 32, out, shared=99 * KIB)


@pytest.mark.parametrize("option, status", [("--opt-in", 0), ("--no-opt-in", 2)])
def test_the_command_asks(option, status, capsys):
    launch = ["--kernel", "k37_dyn", "--grid", "1", "--block", "32", "--arg", "out:i32[32]", "--shared", "65536"]
    assert main(["trace", str(DYNAMIC), *launch, option]) == status
    said = capsys.readouterr()
    assert ("need cudaFuncSetAttribute" in said.err) == (status == 2)


# 160 values that are all needed at once.
GREEDY = """.version 8.0
.target sm_90
.address_size 64
.visible .entry greedy(.param .u64 p) {{
 .reg .b64 %a; .reg .b32 %r<{n}>;
 ld.param.u64 %a, [p];
{loads}
{stores}
 ret;
}}
"""


@pytest.mark.skipif(not ptxas.tool("ptxas"), reason="needs ptxas: pip's, or a toolkit's")
def test_a_launch_with_too_many_registers_is_refused_before_it_runs():
    n = 160
    loads = "\n".join(f" ld.volatile.global.b32 %r{i}, [%a+{4 * i}];" for i in range(n))
    stores = "\n".join(f" st.volatile.global.b32 [%a+{4 * i}], %r{n - 1 - i};" for i in range(n))
    kernel = gpumem.Kernel(GREEDY.format(n=n, loads=loads, stores=stores))
    x = np.arange(n, dtype="i4")
    with pytest.raises(ValueError, match=r"\d+ registers a thread: at most 3(20|84) threads fit into a block, not 512"):
        kernel.trace(1, 512, x, machine_code=True)
    assert (x == np.arange(n)).all()
    trace = kernel.trace(1, 32, x, machine_code=True)
    assert trace.fit["registers"] >= n
    assert (x == np.arange(n)[::-1]).all()
