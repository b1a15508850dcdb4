"""Where NVIDIA's programs, libraries and headers are: as cuda-pathfinder finds them, else where they usually lie.

cuda-pathfinder (`pip install 'gpumem[lens]'` brings it) knows pip's packages, Conda environments and toolkits of every
layout. Where it is not installed, or knows no such program, the folders below are looked through, and named where that
was in vain.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import UsageError

PACKAGES = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm", "nvcc": "nvidia-cuda-nvcc"}
PATHFINDER = "cuda-pathfinder's places"


def pathfinder() -> Any | None:
    """The module cuda.pathfinder, where it is installed."""
    try:
        if importlib.util.find_spec("cuda.pathfinder") is None:
            return None
        from cuda import pathfinder as found
    except ImportError:  # no package `cuda`, or another one of that name
        return None
    return found


def _ask(question: str, name: str) -> str | None:
    """What a function of cuda-pathfinder answers; None where it, or what was asked for, is not there."""
    found = pathfinder()
    ask = getattr(found, question, None)
    if ask is None:
        return None
    try:
        answer = ask(name)
    except Exception:  # it has an error of its own for each kind of thing that is missing or not known to it
        return None
    return None if answer is None else str(getattr(answer, "abs_path", answer))


def pip_folders() -> list[Path]:
    """Where NVIDIA's pip packages are: the folders of the namespace package `nvidia`."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    return [Path(folder) for folder in dict.fromkeys([*folders, str(Path(sysconfig.get_path("purelib")) / "nvidia")])]


def roots() -> list[Path]:
    """The toolkits that this machine may have, in the order of preference."""
    named = [os.environ.get(name, "").strip(" :\t") for name in ("CUDA_HOME", "CUDA_PATH")]
    return [Path(folder) for folder in dict.fromkeys([*filter(None, named), "/usr/local/cuda"])]


def tool_folders() -> list[Path]:
    """Where programs are looked for: the named toolkits, the PATH, pip's packages, /usr/local/cuda."""
    *named, usual = roots()
    found = [root / "bin" for root in named]
    found += [Path(name) for name in os.environ.get("PATH", "").split(os.pathsep) if name]
    for folder in pip_folders():
        found += [folder / "cu13" / "bin", folder / "cuda_nvcc" / "bin"]
    return [*found, usual / "bin"]


def tool(name: str) -> Path | None:
    """A program of the toolkit, or None; GPUMEM_PTXAS, GPUMEM_NVDISASM and GPUMEM_NVCC name one outright."""
    if given := os.environ.get(f"GPUMEM_{name.upper()}", ""):
        return Path(given) if shutil.which(given) else None
    if found := _ask("find_nvidia_binary_utility", name):
        return Path(found)
    return next((path for folder in tool_folders() if shutil.which(path := folder / name)), None)


def tried(folders: Iterable[Path]) -> str:
    """Where something was looked for, in words."""
    asked = [PATHFINDER] if pathfinder() else []
    return ", ".join([*asked, *dict.fromkeys(map(str, folders))])


def needed(name: str) -> Path:
    """The program, or UsageError that says where it was looked for and what brings it."""
    if found := tool(name):
        return found
    path = set(os.environ.get("PATH", "").split(os.pathsep))
    looked = tried(folder for folder in tool_folders() if str(folder) not in path)
    raise UsageError(
        f"no {name}: pip install {PACKAGES[name]}, or set GPUMEM_{name.upper()} (looked in the PATH, {looked})"
    )


def library(name: str) -> Path | None:
    """A library as cuda-pathfinder finds it, such as "nvrtc"."""
    found = _ask("load_nvidia_dynamic_lib", name)
    return Path(found) if found else None


def library_folders() -> list[Path]:
    """Where libraries are looked for."""
    folders = [folder / "cu13" / "lib" for folder in pip_folders()]
    return folders + [root / sub for root in roots() for sub in ("lib64", "targets/x86_64-linux/lib")]


def header_folders() -> list[str]:
    """The folders of the headers that kernels may include: of the runtime, and of CUB and libcu++ where they are."""
    found = _ask("find_nvidia_header_directory", "cudart")
    places = [Path(found)] if found else []
    places += [folder / "cu13" / "include" for folder in pip_folders()] + [root / "include" for root in roots()]
    for place in places:
        if (place / "cuda_runtime.h").exists():
            return [str(place), *([str(place / "cccl")] if (place / "cccl").is_dir() else [])]
    return []
