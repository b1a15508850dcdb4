"""Times, so asked for by name and on a quiet machine only: `pytest -m timing`.

In one run, in turns: a stage must not be slower than the stage before it by more than the spread of the two, and no
size may be a cliff between its neighbours.
"""

from itertools import pairwise
from timeit import Timer

import numpy as np
import pytest

import gpumem
from gpumem.timing import Spread, calls_per_sample, interleave
from gpumem.work import Arena

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


def per_byte(shapes, dtype):
    """Seconds a byte of transposing each shape, the median over rounds in which all take turns."""
    dtype = np.dtype(dtype)
    timers, sizes = {}, {}
    for shape in shapes:
        x, out = Arena().random(shape, dtype), Arena().array("out", shape[::-1], dtype)
        timers[str(shape)] = Timer(lambda x=x, out=out: gpumem.transpose(x, out=out))
        sizes[str(shape)] = x.nbytes
    samples = interleave(timers, 11, calls=calls_per_sample(min(sizes.values())))
    return {name: Spread.of(taken).median / sizes[name] for name, taken in samples.items()}


@pytest.mark.timing
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192])
def test_no_size_is_twice_as_slow_as_its_neighbours(n, dtype):
    times = per_byte([(m, m) for m in (n - 1, n, n + 1)], dtype)
    assert max(times.values()) <= 2 * min(times.values()), {name: f"{t * 1e12:.0f} ps" for name, t in times.items()}


@pytest.mark.timing
@pytest.mark.parametrize("shape", [(4096, 4096), (10_000_000, 3), (3, 10_000_000)], ids=str)
def test_bytes_are_not_twice_as_slow_as_words(shape):
    # A byte array four times as large, so that both hold as many bytes.
    byte = per_byte([(4 * shape[0], shape[1]) if shape[1] == 3 else (shape[0], 4 * shape[1])], "uint8")
    word = per_byte([shape], "float32")
    assert next(iter(byte.values())) <= 2 * next(iter(word.values()))
