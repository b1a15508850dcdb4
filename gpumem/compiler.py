"""CUDA C to PTX: by NVRTC where it is found, else by nvcc. No GPU is needed.

`pip install 'gpumem[lens]'` brings NVRTC, the headers that kernels may include, ptxas and nvdisasm.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from . import toolkit
from .errors import UsageError

REMEDY = "pip install 'gpumem[lens]', or install NVIDIA's CUDA toolkit"
NEWEST = (13, 0)  # the toolkit whose PTX the lens reads


class Compiled(NamedTuple):
    """PTX, and what the kernel that was asked for is called in it; None where that is not known."""

    ptx: str
    name: str | None


class CompileError(UsageError):
    """A source text that the compiler refuses. The first line says where; the rest is the compiler's log."""


def is_ptx(text: str) -> bool:
    """Whether a text is PTX rather than CUDA C.

    >>> is_ptx("// made by hand" + chr(10) + ".version 9.0"), is_ptx("__global__ void k() {}")
    (True, False)
    """
    return re.search(r"^\s*\.version\s+\d", text, re.MULTILINE) is not None


def to_ptx(
    source: str, name: str | None = None, arch: str = "sm_90", file: str = "kernel.cu", options: Sequence[str] = ()
) -> Compiled:
    """The PTX of a CUDA C text, with line information.

    name: where it names an instance of a template, such as "tile<float, 32>", NVRTC makes that instance. file: what
    the text is called in line information; where there is such a file, what it includes from its folder is found.
    options: more of the compiler's, such as "-DTILE=32" or "-I...".

    Raises CompileError with the compiler's log, UsageError where there is no compiler, naming where it was looked for.
    """
    target = check_arch(arch)
    nvrtc, tried = load_nvrtc()
    if nvrtc is not None:
        return _by_nvrtc(nvrtc, source, name, target, file, options)
    nvcc, looked = find_nvcc()
    if nvcc is None:
        raise UsageError(f"no compiler for CUDA C: NVRTC is not in {', '.join([*tried, *looked])}; {REMEDY}")
    return Compiled(_by_nvcc(nvcc, source, target, file, options), None)


def check_arch(arch: str) -> str:
    """The number of a chip such as "sm_90". Raises UsageError for another text.

    >>> check_arch("sm_90a")
    '90a'
    """
    match = re.fullmatch(r"(?:sm_|compute_)?(\d{2,3}[af]?)", arch)
    if not match:
        raise UsageError(f"arch {arch!r}: give one such as 'sm_90'")
    return match[1]


@cache
def load_nvrtc() -> tuple[ctypes.CDLL | None, tuple[str, ...]]:
    """NVRTC, or None and the folders that were tried."""
    if found := toolkit.library("nvrtc"):
        return ctypes.CDLL(str(found)), ()
    folders = toolkit.library_folders()
    for folder in folders:
        for library in sorted(folder.glob("libnvrtc.so.[0-9]*"), key=lambda path: len(path.name)):
            try:
                return ctypes.CDLL(str(library)), ()
            except OSError:
                continue
    return None, (toolkit.tried(folders),)


def find_nvcc() -> tuple[Path | None, tuple[str, ...]]:
    """The compiler nvcc, or None and where it was looked for."""
    if given := os.environ.get("NVCC", "").strip(" :"):
        return Path(given), ()
    if found := toolkit.tool("nvcc"):
        return found, ()
    return None, (f"(nvcc:) the PATH, {', '.join(str(root / 'bin') for root in toolkit.roots())}",)


def _check(nvrtc: ctypes.CDLL, result: int, what: str) -> None:
    if result:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise UsageError(f"NVRTC: {what} failed: {nvrtc.nvrtcGetErrorString(result).decode()}")


def _by_nvrtc(
    nvrtc: ctypes.CDLL, source: str, name: str | None, target: str, file: str, options: Sequence[str]
) -> Compiled:
    program = ctypes.c_void_p()
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), file.encode(), 0, None, None)
    _check(nvrtc, made, "creating a program")
    try:
        if name:
            _check(nvrtc, nvrtc.nvrtcAddNameExpression(program, name.encode()), f"asking for {name}")
        folder = str(Path(file).absolute().parent)
        given = [f"--gpu-architecture=compute_{target}", "-lineinfo", "-default-device", f"-I{folder}"]
        given += [f"-I{each}" for each in toolkit.header_folders()]
        texts = [option.encode() for option in [*given, *options]]
        result = nvrtc.nvrtcCompileProgram(program, len(texts), (ctypes.c_char_p * len(texts))(*texts))
        if result:
            log = _text(nvrtc, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
            raise CompileError(explain(log) or f"{file}: NVRTC refused it (error {result})")
        lowered = ctypes.c_char_p()
        if name:
            found = nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(lowered))
            _check(nvrtc, found, f"the name of {name}")
        called = lowered.value.decode() if lowered.value else None
        return Compiled(_text(nvrtc, program, "nvrtcGetPTXSize", "nvrtcGetPTX"), called)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, size_of: str, get: str) -> str:
    size = ctypes.c_size_t()
    _check(nvrtc, nvrtc[size_of](program, ctypes.byref(size)), size_of)
    text = ctypes.create_string_buffer(size.value)
    _check(nvrtc, nvrtc[get](program, text), get)
    return text.value.decode(errors="replace")


def _by_nvcc(nvcc: Path, source: str, target: str, file: str, options: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory(prefix="gpumem-") as folder:
        text, ptx = Path(folder) / Path(file).name, Path(folder) / "out.ptx"
        text.write_text(source)
        here = str(Path(file).absolute().parent)
        command = [str(nvcc), "-x", "cu", "-O3", "-lineinfo", f"-arch=compute_{target}", "-ptx", f"-I{here}"]
        done = subprocess.run(
            [*command, *options, "-o", str(ptx), str(text)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            log = (done.stderr + done.stdout).replace(str(text), file)
            raise CompileError(explain(log) or f"{file}: nvcc ended with {done.returncode}")
        return ptx.read_text().replace(str(text), file)


def explain(log: str) -> str:
    """A compiler's log with the first error in front."""
    lines = [line for line in log.strip().splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line), None)
    return "\n".join([first, *(line for line in lines if line is not first)]) if first else "\n".join(lines)
