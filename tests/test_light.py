"""The speed of light: what each resource needs, and how far that is from what an H200 measured."""

import json
from pathlib import Path

import numpy as np
import pytest

import gpumem
from gpumem.estimate import Estimates, estimates
from gpumem.light import GRANULE, memory_bytes, speed_of_light
from gpumem.simulate import trace_stage

DATA = Path(__file__).parent.parent / "notebooks" / "data" / "h200"
RECORDED = Estimates.from_dict(json.loads((DATA / "estimates.json").read_text()))


def bounds(trace, on="H200"):
    return {bound.resource: bound for bound in speed_of_light(trace, on).bounds}


def test_a_coalesced_copy_is_bound_by_memory():
    found = trace_stage("copy", "tuned", (1 << 16,)).speed_of_light("H200")
    assert found.binds == "memory"
    assert found.seconds == pytest.approx(2 * 4 * 65536 / 4.25e12)
    assert {bound.resource for bound in found.bounds} == {"memory", "L2", "L1 wavefronts", "issue slots"}
    assert "memory binds" in str(found)


@pytest.mark.parametrize(
    "stage, binds", [("naive", "L2"), ("tiled", "L1 wavefronts"), ("vectorised", "memory"), ("bulk", "memory")]
)
def test_what_binds_a_transpose(stage, binds):
    assert trace_stage("transpose", stage, (512, 512)).speed_of_light("H200").binds == binds


def test_memory_hands_out_granules_but_no_more_than_the_arrays_hold():
    def read(stride):
        return memory_bytes(trace_stage("read", "strided", (1 << 16,), stride=stride))[0]

    assert read(1) == read(8) == read(16) == 4 << 16
    assert read(32) == GRANULE * (1 << 16) / 32
    assert memory_bytes(trace_stage("transpose", "naive", (256, 256))) == (4 << 16, 4 << 16)


def test_a_sample_is_scaled_to_the_grid():
    whole = bounds(trace_stage("copy", "scalar", (1 << 18,)))
    part = bounds(trace_stage("copy", "scalar", (1 << 18,), sample=0.25))
    for name, bound in whole.items():
        assert part[name].amount == pytest.approx(bound.amount, rel=0.01), name


def test_other_devices_and_what_is_not_known_of_them():
    trace = trace_stage("copy", "scalar", (1 << 14,))
    found = bounds(trace, "T4")
    assert found["memory"].seconds == pytest.approx(8 * (1 << 14) / 320e9)
    assert found["L2"].seconds == found["L2"].rate == 0
    with pytest.raises(gpumem.UsageError, match="H200"):
        trace.speed_of_light("Voodoo2")


def test_a_profile_has_no_speed_of_light():
    trace = trace_stage("copy", "scalar", (1 << 10,))
    data = {**trace.to_dict(), "origin": "ncu"}
    with pytest.raises(gpumem.UsageError, match="timed by the hardware"):
        gpumem.Trace.from_dict(data).speed_of_light("H200")


def test_latency_is_looked_at_where_the_machine_code_is_known():
    x, out = np.zeros(1 << 16, "f4"), np.zeros(1 << 16, "f4")
    try:
        trace = gpumem.Kernel(gpumem.examples.COPY).trace(512, 128, out, x, 1 << 16, machine_code=True)
    except gpumem.UsageError as why:
        pytest.skip(str(why))
    found = bounds(trace)["latency"]
    assert found.amount == 4 << 16
    assert found.rate == pytest.approx(trace.fit["bytes_in_flight"] * 132 / 650e-9)


# --- next to what was measured ---------------------------------------------------------------------------------------


def test_the_recorded_error_is_what_the_documentation_says():
    assert len(RECORDED.rows) == 91
    assert np.median(RECORDED.shares) == pytest.approx(0.93, abs=0.01)
    assert RECORDED.within(0.25) >= 0.89
    assert RECORDED.within(0.1) >= 0.55
    wrong = {(row.lesson, row.stage) for row in RECORDED.rows if abs(row.share - 1) > 0.3}
    assert wrong == {
        *(("reduce", name) for name in ("interleaved", "strided", "sequential", "first_add", "shuffle")),
        *(("layout", name) for name in ("aos_fields", "soa_fields")),
        ("read", "gather"),
    }


def test_nothing_is_faster_than_light_but_what_the_first_level_answers():
    for row in RECORDED.rows:
        assert row.share < 1.12 or (row.lesson, row.binds) == ("layout", "L2"), row


@pytest.mark.parametrize("lesson", ["transpose-float32", "banks-float32"])
def test_estimates_are_those_of_this_code(lesson):
    ladder = gpumem.Ladder.read(DATA / f"ladder-{lesson}.json")
    made = estimates([ladder], machine_code=False)
    known = {(row.lesson, row.stage, row.dtype): row for row in RECORDED.rows}
    for row in made.rows:
        recorded = known[row.lesson, row.stage, row.dtype]
        assert row.measured == pytest.approx(recorded.measured, rel=1e-4)
        if recorded.binds != "latency":
            assert row.least == pytest.approx(recorded.least, rel=0.02), row
            assert row.binds == recorded.binds


def test_estimates_come_back_from_json_and_are_drawn():
    again = Estimates.from_dict(json.loads(RECORDED.to_json()))
    assert again.rows == RECORDED.rows
    assert "91 stages" in again.error()
    with pytest.raises(gpumem.UsageError, match="no estimates"):
        Estimates.from_dict({})
    pytest.importorskip("matplotlib")
    ax = RECORDED.plot()
    assert len([line for line in ax.lines if line.get_linestyle() == "None"]) == 91
    assert ax.get_yticklabels()[0].get_text() == "banks, float32"


def test_a_ladder_of_a_cpu_has_no_speed_of_light():
    with pytest.raises(gpumem.UsageError, match="a ladder of a CPU"):
        estimates([gpumem.ladder("copy", (100,), repeat=1, progress=False)])
