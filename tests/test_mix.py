"""The instruction mix: kinds that a kernel executed, and arithmetic operations; the same on any number of threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gpumem
from gpumem.mix import KINDS, kind_of
from gpumem.simulate import trace_stage

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry work(.param .u64 out, .param .u32 n)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .f64 %d<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p, %r2, %r1;
    @%p bra done;
    cvt.rn.f32.u32 %f1, %r2;
    fma.rn.f32 %f2, %f1, %f1, %f1;
    mul.f32 %f3, %f2, %f1;
    cvt.f64.f32 %d1, %f3;
    add.f64 %d2, %d1, %d1;
    mul.wide.u32 %rd2, %r2, 8;
    add.s64 %rd3, %rd1, %rd2;
    st.global.f64 [%rd3], %d2;
done:
    ret;
}
"""


def traced(n, **options):
    return gpumem.Kernel(KERNEL).trace(1, 64, np.zeros(64), n, machine_code=False, **options)


def test_each_instruction_counts_for_the_lanes_that_reach_it():
    mix = traced(40).mix
    assert mix["fp32"] == {"warps": 4, "threads": 80, "operations": 40 * 3}
    assert mix["fp64"] == {"warps": 2, "threads": 40, "operations": 40}
    assert mix["store"] == {"warps": 2, "threads": 40, "operations": 0}
    assert mix["int"] == {"warps": 4, "threads": 80, "operations": 80}
    assert list(mix) == [kind for kind in KINDS if kind in mix]


def test_warps_that_skip_a_stretch_do_not_execute_it():
    assert traced(20).mix["fp64"] == {"warps": 1, "threads": 20, "operations": 20}
    assert "fp64" not in traced(0).mix


@pytest.mark.parametrize("stage", ["reduce/interleaved", "transpose/padded", "copy/peeled"])
def test_kinds_add_up_to_all_instructions(stage):
    lesson, _, name = stage.partition("/")
    trace = trace_stage(lesson, name, (70, 90) if lesson == "transpose" else (5000,))
    assert sum(row["warps"] for row in trace.mix.values()) == trace.instructions
    assert sum(row["threads"] for row in trace.mix.values()) == trace.thread_instructions


def test_threads_and_workers_do_not_change_it():
    x, out = np.arange(5000, dtype="f4"), np.zeros(5000, "f4")
    kernel = gpumem.Kernel(gpumem.examples.COPY)
    alone = kernel.trace(40, 128, out, x, 5000, threads=1)
    assert kernel.trace(40, 128, out, x, 5000, threads=4).mix == alone.mix
    with ThreadPoolExecutor(3) as pool:
        assert kernel.trace(40, 128, out, x, 5000, executor=pool).mix == alone.mix


def test_it_survives_json():
    trace = traced(40)
    again = gpumem.Trace.from_dict(trace.to_dict())
    assert again.mix == trace.mix
    assert again.read_only == trace.read_only


@pytest.mark.parametrize(
    "opcode, kind, of_lane, of_warp",
    [
        ("add.rn.f16x2", "fp16", 2, 0),
        ("fma.rn.bf16x2", "bf16", 4, 0),
        ("mad.wide.u32", "int", 2, 0),
        ("div.full.f32", "fp32", 1, 0),
        ("max.f32", "fp32", 0, 0),
        ("and.pred", "compare", 0, 0),
        ("add.f32.f16", "fp32", 1, 0),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "tensor fp64", 0, 512),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tensor tf32", 0, 2048),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", "tensor int", 0, 8192),
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "tensor bf16", 0, 65536),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", "load", 0, 0),
        ("cp.async.ca.shared.global", "copy", 0, 0),
        ("bar.sync", "control", 0, 0),
        ("shfl.sync.bfly.b32", "warp", 0, 0),
    ],
)
def test_kinds(opcode, kind, of_lane, of_warp):
    assert kind_of(opcode) == (kind, of_lane, of_warp)
