"""Questions and defects from the field, each with its right answer: conflicts by instruction, and what would go wrong.

The kernels stand in tests/data/truth/kernels, with the reasoning in their first lines.
"""

import math
import mmap

import numpy as np
import pytest
from truth import bytes_of, kernel, rows_of

import gpumem

NO_RESERVE = 0x4000  # MAP_NORESERVE, which Python has no name for yet

# wavefronts and conflicts of one warp instruction


def shared_costs(trace: gpumem.Trace, kind: str) -> set[tuple[float, float]]:
    """(wavefronts, conflicts) per execution of each of a trace's shared accesses of a kind."""
    return {
        (site.wavefronts / site.shared, site.conflicts / site.shared)
        for site in trace.sites
        if site.shared and site.kind == kind
    }


CONFLICTS = {
    "k01_row128": {"load": {(32, 28)}},
    "k01_contig": {"load": {(4, 0)}},
    "k02_double_colstore": {"store": {(32, 30)}, "load": {(2, 0)}},
    "k03_b16": {"store": {(2, 1)}, "load": {(2, 1)}},
    "k03_b32": {"store": {(1, 0)}, "load": {(1, 0)}},
    "k04_plain": {"store": {(1, 0)}, "load": {(16, 15)}},
    "k04_xor_m": {"store": {(1, 0)}, "load": {(2, 1)}},
    "k04_xor_2m": {"store": {(1, 0)}, "load": {(1, 0)}},
    "k05_padded_rows": {"store": {(2, 0)}, "load": {(2, 0)}},
    "k09_staged": {"store": {(1, 0)}, "load": {(1, 0)}},
    "k09_pair_scalar": {"load": {(2, 1)}},
    "k09_pair_vec": {"load": {(2, 0)}},
    "k14_u8": {"store": {(1, 0)}, "load": {(1, 0)}},
    "k14_u8_shuf": {"store": {(1, 0)}, "load": {(1, 0)}},
    "k14_u16": {"store": {(1, 0)}, "load": {(1, 0)}},
    "k15_uniform": {"load": {(2, 0)}},
    "k15_pair_x1": {"load": {(2, 0)}},
    "k15_pair_x2": {"load": {(2, 0)}},
    "k15_pair_x4": {"load": {(4, 0)}},
    "k17_w32": {"store": {(1, 0)}, "load": {(32, 31)}},
    "k17_w33": {"store": {(1, 0)}, "load": {(1, 0)}},
    "k19_p16": {"store": {(4, 0)}},
    "k19_p20": {"store": {(8, 4)}},
    "k19_p32": {"store": {(8, 4)}},
    "k19_p48": {"store": {(4, 0)}},
    "k20_s64": {"ldsm": {(32, 28)}},
    "k20_s64_xor8": {"ldsm": {(4, 0)}},
    "k20_s64_xor4": {"ldsm": {(8, 4)}},
    "k20_s72": {"ldsm": {(4, 0)}},
    "k22_w32": {"store": {(2, 0)}, "load": {(32, 30)}},
    "k22_w33": {"store": {(2, 0)}, "load": {(2, 0)}},
    "k22_w34": {"store": {(2, 0)}, "load": {(4, 2)}},
}


def case_of(name: str, *scalars: int) -> gpumem.Trace:
    row = next(
        r for r in rows_of("cases.json") if r["kernel"] == name and r["scalars"][: len(scalars)] == list(scalars)
    )
    kinds = [np.uint32 if kind.endswith("32") else np.uint64 for kind in row["params"][len(row["buffers"]) :]]
    values = [kind(value) for kind, value in zip(kinds, row["scalars"], strict=True)]
    buffers = [bytes_of(buffer) for buffer in row["buffers"]]
    made = kernel(row["source"].removesuffix(".cu"), name)
    return made.trace(row["grid"], row["block"], *buffers, *values, shared=row["dynamic_shared"])


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts_of_one_instruction(name):
    trace = case_of(name)
    assert {kind: shared_costs(trace, kind) for kind in CONFLICTS[name]} == CONFLICTS[name]


@pytest.mark.parametrize("stride", range(33))
def test_a_stride_of_words_conflicts_as_often_as_it_divides_the_banks(stride):
    ways = math.gcd(stride, 32) if stride else 1
    assert shared_costs(case_of("k23_stride", stride), "load") == {(ways, ways - 1)}


def sectors_of(trace: gpumem.Trace, kind: str) -> list[float]:
    """Sectors per request of each global access, in the order of the text."""
    return [s.sectors / s.requests for s in trace.sites if s.requests and (s.space, s.kind) == ("global", kind)]


@pytest.mark.parametrize(
    "name, kind, wanted",
    [
        ("k07_aos", "load", [24] * 3),
        ("k07_flat", "load", [8]),
        ("k09_aos12_to_soa", "load", [12] * 3),
        ("k10_partial", "load", [1, 4, 1, 1, 32, 1, 1]),
        ("k12_copy", "load", [4]),
        ("k12_copy", "store", [4]),
    ],
)
def test_sectors_of_one_instruction(name, kind, wanted):
    assert sorted(sectors_of(case_of(name), kind)) == sorted(wanted)


@pytest.mark.parametrize("start", range(33))
def test_a_copy_that_starts_later(start):
    trace = case_of("k11_offset", start)
    assert sectors_of(trace, "load") == sectors_of(trace, "store") == [4 if start % 8 == 0 else 5]
    assert {site.lines for site in trace.sites} == {1 if start % 32 == 0 else 2}


# what would go wrong


def i32(n: int) -> np.ndarray:
    return np.zeros(n, np.int32)


def f32(n: int, value: float = 0) -> np.ndarray:
    return np.full(n, value, np.float32)


def trace(source, name, block, *arguments, **how):
    return kernel(source, name).trace(1, block, *arguments, **how)


def kinds_of(trace: gpumem.Trace) -> dict[str, int]:
    """Threads by kind of finding."""
    made: dict[str, int] = {}
    for finding in trace.findings:
        made[finding.kind] = made.get(finding.kind, 0) + finding.lanes
    return made


def test_lanes_that_are_not_in_their_own_mask():
    out = i32(32)
    assert kinds_of(trace("32_shuffle_bad_masks", "k32_not_in_mask", 32, out)) == {"bad-mask": 16}
    wrong = trace("32_shuffle_bad_masks", "k32_mod_mask", 32, out)
    assert {(f.kind, f.lanes) for f in wrong.findings} == {("bad-mask", 24)}
    assert [e["thread"][0] for e in wrong.findings[0].examples] == [1, 2, 3, 5]
    assert trace("32_shuffle_bad_masks", "k32_ok", 32, out).findings == ()
    assert out[::8].tolist() == [28, 92, 156, 220]


def test_lanes_that_wait_for_lanes_that_are_elsewhere():
    stuck = trace("32_shuffle_bad_masks", "k32_absent_lane", 32, i32(32))
    assert stuck.ended == "deadlock"
    assert kinds_of(stuck) == {"deadlock": 32}


def test_barriers_that_not_all_threads_reach():
    assert "divergent-barrier" in kinds_of(trace("33_divergent_barrier", "k33_even_only", 64, i32(64)))
    assert "divergent-barrier" in kinds_of(trace("33_divergent_barrier", "k33_two_sites", 64, i32(64)))
    out = i32(64)
    fine = trace("33_divergent_barrier", "k33_exit_ok", 64, out)
    assert (fine.findings, fine.ended) == ((), "")
    assert out.tolist() == [*range(1, 40), *[0] * 25]


def test_a_block_of_one_warp_and_a_half():
    ones, out = np.ones(48, np.int32), i32(2)
    found = trace("34_block_of_48", "k34_full_mask", 48, ones, out).findings
    assert [f.kind for f in found] == ["absent-lane"]
    assert found[0].opcode.startswith("st.global")
    assert found[0].examples[0]["thread"] == (32, 0, 0)
    for name in ("k34_discard", "k34_clean"):
        out[:] = 0
        assert trace("34_block_of_48", name, 48, ones, out).findings == ()
        assert out.tolist() == [32, 16]


def test_the_read_only_path_and_memory_that_is_written():
    buffer = np.arange(64, dtype=np.int32)
    found = trace("35_readonly_path_alias", "k35_alias", 64, buffer).findings
    assert [(f.kind, f.lanes * f.width) for f in found] == [("read-only-path", 256)]
    assert "ld.global.nc" in found[0].opcode
    assert "st.global" in found[0].other
    out = i32(64)
    assert trace("35_readonly_path_alias", "k35_ok", 64, np.arange(64, dtype=np.int32), out).findings == ()
    assert out.tolist() == [(t + 32) % 64 for t in range(64)]


def test_asynchronous_copies_that_are_not_waited_for():
    x, out = np.arange(256, dtype=np.float32), f32(64)
    assert kinds_of(trace("36_cp_async", "k36_no_wait", 64, x, out)) == {"async-pending": 128}
    second = trace("36_cp_async", "k36_wait_one", 64, x, out)
    assert kinds_of(second) == {"async-pending": 64}
    assert all(e["offset"] >= 1024 for f in second.findings for e in f.examples)
    fine = trace("36_cp_async", "k36_ok", 64, x, out)
    assert fine.findings == ()
    assert out[3] == 28.0
    assert [(s.sectors, s.wavefronts) for s in fine.sites if s.kind == "copy"] == [(32, 8)]  # of two warps
    wrong = kinds_of(trace("36_cp_async", "k36_misaligned", 64, f32(257), out))
    assert wrong["misaligned"] == 63


@pytest.mark.parametrize(
    "size, wrong", [(128, {}), (64, {"out-of-bounds": 32}), (48128, {}), (49152, {}), (231424, {})]
)
def test_dynamic_shared_memory(size, wrong):
    out = i32(32)
    assert kinds_of(trace("37_dynamic_shared", "k37_dyn", 32, out, shared=size)) == wrong
    if not wrong:
        assert out.tolist() == [t + 7 for t in range(32)]


def test_more_shared_memory_than_a_block_can_have():
    with pytest.raises(ValueError, match="1024 bytes of static and 231425 of dynamic shared memory"):
        trace("37_dynamic_shared", "k37_dyn", 32, i32(32), shared=231425)


def test_two_external_arrays_are_one_memory():
    out = i32(32)
    assert trace("37_dynamic_shared", "k37_two", 32, out, shared=128).findings == ()
    assert out[0] == 2


def test_more_threads_than_the_kernel_was_compiled_for():
    out = i32(256)
    assert trace("38_launch_bounds", "k38_lb128", 128, out).findings == ()
    with pytest.raises(
        ValueError, match=r"blocks of 256 threads: k38_lb128 takes at most 128 \(.maxntid; CUDA's error 701"
    ):
        trace("38_launch_bounds", "k38_lb128", 256, out)


def test_the_last_warp_without_syncwarp():
    out = f32(1)
    old = trace("39_warp_synchronous_reduction", "k39_old", 64, f32(64, 1), out)
    assert out[0] == 64
    assert set(kinds_of(old)) == {"race-warp"}
    first = old.findings[0].examples[0]
    assert first["thread"][0] // 32 == first["other_thread"][0] // 32 == 0
    assert trace("39_warp_synchronous_reduction", "k39_new", 64, f32(64, 1), out).findings == ()
    assert out[0] == 64


def test_a_tile_that_is_used_again_too_soon():
    x, out = np.arange(256, dtype=np.int32), i32(64)
    bad = trace("40_tile_loop_war", "k40_bad", 64, x, out)
    assert set(kinds_of(bad)) == {"race-shared"}
    assert any(f.writes and "ld.shared" in f.other for f in bad.findings)
    assert trace("40_tile_loop_war", "k40_ok", 64, x, out).findings == ()
    assert out.tolist() == [384 + 4 * (63 - t) for t in range(64)]
    early = trace("40_tile_loop_war", "k40_uninit", 64, x, out)
    assert kinds_of(early) == {"race-shared": 32}
    assert all(e["thread"][0] >= 32 for e in early.findings[0].examples)


def test_vectors_at_addresses_that_are_no_multiple_of_theirs():
    base = np.arange(80, dtype=np.float32)
    wrong = trace("41_misaligned_vectors", "k41_f4", 16, base, f32(16))
    assert kinds_of(wrong) == {"misaligned": 16}
    assert {e["address"] % 16 for e in wrong.findings[0].examples} == {4}
    halves = trace("41_misaligned_vectors", "k41_h2", 16, np.zeros(530, np.uint16), np.zeros(16, np.uint32), 0)
    assert kinds_of(halves) == {"misaligned": 8}
    assert [e["thread"][0] for e in halves.findings[0].examples] == [1, 3, 5, 7]
    out = f32(80, -1)
    assert trace("41_misaligned_vectors", "k41_ok", 16, base, out, 64).findings == ()
    np.testing.assert_array_equal(out[1:65], base[1:65])
    assert (out[0], out[65]) == (-1, -1)


def test_a_reduction_that_takes_one_for_a_power_of_two():
    out = f32(1)
    past = trace("42_reduction_bounds", "k42_pow2", 1, f32(1, 5), out, shared=4)
    assert kinds_of(past) == {"out-of-bounds": 1}
    assert (past.findings[0].width, past.findings[0].examples[0]["offset"]) == (4, 4)
    for n, block, total in ((1, 1, 5.0), (100, 64, 100.0)):
        x = f32(n, total / n)
        assert trace("42_reduction_bounds", "k42_ok", block, x, out, n, shared=4 * block).findings == ()
        assert out[0] == total


def test_an_index_of_32_bits():
    """The array is 20 GB that nobody touches: a row far behind 2**31 elements."""
    memory = mmap.mmap(-1, 20_000_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    big, out = np.frombuffer(memory, np.float32), f32(32)
    wrong = trace("43_int32_index", "k43_i32", 32, big, out, 21475, 100000)
    assert kinds_of(wrong) == {"out-of-bounds": 32}
    assert wrong.findings[0].examples[0]["offset"] == -8_589_869_184
    assert trace("43_int32_index", "k43_i64", 32, big, out, 21475, 100000).findings == ()


def test_the_tail_of_a_vectorised_copy():
    x = np.arange(63, dtype=np.float32)
    out = f32(63, -7)
    assert trace("44_vector_tail", "k44_floor", 32, x, out, 63).findings == ()
    assert out[59:].tolist() == [59, -7, -7, -7]
    assert set(kinds_of(trace("44_vector_tail", "k44_ceil", 32, x, f32(63), 63))) == {"out-of-bounds"}
    assert trace("44_vector_tail", "k44_ok", 32, x, out, 63).findings == ()
    np.testing.assert_array_equal(out, x)


def test_instructions_that_small_interpreters_lack():
    out = np.zeros((32, 12), np.uint32)
    assert trace("30_bit_instructions", "k30_bits", 32, out).findings == ()
    wanted = "00000139 000003a0 3a06cc9a 2468ad87 2b61d036 0145d306 59cb605c f 7 0b07470e 0042057e 00007ae8"
    assert out[5].tolist() == [int(word, 16) for word in wanted.split()]


@pytest.mark.parametrize("threads", [1, 3])
def test_findings_do_not_depend_on_the_number_of_host_threads(threads):
    x, out = np.arange(256, dtype=np.int32), i32(64)
    one = kernel("40_tile_loop_war", "k40_bad").trace(40, 64, x, out, threads=1)
    more = kernel("40_tile_loop_war", "k40_bad").trace(40, 64, x, out, threads=threads)
    assert one.findings == more.findings
    assert one.findings[0].lanes == 40 * 96


# global memory, between blocks

BLOCKS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry overlap(.param .u64 out, .param .u32 step)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [step];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r2, %r1, %r3;
    mul.wide.s32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}
.visible .entry handed_over(.param .u64 out, .param .u64 flag)
{
    .reg .pred %p<3>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [flag];
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra WAIT;
    st.global.u32 [%rd1], 42;
    membar.gl;
    atom.global.exch.b32 %r2, [%rd2], 1;
    ret;
WAIT:
    atom.global.add.u32 %r3, [%rd2], 0;
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra WAIT;
    membar.gl;
    ld.global.u32 %r4, [%rd1];
    st.global.u32 [%rd1+4], %r4;
    ret;
}
"""


def test_blocks_that_write_the_same_places():
    out = i32(96)
    overlap = gpumem.Kernel(BLOCKS, "overlap")
    assert overlap.trace(2, 32, out, 32, watch="global").findings == ()
    found = overlap.trace(2, 32, out, 16, watch="global").findings
    assert [(f.kind, f.lanes, f.times) for f in found] == [("race-global", 16, 1)]
    first = found[0].examples[0]
    assert (first["block"], first["thread"]) == ((1, 0, 0), (0, 0, 0))
    assert (first["other_block"], first["other_thread"]) == ((0, 0, 0), (16, 0, 0))
    assert "after thread (16, 0, 0) of block (0, 0, 0)" in str(found[0])
    assert overlap.trace(2, 32, out, 16).findings == ()  # it is asked for


def test_blocks_that_hand_over_with_a_fence_and_an_atomic_do_not_race():
    out, flag = i32(2), i32(1)
    done = gpumem.Kernel(BLOCKS, "handed_over").trace(2, 1, out, flag, watch="global")
    assert (done.findings, done.ended) == ((), "")
    assert out.tolist() == [42, 42]


HAND_OVER = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry flag(.param .u64 out)
{
    .shared .align 4 .b8 room[8];
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, room;
    setp.lt.u32 %p1, %r1, 32;
    @!%p1 bra WAIT;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 ret;
    st.shared.u32 [%r2], 42;
    st.RELEASEshared.u32 [%r2+4], 1;
    ret;
WAIT:
    ld.ACQUIREshared.u32 %r3, [%r2+4];
    setp.ne.u32 %p2, %r3, 1;
    @%p2 bra WAIT;
    ld.shared.u32 %r4, [%r2];
    st.global.u32 [%rd1], %r4;
    ret;
}
"""


@pytest.mark.parametrize("orders", [True, False])
def test_warps_that_hand_over_by_a_flag(orders):
    release, acquire = ("release.cta.", "acquire.cta.") if orders else ("relaxed.cta.", "relaxed.cta.")
    text = HAND_OVER.replace("RELEASE", release).replace("ACQUIRE", acquire)
    out = i32(1)
    found = gpumem.Kernel(text).trace(1, 33, out).findings
    assert [f.kind for f in found if "race" in f.kind] == ([] if orders else ["race-shared"])
    assert out[0] == 42
