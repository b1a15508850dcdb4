"""Blocks on several threads, and spread over executors: the same bytes, counters and findings as in one piece.

Kernels whose blocks talk to one another run on one thread, and are not spread. Volatile loads talk where the blocks
write what they read, which shows when they run.
"""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np
import pytest

import gpumem

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
COUNT = f"""{HEAD}
.visible .entry count(.param .u64 p_total)
{{{{
    .reg .u64 %rd<2>;
    ld.param.u64 %rd1, [p_total];
    red.global.add.u32 [%rd1], 1;
    ret;
}}}}
"""
# out[i] = x[(i + 32) % n] + 1, in blocks of 32
NEXT = f"""{HEAD}
.visible .entry next(.param .u64 p_out, .param .u64 p_x, .param .u32 p_n)
{{{{
    .reg .u64 %rd<8>;
    .reg .u32 %r<8>;
    ld.param.u64 %rd1, [p_out];
    ld.param.u64 %rd2, [p_x];
    ld.param.u32 %r5, [p_n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r1, 32, %r2;
    add.u32 %r4, %r3, 32;
    rem.u32 %r4, %r4, %r5;
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd2, %rd3;
    {{load}}.u32 %r6, [%rd4];
    add.u32 %r6, %r6, 1;
    mul.wide.u32 %rd5, %r3, 4;
    add.u64 %rd6, %rd1, %rd5;
    st.global.u32 [%rd6], %r6;
    ret;
}}}}
"""
BLOCKS = 2000


@pytest.fixture(scope="module")
def copy():
    return gpumem.Kernel(gpumem.examples.COPY)


@pytest.fixture(scope="module")
def volatile():
    return gpumem.Kernel(NEXT.format(load="ld.volatile.global"))


@contextmanager
def dask(kind):
    distributed = pytest.importorskip("distributed")
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**workers) as cluster, distributed.Client(cluster) as client:
        yield client if kind == "dask client" else client.get_executor()


def executor_of(kind):
    if kind == "threads":
        return ThreadPoolExecutor(3)
    if kind == "processes":
        return ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    return dask(kind)


def traced(kernel, n=10_000, **options):
    x = np.arange(n, dtype="f4")
    out = np.zeros(n, "f4")
    return out, x, kernel.trace(-(-n // 128), 128, out, x, n, machine_code=False, **options)


def result(trace):
    return trace.counters, [site.to_dict() for site in trace.sites], [finding.to_dict() for finding in trace.findings]


@pytest.mark.parametrize("kind", ["threads", "processes", "dask executor", "dask client"])
def test_an_executor_gives_what_one_process_gives(copy, kind):
    alone = traced(copy)
    with executor_of(kind) as executor:
        spread = traced(copy, executor=executor)
        few = traced(copy, 100, executor=executor)
    assert result(spread[2]) == result(alone[2])
    assert spread[2].instructions == alone[2].instructions
    assert (spread[0] == spread[1]).all()
    assert (few[0] == few[1]).all()


def test_findings_of_an_executor_are_those_of_one_process(copy):
    def wrong(**options):
        out, x = np.zeros(1000, "f4"), np.zeros(3000, "f4")
        return copy.trace(24, 128, out, x, 3000, machine_code=False, **options)

    with ThreadPoolExecutor(4) as executor:
        spread = wrong(executor=executor)
    alone = wrong()
    assert result(spread) == result(alone)
    assert [(finding.kind, finding.lanes) for finding in alone.findings] == [("out-of-bounds", 2000)]
    assert alone.findings[0].examples[0]["buffer"] == "argument 0"
    assert alone.findings[0].examples[0]["offset"] == 4000
    assert "4 bytes at argument 0 +4000" in str(alone.findings[0])


def test_atomics_are_not_spread():
    kernel = gpumem.Kernel(COUNT.format())
    with ThreadPoolExecutor(1) as executor, pytest.raises(gpumem.UsageError, match=r"depend on one another .*red"):
        kernel.trace(4, 32, np.zeros(1, "i4"), executor=executor)
    total = np.zeros(1, "i4")
    kernel.trace(4, 32, total)
    assert total[0] == 128


# volatile loads


def moved(kernel, out, x, **options):
    return kernel.trace(BLOCKS, 32, out, x, x.size, machine_code=False, **options)


@pytest.mark.parametrize("threads", [1, 4])
def test_volatile_loads_of_what_nobody_writes(volatile, threads):
    assert (volatile.listens, volatile.communicates) == ("ld.volatile.global.u32 in line 19", "")
    x, out = np.arange(32 * BLOCKS, dtype="u4"), np.zeros(32 * BLOCKS, "u4")
    trace = moved(volatile, out, x, threads=threads)
    assert (out == np.roll(x, -32) + 1).all()
    assert trace.blocks == BLOCKS
    with ThreadPoolExecutor(3) as executor:
        out[:] = 0
        assert result(moved(volatile, out, x, executor=executor, threads=threads)) == result(trace)
    assert (out == np.roll(x, -32) + 1).all()


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_volatile_loads_of_what_other_blocks_write_are_as_on_one_thread(volatile, threads):
    def in_place(threads):
        x = np.arange(32 * BLOCKS, dtype="u4")
        trace = moved(volatile, x, x, threads=threads)
        return x.tobytes(), result(trace), trace.blocks

    assert in_place(threads) == in_place(1)


def test_volatile_loads_of_what_other_blocks_write_are_not_spread(volatile):
    x = np.arange(32 * BLOCKS, dtype="u4")
    with (
        ThreadPoolExecutor(3) as executor,
        pytest.raises(gpumem.UsageError, match="19 reads the array argument 0"),
    ):
        moved(volatile, x, x, executor=executor)
    assert (x == np.arange(32 * BLOCKS)).all()


def test_where_the_arrays_cannot_be_kept_one_thread_does_it(volatile):
    x = np.arange(32 * BLOCKS, dtype="u4")
    moved(volatile, x, x, threads=8, memory=x.nbytes)
    other = np.arange(32 * BLOCKS, dtype="u4")
    moved(volatile, other, other, threads=1)
    assert (x == other).all()


@pytest.mark.parametrize("load", ["ld.relaxed.gpu.global", "ld.acquire.gpu.global"])
def test_relaxed_loads_always_talk(load):
    kernel = gpumem.Kernel(NEXT.format(load=load))
    assert kernel.communicates.startswith(load)
    assert not kernel.listens
