"""The build: when nvcc is asked for, which chips get machine code, what is compiled anew, and what the result needs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpumem import _core

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "build"))
import cuda_toolkit  # noqa: E402

PLAIN = ["75", "80", "86", "89", "90", "100", "120"]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without a toolkit, to which `add` gives an nvcc of some release, and where there is a C++ compiler."""
    for name in ("NVCC", "CUDA_HOME", "CUDA_PATH", "GPUMEM_CUDA", "GPUMEM_CUDA_ARCHS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cuda_toolkit, "USUAL", tmp_path / "nowhere" / "nvcc")
    monkeypatch.setattr(cuda_toolkit, "_from_pip", lambda: None)
    monkeypatch.setattr(cuda_toolkit, "_archs_seen", list)
    monkeypatch.setattr(cuda_toolkit, "has_host_compiler", lambda: True)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    if shutil.which("nvcc"):
        pytest.skip("nvcc is among the system's programs")

    def add(release="13.0", name="toolkit", codes="75 80 86 89 90 100 120", header=True):
        folder = tmp_path / name
        for part in ("bin", "include"):
            (folder / part).mkdir(parents=True)
        if header:
            (folder / "include" / "cuda.h").touch()
        nvcc = folder / "bin" / "nvcc"
        listed = " ".join(f"sm_{code}" for code in codes.split())
        nvcc.write_text(
            f'#!/bin/sh\ncase $1 in\n--version) echo "Cuda compilation tools, release {release}, V{release}.88" ;;\n'
            f'*) printf "%s\\n" {listed} ;;\nesac\n'
        )
        nvcc.chmod(0o755)
        return nvcc

    return add


# Finding nvcc


def test_nvcc_and_dlpack_are_asked_for_where_there_are_none(machine, monkeypatch):
    monkeypatch.delenv("GPUMEM_DLPACK_INCLUDE", raising=False)
    backend = pytest.importorskip("backend", reason="needs setuptools")
    for ask in (backend.get_requires_for_build_wheel, backend.get_requires_for_build_editable):
        monkeypatch.setattr(backend.build_meta, ask.__name__, lambda settings: ["setuptools"])
        assert ask() == ["setuptools", "apache-tvm-ffi>=0.1.5", "cuda-toolkit[nvcc,nvvm,crt,cccl,cudart]==13.0.*"]
    nvcc = machine()
    monkeypatch.setenv("CUDA_HOME", f" {nvcc.parent.parent}:")
    monkeypatch.setenv("GPUMEM_DLPACK_INCLUDE", "include")
    assert backend.get_requires_for_build_wheel() == ["setuptools"]
    assert backend.get_requires_for_build_editable() == ["setuptools"]


@pytest.mark.parametrize("kind", ["none", "old", "without cuda.h"])
def test_an_nvcc_that_will_not_do_is_as_none(kind, machine, monkeypatch):
    if kind != "none":
        nvcc = machine("12.6" if kind == "old" else "13.0", header=kind == "old")
        monkeypatch.setenv("NVCC", str(nvcc))
    assert cuda_toolkit.find() is None
    assert cuda_toolkit.build_requires() == [cuda_toolkit.PIP_TOOLKIT]
    assert "no nvcc of 12.8 or newer was found (set NVCC or CUDA_HOME, or pip install" in cuda_toolkit.toolkit()


@pytest.mark.usefixtures("machine")
def test_nothing_is_asked_for_where_it_is_not_wanted_or_would_be_of_no_use(monkeypatch):
    monkeypatch.setenv("GPUMEM_CUDA", "0")
    assert cuda_toolkit.build_requires() == []
    assert cuda_toolkit.toolkit() == "GPUMEM_CUDA=0"
    monkeypatch.delenv("GPUMEM_CUDA")
    monkeypatch.setattr(cuda_toolkit, "has_host_compiler", lambda: False)
    assert cuda_toolkit.build_requires() == []
    assert cuda_toolkit.toolkit() == "nvcc needs a C++ compiler (Debian: apt install g++)"


@pytest.mark.usefixtures("machine")
def test_absence_can_be_made_an_error(monkeypatch):
    monkeypatch.setenv("GPUMEM_CUDA", "1")
    assert cuda_toolkit.build_requires() == [cuda_toolkit.PIP_TOOLKIT]
    with pytest.raises(SystemExit, match=r"GPUMEM_CUDA=1, but no nvcc of 12\.8"):
        cuda_toolkit.toolkit()


def test_the_environment_comes_before_the_path_and_that_before_pip(machine, monkeypatch):
    ways = [machine(name=name) for name in ("nvcc", "home", "path", "usual", "pip")]
    monkeypatch.setattr(cuda_toolkit, "_from_pip", lambda: ways[4])
    monkeypatch.setattr(cuda_toolkit, "USUAL", ways[3])
    monkeypatch.setenv("PATH", f"{ways[2].parent}:/usr/bin:/bin")
    monkeypatch.setenv("CUDA_HOME", str(ways[1].parent.parent))
    monkeypatch.setenv("NVCC", str(ways[0]))
    for way in ways:
        assert cuda_toolkit.find().nvcc == way
        way.unlink()
    assert cuda_toolkit.find() is None


# Chips


@pytest.mark.parametrize(
    "asked, seen, chips",
    [
        ("", [], ["90"]),
        ("", ["80", "90"], ["80", "90"]),
        ("", ["70", "90"], ["90"]),  # no longer compiled for
        ("", ["130"], ["90"]),  # not yet: it gets the PTX
        ("all", ["80"], PLAIN),
        ("75;sm_86, 90a", ["80"], ["75", "86", "90a"]),
    ],
)
def test_machine_code_is_for_the_chips_asked_for_or_seen(asked, seen, chips, machine, monkeypatch):
    monkeypatch.setenv("GPUMEM_CUDA_ARCHS", asked)
    monkeypatch.setattr(cuda_toolkit, "_archs_seen", lambda: seen)
    assert cuda_toolkit.archs(machine()) == chips


def test_a_chip_that_is_none_is_an_error(machine, monkeypatch):
    monkeypatch.setenv("GPUMEM_CUDA_ARCHS", "90 hopper")
    with pytest.raises(SystemExit, match="names 'hopper': give numbers such as '80 90', or 'all'"):
        cuda_toolkit.archs(machine())


def test_machine_code_is_made_from_the_ptx_of_the_same_or_an_older_chip():
    assert {chip: cuda_toolkit._ptx_arch(chip) for chip in [*PLAIN, "90a"]} == {
        "75": "75",
        "80": "80",
        "86": "80",
        "89": "80",
        **dict.fromkeys(["90", "90a", "100", "120"], cuda_toolkit.PTX_ARCH),
    }


# Compiling


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder like the project's with two small kernels, which only an nvcc can compile."""
    kit = cuda_toolkit.find()
    if kit is None or not cuda_toolkit.has_host_compiler():
        pytest.skip("needs nvcc")
    monkeypatch.delenv("GPUMEM_KERNEL_CACHE", raising=False)
    folder = tmp_path / "csrc" / "kernels"
    folder.mkdir(parents=True)
    (folder / "one.cuh").write_text("__device__ inline int one() { return 1; }\n")
    (folder / "a.cu").write_text(
        '#include "one.cuh"\nextern "C" __global__ void a_first(int *x) { *x = max(one(), *x); }\n'
    )
    (folder / "b.cu").write_text('extern "C" __global__ void b_first(int *x) { *x = 2; }\n')
    return kit, folder, tmp_path / "build"


def test_only_what_has_changed_is_compiled_again(tree, monkeypatch):
    kit, folder, build = tree
    sources = [folder / "a.cu", folder / "b.cu"]
    monkeypatch.setenv("GPUMEM_CUDA_ARCHS", "80 90")
    images = cuda_toolkit.embed(kit, sources, build)
    first = {path.name: path.stat().st_mtime_ns for path in build.glob("*.*_*.*")}
    assert len(first) == 8  # PTX and machine code of each for either chip
    text = images.read_text()
    assert 'gm_image_chips[] = "sm_80 sm_90"' in text
    assert re.findall(r'\{"(\w+)", (\d)\}', text) == [("a_first", "0"), ("b_first", "1")]

    monkeypatch.setenv("GPUMEM_CUDA_ARCHS", "90")
    cuda_toolkit.embed(kit, sources, build)
    assert {path.name: path.stat().st_mtime_ns for path in build.glob("*.*_*.*")} == first
    assert images.read_text() != text

    (folder / "one.cuh").write_text("__device__ inline int one() { return 3; }\n")
    cuda_toolkit.embed(kit, sources, build)
    names = {path.name for path in build.glob("*.*_*.*")}
    assert {name for name in names if name.startswith("b.")} == {name for name in first if name.startswith("b.")}
    assert not {name for name in names & first.keys() if name.startswith("a.")}


def test_builds_in_other_folders_may_share_what_is_compiled(tree, monkeypatch):
    kit, folder, build = tree
    sources, cache = [folder / "a.cu"], build.with_name("cache")
    monkeypatch.setenv("GPUMEM_CUDA_ARCHS", "90")
    monkeypatch.setenv("GPUMEM_KERNEL_CACHE", str(cache))
    cuda_toolkit.embed(kit, sources, build)
    first = {path.name: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert len(first) == 2

    moved = shutil.move(folder.parent, build.with_name("elsewhere"))
    images = cuda_toolkit.embed(kit, [Path(moved) / "kernels" / "a.cu"], build.with_name("other"))
    assert {path.name: path.stat().st_mtime_ns for path in cache.iterdir()} == first
    assert {path.name for path in images.parent.iterdir()} == {"images.c", "a.fatbin"}


def test_the_ptx_does_not_say_where_it_was_made(tree):
    kit, folder, build = tree
    ptx = cuda_toolkit.Kernels(kit, build).ptx(folder / "a.cu", "90").read_text()
    assert re.findall(r'\.file\s+\d+ "(.*)"', ptx)
    assert all(name.startswith(("csrc/kernels/", "cuda/")) for name in re.findall(r'\.file\s+\d+ "(.*)"', ptx))
    assert str(folder) not in ptx


def test_what_nvcc_says_of_an_error_is_shown(tree):
    kit, folder, build = tree
    (folder / "b.cu").write_text("__global__ void broken() { missing(); }\n")
    with pytest.raises(SystemExit, match='identifier "missing" is undefined'):
        cuda_toolkit.Kernels(kit, build).compile([folder / "b.cu"], ["90"])


# The extension


def test_no_library_of_cuda_is_linked():
    ldd = shutil.which("ldd")
    if not ldd:
        pytest.skip("no ldd")
    needed = subprocess.run([ldd, _core.__file__], capture_output=True, text=True, check=True).stdout
    assert "libc." in needed
    assert not re.search(r"cuda|cublas|nvrtc", needed)
