"""What executions looked like: each pattern costs what it says, and all together cost what was counted."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gpumem
from gpumem import _core
from gpumem.pattern import LANES, Pattern, added_patterns, packed, unpacked
from gpumem.simulate import trace_stage
from gpumem.trace import Site, Trace

STAGES = [str(stage) for stage in gpumem.stages(device="cuda")]
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
# Each thread copies 16 bytes to shared memory and back through ldmatrix, keeps something in local memory, and adds up.
EVERYTHING = f"""{HEAD}
.visible .entry all(.param .u64 out, .param .u64 in)
{{
    .local .align 16 .b8 own[64];
    .shared .align 128 .b8 tile[8192];
    .reg .b32 %r<20>;
    .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 80;
    add.u64 %rd4, %rd2, %rd3;
    mov.u32 %r2, tile;
    shl.b32 %r3, %r1, 4;
    add.u32 %r4, %r2, %r3;
    cp.async.cg.shared.global [%r4], [%rd4], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r5, %r6, %r7, %r8}}, [%r4];
    and.b32 %r9, %r1, 3;
    mul.wide.u32 %rd5, %r9, 4;
    mov.u64 %rd6, own;
    add.u64 %rd7, %rd6, %rd5;
    st.local.u32 [%rd7], %r5;
    ld.local.u32 %r10, [%rd7];
    and.b32 %r11, %r1, 7;
    shl.b32 %r12, %r11, 2;
    add.u32 %r13, %r2, %r12;
    atom.shared.add.u32 %r14, [%r13], %r10;
    add.u64 %rd8, %rd1, %rd5;
    red.global.add.u32 [%rd8], %r14;
    ret;
}}
"""

# Block k asks for a value 64 - k times 100 before it stores: later blocks end sooner.
POLLING = f"""{HEAD}
.visible .entry polls(.param .u64 out, .param .u64 asked)
{{
    .reg .b32 %r<9>;
    .reg .b64 %rd<6>;
    .reg .pred %p;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [asked];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    sub.u32 %r3, 64, %r2;
    mul.lo.u32 %r3, %r3, 100;
$again:
    ld.volatile.global.u32 %r4, [%rd2];
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p, %r3, %r4;
    @%p bra $again;
    mad.lo.u32 %r5, %r2, 32, %r1;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd1, %rd3;
    st.global.u32 [%rd4], %r5;
    ret;
}}
"""


def recounted(pattern):
    """The cost by the counters themselves, from the addresses alone."""
    addresses = np.zeros((1, LANES), np.uint64)
    shared = np.zeros((1, LANES), np.uint32)
    for lane in pattern.lanes:
        addresses[0, lane] = pattern.addresses[lane]
        shared[0, lane] = pattern.targets[lane] if pattern.targets else pattern.addresses[lane] & 0xFFFFFFFF
    active = np.array([sum(1 << lane for lane in pattern.lanes)], np.uint32)
    return int(np.frombuffer(_core._count(pattern.rule, addresses, shared, active, pattern.width), np.uint32)[1])


def check(trace):
    for site in trace.sites:
        for pattern in (*site.patterns, *site.distinct):
            assert len(pattern.addresses) == LANES
            if pattern.space != "local":
                assert recounted(pattern) == pattern.cost, (site, pattern)
        for spaces, executions, cost in (
            (("global", "local"), site.requests, site.sectors),
            (("shared",), site.shared, site.wavefronts),
        ):
            rows = [pattern for pattern in site.patterns if pattern.space in spaces]
            assert sum(pattern.times for pattern in rows) == executions
            assert sum(pattern.times * pattern.cost for pattern in rows) == cost
            assert [pattern.cost for pattern in rows] == sorted({pattern.cost for pattern in rows})


def looks(trace):
    return [(site.patterns, site.distinct) for site in trace.sites]


@pytest.mark.parametrize("stage", STAGES)
def test_the_patterns_of_each_stage_add_up_to_what_was_counted(stage):
    lesson, name = stage.split("/")
    shape = {"transpose": (70, 90), "walk2d": (64, 64), "layout": (500, 4)}.get(lesson, (5000,))
    try:
        trace = trace_stage(lesson, name, shape, watch=())
    except (ValueError, NotImplementedError) as error:
        pytest.skip(str(error))
    check(trace)
    counted = [site for site in trace.sites if site.requests or site.shared]
    assert all(site.patterns for site in counted)


@pytest.mark.parametrize("watch", [(), ("shared", "registers")], ids=["plain", "watched"])
def test_all_kinds_of_accesses(watch):
    out, x = np.zeros(64, "u4"), np.zeros(64 * 20 + 4, "u4")
    trace = gpumem.Kernel(EVERYTHING).trace(3, 64, out, x, watch=watch, machine_code=False)
    check(trace)
    assert {pattern.rule for site in trace.sites for pattern in site.patterns} == {
        *("copy", "copy shared", "matrix x4", "local", "shared atom", "global atom")
    }
    (copy,) = (site for site in trace.sites if site.kind == "copy")
    assert copy.spaces() == ("global", "shared")
    assert copy.worst().buffer == "argument 1"
    assert copy.worst().addresses == tuple(range(0, 32 * 80, 80))
    assert copy.worst().targets == tuple(range(0, 32 * 16, 16))
    assert copy.worst("shared").addresses == tuple(range(0, 32 * 16, 16))
    with pytest.raises(ValueError, match="nothing in local memory; there is global, shared"):
        copy.worst("local")


@pytest.mark.parametrize("stage", ["transpose/tiled", "read/gather", "reduce/strided", "copy/scalar"])
def test_threads_and_checks_change_nothing(stage):
    lesson, name = stage.split("/")
    alone = looks(trace_stage(lesson, name, threads=1, watch=()))
    for threads in (2, 3, 8):
        assert looks(trace_stage(lesson, name, threads=threads, watch=())) == alone
    assert looks(trace_stage(lesson, name, threads=2)) == alone


def test_blocks_that_take_turns_change_nothing():
    """Blocks that ask memory for something again and again are overtaken by others; the first one stays the first."""
    kernel = gpumem.Kernel(POLLING)
    asked = np.zeros(1, "u4")

    def look(threads):
        out = np.zeros(64 * 32, "u4")
        return looks(kernel.trace(64, 32, out, asked, threads=threads, watch=(), machine_code=False))

    alone = look(1)
    stores = [pattern for patterns, _ in alone for pattern in patterns if pattern.rule == "global store"]
    assert [(pattern.times, pattern.block) for pattern in stores] == [(64, (0, 0, 0))]
    for threads in (2, 4):
        assert look(threads) == alone


def test_an_executor_changes_nothing():
    kernel = gpumem.Kernel(gpumem.examples.COPY)
    n = 10_001
    x, out = np.arange(n, dtype="f4"), np.zeros(n, "f4")

    def look(**options):
        return looks(kernel.trace(79, 128, out, x, n, machine_code=False, **options))

    alone = look()
    with ThreadPoolExecutor(3) as executor:
        assert look(executor=executor) == alone
    costs = [[(pattern.cost, pattern.times, pattern.block[0]) for pattern in patterns] for patterns, _ in alone]
    assert costs == [[(3, 1, 78), (4, 312, 0)]] * 2


def test_json_keeps_them_in_few_letters():
    trace = trace_stage("transpose", "tiled", (256, 256))
    again = Trace.from_dict(json.loads(trace.to_json()))
    assert again.sites == trace.sites
    assert '"addresses": "0+4x32"' in trace.to_json()


def test_a_trace_of_before_has_none():
    plain = trace_stage("copy", "scalar", (1000,)).sites[0].to_dict()
    del plain["patterns"], plain["distinct"]
    site = Site.from_dict(plain)
    assert site.patterns == site.distinct == site.spaces() == ()
    assert site.worst() is site.median() is None


def test_the_worst_and_the_median():
    patterns = tuple(
        Pattern(cost, times, (0, 0, 0), 0, "x", tuple(range(0, 128, 4)), "global")
        for cost, times in ((4, 10), (5, 30), (32, 1))
    )
    site = Site("ld.global.f32", "load", "global", 4, None, 0, 1, patterns=patterns)
    assert (site.worst().cost, site.median().cost) == (32, 5)
    both = added_patterns(patterns, patterns[:1])
    assert [(pattern.cost, pattern.times) for pattern in both] == [(4, 20), (5, 30), (32, 1)]


@pytest.mark.parametrize("text", ["0+4", "x", "1 2x", "+4x32", "0+4x32 0+4x32", ".x16 " * 3])
def test_addresses_that_are_none_are_refused(text):
    with pytest.raises(ValueError, match="addresses"):
        unpacked(text)


def test_addresses_go_both_ways():
    rng = np.random.default_rng(1)
    for _ in range(300):
        steps = rng.integers(0, 3, LANES)
        lanes = np.cumsum(np.where(rng.random(LANES) < 0.7, 4, steps * 100))
        addresses = tuple(int(at) if here else None for at, here in zip(lanes, rng.random(LANES) < 0.8, strict=True))
        assert unpacked(packed(addresses)) == addresses
