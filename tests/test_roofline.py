"""The roofline: operations and bytes of a trace, and what devices can do, as their data sheets have it."""

import json

import numpy as np
import pytest

import gpumem
from gpumem import devices, speeds
from gpumem.devices import DEVICES, device, of_driver
from gpumem.launch import DriverError
from gpumem.roofline import Roofline, Work, work_of
from gpumem.speeds import CopySpeed
from gpumem.timing import Spread


def added(n=1 << 14):
    a, b, c = (np.ones(n, "f4") for _ in range(3))
    trace = gpumem.Kernel(gpumem.examples.ADD).trace(n // 128, 128, c, a, b, n)
    assert (c == 2).all()
    return trace


def test_the_classic_example():
    """One sum, c = a + b: one operation for 12 bytes, and so 0.05 % of an A100's 312 TFLOP/s."""
    roof = gpumem.roofline(added(), device="A100")
    (work,) = roof.works
    assert (work.kind, work.operations, work.bytes) == ("fp32", 1 << 14, 12 << 14)
    assert work.intensity == pytest.approx(1 / 12)
    assert roof.device.peak("tensor fp16") == pytest.approx(312e12, rel=1e-3)
    assert roof.attainable(work) / roof.device.peak("tensor fp16") == pytest.approx(0.0005, rel=0.1)
    assert "memory" in str(roof)


# From NVIDIA's data sheets and white papers: TFLOP/s without sparsity.
PEAKS = [
    *(("V100", "fp32", 15.7), ("V100", "fp64", 7.8), ("V100", "tensor fp16", 125)),
    *(("T4", "fp32", 8.1), ("T4", "tensor fp16", 65)),
    *(("A100", "fp32", 19.5), ("A100", "fp64", 9.7), ("A100", "fp16", 78), ("A100", "tensor tf32", 156)),
    *(("A100", "tensor fp64", 19.5), ("A100", "tensor int", 624), ("A10", "fp32", 31.2), ("RTX 3090", "fp32", 35.6)),
    *(("RTX 4090", "fp32", 82.6), ("L40S", "fp32", 91.6), ("L40S", "tensor fp16", 362), ("L4", "fp32", 30.3)),
    *(("H100", "fp32", 66.9), ("H100", "fp64", 33.5), ("H100", "tensor bf16", 989), ("H100", "tensor fp8", 1979)),
    *(("H100 PCIe", "fp32", 51.2), ("H100 PCIe", "tensor fp16", 756), ("H200", "tensor fp64", 66.9)),
    *(("H200", "fp32", 66.9), ("B200", "fp32", 75), ("B200", "tensor fp16", 2250), ("RTX 5090", "fp32", 104.8)),
    # GeForce, with sums in single precision; those of integers are as fast as the chip.
    *(("RTX 3090", "tensor fp16", 71), ("RTX 4090", "tensor fp16", 165.2), ("RTX 4090", "tensor tf32", 82.6)),
    *(("RTX 4090", "tensor int", 660.6), ("RTX 5090", "tensor fp16", 209.5)),
]
# From tensorrt_llm/auto_parallel/cluster_info.py of NVIDIA/TensorRT-LLM (16d2467), which names its data sheets: GB/s,
# and TFLOP/s of matrix products in half precision.
NVIDIAS = [
    *(("A100", 2039, 312), ("A100-SXM4-40GB", 1555, 312), ("A100 80GB PCIe", 1935, 312)),
    *(("A100-PCIE-40GB", 1555, 312), ("H100", 3350, 989), ("H100 PCIe", 2000, 756), ("H200", 4800, 989)),
    *(("A10", 600, 125), ("L40S", 864, 362), ("L4", 300, 120)),
]


@pytest.mark.parametrize("name, gigabytes, teraflops", NVIDIAS)
def test_figures_are_those_that_nvidia_computes_with(name, gigabytes, teraflops):
    row = device(name)
    assert row.memory_peak / 1e9 == pytest.approx(gigabytes, rel=0.02)
    assert row.peak("tensor fp16") / 1e12 == pytest.approx(teraflops, rel=0.02)


def test_every_device_has_its_l2_and_only_the_measured_one_says_more_of_it():
    """How fast L2 is, and how long a read takes, no data sheet says: what nobody measured is left empty."""
    assert all(4 << 20 <= row.l2_bytes <= 128 << 20 for row in DEVICES)
    assert [row.name for row in DEVICES if row.l2 or row.latency] == ["H200"]


@pytest.mark.parametrize("name, kind, teraflops", PEAKS)
def test_peaks_are_those_of_the_data_sheets(name, kind, teraflops):
    assert device(name).peak(kind) / 1e12 == pytest.approx(teraflops, rel=0.04)


@pytest.mark.parametrize("row", DEVICES, ids=lambda row: row.name)
def test_every_row_says_where_it_is_from(row):
    assert "NVIDIA" in row.source
    assert 0.3e12 <= row.memory_peak <= 8e12
    assert row.copy <= row.memory_peak
    assert device(f"NVIDIA {row.name}") == row


@pytest.mark.parametrize(
    "told, row",
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA A10", "A10"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("a100", "A100"),
    ],
)
def test_devices_are_known_by_their_drivers_names(told, row):
    assert device(told).name == row


def test_names_that_are_in_no_table_are_refused_with_those_that_are():
    with pytest.raises(gpumem.UsageError, match="H200"):
        device("Voodoo2")
    with pytest.raises(gpumem.UsageError, match="arithmetic of T4"):
        device("T4").peak("bf16")


@pytest.mark.parametrize("name", ["L40", "A1000", "H20"])
def test_a_name_that_only_begins_like_one_is_not_taken_for_it(name):
    with pytest.raises(gpumem.UsageError, match="device"):
        device(f"NVIDIA {name}")


UNKNOWN = {"name": "NVIDIA X", "multiprocessors": 10, "l2": 1 << 20, "capability": (9, 0), "peak": 1e12, "memory": 1}
SPEED = CopySpeed(Spread(0.9e12, 0.8e12, 0.95e12), "memcpy", 1 << 29)


def test_devices_that_are_here_are_described_by_their_driver(monkeypatch):
    """What the table has, its driver does not tell; without a driver's clock, that of nvidia-smi."""
    monkeypatch.setattr("gpumem.machine.output", lambda *command: "1500")
    found = of_driver(UNKNOWN)
    assert found.peak("fp32") == 2 * 128 * 10 * 1.5e9
    assert found.bandwidth == 1e12
    known = of_driver({**UNKNOWN, "name": "NVIDIA H200", "multiprocessors": 66})
    assert (known.multiprocessors, known.clock, known.latency) == (66, 1.5e9, device("H200").latency)


@pytest.mark.parametrize("name", ["NVIDIA X", "NVIDIA H200"])
def test_the_copy_of_the_device_that_is_here_is_measured(monkeypatch, name):
    monkeypatch.setattr("gpumem._core._cuda", lambda: {"devices": [{**UNKNOWN, "name": name}], "reason": ""})
    monkeypatch.setattr("gpumem.machine.output", lambda *command: "1500")
    monkeypatch.setattr(speeds, "of_gpu", lambda: SPEED)
    found = device()
    assert found.bandwidth == 0.9e12
    assert "900 GB/s (800 to 950) by a copy (memcpy) of 512 MiB, measured on this machine" in found.source
    table = str(gpumem.roofline(added(), device=found))
    assert "900 GB/s (measured copy)" in table


def test_a_device_whose_copy_cannot_be_measured_has_the_peak_and_the_reason(monkeypatch):
    def fail():
        raise DriverError("cuMemAlloc_v2: out of memory (error 2)", 2)

    monkeypatch.setattr("gpumem._core._cuda", lambda: {"devices": [UNKNOWN], "reason": ""})
    monkeypatch.setattr(speeds, "of_gpu", fail)
    monkeypatch.setattr("gpumem.machine.output", lambda *command: None)
    found = device()
    with pytest.raises(gpumem.UsageError, match="tells its clock"):
        found.peak("fp32")
    assert (found.copy, found.bandwidth) == (0, 1e12)
    assert "its copy could not be measured: cuMemAlloc_v2: out of memory" in found.source


def test_the_processor_of_this_machine_has_a_measured_copy_and_arithmetic(monkeypatch):
    monkeypatch.setattr(speeds, "of_cpu", lambda: SPEED)
    monkeypatch.setattr(speeds, "cpu_arithmetic", lambda: {"fp32": 1e11, "fp64": 5e10})
    roof = gpumem.roofline(Work("sum", "fp64", 1e9, 8e9, 0.01, True), device="cpu")
    assert (roof.device.bandwidth, roof.device.kinds) == (0.9e12, ("fp32", "fp64"))
    assert roof.attainable(roof["sum"]) == pytest.approx(5e10)
    assert "NumPy's matrix product" in str(roof)
    again = Roofline.from_dict(json.loads(roof.to_json()))
    assert again == roof
    with pytest.raises(gpumem.UsageError, match="arithmetic of"):
        roof.device.peak("tensor fp16")
    with pytest.raises(gpumem.UsageError, match="light is that of a GPU"):
        gpumem.roofline(added(), device="cpu")
    pytest.importorskip("matplotlib")
    assert any("fp32 0.1 TFLOP/s" in text.get_text() for text in roof.plot().texts)


def test_the_copy_of_this_processor(monkeypatch):
    monkeypatch.setattr(speeds, "HOST_BYTES", 1 << 22)
    monkeypatch.setattr("gpumem.machine.last_cache", lambda: 1 << 19)
    monkeypatch.setattr(speeds, "SIDE", 64)
    speeds.of_cpu.cache_clear()
    speeds.cpu_arithmetic.cache_clear()
    try:
        speed = speeds.of_cpu()
        assert speeds.of_cpu() is speed
        assert speed.size == 1 << 22
        assert speed.by in ("memcpy", "streaming copy", "own copy")
        assert 1e8 < speed.rate.low <= speed.rate.median <= speed.rate.high < 1e13
        assert all(value > 1e6 for value in speeds.cpu_arithmetic().values())
    finally:
        speeds.of_cpu.cache_clear()
        speeds.cpu_arithmetic.cache_clear()


def test_without_a_gpu_a_device_must_be_named(monkeypatch):
    monkeypatch.setattr("gpumem._core._cuda", lambda: {"devices": [], "reason": "no driver"})
    with pytest.raises(gpumem.UsageError, match=r"no GPU here .no driver.: name a device"):
        gpumem.roofline(added())


def test_measured_seconds_stand_filled_and_the_least_time_hollow():
    pytest.importorskip("matplotlib")
    where = device("H200")
    least = work_of(added(), where, name="least")
    taken = work_of(added(), where, seconds=least.seconds * 2, name="taken")
    roof = gpumem.roofline([least, taken], device=where)
    assert roof["taken"].speed == pytest.approx(roof["least"].speed / 2)
    assert roof["least"].speed == pytest.approx(roof.attainable(roof["least"]))
    ax = roof.plot()
    faces = {line.get_label(): line.get_markerfacecolor() for line in ax.lines}
    assert faces["least"] == "white"
    assert faces["taken"] != "white"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert any("measured copy 4,250 GB/s" in text.get_text() for text in ax.texts)
    assert any("fp32 66.9 TFLOP/s" in text.get_text() for text in ax.texts)


def test_a_kernel_has_one_colour_traced_and_measured():
    pytest.importorskip("matplotlib")
    works = [
        Work(name, "fp32", 1e9, 12e9, seconds, "measured" in name)
        for name, seconds in (("add", 3e-3), ("add, measured", 4e-3), ("sum", 1e-3))
    ]
    ax = gpumem.roofline(works, device="H200").plot()
    edges = {line.get_label(): line.get_markeredgecolor() for line in ax.lines}
    assert edges["add"] == edges["add, measured"] != edges["sum"]
    places = {text.get_text(): text.xyann[1] for text in ax.texts if text.get_text().startswith("add")}
    assert places["add"] > 0 > places["add, measured"]


def test_a_kernel_without_floats_stands_at_its_integers():
    x, out = np.zeros(1024, "f4"), np.zeros(1024, "f4")
    trace = gpumem.Kernel(gpumem.examples.COPY).trace(8, 128, out, x, 1024)
    assert work_of(trace, device("H200")).kind == "int"


def test_it_comes_back_from_json():
    roof = gpumem.roofline(added(), Work("other", "fp64", 10, 20, 1.0, True), device="H200")
    again = Roofline.from_dict(json.loads(roof.to_json()))
    assert again.works == roof.works
    assert again.device == roof.device
    with pytest.raises(gpumem.UsageError, match="no roofline"):
        Roofline.from_dict({})
    with pytest.raises(gpumem.UsageError, match="nothing to put"):
        gpumem.roofline(device="H200")


def test_rates_are_of_the_newest_capability_that_is_known():
    assert devices.rates_of(87) == devices.RATES[86]
    with pytest.raises(gpumem.UsageError, match=r"7\.0 is the oldest"):
        devices.rates_of(61)


def test_a_kernel_that_moves_no_bytes_stands_at_the_edge():
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry square(.param .u32 n)
{
    .reg .f32 %f<2>;
    mov.f32 %f0, 0f3F800000;
    fma.rn.f32 %f1, %f0, %f0, %f0;
    ret;
}
"""
    roof = gpumem.roofline(gpumem.Kernel(text).trace(1, 32, 4), device="A100")
    assert roof["square"].intensity == float("inf")
    assert roof.attainable(roof["square"]) == roof.device.peak("fp32")

    def none(constant):
        raise AssertionError(f"{constant} is no JSON")

    data = json.loads(roof.to_json(), parse_constant=none)
    assert data["works"][0]["intensity"] is None
    assert Roofline.from_dict(data).works == roof.works
    pytest.importorskip("matplotlib")
    ax = roof.plot()
    assert ax.lines[-1].get_xdata()[0] == ax.get_xlim()[1]
