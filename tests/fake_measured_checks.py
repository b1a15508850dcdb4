"""Times of the first device without a GPU: run by test_measured.py on the driver of fake_cuda.py.

That driver's clock counts: a picosecond a byte of a copy or fill, a microsecond a block.
"""

import json

import numpy as np
import pytest
from fake_cuda import Driver

import gpumem
from gpumem import device_clock, devices, speeds
from gpumem.device_clock import OUT_OF_MEMORY, Clock
from gpumem.launch import DriverError

driver = Driver()
ADD = gpumem.examples.ADD
COUNT = 1 << 12


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Sizes that a CPU has room and time for, and nothing measured before; afterwards all memory is given back."""
    monkeypatch.setattr(device_clock, "FLUSH", 1 << 16)
    monkeypatch.setattr(speeds, "LARGEST", 1 << 22)
    monkeypatch.setattr(speeds, "SMALLEST", 1 << 20)
    monkeypatch.setattr(speeds, "ROUNDS", 3)
    speeds.of_gpu.cache_clear()
    driver.said()
    left = {"memories": driver.memories}
    yield left
    assert driver.memories == left["memories"]


def arrays():
    rng = np.random.default_rng(0)
    return np.zeros(COUNT, "f4"), rng.random(COUNT, np.float32), rng.random(COUNT, np.float32)


def test_the_copy_is_the_faster_of_two_and_measured_once():
    speed = speeds.of_gpu()
    assert speed.by == "memcpy"  # the driver's takes 2 ps for a byte there and back
    assert speed.rate.median == pytest.approx(1e12, rel=1e-3)
    assert speed.size == 1 << 22
    said = driver.said()
    assert sum(line.startswith("cuLaunchKernel") for line in said) >= 4  # gpumem's own took its turns
    assert speeds.of_gpu() is speed
    assert not driver.said()


def test_arrays_become_smaller_where_there_is_no_room():
    driver.fail("cuMemAlloc_v2", OUT_OF_MEMORY, after=2)  # the fill has its memory, the copy's second array does not
    assert speeds.of_gpu().size == 1 << 21
    speeds.of_gpu.cache_clear()
    driver.fail("cuMemcpyHtoD_v2", 700)
    with pytest.raises(DriverError, match="as it was told"):
        speeds.of_gpu()


def test_an_unknown_device_is_measured():
    found = devices.device()
    assert found.name == "a fake"
    assert found.copy == pytest.approx(1e12, rel=1e-3)
    assert found.clock == 100e3  # attributes of that driver are 100
    assert "measured on this machine" in found.source


def test_a_launch_is_traced_and_timed():
    c, a, b = arrays()
    taken = gpumem.Kernel(ADD).measure(COUNT // 128, 128, c, a, b, COUNT, repeat=5)
    assert taken.samples == pytest.approx([COUNT / 128 * 1e-6] * 5, rel=1e-3)
    assert (c == a + b).all()
    assert taken.notes == ()
    roof = gpumem.roofline(taken)
    assert [(work.name, work.measured) for work in roof.works] == [("add", False), ("add, measured", True)]
    assert roof["add, measured"].speed == pytest.approx(COUNT / taken.seconds)
    assert roof["add"].bytes == roof["add, measured"].bytes == 12 * COUNT
    assert "add, measured" in str(roof)
    assert "32.00" in str(taken)  # microseconds
    assert json.loads(taken.to_json())["schema"] == "gpumem.measured/1"
    with pytest.raises(gpumem.UsageError, match="was measured on a fake, and not on A100"):
        gpumem.roofline(taken, device="A100")


def test_every_launch_begins_with_the_same_bytes():
    """A sum in place would go on from its own result."""
    _, a, b = arrays()
    wanted = a + b
    taken = gpumem.Kernel(ADD).measure(COUNT // 128, 128, a, a, b, COUNT)
    assert taken.notes == ()
    assert (a == wanted).all()
    driver.said()
    with Clock() as clock:
        assert clock.seconds(lambda: None) == 0


def test_variables_of_the_module_are_as_declared_each_time():
    """A counter that a launch leaves changed would lead the next one out of its array."""
    text = ADD.replace(".visible .entry add", ".global .align 4 .u32 counter;\n.visible .entry add")
    for given, loads in ((text, 1 + 5), (ADD, 1)):  # a look at the results, a warm-up, three rounds
        driver.said()
        gpumem.Kernel(given).measure(COUNT // 128, 128, *arrays(), COUNT, repeat=3)
        said = driver.said()
        assert said.count("cuModuleLoadDataEx") == loads
        assert said.count("cuModuleUnload") == loads - 1


def test_a_launch_that_does_not_end_is_told(monkeypatch, small):
    devices.device()
    monkeypatch.setattr(device_clock, "LONGEST", -1.0)
    with pytest.raises(DriverError, match="a launch did not end in -1 s"):
        gpumem.Kernel(ADD).measure(COUNT // 128, 128, *arrays(), COUNT, repeat=1)
    assert driver.memories > small["memories"]  # what runs still has it
    small["memories"] = driver.memories
    driver.run()


def test_results_that_are_not_those_of_the_lens_are_told():
    c, a, b = arrays()
    kernel = gpumem.Kernel(ADD.replace("add.f32", "sub.f32"))  # that driver knows it by its name, and adds
    taken = kernel.measure(COUNT // 128, 128, c, a, b, COUNT, names=["c", "a", "b", "n"])
    (note,) = taken.notes
    assert note.startswith("c: ")
    assert "are not those of the lens" in note
    assert note in gpumem.roofline(taken).notes


@pytest.mark.parametrize(
    "grid, n, said",
    [
        (COUNT // 128 + 1, COUNT + 1, "out-of-bounds"),
        (COUNT // 128, COUNT, "misaligned"),
    ],
)
def test_what_the_lens_finds_wrong_is_not_launched(grid, n, said):
    c, a, b = arrays()
    if said == "misaligned":
        c = np.zeros(4 * COUNT + 1, "u1")[1:]
    driver.said()
    with pytest.raises(gpumem.UsageError, match=f"add is not launched on the GPU before this is mended: .*{said}"):
        gpumem.Kernel(ADD).measure(grid, 128, c, a, b, n)
    assert not [line for line in driver.said() if "Load" in line]


def test_a_value_that_was_never_written_is_no_address_to_try():
    """Where it leads on a GPU depends on what was there before."""
    c, a, b = arrays()
    text = ADD.replace("ld.global.f32 %f1, [%rd5];", "ld.global.f32 %f1, [%rd5];\nadd.f32 %f1, %f1, %f9;")
    text = text.replace(".reg .f32 %f<4>;", ".reg .f32 %f<10>;")
    with pytest.raises(gpumem.UsageError, match="is not launched on the GPU before this is mended"):
        gpumem.Kernel(text).measure(COUNT // 128, 128, c, a, b, COUNT)
    assert len(gpumem.Kernel(text).measure(COUNT // 128, 128, c, a, b, COUNT, watch=()).samples) == 7


def test_what_a_measurement_cannot_have():
    c, a, b = arrays()
    kernel = gpumem.Kernel(ADD)
    with pytest.raises(gpumem.UsageError, match="sample: for a trace"):
        kernel.measure(COUNT // 128, 128, c, a, b, COUNT, sample=0.5)
    with pytest.raises(gpumem.UsageError, match="repeat=0"):
        kernel.measure(COUNT // 128, 128, c, a, b, COUNT, repeat=0)
    devices.device()
    driver.fail("cuLaunchKernel", 1)
    with pytest.raises(DriverError, match="cuLaunchKernel: as it was told"):
        kernel.measure(COUNT // 128, 128, c, a, b, COUNT)
    driver.fail("cuModuleLoadDataEx", 218)
    with pytest.raises(DriverError, match="cuModuleLoadDataEx"):
        kernel.measure(COUNT // 128, 128, c, a, b, COUNT)


@pytest.mark.parametrize("stage", ["read/strided", "read/gather", "transpose/padded", "banks/strided", "copy/scalar"])
def test_a_stage_is_traced_and_timed(stage):
    from gpumem.measured import measure_stage

    taken = measure_stage(*stage.split("/"), (64, 64) if stage.startswith("transpose") else (4096,), repeat=3)
    assert taken.notes == ()
    assert len(taken.samples) == 3
    assert min(taken.samples) >= 1e-6
    assert taken.trace.kernel.startswith(stage.split("/")[0])


def test_the_command(said, tmp_path):
    path = tmp_path / "add.ptx"
    path.write_text(ADD)
    launch = [path, "--grid", COUNT // 128, "--block", 128, *(f"--arg={name}:f32[{COUNT}]=random" for name in "cab")]
    status, out, err = said("roofline", *launch, "--arg", f"n={COUNT}", "--json", "--repeat", 3)
    assert (status, err) == (0, "")
    made = json.loads(out)
    assert [(work["name"], work["measured"]) for work in made["works"]] == [("add", False), ("add, measured", True)]
    assert made["device"]["copy"] == pytest.approx(1e12, rel=1e-3)
    status, out, err = said("roofline", *launch, "--arg", f"n={COUNT + 1}", "--grid", COUNT // 128 + 1)
    assert status == 2
    assert "is not launched on the GPU before this is mended" in err
    status, out, err = said("roofline", *launch, "--arg", f"n={COUNT}", "--sample", "0.5")
    assert (status, "--sample" in err) == (2, True)
    status, out, err = said("roofline", *launch, "--arg", f"n={COUNT}", "--on", "H200", "--json")
    assert [work["name"] for work in json.loads(out)["works"]] == ["add"]
    if gpumem.stages(device="cuda"):
        status, out, err = said("roofline", "--stage", "read/coalesced", "--shape", "4096")
        assert (status, err) == (0, "")
        assert "read_coalesced_4, measured" in out
