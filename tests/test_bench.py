"""The benchmark: its rows are the field's shapes, its figures are what its samples say, its peers do the same work."""

import itertools
import json
import math

import numpy as np
import pytest

import gpumem
from gpumem import peers
from gpumem.bench import make_job, measure
from gpumem.cases import GROUPS, OPS, Case, cases
from gpumem.result import Result, Row
from gpumem.timing import Spread, interleave, ratio
from gpumem.work import Arena, touched

EVERY = [case for op in OPS for case in cases(op)]


class Counted:
    """A timer that takes no time, writes down who was called, and reports what it is told."""

    def __init__(self, name, log, seconds=1.0):
        self.name, self.log, self.seconds = name, log, seconds

    def timeit(self, calls):
        self.log.append((self.name, calls))
        return self.seconds * calls


# Rows


def test_the_published_permutations_are_all_there():
    by_group = {name: [case for case in EVERY if case.group == name] for name in GROUPS}
    assert len(by_group["ttc57"]) == 57
    assert len(by_group["applications"]) == 26 * 4
    assert {case.dtype for case in by_group["ttc57"]} == {"float32"}
    # Every array of the TTC benchmark holds between 190 and 235 MiB.
    assert all(190 < math.prod(case.shape) * 4 / 2**20 < 235 for case in by_group["ttc57"])


@pytest.mark.parametrize("op", OPS)
def test_rows_can_be_told_apart_and_stand_in_a_group_with_goals(op):
    rows = cases(op)
    assert len({case.label for case in rows}) == len(rows)
    for case in rows:
        assert case.op == op
        assert GROUPS[case.group].at_least <= GROUPS[case.group].aim
        if op == "transpose":
            assert sorted(case.axes) == list(range(len(case.shape)))
    assert 0 < len(cases(op, quick=True)) < len(rows) / 2


def test_thin_rows_cover_every_width_and_size():
    thin = {(case.shape, case.dtype) for case in EVERY if case.group.startswith("thin")}
    for k, dtype in itertools.product(range(2, 34), ("uint8", "uint16", "float32", "float64")):
        n = 130_000_000 // (k * np.dtype(dtype).itemsize)
        assert {((n, k), dtype), ((k, n), dtype)} <= thin


def test_arrays_are_far_larger_than_a_cache_unless_the_group_says_otherwise():
    small = {case.group for case in EVERY if math.prod(case.shape) * np.dtype(case.dtype).itemsize < 32e6}
    narrow = {f"{group}, 1-2 bytes" for group in ("2d even", "2d odd", "in place", "in place odd")}
    assert small <= {"in cache", "tiny", "applications", *narrow}


@pytest.mark.parametrize(
    "only, count", [(["ttc57"], 57), (["ttc57/0?"], 10), (["tiny", "in cache"], 10), (["2d*8192x8192 uint8"], 1)]
)
def test_rows_are_found_by_part_or_pattern(only, count):
    assert len(cases("transpose", only=only)) == count


def test_unknown_rows_and_operations_are_named():
    with pytest.raises(ValueError, match="no row matches 'zzz'; the groups of 'sum' are: sum of everything, "):
        cases("sum", only=["zzz"])
    with pytest.raises(ValueError, match="no operation 'sort': there are transpose, copy, sum"):
        gpumem.bench("sort")


# Bytes


@pytest.mark.parametrize(
    "view, lines",
    [
        (lambda x: x, 256 * 256 * 4),
        (lambda x: x.T, 256 * 256 * 4),
        (lambda x: x[::-1, ::-1], 256 * 256 * 4),
        (lambda x: x[::2], 128 * 256 * 4),  # whole rows
        (lambda x: x[:, ::2], 256 * (255 * 4)),  # every line of a row, but the last item
        (lambda x: x[:, ::32], 256 * 8 * 64),  # a line for each item
        (lambda x: x[:, :1], 256 * 64),
        (lambda x: x[:, :16], 256 * 64),
        (lambda x: np.broadcast_to(x[:1], (256, 256)), 256 * 4),
    ],
)
def test_a_strided_side_counts_the_lines_it_touches(view, lines):
    x = np.zeros((256, 256), np.float32)
    got = touched(view(x))
    assert got == lines


# Timing


def test_contestants_take_turns_in_alternating_order():
    log = []
    samples = interleave({name: Counted(name, log) for name in "abc"}, rounds=4, seconds_each=9)
    assert "".join(name for name, _ in log) == "abc" + "abc" + "cba" + "abc" + "cba"
    assert samples == {name: [1.0] * 4 for name in "abc"}


def test_what_comes_before_a_sample_is_not_timed_and_precedes_every_one():
    log = []
    timers = {name: Counted(name, log) for name in "ab"}
    samples = interleave(timers, rounds=2, before=lambda: log.append(("-", 0)))
    assert "".join(name for name, _ in log) == "ab" + "-a-b" + "-b-a"
    assert samples == {"a": [1.0] * 2, "b": [1.0] * 2}


@pytest.mark.parametrize("row, cold", [("2d even/4096x4096 float32", True), ("in cache/256x256 float32", False)])
def test_caches_are_emptied_before_each_sample_but_in_rows_about_caches(row, cold, monkeypatch):
    emptied = []
    monkeypatch.setattr("gpumem.machine.last_cache", lambda: 1 << 30)
    monkeypatch.setattr(Arena, "empty_caches", lambda arena: emptied.append(arena))
    (taken,) = gpumem.bench("transpose", only=[row], repeat=2, peers=["numpy"], progress=False).rows
    assert len(emptied) == (sum(map(len, taken.seconds.values())) if cold else 0)


def test_emptying_the_caches_reads_more_than_the_last_one_holds(monkeypatch):
    read = []
    monkeypatch.setattr("gpumem.work._core._reference_read", lambda x: read.append(x.nbytes))
    monkeypatch.setattr("gpumem.machine.last_cache", lambda: 4 << 20)
    Arena().empty_caches()
    assert read[0] > 4 << 20


def test_slow_contestants_sit_out_after_three_rounds():
    log = []
    samples = interleave({"slow": Counted("slow", log, 5.0), "fast": Counted("fast", log, 0.1)}, 7, seconds_each=2)
    assert {name: len(taken) for name, taken in samples.items()} == {"slow": 3, "fast": 7}


def test_short_calls_are_timed_many_at_a_time():
    log = []
    samples = interleave({"short": Counted("short", log, 1e-6)}, rounds=3, calls=None)
    assert log[-1][1] >= 500
    assert samples["short"] == pytest.approx([1e-6] * 3)


def test_ratios_compare_within_a_round():
    # The machine runs at half speed in the second round: the ratio does not see it.
    assert ratio([1.0, 2.0, 1.0], [2.0, 4.0, 2.0]) == Spread(0.5, 0.5, 0.5)
    # Rounds that a slow contestant sat out do not count.
    assert ratio([1.0, 1.0, 1.0, 9.0], [2.0, 2.0, 2.0]).median == 0.5


def test_quartiles():
    assert Spread.of([4.0, 1.0, 2.0, 3.0, 5.0]) == Spread(3.0, 2.0, 4.0)


# Results


def synthetic(group, name="row", **seconds):
    case = {"group": group, "name": name, "shape": [2, 2], "dtype": "float32", "axes": [1, 0]}
    return Row(case, 10**9, "streaming copy", {name: [s] * 3 for name, s in seconds.items()})


def test_figures_are_of_what_the_group_is_measured_against():
    seconds = {"memcpy": 0.2, "streaming copy": 0.1, "gpumem": 0.125, "numpy": 1.0, "hptt": 0.25}
    assert synthetic("2d even", **seconds).figure().median == pytest.approx(0.8)
    assert synthetic("in cache", **seconds).figure().median == pytest.approx(2.0)
    assert synthetic("tiny", **seconds).figure().median == pytest.approx(8.0)
    assert synthetic("2d even", **seconds).reference_gb_per_s() == pytest.approx(10.0)


def test_the_table_names_the_worst_row_and_counts_those_below_the_goal():
    rows = (
        synthetic("2d even", "good", memcpy=1.0, **{"streaming copy": 0.7}, gpumem=0.8, numpy=9.0),
        synthetic("2d even", "bad", memcpy=1.0, **{"streaming copy": 0.7}, gpumem=7.0, numpy=3.5),
    )
    environment = {"cpu": "C", "threads": 2, "isa": "i", "gpumem": "0", "date": "2026-01-01T00:00"}
    line = str(Result("transpose", rows, environment, {"numpy": "2"})).splitlines()[3]
    assert line.split() == ["2d", "even", "2", "of", "copy", "0.49", "████▉", "0.10", "bad", "float32",
                            *("0.65", "0.90", "1", "0.14", "1")]  # fmt: skip


@pytest.mark.parametrize("op", OPS)
def test_a_result_survives_json(op, monkeypatch):
    monkeypatch.setattr("gpumem.cases.FILL", 60_000)
    only = {"transpose": ["k=2", "in place*(n,[31]*", "(n,3) to (3,n) uint16", "in cache/256x256", "tiny*8x8"]}.get(
        op, ["float32"]
    )
    only += {"sum": ["everything"]}.get(op, [])
    rows = [
        case
        for case in cases(op, only=only)
        if math.prod(case.shape) < 1e6  # the shapes that FILL does not shrink
    ]
    arena = Arena()
    environment = {**gpumem.info().environment, "date": "2026-01-01T00:00"}
    measured = tuple(measure(case, make_job(case, arena), peers.present(None), 3) for case in rows)
    result = Result(op, measured, environment, {peer.name: peer.version() for peer in peers.present(None)})
    again = Result.from_dict(json.loads(result.to_json()))
    assert again.op == op
    assert len(again.rows) == len(rows) > 1
    for row, copy in zip(result.rows, again.rows, strict=True):
        assert copy.case == row.case
        assert copy.bytes == row.bytes
        assert copy.figure().median == pytest.approx(row.figure().median, rel=1e-2)
    for row in json.loads(result.to_json())["rows"]:
        assert row["figures"]["gpumem"]["median"] > 0
        assert all(len(taken) == 3 for taken in row["seconds"].values())


def test_a_wrong_result_stops_the_benchmark(monkeypatch):
    monkeypatch.setattr("gpumem._core.transpose", lambda *args, **options: None)
    with pytest.raises(gpumem.WrongResultError, match="gpumem: in cache/256x256 float32 is wrong at"):
        gpumem.bench("transpose", only=["in cache/256"], progress=False)


def test_rows_that_do_not_fit_into_memory_are_left_out_by_name(monkeypatch):
    monkeypatch.setattr("gpumem.machine.memory_free", lambda: 1 << 20)
    result = gpumem.bench("transpose", only=["tiny*8x8", "2d even/8192x8192 float32"], repeat=3, progress=False)
    assert [row.case["group"] for row in result.rows] == ["tiny"]
    assert len(result.skipped) == 1
    assert "2d even/8192x8192 float32" in str(result)


def test_plot_has_a_line_a_group():
    pytest.importorskip("matplotlib")
    result = gpumem.bench("transpose", only=["tiny"], repeat=3, peers=["numpy"], progress=False)
    ax = result.plot()
    assert any("tiny" in text.get_text() for text in ax.texts)


@pytest.mark.parametrize("asked", [[], ["numpy"]], ids=["none", "numpy"])
def test_numpy_takes_part_where_it_is_the_measure(asked):
    row = gpumem.bench("transpose", only=["tiny"], repeat=3, peers=asked, progress=False).rows[0]
    assert row.against() == "numpy"
    assert row.to_dict()["figures"]["numpy"]["median"] == 1.0


# Peers


@pytest.mark.parametrize("name", peers.NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint16"])
def test_peers_give_the_right_bytes(name, dtype):
    peer = peers.peer(name)
    if peer.missing:
        pytest.skip(f"{name}: {peer.missing}")
    job = make_job(Case("transpose", "2d odd", "x", (33, 65), dtype, axes=(1, 0)), Arena())
    timer = job.peer(peer)
    if timer is None:
        assert (name, dtype) in {("hptt", "uint16"), ("openblas", "uint16"), ("torch", "uint16")}
    else:
        job.verify(name, timer)
    assert peer.version()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape, axes", [((64, 64), (1, 0)), ((33, 33), (1, 0)), ((5, 9, 9), (0, 2, 1))])
def test_in_place_every_contestant_leaves_the_transpose(shape, axes, dtype):
    job = make_job(Case("transpose", "in place", "x", shape, dtype, axes=axes, in_place=True), Arena())
    job.verify("gpumem", job.gpumem())
    for peer in peers.present(None):
        if timer := job.peer(peer):
            job.verify(peer.name, timer)
    assert job.peer(peers.peer("numpy"))
    assert job.bytes == 2 * math.prod(shape) * np.dtype(dtype).itemsize


def test_a_peer_that_is_asked_for_and_missing_is_an_error():
    for name in peers.NAMES:
        if peers.peer(name).missing:
            with pytest.raises(ValueError, match=f"peer '{name}' is not here: "):
                gpumem.bench("transpose", only=["tiny"], peers=[name], progress=False)


def test_a_path_that_is_no_library_is_an_error(monkeypatch):
    monkeypatch.setenv("GPUMEM_HPTT", "/nowhere/libhptt.so")
    peers.peer.cache_clear()
    with pytest.raises(ValueError, match=r"GPUMEM_HPTT=/nowhere/libhptt\.so: "):
        gpumem.bench("transpose", only=["tiny"], peers=["hptt"], progress=False)
    peers.peer.cache_clear()
