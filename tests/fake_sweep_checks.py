"""Sweeps and ladders of a CUDA device without a GPU: run by test_measured.py on the driver of fake_cuda.py.

PyTorch is fake_torch.py, whose arrays here speak the CUDA array interface alone: they are that driver's memory.
"""

import json
import sys

import fake_torch
import numpy as np
import pytest
from fake_cuda import Driver

import gpumem
from gpumem import device_work
from gpumem.sweep_result import Sweep

driver = Driver()
del fake_torch.Tensor.__dlpack__, fake_torch.Tensor.__dlpack_device__
LESSONS = list(dict.fromkeys(stage.lesson for stage in gpumem.stages(device="cuda")))


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """That PyTorch; what waits for the device lets it work."""
    monkeypatch.setitem(sys.modules, "torch", fake_torch)
    monkeypatch.setattr(device_work, "need_torch", lambda: fake_torch)
    monkeypatch.setattr("gpumem.device_ladder.need_torch", lambda: fake_torch)
    monkeypatch.setattr(device_work, "FLUSH", 1 << 10)
    monkeypatch.setattr(fake_torch.Event, "synchronize", lambda self: driver.run())


def measured(lesson, over, values, **options):
    return gpumem.sweep(lesson, over, values, device="cuda", repeat=3, progress=False, **options)


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_stage_at_every_size(lesson):
    """Outputs are verified, each stage's whole one, before anything is timed."""
    sweep = measured(lesson, "size", [1024, 4096])
    assert {point.x for point in sweep.points} == {1024, 4096}
    left_out = {note.split(":")[1].split("/")[1] for note in sweep.notes}
    stages = {point.name.split()[0] for point in sweep.points if point.kind == "stage"}
    assert stages | left_out == {stage.name for stage in gpumem.stages(lesson, "cuda")}
    assert {point.name for point in sweep.points if point.kind == "reference"} == {"memcpy", "own copy"}
    assert all(len(point.seconds) == 3 for point in sweep.points)
    assert sweep.environment["device"] == "a fake"


@pytest.mark.parametrize(
    "lesson, over, values, stage, where",
    [
        ("read", "stride", "1,2,8", "strided", [1, 2, 8]),
        ("banks", "stride", "1,32,33", "strided", [1, 32, 33]),
        ("read", "offset", "0:3", "offset", [0, 1, 2, 3]),
        ("copy", "width", "1,4,16", "vector4", [4, 16]),  # 64 bytes are no access
    ],
)
def test_the_axes_of_a_device(lesson, over, values, stage, where):
    sweep = measured(lesson, over, values, shape=3000)
    assert [point.x for point in sweep.points if point.name.split()[0] == stage] == where
    assert Sweep.from_dict(json.loads(sweep.to_json())).points == sweep.points


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path, monkeypatch):
    path, cells = tmp_path / "a.json", []
    climb = sys.modules["gpumem.sweep"].climb

    def count(*given):
        cells.append(given)
        if len(cells) == 2:
            raise KeyboardInterrupt
        return climb(*given)

    monkeypatch.setattr(sys.modules["gpumem.sweep"], "climb", count)
    with pytest.raises(KeyboardInterrupt):
        measured("read", "stride", "1,2,4", shape=2000, output=path)
    sweep = measured("read", "stride", "1,2,4", shape=2000, output=path)
    assert len(cells) == 4  # the second once more
    assert {point.x for point in sweep.points} == {1, 2, 4}


def test_a_wrong_result_is_no_measurement(monkeypatch):
    monkeypatch.setattr("gpumem.device_ladder.right_answer", lambda torch, stage, x, options: x[::-1])
    with pytest.raises(gpumem.WrongResultError, match="copy/scalar is wrong"):
        measured("copy", "size", [1024], stages=["scalar"])


def test_a_device_that_is_full_leaves_a_size_out(monkeypatch):
    real = fake_torch.empty

    def full(shape, dtype, device):
        if np.prod(shape) > 10_000:
            raise fake_torch.OutOfMemoryError("CUDA out of memory")
        return real(shape, dtype, device)

    monkeypatch.setattr(fake_torch, "empty", full)
    sweep = measured("copy", "size", [1024, 1 << 20], stages=["scalar"])
    assert {point.x for point in sweep.points} == {1024}
    assert sweep.notes == ("Left out: shape (262144,) of float32: CUDA out of memory.",)


def test_the_command(said, tmp_path):
    pytest.importorskip("matplotlib")
    plot = tmp_path / "a.svg"
    given = ("--device", "cuda", "--sizes", "1K,4K", "--stages", "scalar,tuned", "--repeat", 3, "-q", "--plot", plot)
    status, out, err = said("sweep", "copy", *given)
    assert (status, err) == (0, "")
    assert "tuned" in out
    assert "a fake" in plot.read_text()


def test_a_ladder():
    ladder = gpumem.ladder("transpose", (40, 50), device="cuda", repeat=3, peers=[], progress=False)
    assert {rung.name for rung in ladder.rungs if rung.kind == "stage"} >= {"naive", "padded", "tuned"}
