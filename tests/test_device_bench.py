"""The benchmark on a CUDA device: the loop is the CPU's, the arrays are PyTorch's, here a stand-in on NumPy arrays."""

import shutil
import subprocess
import sys
from pathlib import Path

import fake_torch
import numpy as np
import pytest

import gpumem
from gpumem import cutensor, device_cases, device_work
from gpumem.cases import cases
from gpumem.device_peers import Reversed

DEVICE = {"name": "a stand-in", "driver": (13, 0)}


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", fake_torch)
    monkeypatch.setattr(device_work, "need_torch", lambda: fake_torch)
    monkeypatch.setattr(device_work, "FLUSH", 64)
    monkeypatch.setattr(device_cases, "FILL", 1_100_000)
    monkeypatch.setattr("gpumem._core._cuda", lambda: {"devices": [DEVICE], "reason": ""})


def run(op, *only, **options):
    return gpumem.bench(op, device="cuda", only=only, repeat=3, progress=False, **{"peers": ["torch"], **options})


@pytest.mark.parametrize(
    "op, only",
    [
        ("transpose", ["cuda 2d", "k=2", "(n,3)", "in cache/1024", "cuda in place"]),
        ("copy", ["dense", "misaligned", "cuda strided/every"]),
    ],
)
def test_every_row_is_verified_and_timed_with_both_copies_and_the_peers(op, only):
    result = run(op, *only)
    wanted = [case.label for case in cases(op, only=only, device="cuda")]
    assert [f"{row.case['group']}/{row.case['name']} {row.case['dtype']}" for row in result.rows] == wanted
    for row in result.rows:
        assert set(row.seconds) == {"gpumem", "memcpy", "own copy", "torch"}
        assert all(len(taken) == 3 for taken in row.seconds.values())
    assert result.environment["device"] == "a stand-in"
    assert result.peers == {"torch": "0.0"}
    assert not result.skipped


def test_a_wrong_result_stops_the_benchmark(monkeypatch):
    monkeypatch.setattr("gpumem._core.transpose", lambda *args, **options: None)
    with pytest.raises(gpumem.WrongResultError, match="gpumem: cuda in cache/1024x1024 float32 is wrong"):
        run("transpose", "in cache/1024")


def test_rows_that_do_not_fit_are_left_out_by_name(monkeypatch):
    def full(torch, case):
        if case.dtype == "uint8":
            raise fake_torch.OutOfMemoryError("CUDA out of memory")
        return device_work.DeviceMove(torch, case)

    monkeypatch.setitem(device_work.JOBS, "copy", full)
    result = run("copy", "dense/dense uint8", "dense/dense int16")
    assert [row.case["dtype"] for row in result.rows] == ["int16"]
    assert result.skipped == ("cuda dense/dense uint8: CUDA out of memory",)


@pytest.mark.parametrize("step", [(1, -1), (-1, 1), (-1, -1), (2, -3)])
def test_a_reversed_view_is_the_one_that_numpy_makes(step):
    base = np.arange(35, dtype=np.int16).reshape(5, 7)
    index = tuple(slice(None, None, by) for by in step)
    view = Reversed(fake_torch.Tensor(base), index)
    view.__array_interface__ = view.__cuda_array_interface__
    np.testing.assert_array_equal(np.asarray(view), base[index])


def test_bytes_of_a_strided_side_are_those_of_its_sectors():
    rows = {row.case["name"]: row for row in run("copy", "strided/every*float32").rows}
    side = int((1_100_000 / 4) ** 0.5)
    items = side * -(-side // 2)
    assert rows["every second row"].bytes == 2 * items * 4
    # Along a row the unread items lie in the sectors of those that are read.
    assert rows["every second column"].bytes == pytest.approx(3 * items * 4, rel=0.02)


def test_peers_that_are_not_there_are_named():
    with pytest.raises(ValueError, match="no peer 'hptt': there are torch, cupy, cublas, cutensor"):
        run("copy", "dense", peers=["hptt"])
    with pytest.raises(ValueError, match="peer 'cupy' is not here: pip install cupy-cuda13x"):
        run("copy", "dense", peers=["cupy"])


def test_unknown_devices_and_operations_are_named():
    with pytest.raises(ValueError, match="no device 'gpu': there are cpu, cuda"):
        gpumem.bench("copy", device="gpu")
    with pytest.raises(ValueError, match="no operation 'sort': there are transpose, copy"):
        run("sort")


def test_without_a_device_the_reason_is_given(monkeypatch):
    monkeypatch.undo()
    if gpumem._core._cuda()["devices"]:
        pytest.skip("there is one")
    with pytest.raises(ValueError, match="device 'cuda': "):
        run("copy", "dense")


# cuTENSOR


@pytest.fixture
def library(tmp_path, monkeypatch):
    gcc = shutil.which("gcc")
    if not gcc:
        pytest.skip("no gcc to make a library with")
    source = Path(__file__).parent / "native" / "fake_cutensor.c"
    subprocess.run([gcc, "-std=c11", "-shared", "-fPIC", source, "-o", tmp_path / "libcutensor.so.2"], check=True)
    monkeypatch.setenv("GPUMEM_CUTENSOR", str(tmp_path / "libcutensor.so.2"))


@pytest.mark.usefixtures("library")
def test_cutensor_takes_part_where_it_supports_the_type():
    result = run("transpose", "in cache/1024", "cuda 2d odd", "(n,3) to", peers=["cutensor"])
    took_part = {row.case["dtype"] for row in result.rows if "cutensor" in row.seconds}
    assert took_part == {"int16", "float32", "float64", "complex128"}
    assert {row.case["dtype"] for row in result.rows} == took_part | {"uint8"}
    assert result.peers == {"cutensor": "2.8.1"}


@pytest.mark.usefixtures("library")
def test_cutensor_copies_with_steps_but_not_backwards():
    result = run("copy", "cuda strided/every*float32", peers=["cutensor"])
    assert all("cutensor" in row.seconds for row in result.rows)
    base = fake_torch.Tensor(np.zeros((4, 4), np.float32))
    assert cutensor.CuTensor().copy(Reversed(base, (slice(None, None, -1),) * 2), base) is None


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("axes", [(2, 0, 1), (1, 2, 0), (0, 2, 1)])
def test_cutensor_plans_once_for_the_addresses_it_is_given(axes, monkeypatch):
    x = np.random.default_rng(0).random((3, 5, 7))
    out = np.zeros([x.shape[axis] for axis in axes])
    peer = cutensor.CuTensor()
    call = peer.permute(fake_torch.Tensor(x), axes, fake_torch.Tensor(out))
    monkeypatch.setattr(peer, "_try", None)  # no more calls but that of the plan
    for _ in range(2):
        out[...] = 0
        call()
        np.testing.assert_array_equal(out, x.transpose(axes))


@pytest.mark.usefixtures("library")
def test_what_cutensor_says_of_a_failure_is_passed_on():
    x = np.zeros((2, 2), np.float32)
    broadcast = fake_torch.Tensor(np.broadcast_to(x[:1], (2, 2)))
    with pytest.raises(RuntimeError, match="cutensorCreateTensorDescriptor: an invalid value"):
        cutensor.CuTensor().copy(broadcast, fake_torch.Tensor(x))
