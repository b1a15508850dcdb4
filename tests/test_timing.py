"""Times, so asked for by name and on a quiet machine only: `pytest -m timing`.

In one run, in turns: a stage must not be slower than the stage before it by more than the spread of the two.
"""

from itertools import pairwise

import pytest

import gpumem

CASES = [
    ("transpose", (8192, 8192), "float32"),
    ("transpose", (8191, 8193), "float32"),
    ("transpose", (8192, 8192), "uint8"),
    ("transpose", (4096, 4096), "float64"),
    ("copy", None, "float32"),
    ("reduce", None, "float32"),
    ("reduce", None, "uint8"),
    ("reduce", None, "float64"),
]
TIE = 1.03  # a stage that changes nothing for a shape may lose as much to chance


@pytest.mark.timing
@pytest.mark.parametrize("lesson, shape, dtype", CASES)
def test_each_stage_is_no_slower_than_the_one_before(lesson, shape, dtype, capsys):
    ladder = gpumem.ladder(lesson, shape, dtype, repeat=11, progress=False)
    with capsys.disabled():
        print(f"\n{ladder}")
    stages = [rung for rung in ladder.rungs if rung.kind == "stage"]
    slower = [
        f"{after.name} {after.time.median * 1e3:.2f} ms, {before.name} {before.time.median * 1e3:.2f} ms"
        for before, after in pairwise(stages)
        if after.time.low > TIE * before.time.high
    ]
    assert not slower
