"""The ladder on a CUDA device: all stages are verified and timed, and come in the order that was measured."""

import pytest
from sizes import not_small

import gpumem
from gpumem import _core
from gpumem.device_ladder import OPTIONS, default_shape

LESSONS = list(dict.fromkeys(stage.lesson for stage in gpumem.stages(device="cuda")))
SHAPES = {"layout": (1000, 4), "walk2d": (100, 130), "transpose": (100, 130)}


@pytest.mark.skipif(bool(_core._cuda()["devices"]), reason="there is a device")
def test_without_a_device_the_reason_is_given():
    with pytest.raises(gpumem.UsageError, match=r"device .cuda.: ."):
        gpumem.ladder("read", device="cuda", progress=False)


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
def test_the_usual_shape_takes_a_gibibyte(lesson, itemsize):
    shape = default_shape(lesson, itemsize)
    items = 1
    for length in shape:
        items *= length
    assert items * itemsize == 1 << 30
    assert len(shape) == len(SHAPES.get(lesson, (1,)))


def test_options_are_of_stages_that_there_are():
    assert set(OPTIONS) <= {str(stage) for stage in gpumem.stages(device="cuda")}


@pytest.mark.gpu
@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_every_stage_is_verified_and_timed(torch, lesson, dtype):
    shape = SHAPES.get(lesson, (10_000,))
    ladder = gpumem.ladder(lesson, shape, dtype, "cuda", repeat=3, peers=[], progress=False)
    stages = {rung.name.split()[0] for rung in ladder.rungs if rung.kind == "stage"}
    left_out = {note.split(":")[1].split("/")[1] for note in ladder.notes}
    assert stages | left_out == {stage.name for stage in gpumem.stages(lesson, "cuda")}
    assert [rung.name for rung in ladder.rungs if rung.kind == "reference"]
    assert "CUDA" in str(ladder)
    for rung in ladder.rungs:
        assert len(rung.seconds) == 3
        assert rung.bytes > 0


@pytest.mark.gpu
def test_what_a_stage_cannot_take_is_left_out_with_the_reason(torch):
    ladder = gpumem.ladder("layout", (1000, 3), device="cuda", repeat=3, progress=False)
    assert "aos_vector" not in {rung.name for rung in ladder.rungs}
    assert any("a record of 12 bytes is not one access" in note for note in ladder.notes)


# Fractions of the rate of a copy, each at least so many times the other. Where this is not what textbooks say: an H200
# serves up to 8 wavefronts a shared load without delay; records of 16 bytes, read field by field, are as fast as in one
# load, since the first-level cache has them; sums whose banks conflict are slower than those whose warps diverge.
MEASURED = [
    ("read", "strided 1", 1.3, "strided 4"),
    ("read", "strided 4", 1.4, "strided 8"),
    ("read", "strided 8", 1.5, "strided 16"),
    ("read", "offset 1", 0.9, "coalesced"),
    ("read", "coalesced", 3.0, "gather"),
    ("walk2d", "rows", 4.0, "columns"),
    ("layout", "soa_field", 1.2, "aos_field"),
    ("layout", "soa_staged", 1.15, "soa_fields"),
    ("layout", "soa_vector", 0.97, "soa_staged"),
    ("layout", "aos_fields", 0.95, "aos_vector"),
    ("banks", "strided 8", 0.9, "strided 1"),
    ("banks", "strided 16", 1.3, "strided 32"),
    ("banks", "padded", 1.7, "strided 32"),
    ("banks", "swizzled", 1.7, "strided 32"),
    ("banks", "broadcast", 0.95, "strided 33"),
    ("banks", "access16", 0.95, "access4"),
    ("reduce", "interleaved", 1.1, "strided"),
    ("reduce", "sequential", 1.15, "strided"),
    ("reduce", "first_add", 1.5, "sequential"),
    ("reduce", "shuffle", 1.15, "first_add"),
    ("reduce", "vectorised", 1.5, "shuffle"),
]


@not_small("times")
@pytest.mark.gpu
@pytest.mark.parametrize("lesson", dict.fromkeys(row[0] for row in MEASURED))
def test_the_order_is_the_one_that_was_measured(torch, lesson):
    ladder = gpumem.ladder(lesson, device="cuda", repeat=5, peers=[], progress=False)
    print(ladder)
    for _, faster, times, slower in [row for row in MEASURED if row[0] == lesson]:
        assert ladder[faster].of_copy.median >= times * ladder[slower].of_copy.median, (faster, slower)
