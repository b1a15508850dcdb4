"""The lens counts what an H200 counted: every measured launch, exactly.

Requests, sectors and executed instructions are compared as they are. Wavefronts of shared memory were recorded with
l1tex__data_pipe_*, which adds the noise of warps that meet; they are compared exactly where one warp ran, and elsewhere
as "at least, and at most a few per cent more".
"""

import json
from pathlib import Path

import numpy as np
import pytest
from truth import EXECUTED, GLOBAL, NOISY_SHARED, SCALARS, SHARED, TRUTH, bytes_of, counters_of, kernel, rows_of

import gpumem
from gpumem import ptxas

CASES = rows_of("cases.json")
# The same launches and the ladder's, counted again by the metrics that are free of noise (tools/profile_truth.py).
PROFILED = Path(__file__).parent.parent / "notebooks" / "data" / "h200" / "profiles" / "profiles.json"
PROFILES = {row["name"]: row for row in json.loads(PROFILED.read_text())["rows"]}
LESSONS = rows_of("lesson_kernels.json")
OPS = ("ld", "st", "atom", "red")


def case_id(row):
    return "-".join([row["kernel"], *map(str, row["scalars"])])


def run(row, **how):
    kinds = row["params"][len(row["buffers"]) :]
    buffers = [bytes_of(buffer) for buffer in row["buffers"]]
    scalars = [SCALARS[kind](value) for kind, value in zip(kinds, row["scalars"], strict=True)]
    return kernel(row["source"].removesuffix(".cu"), row["kernel"]).trace(
        row["grid"], row["block"], *buffers, *scalars, shared=row["dynamic_shared"], **how
    )


@pytest.mark.parametrize("row", CASES, ids=case_id)
def test_every_measured_case(row):
    trace = run(row)
    got, wanted = counters_of(trace), row["counters"]
    assert trace.findings == ()
    exact = [GLOBAL.format(what, op) for what in ("requests", "sectors") for op in OPS]
    exact += [EXECUTED.format(space, op) for space in ("global", "shared") for op in ("ld", "st")]
    assert {name: got[name] for name in exact} == {name: wanted[name] for name in exact}
    one_warp = np.prod(row["grid"]) == 1 and np.prod(row["block"]) <= 32
    for op in ("ld", "st"):
        # ldmatrix counts among the loads there
        ours = got[SHARED.format(op)] + (got[SHARED.format("ldsm")] if op == "ld" else 0)
        noisy = wanted[NOISY_SHARED.format(op)]
        assert ours == noisy if one_warp else ours <= noisy <= 1.05 * ours + 2


@pytest.mark.parametrize("row", CASES, ids=case_id)
def test_every_case_has_the_counters_without_noise(row):
    """Wavefronts too, exactly, whatever number of warps ran; what is not in the record is zero."""
    assert {name: value for name, value in run(row).counters.items() if value} == PROFILES[case_id(row)]["counters"]


def test_the_lens_differs_from_the_hardware_in_one_launch_of_all():
    """The last block of a sum polls for the others: how often is a matter of time."""
    assert len(PROFILES) > 240
    assert [row["name"] for row in PROFILES.values() if not row["equal"]] == ["reduce/tuned float32"]
    assert {row["counts"] for row in PROFILES.values()} == {"exact"}


def test_sums_of_ideals_are_nsight_computes():
    """memory_l2_theoretical_sectors_global and its ideal; of shared memory, where nothing merges."""
    for row in CASES:
        trace = run(row)
        sites = [site for site in trace.sites if site.space == "global" or site.kind == "copy"]
        assert sum(s.sectors for s in sites) == row["counters"]["memory_l2_theoretical_sectors_global"], row["kernel"]
        ideal = row["counters"]["memory_l2_theoretical_sectors_global_ideal"]
        assert sum(s.sectors_ideal for s in sites) == ideal, row["kernel"]


# the lessons of the field, at real sizes

N, BLOCK = 1 << 20, 256
GRID = N // BLOCK
ZEROS = np.zeros(N * 33, np.float32)


has_tools = pytest.mark.skipif(not ptxas.tool("ptxas"), reason="needs ptxas: pip's, or a toolkit's")


def random_index():
    """The generator of lesson_kernels.cu."""
    made, state = np.empty(N, np.int32), 12345
    for i in range(N):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        made[i] = (state >> 8) % N
    return made


INDEX = None


def lesson_launches():
    """Kernel, grid, block and arguments ("a", "b", "ix" for the buffers) in the order of the record."""
    g, b = GRID, BLOCK
    rows = [(f"_Z7stridedILi{s}EEvPKfPfi", g, b, ("a", "b", N)) for s in (1, 2, 3, 4, 8, 16, 32)]
    rows += [("_Z7offset1PKfPfii", g, b, ("a", "b", N, off)) for off in (0, 1, 7, 8, 16, 31, 32)]
    rows += [("_Z6gatherPKfPfPKii", g, b, ("a", "b", "ix", N))]
    for name in ("_Z6aos4_xPK2P4Pfi", "_Z8aos4_allPK2P4Pfi", "_Z8aos3_allPK2P3Pfi"):
        rows.append((name, g, b, ("a", "b", N)))
    rows += [(name, (4, 1024), b, ("a", "b", 1024, 1024)) for name in ("_Z4rowsPKfPfii", "_Z4colsPKfPfii")]
    rows += [("_Z5copy4PfPKfi", g // 4, b, ("b", "a", N)), ("_Z5copy2PfPKfi", g // 2, b, ("b", "a", N))]
    rows += [(name, g, b, ("b", "a", N)) for name in ("_Z6copy1bPhPKhi", "_Z6copy2bPtPKti", "_Z6copy8bPdPKdi")]
    for name in ("4same", "8halfwarp", "3odd", "8reversed", "3ldg", "4ldcs", "4ldcg", "4ldcv"):
        rows.append((f"_Z{name}PKfPfi", g, b, ("a", "b", N)))
    rows += [("_Z12atomics_samePi", 64, b, ("b",)), ("_Z12atomics_lanePi", 64, b, ("b",))]
    rows += [("_Z11atomics_retPiS_", 64, b, ("b", "ix"))]
    rows += [("_Z8tr_naivePfPKfii", (32, 32), (32, 32), ("b", "a", 1024, 1024))]
    for kind in ("Li0ELb0", "Li1ELb0", "Li0ELb1"):
        rows.append((f"_Z9tr_sharedI{kind}EEvPfPKfii", (32, 32), (32, 8), ("b", "a", 1024, 1024)))
    rows += [("_Z9tr_sharedILi1ELb0EEvPfPKfii", (32, 32), (32, 8), ("b", "a", 1000, 1001))]
    for name in ("15red_interleaved", "11red_strided", "14red_sequential"):
        rows.append((f"_Z{name}PKfPfi", g, b, ("a", "b", N)))
    return rows


LAUNCHES = lesson_launches()


@pytest.mark.parametrize("number", range(len(LESSONS)), ids=lambda i: f"{i}-{LESSONS[i]['kernel'].split('(')[0]}")
def test_every_measured_lesson(number):
    global INDEX
    name, grid, block, arguments = LAUNCHES[number]
    if "ix" in arguments and INDEX is None:
        INDEX = random_index()
    held = {"a": ZEROS, "b": np.zeros(2 * N, np.float32), "ix": INDEX}
    row = LESSONS[number]
    assert row["kernel"].removeprefix("void ").split("(")[0].split("<")[0] in name
    trace = kernel("lesson_kernels", name).trace(grid, block, *(held.get(a, a) for a in arguments))
    got, wanted = counters_of(trace), row["counters"]
    exact = [GLOBAL.format(what, op) for what in ("requests", "sectors") for op in OPS]
    exact += [EXECUTED.format("shared", op) for op in ("ld", "st")]
    if name == "_Z12atomics_samePi":
        # One lane adds for its warp, which only the machine code says: as written it is 32 sectors a warp.
        exact.remove(GLOBAL.format("sectors", "red"))
        assert got[GLOBAL.format("sectors", "red")] == 32 * wanted[GLOBAL.format("sectors", "red")]
    assert {n: got[n] for n in exact} == {n: wanted[n] for n in exact}
    for op in ("ld", "st"):
        ours, noisy = got[SHARED.format(op)], wanted[NOISY_SHARED.format(op)]
        assert ours <= noisy <= 1.05 * ours


@has_tools
@pytest.mark.parametrize("number", [33, 34, 35])
def test_measured_atomics_bound_to_machine_code(number):
    name, grid, block, arguments = LAUNCHES[number]
    held = {"b": np.zeros(2 * N, np.int32), "ix": np.zeros(N, np.int32)}
    trace = kernel("lesson_kernels", name).trace(grid, block, *(held[a] for a in arguments), machine_code=True)
    assert trace.counts == "exact"
    wanted = LESSONS[number]["counters"]
    for what in ("requests", "sectors"):
        for op in OPS:
            assert trace.counters[GLOBAL.format(what, op)] == wanted[GLOBAL.format(what, op)]


@has_tools
def test_merged_loads_are_counted_as_the_wide_one():
    text = (TRUTH.parent / "ptx" / "fused.ptx").read_text()
    x, out = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    written = gpumem.Kernel(text, "two").trace(1, 32, out, x, machine_code=False)
    bound = gpumem.Kernel(text, "two").trace(1, 32, out, x, machine_code=True)
    # 32 neighbouring pairs: two loads of stride 2, two wavefronts each; as one of 8 bytes, two in all
    assert written.counters[SHARED.format("ld")] == 4
    assert bound.counters[SHARED.format("ld")] == 2
    assert (written.counts, written.changes) == ("as the PTX is written: not compared with machine code", ())
    assert bound.counts == "exact"
    assert bound.changes == ("lines 49, 50: 2 x ld.shared 4 became ld.shared 8",)
    assert [site.width for site in bound.sites if site.space == "shared"] == [4, 8, 0]
    assert bound.fit["shared_bytes"] == 256
    assert bound.fit["limits"] == ["blocks"]
    assert gpumem.Trace.from_dict(bound.to_dict()).counts == "exact"


# PTX of other compilers


def front(name):
    return json.loads((TRUTH / "front" / f"{name}.json").read_text())


def front_arguments(words):
    """The arguments, and the buffer that is written."""
    made, written = [], None
    for word in words:
        if word == "null":
            made.append(None)
        elif not word.startswith("buffer"):
            made.append(int(word.split()[1]))
        elif "arange" in word:
            n = int(word.split("arange(")[1].split(")")[0])
            made.append((np.arange(n) % 97).astype(np.float32))
        elif word.endswith("the same"):
            made.append(made[0].copy())
        else:
            size = int(word.split("[")[1].rstrip("]")) if "[" in word else made[0].size
            made.append(written := np.zeros(size, np.float32))
    return made, written


@pytest.mark.parametrize("name", ["triton_add", "triton_softmax", "numba_copy", "numba_sum"])
def test_kernels_of_other_compilers(name):
    row = front(name)
    arguments, out = front_arguments(row["args"])
    text = (TRUTH / "front" / f"{name}.ptx").read_text()
    trace = gpumem.Kernel(text).trace(row["grid"], row["block"], *arguments, shared=int(row["dynamic_shared"]))
    got = counters_of(trace)
    known = [key for key in row["counters"] if key in got]
    assert len(known) >= 4
    assert {key: got[key] for key in known} == {key: row["counters"][key] for key in known}
    assert trace.findings == ()
    x = np.arange(out.size) % 97
    if "sum_of_out" in row:
        assert out.sum(dtype=np.float64) == row["sum_of_out"]
    elif name == "triton_add":
        np.testing.assert_array_equal(out, (2 * x).astype(np.float32))
    else:
        e = np.exp(x.reshape(128, 1000) - x.reshape(128, 1000).max(1, keepdims=True))
        np.testing.assert_allclose(out.reshape(128, 1000), e / e.sum(1, keepdims=True), rtol=2e-6, atol=1e-12)
