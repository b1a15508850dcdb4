"""On a GPU: no stage of a ladder is slower than the one before it, but where the hardware says otherwise."""

from itertools import pairwise

import pytest
from sizes import not_small

import gpumem

# Measured on an H200: padding and swizzling both read a column without a conflict, and the exclusive or costs 3 %; one
# aligned 16-byte vector a thread is all that a copy can use, so that more of them, or the copy engine, lose 1-2 %.
TIE = 1.06


@not_small("times")
@pytest.mark.gpu
@pytest.mark.parametrize("lesson", ["transpose", "copy", "cache"])
def test_each_stage_is_no_slower_than_the_one_before(torch, lesson):
    ladder = gpumem.ladder(lesson, device="cuda", repeat=9, peers=(), progress=False)
    stages = [rung for rung in ladder.rungs if rung.kind == "stage"]
    assert len(stages) == len(gpumem.stages(lesson, "cuda"))
    slower = [
        f"{after.name} {after.time.median * 1e3:.2f} ms, {before.name} {before.time.median * 1e3:.2f} ms"
        for before, after in pairwise(stages)
        if after.time.low > TIE * before.time.high
    ]
    assert not slower, f"{slower}\n{ladder}"
