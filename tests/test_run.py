"""gpumem.run: every stage of a lesson gives what NumPy gives, on a GPU and on a driver whose kernels the CPU runs."""

import fake_cuda
import lesson_cases
import numpy as np
import pytest
from sizes import not_small, sized

import gpumem


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


def test_on_a_driver_without_a_device(fake_driver):
    fake_cuda.run_checks(fake_driver, "fake_lesson_checks.py")


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
