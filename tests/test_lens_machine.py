"""What lanes, warps and blocks do together in the lens, and what a kernel cannot do to it.

The kernels are tests/data/ptx/machine.cu, or PTX written out here; results are compared with NumPy's.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from lens_run import GLOBAL, HEAD, ISAS, PTX, REGISTERS, SHARED, body, kinds, run

from gpumem import _core

MACHINE = (PTX / "machine.ptx").read_text()
T = np.arange(128)


def ints(n):
    return np.zeros(n, "i4")


def machine(kernel, grid, block, *args, **options):
    return run(MACHINE, grid, block, *args, kernel=kernel, **options)


# --- lanes of a warp -------------------------------------------------------------------------------------------------


def test_lanes_wait_for_a_lock_that_another_lane_holds():
    lock, count = ints(1), ints(1)
    result = machine("spin_lock", 4, 64, lock, count)
    assert (result["ended"], count[0], lock[0]) == ("", 256, 0)
    assert result["instructions"] < 1_000_000


def test_lanes_meet_again_behind_a_branch():
    mask, total = np.zeros(32, "u4"), ints(32)
    machine("meets", 1, 32, mask, total)
    assert (mask == 0xFFFFFFFF).all()
    s = [sum(i * (2 if t % 2 else 1) for i in range(t % 7 + 1)) for t in range(32)]
    assert total.tolist() == [(-x, x + 100, x)[t % 3] for t, x in enumerate(s)]


def test_an_early_return_inside_a_branch_keeps_nobody_apart():
    """Lanes that return are waited for by nobody: those that stay run the rest together."""
    lines = """
    ld.param.u64 %d1, [p0]; mov.u32 %r1, %laneid; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    setp.lt.u32 %p1, %r1, 20; @!%p1 bra AFTER;
    setp.lt.u32 %p2, %r1, 5; @%p2 bra END;
    add.u32 %r3, %r3, 1;
    AFTER: activemask.b32 %r2; st.global.u32 [%d1], %r2;
    END:"""
    out = np.zeros(32, "u4")
    run(body(lines), 1, 32, out)
    assert out.tolist() == [0] * 5 + [0xFFFFFFE0] * 27


def test_recursion_gives_each_call_its_registers():
    out = ints(32)
    machine("recursion", 1, 32, out)
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    assert out.tolist() == [fibonacci[t % 12] for t in range(32)]


def test_a_branch_table():
    out = ints(96)
    machine("switched", 1, 96, out)
    ways = [
        lambda t: t * 3,
        lambda t: t - 7,
        lambda t: t ^ 21,
        lambda t: t.bit_count(),
        lambda t: t * t,
        lambda t: ~t,
        lambda t: t << 3,
        lambda t: t // 3,
        lambda t: 1000 + t,
    ]
    assert out.tolist() == [ways[t % 9](t) for t in range(96)]


def test_votes():
    out = np.zeros((128, 6), "u4")
    machine("votes", 1, 128, out)
    warp = T // 32 * 32
    for t in range(128):
        w = range(warp[t], warp[t] + 32)
        assert out[t, 0] == sum(1 << u % 32 for u in w if u % 5 == 0)
        assert out[t, 1] == sum(1 << u % 32 for u in w if u % 3 == t % 3)
        assert out[t, 2] == max(u * 37 % 64 for u in w)
    assert (out[:, 3] == 32).all()
    assert (out[:, 4] == 1).all()
    assert (out[:, 5] == T ^ 5).all()


@pytest.mark.parametrize("isa", ISAS)
def test_shuffles_within_segments(isa):
    lines = """
    ld.param.u64 %d1, [p0]; mov.u32 %r1, %laneid; mul.wide.u32 %d2, %r1, 16; add.u64 %d1, %d1, %d2;
    add.u32 %r2, %r1, 100;
    shfl.sync.up.b32 %r3|%p1, %r2, 3, 0x1800, -1; selp.u32 %r4, %r3, 7, %p1;
    shfl.sync.down.b32 %r5|%p1, %r2, 3, 0x181f, -1; selp.u32 %r6, %r5, 7, %p1;
    shfl.sync.bfly.b32 %r7, %r2, 6, 0x181f, -1; shfl.sync.idx.b32 %r8, %r2, 13, 0x181f, -1;
    st.global.v4.u32 [%d1], {%r4, %r6, %r7, %r8};"""
    out = np.zeros((32, 4), "u4")
    run(body(lines), 1, 32, out, isa=isa)
    lane, first = np.arange(32), np.arange(32) // 8 * 8
    assert (out[:, 0] == np.where(lane - first >= 3, lane + 97, 7)).all()
    assert (out[:, 1] == np.where(lane - first < 5, lane + 103, 7)).all()
    assert (out[:, 2] == (lane ^ 6) + 100).all()
    assert (out[:, 3] == first + 105).all()


# --- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backwards", [0, 1])
def test_blocks_wait_for_other_blocks(backwards):
    done = ints(300)
    result = machine("chain", 300, 32, done, 300, backwards)
    assert result["ended"] == ""
    assert done.tolist() == (list(range(300, 0, -1)) if backwards else list(range(1, 301)))


def test_all_blocks_of_a_grid_meet():
    out = ints(40)
    assert machine("grid_barrier", 20, 64, out, 20)["ended"] == ""
    assert out[20:].tolist() == [210] * 20


def test_named_barriers():
    out = ints(256)
    assert machine("named_barriers", 1, 128, out, watch=SHARED)["findings"] == []
    assert out.reshape(4, 64).tolist() == [[(127 - t) * 10 + i for t in range(64, 128)] for i in range(4)]


def test_barrier_objects():
    out = ints(192)
    result = machine("barrier_object", 1, 64, out)
    assert (result["ended"], result["findings"]) == ("", [])
    assert out.reshape(3, 64).tolist() == [[63 - t + i for t in range(64)] for i in range(3)]


def test_clusters_reach_each_others_shared_memory():
    out = ints(128)
    machine("cluster_exchange", 4, 32, out, shared=128)
    assert out.reshape(4, 32).tolist() == [[rank * 100 + t for t in range(32)] for rank in (1, 0, 1, 0)]


def test_results_do_not_depend_on_threads():
    data = np.random.default_rng(3).integers(0, 256, 40_000).astype("u1")
    seen = []
    for threads in (1, 2, 5):
        bins, most = ints(256), np.zeros(1, "u4")
        result = machine("histogram", 37, 128, bins, most, data, len(data), threads=threads)
        assert (bins == np.bincount(data, minlength=256)).all()
        assert most[0] == (data.astype("i8") * (np.arange(len(data)) % 101)).max()
        seen.append((result["instructions"], result["thread_instructions"], result["counts"]))
    assert seen[0] == seen[1] == seen[2]


def test_parts_of_a_grid_add_up():
    data = np.random.default_rng(3).integers(0, 256, 10_000).astype("u1")
    bins, most = ints(256), np.zeros(1, "u4")
    whole = machine("histogram", 37, 128, bins, most, data, len(data))
    parts = [
        machine("histogram", 37, 128, bins, most, data, len(data), units=units)
        for units in ((0, 2, 0), (1, 2, 10), (21, 2, 0))
    ]
    assert sum(part["blocks"] for part in parts) == whole["blocks"] == 37
    counts = [np.frombuffer(part["counts"], "u8") for part in parts]
    assert (sum(counts) == np.frombuffer(whole["counts"], "u8")).all()
    assert (bins == 2 * np.bincount(data, minlength=256)).all()


# --- memory ----------------------------------------------------------------------------------------------------------


def test_local_memory():
    out = ints(32)
    result = machine("local_array", 1, 32, out, 3, watch=SHARED | REGISTERS)
    expected = []
    for t in range(32):
        a = [i * 3 for i in range(20)]
        for i in range(1, 20, 3):
            a[i] += a[(i * 7 + t) % 20]
        expected.append(a[t * 7 % 20])
    assert out.tolist() == expected
    assert result["findings"] == []


def test_variables_of_the_module():
    for _ in range(2):  # each run begins with their initial values
        out = ints(34)
        machine("variables", 1, 32, out)
        assert out.tolist() == [3, 1, 4, 1, 5, 9, 2, 6] * 4 + [40, 42]


def test_asynchronous_copies():
    data, out = np.arange(256, dtype="i4") * 3, ints(256)
    assert machine("pipeline", 1, 256, out, data, watch=SHARED)["findings"] == []
    assert (out == data[::-1]).all()


def test_bulk_copies():
    data, out = np.random.default_rng(5).random(256, "f4"), np.zeros(256, "f4")
    assert machine("bulk", 1, 256, out, data, watch=SHARED)["findings"] == []
    assert (out == 2 * data).all()


def test_products_of_matrices():
    rng = np.random.default_rng(6)
    a, b, d = (
        rng.standard_normal((16, 16)).astype("f2"),
        rng.standard_normal((8, 16)).astype("f2"),
        np.zeros((16, 8), "f4"),
    )
    assert machine("product", 1, 32, d, a, b, watch=SHARED | REGISTERS)["findings"] == []
    np.testing.assert_allclose(d, a.astype("f8") @ b.astype("f8").T, rtol=1e-6, atol=1e-6)
    a, b, e = (
        rng.integers(-128, 128, (16, 32)).astype("i1"),
        rng.integers(-128, 128, (8, 32)).astype("i1"),
        ints((16, 8)),
    )
    machine("product_s8", 1, 32, e, a, b)
    assert (e == a.astype("i4") @ b.astype("i4").T).all()


def test_fragments():
    rng = np.random.default_rng(7)
    a, b, c = (
        rng.standard_normal((16, 16)).astype("f2"),
        rng.standard_normal((16, 16)).astype("f2"),
        np.zeros((16, 16), "f4"),
    )
    assert machine("product_wmma", 1, 32, c, a, b, watch=REGISTERS)["findings"] == []
    np.testing.assert_allclose(c, 2 * (a.astype("f8") @ b.astype("f8").T + 1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_accesses_of_every_width_and_place(width):
    """A copy of items of every width, from and to any place that their alignment allows, in whole and partial warps."""
    item = {1: ("u8", "%r1"), 2: ("u16", "%h1"), 4: ("u32", "%r1"), 8: ("u64", "%d9")}
    kind, register = item.get(width, ("v4.u32", "{%r1, %r2, %r3, %r4}"))
    lines = f"""
    ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r9, %tid.x; mul.wide.u32 %d3, %r9, {width};
    add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
    ld.{kind} {register}, [%d2+{width}]; st.{kind} [%d1+{3 * width}], {register};"""
    text = body(lines, ".param .u64 p0, .param .u64 p1")
    data = np.random.default_rng(width).integers(0, 256, 100 * width).astype("u1")
    for isa in ISAS:
        out = np.zeros(100 * width, "u1")
        run(text, 1, 77, out, data, isa=isa)
        assert (out[3 * width : 80 * width] == data[width : 78 * width]).all()
        assert not out[: 3 * width].any()
        assert not out[80 * width :].any()


def test_addresses_are_the_same_every_time():
    lines = "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; st.u64 [%d1], %d1; st.u64 [%d1+8], %d2;"
    text = body(lines, ".param .u64 p0, .param .u64 p1")
    first, second = np.zeros(2, "u8"), np.zeros(2, "u8")
    run(text, 1, 1, first, np.zeros(77, "u1"))
    run(text, 1, 1, second, np.zeros(77, "u1"))
    assert (first == second).all()
    assert (first % 256 == 0).all()
    run(text, 1, 1, second, np.zeros(77, "u1"), lead=8)
    assert (second % 256 == 8).all()


# --- findings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "access, expected",
    [
        ("ld.global.u32 %r1, [%d1+252];", {}),
        ("ld.global.u32 %r1, [%d1+256];", {"out-of-bounds": 32}),
        ("ld.global.u64 %d2, [%d1+252];", {"out-of-bounds": 32}),
        ("ld.global.u32 %r1, [%d1-4];", {"out-of-bounds": 32}),
        ("ld.global.u32 %r1, [%d1+2];", {"misaligned": 32}),
        ("st.global.v4.u32 [%d1+8], {%r1, %r1, %r1, %r1};", {"misaligned": 32}),
        ("mov.u64 %d1, -8; st.u64 [%d1], %d1;", {"out-of-bounds": 32}),
        ("mov.u32 %r1, 0xfffffff0; ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r1];", {"out-of-bounds": 32}),
        ("atom.global.add.u32 %r1, [%d1+256], 1;", {"out-of-bounds": 32}),
        ("mov.u64 %d1, 0x10000000000; ld.u32 %r1, [%d1];", {"out-of-bounds": 32}),
    ],
)
def test_wrong_accesses(access, expected):
    data = np.full(64, 7, "u4")
    result = run(body(f"ld.param.u64 %d1, [p0]; {access}"), 1, 32, data)
    assert kinds(result) == expected
    assert (data == 7).all()


def test_wrong_accesses_are_left_out_lane_by_lane():
    lines = """
    ld.param.u64 %d1, [p0]; mov.u32 %r1, %laneid; mul.wide.u32 %d2, %r1, 12; add.u64 %d1, %d1, %d2;
    ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2;"""
    data = np.full(64, 5, "u4")
    result = run(body(lines), 1, 32, data)
    assert kinds(result) == {"out-of-bounds": 2 * 10}
    assert data.tolist() == [6 if i % 3 == 0 else 5 for i in range(64)]


def test_values_that_nobody_gave():
    lines = """
    ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    setp.lt.u32 %p1, %r1, 4; @%p1 mov.u32 %r2, 5; add.u32 %r3, %r2, 1; selp.u32 %r4, %r3, 7, %p1;
    st.global.u32 [%d1], %r4;
    {more}"""
    assert run(body(lines.replace("{more}", "")), 1, 32, ints(32), watch=REGISTERS)["findings"] == []
    stored = run(body(lines.replace("{more}", "st.global.u32 [%d1], %r3;")), 1, 32, ints(32), watch=REGISTERS)
    assert kinds(stored) == {"unwritten-register": 28}
    branch = "setp.eq.u32 %p2, %r2, 0; @%p2 bra L; L:"
    decided = run(body(lines.replace("{more}", branch)), 1, 32, ints(32), watch=REGISTERS)
    assert kinds(decided) == {"unwritten-register": 28}


LOCAL = """
    .local .align 8 .b8 room[16]; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; mul.wide.u32 %d2, %r1, 4;
    add.u64 %d1, %d1, %d2; mov.u64 %d3, room; cvta.local.u64 %d4, %d3; setp.lt.u32 %p1, %r1, 8;
    WRITE
    READ
    st.global.u32 [%d1], %r2;"""


@pytest.mark.parametrize(
    "write, read, lanes",
    [
        ("st.local.u32 [%d3], %r1;", "ld.local.u32 %r2, [%d3];", 0),
        ("st.local.u32 [%d3], %r1;", "ld.local.u32 %r2, [%d3+4];", 32),
        ("@%p1 st.local.u32 [%d3], %r1;", "ld.local.u32 %r2, [%d3];", 24),
        ("st.local.u32 [%d3], %r9;", "ld.local.u32 %r2, [%d3];", 32),
        ("st.u32 [%d4], %r1;", "ld.local.u32 %r2, [%d3];", 0),
        ("st.local.u32 [%d3], %r1;", "ld.u32 %r2, [%d4];", 0),
        ("st.local.u32 [%d3], %r1;", "ld.u32 %r2, [%d4+8];", 32),
        ("st.local.u8 [%d3], 1;", "ld.local.v2.u32 {%r2, %r3}, [%d3];", 0),  # a struct with gaps
        ("st.local.u8 [%d3+4], 1;", "ld.local.v2.u32 {%r2, %r3}, [%d3];", 32),
        ("", "ld.local.u32 %r3, [%d3]; add.u32 %r3, %r3, 1; mov.u32 %r2, 7;", 0),  # thrown away
        ("", "ld.local.v4.u32 {%r3, %r4, %r5, %r6}, [%d3]; st.local.v4.u32 [%d3], {%r1, %r1, %r1, %r6};"
             "ld.local.v4.u32 {%r3, %r4, %r5, %r2}, [%d3];", 32),
    ],
)  # fmt: skip
def test_local_memory_that_nobody_wrote(write, read, lanes):
    result = run(body(LOCAL.replace("WRITE", write).replace("READ", read)), 2, 32, ints(32), watch=REGISTERS)
    assert kinds(result) == ({"unwritten-register": 2 * lanes} if lanes else {})


SCRATCH = """
    .shared .align 16 .b8 room[1024]; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; mul.wide.u32 %d2, %r1, 4;
    add.u64 %d1, %d1, %d2; shl.b32 %r3, %r1, 4; mov.u32 %r4, room; add.u32 %r4, %r4, %r3; setp.lt.u32 %p1, %r1, 8;
    """
OUT = "; st.global.u32 [%d1], %r2;"


@pytest.mark.parametrize(
    "lines, lanes",
    [
        ("st.shared.u32 [%r4], %r1; ld.shared.u32 %r2, [%r4]" + OUT, 0),
        ("@%p1 st.shared.u32 [%r4], %r1; ld.shared.u32 %r2, [%r4]" + OUT, 24),
        ("ld.shared.u32 %r2, [%r4]; add.u32 %r2, %r2, 1;", 0),  # thrown away
        ("ld.shared.u32 %r2, [%r4]; @%p1 st.global.u32 [%d1], %r2;", 8),
        ("ld.shared.u32 %r5, [%r4]; selp.u32 %r2, %r5, 3, %p1" + OUT, 8),
        ("ld.shared.u32 %r5, [%r4]; setp.eq.u32 %p2, %r5, 0; @%p2 bra L; L:", 32),
        ("ld.shared.u32 %r5, [%r4]; and.b32 %r5, %r5, 7; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d3, %d1;"
         "ld.u8 %r2, [%d3];", 32),
        ("ld.shared.u32 %r5, [%r4]; st.shared.u32 [%r4+4], %r5; ld.shared.u32 %r2, [%r4+8];", 0),  # only kept there
        ("ld.shared.u32 %r5, [%r4]; add.u32 %r5, %r5, 1; st.shared.u32 [%r4+4], %r5;"
         "ld.shared.u32 %r2, [%r4+4]" + OUT, 32),
        ("ld.shared.u32 %r5, [%r4]; st.shared.u32 [%r4], %r5; st.shared.u32 [%r4], %r1;"
         "ld.shared.u32 %r2, [%r4]" + OUT, 0),
        ("st.shared.u32 [%r4], %r9; ld.shared.u32 %r2, [%r4]" + OUT, 32),  # %r9 was never written
        ("st.shared.u32 [%r4+4], %r1; ld.shared.v4.u32 {%r5, %r2, %r6, %r7}, [%r4]" + OUT, 0),
        ("st.shared.u32 [%r4], %r1; ld.shared.v4.u32 {%r5, %r2, %r6, %r7}, [%r4]" + OUT, 32),
        ("ld.shared.u32 %r5, [%r4]; shfl.sync.bfly.b32 %r2, %r5, 1, 31, -1; @%p1 st.global.u32 [%d1], %r2;", 8),
        ("ld.shared.u32 %r5, [%r4]; mov.b64 %d5, {%r1, %r5}; mov.b64 {%r2, %r6}, %d5" + OUT, 0),  # a part of a register
        ("ld.shared.u16 %r5, [%r4]; prmt.b32 %r6, %r1, %r5, 0x5410; and.b32 %r2, %r6, 0xffff" + OUT, 0),
        ("ld.shared.u16 %r5, [%r4]; prmt.b32 %r2, %r1, %r5, 0x7654" + OUT, 32),
        ("atom.shared.add.u32 %r2, [%r4], 1;", 32),  # makes a value of what was none
        ("cvt.u64.u32 %d3, %r4; cvta.shared.u64 %d4, %d3; ld.u32 %r2, [%d4]" + OUT, 32),
    ],
)  # fmt: skip
def test_shared_memory_that_nobody_wrote(lines, lanes):
    """A value is looked at where it is used; the finding names the load that got it."""
    result = run(body(SCRATCH + lines), 2, 32, ints(64), watch=SHARED | REGISTERS)
    assert kinds(result) == ({"unwritten-shared": 2 * lanes} if lanes else {})
    for row in result["findings"]:
        assert row["place"]["opcode"].startswith(("ld.", "atom."))
        assert {example["offset"] % 16 for example in row["examples"]} <= {0, 4}


def test_products_of_shared_memory_that_nobody_wrote():
    """Lane l of a product holds row l / 4 of A and of the result, and column l / 4 of B."""
    lines = """
    ld.shared.u32 %r5, [%r4]; mov.u32 %r6, 0; @%p1 mov.u32 %r6, %r5; mov.u32 %r7, 0; mov.f32 %f1, 0f00000000;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {A}, {B}, {%f1, %f1, %f1, %f1};
    mov.b32 %r2, %f1; st.global.u32 [%d1], %r2;"""
    for a, b, lanes in (("%r6, %r7", "%r7", 8), ("%r7, %r7", "%r6", 8), ("%r7, %r7", "%r7", 0)):
        text = body(SCRATCH + lines.replace("{A}", f"{{{a}}}").replace("{B}", f"{{{b}}}"))
        result = run(text, 1, 32, ints(32), watch=SHARED | REGISTERS)
        assert kinds(result) == ({"unwritten-shared": lanes} if lanes else {}), (a, b)


def test_a_call_finds_its_local_memory_unwritten():
    """What an earlier call left there is nobody's value."""
    text = (
        HEAD
        + """.func (.param .b32 r) f (.param .b32 a) { .reg .b32 %r<3>; .reg .pred %p; .local .b32 q;
    ld.param.b32 %r1, [a]; setp.eq.u32 %p, %r1, 0; @%p st.local.u32 [q], 5; ld.local.u32 %r2, [q];
    st.param.b32 [r], %r2; ret; }"""
        + body("""
    { .param .b32 x; .param .b32 y; st.param.b32 [x], FIRST; call.uni (y), f, (x); ld.param.b32 %r1, [y]; }
    { .param .b32 x; .param .b32 y; st.param.b32 [x], 0; call.uni (y), f, (x); ld.param.b32 %r2, [y]; }
    ld.param.u64 %d1, [p0]; st.global.u32 [%d1], %r2;""")[len(HEAD) :]
    )
    assert kinds(run(text.replace("FIRST", "0"), 1, 32, ints(1), watch=REGISTERS)) == {}


def test_a_barrier_that_a_guard_keeps_lanes_from():
    lines = "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bar.sync 0;"
    assert kinds(run(body(lines), 1, 64, ints(1))) == {"divergent-barrier": 32}


BETWEEN = """
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, room; add.u32 %r4, %r3, %r2; xor.b32 %r5, %r2, 4;
    add.u32 %r6, %r3, %r5; st.shared.u32 [%r4], %r1; WHAT
    ld.shared.u32 %r7, [%r6]; ld.param.u64 %d1, [p0]; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r7;"""


@pytest.mark.parametrize(
    "what, found",
    [
        ("bar.warp.sync -1;", {}),
        ("bar.sync 0;", {}),
        ("", {"race-warp": 32}),
        ("membar.cta;", {"race-warp": 32}),
        ("fence.acq_rel.gpu; fence.sc.cta;", {"race-warp": 32}),
        ("vote.sync.any.pred %p1, %p2, -1;", {"race-warp": 32}),
        ("membar.cta; st.relaxed.cta.shared.u32 [flag], 1; ld.relaxed.cta.shared.u32 %r8, [flag]; membar.cta;", {}),
        ("st.release.cta.shared.u32 [flag], 1; ld.acquire.cta.shared.u32 %r8, [flag];", {}),
        ("barrier.cluster.arrive; barrier.cluster.wait;", {}),
    ],
)
def test_what_puts_the_lanes_of_a_warp_in_order(what, found):
    """A fence does not: lanes may be anywhere before it. It takes a flag, written behind one, read before another."""
    text = body(BETWEEN.replace("WHAT", what), before=".shared .align 4 .b32 room[32]; .shared .align 4 .b32 flag;")
    out = ints(32)
    result = run(text, 1, 32, out, watch=SHARED)
    assert out.tolist() == [i ^ 1 for i in range(32)]
    assert kinds(result) == found


def test_races_between_blocks():
    lines = "ld.param.u64 %d1, [p0]; mov.u32 %r1, %ctaid.x; st.global.u32 [%d1], %r1;"
    assert "race-global" in kinds(run(body(lines), 2, 1, ints(1), watch=GLOBAL))
    assert run(body(lines), 1, 1, ints(1), watch=GLOBAL)["findings"] == []


# --- calls through pointers, stores that arrive later ----------------------------------------------------------------

FUNCTIONS = """
.func (.param .b32 r) plus (.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, 100;
    st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) times (.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a]; mul.lo.u32 %r2, %r1, 3;
    st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) again (.param .b32 a) { .reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p; ld.param.b32 %r1, [a];
    mov.b32 %r3, 7; setp.eq.u32 %p, %r1, 0; @%p bra DONE; sub.u32 %r2, %r1, 1; mov.u64 %d1, again;
    p: .callprototype (.param .b32 _) _ (.param .b32 _);
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %r2; call (y), %d1, (x), p; ld.param.b32 %r3, [y]; }
    add.u32 %r3, %r3, 1; DONE: st.param.b32 [r], %r3; ret; }
.func (.param .b64 r) wide (.param .b64 a) { ret; }
.global .align 8 .u64 table[4] = {plus, times, again, wide};
"""
CALL = """
    mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;
    CHOOSE
    p: .callprototype (.param .b32 _) _ (.param .b32 _);
    t: .calltargets plus, times, again;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; GUARD call (y), %d9, (x), LIST;
      ld.param.b32 %r2, [y]; }
    st.global.u32 [%d3], %r2;"""
OF_LANE = "and.b32 %r9, %r1, 3; mul.wide.u32 %d8, %r9, 8; mov.u64 %d7, table; add.u64 %d8, %d7, %d8; ld.u64 %d9, [%d8];"


def call_of(choose, guard="", targets="p"):
    return body(CALL.replace("CHOOSE", choose).replace("GUARD", guard).replace("LIST", targets), before=FUNCTIONS)


def called(which, i):
    return {"plus": i + 100, "times": 3 * i, "again": 7 + i}[which]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("targets", ["p", "t"])
@pytest.mark.parametrize("name", ["plus", "times", "again"])
def test_a_call_through_a_pointer(name, targets, isa):
    out = ints(64)
    text = call_of(f"mov.u64 %d9, {name};", targets=targets)
    assert run(text, 1, 64, out, isa=isa, watch=SHARED | REGISTERS)["ended"] == ""
    assert out.tolist() == [called(name, i) for i in range(64)]


def test_lanes_that_call_different_functions_come_back_together():
    out = ints(32)
    choose = OF_LANE + "setp.lt.u32 %p1, %r9, 3;"
    result = run(call_of(choose, "@%p1"), 1, 32, out, watch=SHARED)
    assert (result["ended"], result["findings"]) == ("", [])
    names = ["plus", "times", "again"]
    assert [out[i] for i in range(32) if i % 4 < 3] == [called(names[i % 4], i) for i in range(32) if i % 4 < 3]
    store = next(
        k
        for k, site in enumerate(_core._lens(call_of(choose, "@%p1"), "t", None).describe()["sites"])
        if site[0] == "st.global.u32"
    )
    counts = np.frombuffer(result["counts"], np.uint64).reshape(-1, 10)
    assert counts[store][:2].tolist() == [1, 32]


@pytest.mark.parametrize("choose", ["mov.u64 %d9, 0;", "mov.u64 %d9, 0x600000000018;", "mov.u64 %d9, -16;", OF_LANE])
def test_a_call_through_a_pointer_to_none_of_them(choose):
    result = run(call_of(choose), 1, 32, ints(32))
    assert result["ended"] == "limit"
    assert "no function that takes its arguments" in result["why"]


ASYNC = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; ld.param.u64 %d1, [p0];
    mov.u32 %r4, bar; mov.u32 %r5, room; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [%r4], 1;
    shl.b32 %r8, %r1, 3; add.u32 %r6, %r5, %r8; st.shared.v2.b32 [%r6], {%r1, 5};
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], BYTES;
    mapa.shared::cluster.u32 %r9, %r6, %r3; mapa.shared::cluster.u32 %r10, %r4, %r3;
    mad.lo.u32 %r11, %r2, 1000, %r1;
    STORE
L:  mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0; @!%p2 bra L;
    ld.shared.v2.b32 {%r12, %r13}, [%r6];
    mad.lo.u32 %r14, %r2, 256, %r8; cvt.u64.u32 %d2, %r14; add.u64 %d3, %d1, %d2; st.global.v2.b32 [%d3], {%r12, %r13};
    barrier.cluster.arrive; barrier.cluster.wait;"""
TX = "mbarrier::complete_tx::bytes"
STORES = {
    "a word": (f"st.async.weak.shared::cluster.{TX}.b32 [%r9], %r11, [%r10];", 4, lambda other, i: (other + i, 5)),
    "two": (f"st.async.shared::cluster.{TX}.v2.b32 [%r9], {{%r11, %r1}}, [%r10];", 8, lambda other, i: (other + i, i)),
    "an addition": (
        f"red.async.relaxed.cluster.shared::cluster.{TX}.add.u32 [%r9], %r11, [%r10];", 4,
        lambda other, i: (other + 2 * i, 5),
    ),
    "a maximum": (
        f"red.async.relaxed.cluster.shared::cluster.{TX}.max.s32 [%r9], 16, [%r10];", 4,
        lambda other, i: (max(16, i), 5),
    ),
    "bits": (
        f"red.async.relaxed.cluster.shared::cluster.{TX}.xor.b32 [%r9], 1, [%r10];", 4, lambda other, i: (i ^ 1, 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", STORES)
def test_stores_into_another_blocks_memory_that_a_barrier_learns_of(name, isa):
    store, width, wanted = STORES[name]
    text = body(
        ASYNC.replace("STORE", store).replace("BYTES", str(32 * width)),
        before=".shared .align 8 .b8 bar[8]; .shared .align 16 .b8 room[256];",
    )
    out = ints(128)
    result = run(text, 2, 32, out, cluster=(2, 1, 1), isa=isa, watch=SHARED)
    assert (result["ended"], kinds(result)) == ("", {})
    assert out.reshape(2, 32, 2).tolist() == [
        [list(wanted(1000 * (1 - block), i)) for i in range(32)] for block in range(2)
    ]


def test_a_store_that_arrives_later_out_of_bounds():
    text = body(
        ASYNC.replace("STORE", f"add.u32 %r9, %r9, 4096; {STORES['a word'][0]}").replace("BYTES", "0"),
        before=".shared .align 8 .b8 bar[8]; .shared .align 16 .b8 room[256];",
    )
    assert kinds(run(text, 2, 32, ints(128), cluster=(2, 1, 1))) == {"out-of-bounds": 64}


# --- what a kernel cannot do -----------------------------------------------------------------------------------------

DEEP = (
    HEAD
    + """.func f (.param .b32 a) { .reg .b32 %r<9>; .local .b8 q[512]; ld.param.b32 %r1, [a];
    { .param .b32 x; st.param.b32 [x], %r1; call.uni f, (x); } ret; }"""
    + body("{ .param .b32 x; st.param.b32 [x], %r1; call.uni f, (x); }")[len(HEAD) :]
)
ENDLESS = {
    "a loop": (body("L: bra L;"), 1, 32, "limit"),
    "a loop of barriers": (body("L: bar.sync 0; bra L;"), 1, 1024, "limit"),
    "a loop of named barriers": (
        body("mov.u32 %r1, %tid.x; L: bar.sync %r1, 64; add.u32 %r1, %r1, 1; bra L;"),
        1,
        1024,
        "limit",
    ),
    "a value that nobody writes": (
        body("ld.param.u64 %d1, [p0]; L: ld.volatile.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"),
        3000,
        64,
        "limit",
    ),
    "recursion": (DEEP, 4, 256, "limit"),
    "recursion through a pointer": (
        call_of("add.u32 %r1, %r1, 1000000; mov.u64 %d9, again;"),
        4,
        256,
        "limit",
    ),
    "a flag behind fences that nobody sets": (
        body(
            "ld.param.u64 %d1, [p0]; L: membar.gl; ld.volatile.u32 %r1, [%d1]; membar.gl; setp.eq.u32 %p1, %r1, 0; "
            "@%p1 bra L;"
        ),
        300,
        64,
        "limit",
    ),
    "a trap": (body("trap;"), 1, 32, "limit"),
    "an index beyond a branch table": (
        body("mov.u32 %r1, %tid.x; t: .branchtargets A, B; brx.idx %r1, t; A: bra C; B: C:"),
        1,
        32,
        "limit",
    ),
    "two barriers, each waiting for all": (
        body("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 2, 64;"),
        1,
        64,
        "deadlock",
    ),
    "a barrier that too few reach": (
        body("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 96;"),
        1,
        64,
        "deadlock",
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_ends_in_bounded_time(name):
    text, grid, block, ended = ENDLESS[name]
    began = time.process_time()
    result = run(text, grid, block, ints(1), instructions=3_000_000, memory=1 << 26)
    assert (result["ended"], time.process_time() - began < 10) == (ended, True)
    assert result["why"]


def test_time_is_limited():
    began = time.process_time()
    assert run(body("L: bra L;"), 1, 32, ints(1), instructions=0, seconds=0.2)["ended"] == "limit"
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "before, grid, block, shared",
    [
        (".shared .align 4 .b8 s[1099511627776];", 1, 32, 0),
        (".shared .align 4 .b8 s[300000];", 1, 32, 0),
        (".shared .align 4 .b8 s[1024];", 1, 32, 231_425),
        ("", 0, 32, 0),
        ("", 1, 1025, 0),
        ("", 1, (32, 32, 2), 0),
        ("", (1, 65536), 32, 0),
    ],
)
def test_launches_that_no_gpu_takes(before, grid, block, shared):
    lines = "mov.u32 %r1, s; st.shared.u32 [%r1], %r1;" if before else ""
    with pytest.raises((ValueError, NotImplementedError), match=r"shared|GPU|zero|at most"):
        run(body(lines, before=before), grid, block, ints(1), shared=shared)


def test_memory_is_limited():
    text = body("mov.u64 %d1, s; st.global.u32 [%d1], %r1;", before=".global .align 4 .b8 s[8589934592];")
    assert run(text, 1, 32, ints(1))["ended"] == "limit"


def test_division_has_no_forbidden_operands():
    lines = """
    mov.u32 %r1, -2147483648; mov.u32 %r2, -1; div.s32 %r3, %r1, %r2; rem.s32 %r4, %r1, %r2;
    mov.u64 %d1, 0x8000000000000000; mov.u64 %d2, -1; div.s64 %d3, %d1, %d2; rem.s64 %d4, %d1, %d2; div.u64 %d5, %d1, 0;
    ld.param.u64 %d9, [p0]; st.u32 [%d9], %r3; st.u32 [%d9+4], %r4; st.u64 [%d9+8], %d3; st.u64 [%d9+16], %d4;
    st.u64 [%d9+24], %d5;"""
    out = np.zeros(8, "u4")
    run(body(lines), 1, 32, out)
    assert out.tolist() == [0x80000000, 0, 0, 0x80000000, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF]


def test_what_is_not_executed_is_refused_first():
    with pytest.raises(NotImplementedError, match=r"test\.ptx:\d+: .*alloca"):
        run(body("alloca.u64 %d1, 16;"), 1, 32, ints(1))
