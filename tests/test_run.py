"""gpumem.run: every stage of a lesson gives what NumPy gives, on a GPU and on a driver whose kernels the CPU runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fake_cuda
import lesson_cases
import numpy as np
import pytest
from sizes import not_small, sized

import gpumem
from gpumem import _core

BUILT = bool(_core._cuda()["chips"])


def test_every_cuda_stage_of_these_lessons_has_cases():
    assert lesson_cases.covered() == lesson_cases.of_the_table()


@pytest.mark.parametrize("stage", gpumem.stages(device="cpu"), ids=str)
def test_the_cpu_s_stages_are_the_operations(stage):
    x = np.arange(12, dtype="f4").reshape(3, 4)
    wanted = {"copy": x, "transpose": x.T, "reduce": np.float32(66)}[stage.lesson]
    out = np.zeros_like(wanted)
    assert np.array_equal(gpumem.run(stage.lesson, stage.name, x), wanted)
    assert gpumem.run(stage.lesson, stage.name, x, out=out) is out
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize(
    "lesson, stage, said",
    [
        ("red", "fast", "no lesson 'red'"),
        ("copy", "fast", "no cpu stage of copy 'fast': there are naive, simd, streaming, tuned"),
        ("banks", "padded", "banks has no stages for arrays in host memory"),
    ],
)
def test_what_there_is_not_is_named(lesson, stage, said):
    with pytest.raises(gpumem.UsageError, match=said):
        gpumem.run(lesson, stage, np.zeros(3))


@pytest.mark.skipif(not BUILT, reason="this gpumem was built without CUDA")
def test_on_a_driver_without_a_device(tmp_path):
    """The tests of fake_lesson_checks.py, in a process that finds that driver."""
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    library = fake_cuda.build(tmp_path)
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), fake_cuda.VARIABLE: str(library)}
    checks = Path(__file__).with_name("fake_lesson_checks.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(checks)]
    if "asan" in os.environ.get("LD_PRELOAD", ""):  # kernels on the CPU take a while there
        command += ["-k", "walk2d or refused or shares or many"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=checks.parent.parent)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


# on a GPU


def on_device(torch, array: np.ndarray, shift: int):
    """The array on the device, so many items past an aligned address."""
    flat = torch.from_numpy(np.concatenate([np.zeros(shift, array.dtype), array.reshape(-1)])).cuda()
    return flat[shift:].reshape(array.shape)


@pytest.mark.gpu
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("dtype", lesson_cases.DTYPES)
@pytest.mark.parametrize("lesson", lesson_cases.LESSONS)
def test_stages_give_numpys_bytes(torch, lesson, dtype, shift):
    for case in lesson_cases.LESSONS[lesson](dtype):
        if shift and case.stage in lesson_cases.ALIGNED[lesson]:
            continue
        options = {n: torch.from_numpy(v).cuda() if isinstance(v, np.ndarray) else v for n, v in case.options.items()}
        x = on_device(torch, case.x, shift)
        result = gpumem.run(lesson, case.stage, x, **options)
        assert type(result) is torch.Tensor
        assert result.cpu().numpy().tobytes() == np.ascontiguousarray(case.wanted).tobytes(), f"{lesson}: {case}"
        out = on_device(torch, np.full(case.wanted.shape, 99, case.wanted.dtype), shift)
        assert gpumem.run(lesson, case.stage, x, out=out, **options) is out
        assert out.cpu().numpy().tobytes() == np.ascontiguousarray(case.wanted).tobytes(), f"{lesson}: {case}, out"


@pytest.mark.gpu
@pytest.mark.parametrize("stage", [s.name for s in gpumem.stages("reduce", "cuda")])
def test_sums_are_the_same_each_time_and_near_the_exact_one(torch, stage):
    x = torch.rand(sized(3_000_001, 30_001), device="cuda")
    sums = {float(gpumem.run("reduce", stage, x)) for _ in range(5)}
    assert len(sums) == 1
    exact = float(x.double().sum())
    assert abs(sums.pop() - exact) < 1e-6 * exact


@not_small("2 GB")
@pytest.mark.gpu
@pytest.mark.parametrize("lesson, stage", [("walk2d", "columns"), ("walk2d", "rows"), ("read", "coalesced")])
def test_more_than_2_to_the_31_items(torch, lesson, stage):
    n = 2**31 + 4096
    x = torch.randint(0, 256, (n,), dtype=torch.uint8, device="cuda")
    x = x.reshape(-1, 4096) if lesson == "walk2d" else x
    assert torch.equal(gpumem.run(lesson, stage, x), x)
