"""The CUDA stages in the lens: NumPy's answers, and the counters that an H200 has for the same launches.

tests/data/ncu/ladders.json holds what Nsight Compute counted of every rung of the ladders (of float64 for some).
"""

import json
from pathlib import Path

import lesson_cases
import numpy as np
import pytest

import gpumem
from gpumem import _core
from gpumem.arguments import Buffer
from gpumem.device_ladder import rungs_of
from gpumem.simulate import combined, pointers_in, trace_stage
from gpumem.specs import random

pytestmark = pytest.mark.skipif(_core._kernel_ptx("move_vectors") is None, reason="built without nvcc: no kernels")

RECORD = json.loads((Path(__file__).parent / "data" / "ncu" / "ladders.json").read_text())
# Its last block polls for the others: how often is a matter of time.
WAITS = {"reduce/tuned"}


def name_of(row):
    return "-".join([row["lesson"], row["stage"], *map(str, row["options"].values()), row["dtype"]])


@pytest.mark.parametrize("row", RECORD["rows"], ids=name_of)
def test_counters_are_those_of_an_h200(row):
    shape = RECORD["shapes"].get(row["lesson"], RECORD["shapes"][""])
    trace = trace_stage(row["lesson"], row["stage"], tuple(shape), row["dtype"], seconds=600, **row["options"])
    if row["stage"] != "tuned":
        assert trace.kernel == row["kernels"][0]
    assert not trace.findings
    differ = {
        name: (value, row["counters"].get(name, 0))
        for name, value in trace.counters.items()
        if value != row["counters"].get(name, 0) and not name.startswith("smsp__sass_inst_executed")
    }
    if row["stage"] == "tuned":  # the operation's own kernel, which may have changed: the traffic is still the same
        differ = {name: pair for name, pair in differ.items() if "mem_shared" not in name}
    if f"{row['lesson']}/{row['stage']}" in WAITS:
        assert all(abs(ours - theirs) <= 8 for ours, theirs in differ.values()), differ
    else:
        assert not differ


@pytest.mark.parametrize("dtype", lesson_cases.DTYPES)
@pytest.mark.parametrize("lesson", lesson_cases.LESSONS)
def test_results_are_numpys(lesson, dtype):
    for case in lesson_cases.LESSONS[lesson](dtype):
        got = gpumem.run(lesson, case.stage, case.x, device="sim", **case.options)
        assert got.tobytes() == np.ascontiguousarray(case.wanted).tobytes(), f"{lesson}: {case}"


@pytest.mark.parametrize("lesson, stage, x, options, said", lesson_cases.REFUSED)
def test_what_a_stage_refuses_on_a_gpu_it_refuses_here(lesson, stage, x, options, said):
    with pytest.raises(ValueError, match=said):
        gpumem.run(lesson, stage, x, device="sim", **options)


@pytest.mark.parametrize(
    "call, wanted",
    [
        (lambda x: gpumem.transpose(x, device="sim"), lambda x: x.transpose()),
        (lambda x: gpumem.transpose(x, (1, 0, 2), device="sim"), lambda x: x.transpose(1, 0, 2)),
        (lambda x: gpumem.permute_dims(x, (-1, 0, 1), device="sim"), lambda x: x.transpose(2, 0, 1)),
        (lambda x: gpumem.matrix_transpose(x, device="sim"), lambda x: x.swapaxes(1, 2)),
        (lambda x: gpumem.copy(x[:, ::-2], device="sim"), lambda x: x[:, ::-2]),
        (lambda x: gpumem.transpose(x[:0], device="sim"), lambda x: x[:0].transpose()),
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "c16"])
def test_operations_are_numpys(call, wanted, dtype):
    x = random((7, 10, 13), np.dtype(dtype))
    got, expected = call(x), np.ascontiguousarray(wanted(x))
    assert (got.shape, got.dtype, got.tobytes()) == (expected.shape, expected.dtype, expected.tobytes())


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64", "complex128"])
@pytest.mark.parametrize("lesson", sorted({row["lesson"] for row in RECORD["rows"]}))
def test_a_ladder_counts_every_stage_that_takes_the_type(lesson, dtype):
    shape = {"transpose": (64, 64), "walk2d": (64, 70), "layout": (256, 4)}.get(lesson, (5000,))
    ladder = gpumem.trace_ladder(lesson, shape, dtype)
    reasons = (
        "widest access",
        "not whole vectors",
        "at a multiple of 16",
        "not one access",
        "do not fit",
        "kernels add",
    )
    assert all(any(reason in why for reason in reasons) for why in ladder.left_out.values()), ladder.left_out
    names = [name for name, _, _ in rungs_of(gpumem.stages(lesson, "cuda"))]
    assert sorted([*ladder.traces, *ladder.left_out]) == sorted(names)
    for name, trace in ladder.traces.items():
        assert (trace.findings, trace.ended) == ((), ""), name
        assert ladder.counters(name).sectors_per_request("st") or name == "bulk"
    plain = json.loads(ladder.to_json())
    assert [rung["name"] for rung in plain["rungs"]] == list(ladder.traces)
    assert all(name in str(ladder) for name in ladder.traces)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(251, 253), (67, 129), (300, 2), (3, 301), (500, 7)])
def test_edges_of_a_tile_read_what_nobody_wrote_and_throw_it_away(shape, dtype):
    trace = gpumem.trace_stage("transpose", "tuned", shape, dtype, watch=("shared", "registers"))
    assert trace.findings == ()


def test_an_items_size_decides_the_sectors():
    for dtype, each in {"uint8": 1, "int16": 2, "int32": 4, "float64": 8, "complex128": 16}.items():
        ladder = gpumem.trace_ladder("transpose", (64, 64), dtype)
        assert ladder.counters("naive").sectors_per_request("ld") == each
        assert ladder.counters("naive").sectors_per_request("st") == 32
        assert ladder.counters("padded").sectors_per_request("st") == each
    ladder = gpumem.trace_ladder("transpose")
    assert [ladder.counters(name).bank_conflicts for name in ("tiled", "padded")] == [31 * 65536 / 32, 0]
    with pytest.raises(gpumem.UsageError, match="no lesson 'trans'"):
        gpumem.trace_ladder("trans")


def test_out_is_filled_and_returned():
    x = np.arange(12, dtype="f4").reshape(3, 4)
    out = np.full((4, 6), 9, "f4")
    view = out[:, :3]
    assert gpumem.transpose(x, stage="naive", device="sim", out=view) is view
    assert (view == x.T).all()
    assert (out[:, 3:] == 9).all()


READ_ONLY = np.zeros((3, 4), "f4")
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda x: gpumem.transpose(x, stage="fast", device="sim"), ValueError, "there are naive, tiled, padded"),
        (lambda x: gpumem.transpose(x, (0, 0), device="sim"), ValueError, "repeated axis"),
        (lambda x: gpumem.transpose(x, (0, 2), device="sim"), ValueError, "axis 2 of a 2-d array"),
        (lambda x: gpumem.transpose(x, (0,), device="sim"), ValueError, "1 axis for a 2-d array"),
        (lambda x: gpumem.transpose(x, device="sim", out=np.zeros((2, 2))), ValueError, "out has shape"),
        (lambda x: gpumem.transpose([1, 2], device="sim"), TypeError, "x is not an array"),
        (lambda x: gpumem.transpose(x, device="sim", stream=1), ValueError, "stream 1: the CPU has no streams"),
        (lambda x: gpumem.sum(x, device="sim"), ValueError, "the simulator executes stages"),
        (lambda x: gpumem.run("transpos", "naive", x, device="sim"), ValueError, "no lesson 'transpos'"),
        (lambda x: gpumem.run("read", "strided", x, device="sim"), ValueError, "this lesson is about 1-d arrays"),
        (lambda x: gpumem.run("copy", "scalar", x[:, ::2], device="sim"), ValueError, "x has gaps"),
        (
            lambda x: gpumem.run("copy", "scalar", x, out=np.zeros((3, 8), "f4")[:, ::2], device="sim"),
            ValueError,
            "out has gaps",
        ),
        (lambda x: gpumem.run("copy", "scalar", x, out=READ_ONLY, device="sim"), ValueError, "out is read-only"),
        (lambda x: gpumem.run("copy", "scalar", x, device="gpu"), ValueError, "device 'gpu'"),
        (lambda x: trace_stage("transpose", "padded", (0, 4)), ValueError, "nothing was launched|at least"),
    ],
)
def test_what_is_wrong_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call(np.zeros((3, 4), "f4"))


def test_an_exception_in_a_launch_comes_out():
    def refuses(*launch):
        raise KeyError(launch[0])

    x = np.zeros(64, "f4")
    call = (refuses, "reduce", "sequential", 4, "float32", (64, 0, 0, 0, 0, 0, 0), x.ctypes.data, x.ctypes.data, (0, 0))
    with pytest.raises(KeyError, match="reduce_sequential_float32"):
        _core._simulate_stage(*call)


def test_several_launches_are_one_report():
    trace = trace_stage("reduce", "sequential", (100_000,))
    assert trace.blocks == 391 + 2 + 1
    assert trace.notes[0].startswith("3 launches")
    assert combined([trace]) is trace


def test_words_of_a_parameter_block_that_point_into_buffers():
    buffers = [Buffer(0x1000, 16, "a", False), Buffer(0x1010, 16, "b", False)]
    words = [0x1000, 0x100F, 0x1010, 0x1020, 0x1021, 5]
    block = bytearray(b"".join(word.to_bytes(8, "little") for word in words))
    assert pointers_in(block, buffers) == [(0, 0, 0), (8, 0, 15), (16, 1, 0), (24, 1, 16)]


def test_counts_do_not_depend_on_where_numpy_has_its_memory():
    counts = set()
    for shift in (0, 4, 16, 64):
        memory = np.zeros(4096 + 512, "u1")
        start = -memory.ctypes.data % 256 + shift
        x = memory[start : start + 4096].view("f4").copy()  # a base of its own, wherever that lies
        kernel = gpumem.Kernel(gpumem.examples.COPY)
        counts.add(tuple(kernel.trace(8, 128, np.zeros_like(x), x, 1024).counters.values()))
    assert len(counts) == 1
