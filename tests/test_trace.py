"""gpumem.Kernel: CUDA C or PTX in, NumPy arrays as buffers, a report out; parts of a grid, executors, limits."""

import json
import os
import pickle
import re
import signal
import threading
import time

import numpy as np
import pytest
from dlpack_abi import grows

import gpumem
from gpumem import compiler, sarif
from gpumem.kernel import dims, sampled
from gpumem.trace import Trace

COPY = gpumem.examples.COPY
LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
SOURCE = """\
template <typename T> __global__ void scale(T *out, const T *in, T by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] * by;
}
extern "C" __global__ void count(int *total) { atomicAdd(total, 1); }
"""
FOREVER = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry forever(.param .u64 out)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
$again:
    st.volatile.global.u32 [%rd1], 1;
    bra $again;
}
"""


# get() is inlined into twice(), which is inlined into the kernel, and into the kernel itself.
INLINED = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<4>;
    .loc 1 12 5
    ld.param.u64 %rd1, [in];
    .loc 1 7 5, function_name $L__info_string0, inlined_at 1 13 5
    .loc 1 3 5, function_name $L__info_string1, inlined_at 1 7 5
    ld.global.u32 %r1, [%rd1];
    .loc 1 3 5, function_name $L__info_string1, inlined_at 1 14 18
    ld.global.u32 %r2, [%rd1+OFFSET];
    .loc 2 40 5, function_name $L__info_string2, inlined_at 1 14 18
    ld.global.u32 %r3, [%rd1];
    .loc 1 15 1
    st.global.u32 [%rd1], %r3;
    ret;
}
.file 1 "src/k.cu"
.file 2 "include/math.h"
"""


@pytest.fixture(scope="module")
def copy():
    return gpumem.Kernel(COPY)


@pytest.fixture(scope="module")
def cuda_c():
    if compiler.load_nvrtc()[0] is None and compiler.find_nvcc()[0] is None:
        pytest.skip("no NVRTC and no nvcc here")


def traced(kernel, n=10_000, **options):
    x, out = np.arange(n, dtype="f4"), np.zeros(n, "f4")
    return out, x, kernel.trace(-(-n // 128), 128, out, x, n, machine_code=False, **options)


def test_arrays_hold_what_the_kernel_computed(copy):
    out, x, trace = traced(copy)
    assert (out == x).all()
    assert trace.counters[LOADS] == 1250
    assert [site.kind for site in trace.sites] == ["load", "store"]
    assert not trace.findings


def test_a_part_of_a_grid_is_scaled_and_says_so(copy):
    out, _, trace = traced(copy, 128 * 100, sample=0.25)
    assert (trace.blocks, trace.blocks_total, trace.scale) == (25, 100, 4)
    assert trace.counters[LOADS] == 100 * 16
    assert (out != 0).sum() in (25 * 128, 25 * 128 - 1)
    assert "25 of 100 blocks were executed" in str(trace)


def result(trace):
    return trace.counters, [site.to_dict() for site in trace.sites], [finding.to_dict() for finding in trace.findings]


@pytest.mark.parametrize("units, fraction, width", [(1, 0.01, 1), (1024, 0.1, 32), (1000, 1.0, 10), (7, 0.5, 7)])
def test_a_sample_stays_inside_the_grid(units, fraction, width):
    step, count = sampled(units, fraction, width)
    assert 1 <= count <= units
    assert (count - 1) * step < units


def test_cuda_c_with_templates_and_source_lines(cuda_c):
    kernel = gpumem.Kernel(SOURCE, "scale<double>", file="scale.cu")
    x, out = np.arange(100.0), np.zeros(100)
    trace = kernel.trace(1, 128, out, x, 2.5, 100)
    assert (out == 2.5 * x).all()
    assert {site.where for site in trace.sites} == {"scale.cu:5"}
    page = trace._repr_html_()
    assert "out[i] = in[i] * by;" in page
    assert re.search(r'class="heat" style="--heat:100%">load [0-9.]+ sectors; store', page)


def test_cuda_c_that_does_not_compile_is_quoted(cuda_c):
    with pytest.raises(gpumem.UsageError, match=r"bad\.cu\(1\): error: identifier .y. is undefined"):
        gpumem.Kernel("__global__ void k(int *x) { *x = y; }", file="bad.cu")


def test_folders_that_were_searched_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "load_nvrtc", lambda: (None, ("/one",)))
    monkeypatch.setattr(compiler, "find_nvcc", lambda: (None, ("/two",)))
    with pytest.raises(gpumem.UsageError, match=r"NVRTC is not in /one, /two; pip install 'gpumem\[lens\]'"):
        gpumem.Kernel("__global__ void k() {}")


@pytest.mark.parametrize(
    "make, error, said",
    [
        (lambda: gpumem.Kernel(COPY, "cpy"), ValueError, "no kernel 'cpy': there are copy; did you mean 'copy'"),
        (lambda: gpumem.Kernel(COPY.replace("ld.global", "ld.glob")), Exception, r"kernel\.ptx:24"),
        (lambda: gpumem.Kernel(COPY, arch="hopper"), ValueError, "arch 'hopper': give one such as 'sm_90'"),
        (lambda: traced(gpumem.Kernel(COPY), sample=0), ValueError, "sample 0: a fraction of the blocks"),
        (lambda: traced(gpumem.Kernel(COPY), sample=1.5), ValueError, r"sample 1\.5"),
        (lambda: traced(gpumem.Kernel(COPY), watch=["shred"]), ValueError, "no hazard to watch 'shred': there are"),
        (lambda: traced(gpumem.Kernel(COPY), shared=-1), ValueError, "shared -1: from 0"),
        (lambda: traced(gpumem.Kernel(COPY), shared=1 << 20), ValueError, "of dynamic shared memory: a block of sm_90"),
        (lambda: gpumem.Kernel(COPY).trace((1, 2, 3, 4), 1), TypeError, "takes 3 arguments"),
        (lambda: gpumem.Kernel(COPY).trace(1, 2048, None, None, 0), ValueError, "no GPU would take this launch"),
        (lambda: dims("grid", (1, 2, 3, 4)), ValueError, r"grid \(1, 2, 3, 4\): one to three lengths"),
        (lambda: dims("block", 1.5), TypeError, r"block 1\.5: an integer, or one to three of them"),
        (
            lambda: gpumem.Kernel(None),
            TypeError,
            "source is CUDA C or PTX as a str, or a path to it, not <class 'NoneType'>",
        ),
        (
            lambda: gpumem.Kernel(COPY.replace(".param .u32 n", ".param .b8 n[4294967300]")),
            NotImplementedError,
            "copy takes 42949673.. bytes of parameters, and can take 32764",
        ),
    ],
)
def test_what_is_wrong_is_named(make, error, said):
    with pytest.raises(error, match=said):
        make()


def test_limits_end_a_run_and_keep_what_was_counted():
    kernel = gpumem.Kernel(FOREVER)
    with pytest.raises(gpumem.LimitError, match="forever: stopped") as caught:
        kernel.trace(1, 32, np.zeros(1, "u4"), instructions=10_000, machine_code=False)
    assert caught.value.trace.instructions >= 10_000
    start = time.process_time()
    with pytest.raises(gpumem.LimitError, match="time"):
        kernel.trace(1, 32, np.zeros(1, "u4"), seconds=0.2, machine_code=False)
    assert time.process_time() - start < 20


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_run(threads):
    kernel = gpumem.Kernel(FOREVER)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            kernel.trace(2, 32, np.zeros(1, "u4"), threads=threads, seconds=600, machine_code=False)
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_gil_is_released():
    kernel = gpumem.Kernel(FOREVER)
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(None)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in range(20):  # a busy machine may leave the other thread without a core for all of one run
            ticks.clear()
            with pytest.raises(gpumem.LimitError):
                kernel.trace(1, 32, np.zeros(1, "u4"), seconds=0.5, machine_code=False)
            if len(ticks) > 5:
                break
        else:
            pytest.fail("the other thread hardly ran")
    finally:
        done.set()
        thread.join()


def test_many_traces_leave_nothing_behind(copy):
    def once():
        gpumem.Kernel(COPY)
        traced(copy, 4096)
        with pytest.raises(ValueError):
            traced(copy, shared=1 << 20)

    assert not grows(once, 400, 1 << 20)  # a decoded kernel that is kept takes more than 10 kB


def test_kernels_can_be_sent_elsewhere(copy):
    again = pickle.loads(pickle.dumps(copy))
    assert repr(again) == repr(copy) == "gpumem.Kernel(copy(u64, u64, u32), sm_90)"
    assert result(traced(again)[2]) == result(traced(copy)[2])


def test_json_goes_both_ways(copy):
    trace = traced(copy)[2]
    data = json.loads(trace.to_json())
    assert data["schema"] == "gpumem.trace/1"
    again = Trace.from_dict(data)
    assert result(again) == result(trace)
    assert again.compare(trace).equal
    with pytest.raises(ValueError, match="no trace: its schema is None"):
        Trace.from_dict({})


def test_comparisons_show_what_differs(copy):
    one, two = traced(copy)[2], traced(copy, 20_000)[2]
    compared = one.compare(two)
    assert compared.changed[LOADS] == (1250, 2500)
    assert "+100.0 %" in str(compared)
    assert json.loads(compared.to_json())["changed"][LOADS] == [1250, 2500]


def test_text_and_html_name_every_instruction(copy):
    trace = traced(copy)[2]
    for part in ("copy: 79 x 1 x 1 blocks of 128 x 1 x 1 threads", "ld.global.f32", "st.global.f32", LOADS):
        assert part in str(trace)
        assert part in trace._repr_html_()


def inlined(offset, text=INLINED):
    return gpumem.Kernel(text.replace("OFFSET", str(offset))).trace(1, 1, np.zeros(2, "u4"))


def test_what_was_inlined_is_named_with_the_calls_that_led_there():
    trace = inlined(4)
    assert [site.place for site in trace.sites] == ["k.cu:3 < 7 < 13", "k.cu:3 < 14", "math.h:40 < k.cu:14", "k.cu:15"]
    assert trace.sites[0].calls == ("src/k.cu:7", "src/k.cu:13")
    assert [site.where for site in trace.sites] == ["k.cu:3", "k.cu:3", "math.h:40", "k.cu:15"]
    assert "k.cu:3 < 7 < 13" in str(trace)
    assert Trace.from_dict(json.loads(trace.to_json())).sites == trace.sites


def test_findings_and_advice_name_the_calls_too():
    trace = inlined(8)
    (finding,) = trace.findings
    assert str(finding).startswith("k.cu:3 < 14: out-of-bounds")
    assert str(trace.advice[0]).startswith("k.cu:3 < 14: error")
    assert Trace.from_dict(json.loads(trace.to_json())).findings[0].place == finding.place
    (related,) = sarif.result(trace.advice[0], trace, None)["relatedLocations"]
    assert related["physicalLocation"]["region"] == {"startLine": 14}


def test_a_call_that_goes_round_ends():
    """Line information is only text: it may say that a line was inlined into itself."""
    trace = inlined(4, INLINED.replace("inlined_at 1 7 5", "inlined_at 1 3 5"))
    assert trace.sites[0].place == "k.cu:3 < 3"
