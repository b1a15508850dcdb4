"""What one warp instruction costs (csrc/simt/count.h): every measured row exactly, and the plain rules everywhere else.

tests/data/truth holds single instructions that an H200 executed under Nsight Compute. The plain rules below are written
for reading: sets and counters, no fast path.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpumem import _core

TRUTH = Path(__file__).parent / "data" / "truth"
Lanes = Sequence[int]  # the address of each lane, -1 where it is inactive
Row = tuple[int, ...]


def rows_of(file: str) -> list[dict[str, Any]]:
    held = json.loads((TRUTH / file).read_text())
    if "fields" in held:
        return [dict(zip(held["fields"], row, strict=True)) for row in held["rows"]]
    return held["rows"]


def count(
    what: str, lanes: Sequence[Lanes] | np.ndarray, width: int, shared: Sequence[Lanes] | None = None
) -> list[Row]:
    """Many instructions at once. Inactive lanes are given a wild address: nobody may look at it."""
    at = np.array(lanes, np.int64)
    on = at >= 0 if shared is None else np.array(shared, np.int64) >= 0
    active = (on.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1).astype(np.uint32)
    wild = np.where(on, at, 0x5A5A5A5A)
    low = wild if shared is None else np.where(on, np.array(shared, np.int64), 0x5A5A5A5A)
    got = _core._count(what, wild.astype(np.uint64), low.astype(np.uint32), active, width)
    return [tuple(row) for row in np.frombuffer(got, np.uint32).reshape(-1, 4).tolist()]


# the plain rules


def packed(n: int, width: int) -> int:
    return -(-n * width // 32)


def plain_global(lanes: Lanes, width: int, atomic: bool) -> Row:
    """Requests, sectors, ideal sectors, lines."""
    active = [a for a in lanes if a >= 0]
    most: dict[int, int] = defaultdict(int)
    for address, times in Counter(active).items():
        most[address // 32] = max(most[address // 32], times if atomic else 1)
    sectors = sum(most.values())
    return (min(1, len(active)), sectors, min(sectors, packed(len(active), width)), len({a // 128 for a in active}))


def plain_shared(lanes: Lanes, width: int, kind: str) -> Row:
    """Requests, wavefronts, ideal, conflicts."""
    unit = [a if a < 0 else a // max(width, 4) for a in lanes]
    size = min(32, 128 // width)
    columns = min(32, 128 // width)

    def agree(distance: int) -> bool:
        return all(min(unit[i], unit[i ^ distance]) < 0 or unit[i] == unit[i ^ distance] for i in range(32))

    if kind == "load" and width > 4 and (agree(1) or agree(2)):
        size *= 2
    groups = [[u for u in unit[i : i + size] if u >= 0] for i in range(0, 32, size)]
    groups = [g for g in groups if g]
    each = [Counter(u % columns for u in (g if kind in ("atom", "cas") else set(g))) for g in groups]
    wavefronts = sum(max(c.values()) for c in each)
    twice = 2 if kind == "cas" else 1
    return (min(1, len(groups)), twice * wavefronts, twice * len(groups), wavefronts - len(groups))


def plain_copy(source: Lanes, target: Lanes) -> Row:
    """cp.async.cg: the last lane to write a place wins it; a line counts once for every 32 bytes that it reaches."""
    winner = {to: start for start, to in zip(source, target, strict=True) if to >= 0}
    active = [start for start, to in zip(source, target, strict=True) if to >= 0]
    sectors = len({(start // 128, to // 32) for to, start in winner.items()})
    return (min(1, len(active)), sectors, min(sectors, packed(len(active), 16)), len({a // 128 for a in active}))


# measured rows


@pytest.mark.parametrize("op", ["ld", "st"])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_every_measured_bank_pattern(op, width):
    rows = [r for r in rows_of("bank_patterns.json") if (r["op"], r["bytes"]) == (op, width)]
    got = count("shared load" if op == "ld" else "shared store", [[4 * w for w in r["word"]] for r in rows], width)
    assert len(rows) > 60
    wrong = {
        (i, r["name"]): (c[1], c[3])
        for i, (r, c) in enumerate(zip(rows, got, strict=True))
        if (c[1], c[3]) != (r["wavefronts"], r["conflicts"])
    }
    assert not wrong


KINDS = {
    "gld": "global load", "gst": "global store", "gen": "global load", "gat": "global atom", "gre": "global atom",
    "gca": "global cas", "sld": "shared load", "sst": "shared store", "sat": "shared atom", "sca": "shared cas",
    "sre": "shared inc", "ldm": "matrix x", "stm": "matrix x",
}  # fmt: skip
OPS = sorted({row["op"] for row in rows_of("instructions.json")})


@pytest.mark.parametrize("op", [op for op in OPS if not op.startswith("cp")])
def test_every_measured_instruction(op):
    rows = [r for r in rows_of("instructions.json") if r["op"] == op]
    what = KINDS[op[:3]] + (str(rows[0]["matrices"]) if "matrices" in rows[0] else "")
    got = count(what, [r["offset"] for r in rows], rows[0]["bytes"])
    assert len(rows) >= 12
    for row, counted in zip(rows, got, strict=True):
        wanted = {"requests": counted[0], "sectors": counted[1]}
        if what[:6] != "global":
            wanted = {"wavefronts": counted[1], "conflicts": counted[3]}
        assert wanted == {name: row.get(name, wanted[name]) for name in wanted}, row["name"]


@pytest.mark.parametrize("op", [op for op in OPS if op.startswith("cp")])
def test_every_measured_asynchronous_copy(op):
    # The kernel that executed them also loads two 4-byte words a lane, from the lanes that copy; the record has those
    # of 32 lanes taken off (2 requests, 8 sectors), so that what inactive lanes did not load is missing from it.
    rows = [r for r in rows_of("instructions.json") if r["op"] == op]
    source, target = ([r[name] for r in rows] for name in ("global_offset", "offset"))
    if op == "cpcg16":
        got = count("copy", source, 16, target)
    else:
        active = [
            [s if t >= 0 else -1 for s, t in zip(*both, strict=True)] for both in zip(source, target, strict=True)
        ]
        got = count("global load", active, rows[0]["bytes"])
    for row, counted in zip(rows, got, strict=True):
        copying = [lane for lane in range(32) if row["offset"][lane] >= 0]
        missing = 8 - 2 * len({lane // 8 for lane in copying})
        assert counted[:2] == (row["requests"] + (0 if copying else 2), row["sectors"] + missing), row["name"]
    assert len(rows) > 35


@pytest.mark.parametrize("op", ["cpca4", "cpca8", "cpca16"])
def test_the_shared_side_of_measured_copies(op):
    rows = [r for r in rows_of("instructions.json") if r["op"] == op]
    got = count("copy shared", [r["global_offset"] for r in rows], rows[0]["bytes"], [r["offset"] for r in rows])
    assert [c[1] for c in got] == [r["wavefronts_ldgsts"] for r in rows]


def crowds(lanes: Lanes, width: int) -> list[int]:
    """The most lanes of one column, in each group that asks for 128 bytes."""
    size = min(32, 128 // width)
    columns = [Counter(a // width % size for a in lanes[i : i + size] if a >= 0) for i in range(0, 32, size)]
    return [max(c.values(), default=0) for c in columns]


COPIES = json.loads((TRUTH / "copies.json").read_text())["rows"]


@pytest.mark.parametrize("width", [4, 8, 16])
def test_copies_whose_both_sides_are_scattered(width):
    """As measured on an H200: exact where one side of each group is free of conflicts, else the least."""
    rows = [r for r in COPIES if r["bytes"] == width]
    got = count("copy shared", [r["source"] for r in rows], width, [r["to"] for r in rows])
    assert len(rows) > 30
    free = 0
    for row, (_, wavefronts, ideal, conflicts) in zip(rows, got, strict=True):
        source = [s if t >= 0 else -1 for s, t in zip(row["source"], row["to"], strict=True)]
        sides = list(zip(crowds(source, width), crowds(row["to"], width), strict=True))
        assert (wavefronts, ideal) == (sum(map(max, sides)), sum(max(side) > 0 for side in sides))
        assert conflicts == wavefronts - ideal
        if all(min(side) <= 1 for side in sides):
            free += 1
            assert wavefronts == row["wavefronts"], row["name"]
        else:
            assert wavefronts <= row["wavefronts"] <= 2 * wavefronts, row["name"]
    assert free >= 10


# the plain rules


def patterns(width: int, rng: np.random.Generator, many: int) -> np.ndarray:
    """Addresses of every shape that has a fast path, a little beside it, and none: multiples of the width."""
    lane = np.arange(32)
    made = [
        start + step * lane
        for start, step in product((0, 1, 3, 7, 8, 31, 500), range(-70, 71))
        if start + 31 * step >= 0
    ]
    made += [start + 40 * 70 - step * lane for start, step in product((0, 5, 32), range(90))]
    made += [lane ^ x for x in range(1, 32)] + [lane * 33 ^ x for x in (1, 4, 31)]
    made += [lane // 2**i for i in range(6)] + [lane % 2**i for i in range(6)] + [lane % 2**i * 32 for i in range(6)]
    made += [rng.permutation(32) + shift for shift in (0, 1, 7, 8, 9)]
    for top in (2, 4, 8, 32, 33, 64, 256, 1024, 40000):
        made += list(rng.integers(0, top, (many, 32)))
    for m in list(made[: 20 * many : 7]):  # one lane out of step
        other = np.array(m)
        other[rng.integers(32)] += rng.integers(1, 40)
        made.append(other)
    at = np.array(made, np.int64) * width
    masks = rng.random((len(at), 32)) < rng.choice([0.1, 0.5, 0.9, 1], (len(at), 1))
    run = (lane >= rng.integers(0, 20, (len(at), 1))) & (lane < rng.integers(10, 33, (len(at), 1)))
    return np.concatenate([at, np.where(masks, at, -1), np.where(run, at, -1)])


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("kind", ["load", "store", "atom", "cas"])
def test_global_requests_follow_the_plain_rule(kind, width):
    lanes = patterns(width, np.random.default_rng(1), 30)
    for base in (0, 0x7F0000000000):  # real addresses are far above 32 bits
        got = count(f"global {kind}", np.where(lanes >= 0, lanes + base, -1), width)
        assert got == [plain_global(row, width, kind in ("atom", "cas")) for row in lanes.tolist()]


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("kind", ["load", "store", "atom", "cas", "inc"])
def test_shared_requests_follow_the_plain_rule(kind, width):
    lanes = patterns(width, np.random.default_rng(2), 30)
    got = count(f"shared {kind}", lanes, width)
    assert got == [plain_shared(row, width, kind) for row in lanes.tolist()]


@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_matrices_are_served_one_after_another(matrices):
    lanes = patterns(16, np.random.default_rng(3), 30)
    lanes = lanes[(lanes >= 0).all(1)]

    def plain(row: Lanes) -> Row:
        each = [Counter(u % 8 for u in {a // 16 for a in row[8 * m : 8 * m + 8]}) for m in range(matrices)]
        wavefronts = sum(max(c.values()) for c in each)
        return (1, wavefronts, matrices, wavefronts - matrices)

    assert count(f"matrix x{matrices}", lanes, 16) == [plain(row) for row in lanes.tolist()]


def test_copies_past_the_first_cache_follow_the_plain_rule():
    rng = np.random.default_rng(4)
    targets = patterns(16, rng, 20)
    sources = rng.permutation(np.abs(targets))
    got = count("copy", sources, 16, targets)
    assert got == [plain_copy(*both) for both in zip(sources.tolist(), targets.tolist(), strict=True)]


# what everybody should know, in numbers


@pytest.mark.parametrize("stride, sectors", [(1, 4), (2, 8), (3, 12), (4, 16), (8, 32), (16, 32), (32, 32), (0, 1)])
def test_a_stride_of_floats(stride, sectors):
    assert count("global load", [[4096 + 4 * stride * (lane - 32) for lane in range(32)]], 4)[0][1] == sectors


@pytest.mark.parametrize("offset", range(33))
def test_an_offset_of_floats(offset):
    row = count("global store", [[4 * (offset + lane) for lane in range(32)]], 4)[0]
    assert row == (1, 4 if offset % 8 == 0 else 5, 4, 1 if offset % 32 == 0 else 2)


@pytest.mark.parametrize("stride", range(65))
def test_a_stride_of_words_in_shared_memory(stride):
    ways = np.gcd(stride, 32) if stride else 1
    assert count("shared load", [[4 * stride * lane for lane in range(32)]], 4) == [(1, ways, 1, ways - 1)]


@pytest.mark.parametrize("what", ["global load", "global atom", "shared load", "shared cas", "copy", "copy shared"])
def test_without_an_active_lane_there_is_no_request(what):
    nobody: Callable[[], list[Row]] = lambda: count(what, [[-1] * 32], 4, [[-1] * 32])  # noqa: E731
    assert nobody() == [(0, 0, 0, 0)]


def test_bad_arguments_are_refused():
    lanes, active = np.zeros((1, 32), np.uint64), np.zeros(1, np.uint32)
    for arguments in [
        ("global load", lanes, lanes.astype(np.uint32), active, 3),
        ("global load", lanes, lanes.astype(np.uint32), active, 64),
        ("global load", lanes, lanes, active, 4),
        ("nothing", lanes, lanes.astype(np.uint32), active, 4),
        ("global load", lanes[:, ::2], lanes.astype(np.uint32), active, 4),
    ]:
        with pytest.raises((ValueError, BufferError)):
            _core._count(*arguments)
    with pytest.raises(TypeError):
        _core._count("global load")
