"""Where NVIDIA's programs are looked for (gpumem/toolkit.py): cuda-pathfinder first, then folders that are named."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from gpumem import compiler, ncu, toolkit
from gpumem.errors import UsageError


def raises(name):
    raise RuntimeError(f"{name} is not known to this version")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A ptxas and an ncu in a folder of their own, and no others."""
    for name in ("ptxas", "ncu"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    for name in ("GPUMEM_PTXAS", "CUDA_PATH", "CUDA_HOME", "NCU"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path / "bin" / "ptxas"


@pytest.mark.parametrize(
    "found, there",
    [
        (None, False),  # not installed
        (SimpleNamespace(), False),  # a version without that question
        (SimpleNamespace(find_nvidia_binary_utility=lambda name: None), False),
        (SimpleNamespace(find_nvidia_binary_utility=raises), False),
        (SimpleNamespace(find_nvidia_binary_utility=lambda name: f"/pathfinder/{name}"), True),
    ],
)
def test_pathfinder_is_asked_first_and_the_folders_are_next(found, there, program, monkeypatch):
    monkeypatch.setattr(toolkit, "pathfinder", lambda: found)
    monkeypatch.setenv("CUDA_HOME", str(program.parent.parent))
    assert toolkit.tool("ptxas") == (Path("/pathfinder/ptxas") if there else program)
    assert ncu.find() == (Path("/pathfinder/ncu") if there else program.with_name("ncu"))


@pytest.mark.parametrize("place", ["CUDA_HOME", "CUDA_PATH", "PATH"])
def test_each_folder_is_looked_through(place, program, monkeypatch):
    monkeypatch.setattr(toolkit, "pathfinder", lambda: None)
    monkeypatch.setenv(place, str(program.parent if place == "PATH" else program.parent.parent))
    assert toolkit.tool("ptxas") == program


def test_an_environment_variable_overrules_all(program, monkeypatch):
    monkeypatch.setattr(toolkit, "pathfinder", lambda: SimpleNamespace(find_nvidia_binary_utility=lambda _: "/other"))
    monkeypatch.setenv("GPUMEM_PTXAS", str(program))
    assert toolkit.tool("ptxas") == program
    monkeypatch.setenv("GPUMEM_PTXAS", "/nowhere/ptxas")
    assert toolkit.tool("ptxas") is None


@pytest.mark.parametrize("installed", [False, True])
def test_what_was_tried_is_named(installed, tmp_path, monkeypatch):
    monkeypatch.setattr(toolkit, "pathfinder", lambda: SimpleNamespace() if installed else None)
    monkeypatch.setattr(toolkit, "pip_folders", lambda: [tmp_path / "nvidia"])
    monkeypatch.setattr(toolkit, "roots", lambda: [tmp_path / "here", tmp_path / "usual"])
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError) as caught:
        toolkit.needed("nvdisasm")
    said = str(caught.value)
    assert said.startswith(
        "no nvdisasm: pip install nvidia-cuda-nvdisasm, or set GPUMEM_NVDISASM (looked in the PATH, "
    )
    for folder in ("here/bin", "nvidia/cu13/bin", "usual/bin"):
        assert str(tmp_path / folder) in said
    assert ("cuda-pathfinder's places" in said) == installed
    assert "/nowhere" not in said


def test_a_missing_nvrtc_names_what_was_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(toolkit, "pathfinder", lambda: SimpleNamespace(load_nvidia_dynamic_lib=raises))
    monkeypatch.setattr(toolkit, "pip_folders", lambda: [tmp_path / "nvidia"])
    monkeypatch.setattr(toolkit, "roots", lambda: [tmp_path / "usual"])
    compiler.load_nvrtc.cache_clear()
    try:
        nvrtc, (tried,) = compiler.load_nvrtc()
    finally:
        compiler.load_nvrtc.cache_clear()
    assert nvrtc is None
    assert tried.startswith("cuda-pathfinder's places, ")
    assert str(tmp_path / "usual" / "lib64") in tried


def test_headers_are_where_pathfinder_says(tmp_path, monkeypatch):
    (tmp_path / "cccl").mkdir()
    (tmp_path / "cuda_runtime.h").write_text("")
    answers = SimpleNamespace(find_nvidia_header_directory=lambda name: str(tmp_path))
    monkeypatch.setattr(toolkit, "pathfinder", lambda: answers)
    assert toolkit.header_folders() == [str(tmp_path), str(tmp_path / "cccl")]


def test_the_real_pathfinder_answers_these_questions():
    pathfinder = pytest.importorskip("cuda.pathfinder")
    assert toolkit.pathfinder() is pathfinder
    assert {"ptxas", "nvdisasm", "nvcc", "ncu"} <= set(pathfinder.SUPPORTED_BINARY_UTILITIES)
    assert "cudart" in pathfinder.SUPPORTED_HEADERS_CTK
    assert "nvrtc" in pathfinder.SUPPORTED_NVIDIA_LIBNAMES
    assert toolkit.tool("no-such-program") is None
