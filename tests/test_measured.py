"""What a GPU takes for a launch, and what a copy reaches there: on a driver without a device, and on a GPU."""

import json

import fake_cuda
import numpy as np
import pytest
from sizes import not_small

import gpumem
from gpumem import _core, devices, speeds
from gpumem.measured import measure_stage

ADD = gpumem.examples.ADD


def test_a_measured_launch_comes_back_from_json_and_is_drawn(said, tmp_path):
    x = np.ones(1024, "f4")
    trace = gpumem.Kernel(ADD).trace(8, 128, x.copy(), x, x, 1024)
    taken = gpumem.Measured(trace, devices.device("H200"), (4e-6, 3e-6, 3.5e-6), ("x: 3 of 9 bytes are other ones.",))
    assert (taken.seconds, taken.time.low, taken.time.high) == pytest.approx((3.5e-6, 3.25e-6, 3.75e-6))
    again = gpumem.Measured.from_dict(json.loads(taken.to_json()))
    assert (again.device, again.samples, again.notes) == (taken.device, taken.samples, taken.notes)
    assert again.least == pytest.approx(taken.least)
    assert "3 of 9 bytes" in str(again)
    with pytest.raises(gpumem.UsageError, match="no measured launch"):
        gpumem.Measured.from_dict({})
    pytest.importorskip("matplotlib")
    (tmp_path / "a.json").write_text(taken.to_json())
    assert said("plot", tmp_path / "a.json")[0] == 0
    assert "add, measured" in (tmp_path / "a.svg").read_text()


@pytest.mark.skipif(bool(_core._cuda()["devices"]), reason="there is a device")
def test_without_a_device_there_is_the_reason_and_what_to_do(said, tmp_path):
    x = np.zeros(128, "f4")
    with pytest.raises(gpumem.UsageError, match=r"no GPU here .*: name a device, such as "):
        gpumem.Kernel(ADD).measure(1, 128, x, x, x, 128)
    path = tmp_path / "add.ptx"
    path.write_text(ADD)
    launch = [path, "--grid", 1, "--block", 128, *["--arg", "f32[128]"] * 3, "--arg", 128]
    status, out, err = said("roofline", *launch)
    assert (status, out) == (2, "")
    assert "no GPU here" in err
    status, out, err = said("roofline", *launch, "--on", "A100")
    assert (status, err) == (0, "")


def test_on_a_driver_without_a_device(fake_driver):
    for checks in ("fake_measured_checks.py", "fake_sweep_checks.py"):  # processes of their own
        fake_cuda.run_checks(fake_driver, checks)


# on a GPU


@pytest.mark.gpu
def test_the_copy_of_this_device(cuda_device):
    speed = speeds.of_gpu()
    found = devices.device()
    assert found.bandwidth == speed.rate.median
    assert 0.5 * found.memory_peak < speed.rate.median <= 1.02 * found.memory_peak
    assert speed.rate.high / speed.rate.low < 1.2
    assert found.clock > 1e9


@not_small("times")
@pytest.mark.gpu
def test_a_launch_takes_about_the_time_of_its_bytes(cuda_device):
    count = 1 << 25
    a, b, c = np.random.default_rng(0).random((3, count), np.float32)
    taken = gpumem.Kernel(ADD).measure(count // 256, 256, c, a, b, count)
    assert taken.notes == ()
    assert (c == a + b).all()
    assert taken.least < taken.seconds < 3 * taken.least
    roof = gpumem.roofline(taken)
    assert roof["add, measured"].speed < roof.attainable(roof["add"])


@pytest.mark.gpu
def test_what_the_lens_finds_wrong_never_reaches_the_device(cuda_device):
    x = np.zeros(1000, "f4")
    with pytest.raises(gpumem.UsageError, match="is not launched on the GPU"):
        gpumem.Kernel(ADD).measure(8, 128, x, x, x, 1024)
    y = np.zeros(1000, "f4")
    gpumem.Kernel(ADD).launch(8, 128, y, x + 1, x + 2, 1000)  # the device is as it was
    assert (y == 3).all()


@not_small("times")
@pytest.mark.gpu
@pytest.mark.parametrize(
    "lesson, stage", [("transpose", "tuned"), ("reduce", "tuned"), ("read", "gather"), ("layout", "soa_staged")]
)
def test_a_stage_is_timed_and_gives_what_the_lens_gives(cuda_device, lesson, stage):
    taken = measure_stage(lesson, stage)
    assert taken.notes == ()
    assert 0 < taken.seconds < 1e-3
