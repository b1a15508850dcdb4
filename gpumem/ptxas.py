"""NVIDIA's assembler and disassembler as child processes: machine code, and the resources that a kernel takes.

Neither needs a GPU. `pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm` is enough, and so is a CUDA toolkit.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError
from .toolkit import needed, tool

__all__ = ["MachineCode", "Resources", "assemble", "disassemble", "needed", "target", "tool"]


@dataclass(frozen=True)
class Resources:
    """What one thread or block of a kernel takes, as ptxas says it."""

    registers: int
    stack_bytes: int
    """Local memory of a thread, spills included."""
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    """Static shared memory of a block."""
    barriers: int


@dataclass(frozen=True)
class MachineCode:
    """A cubin, the chip that it is for, and the resources of each of its kernels."""

    arch: str
    cubin: bytes
    resources: dict[str, Resources]


def target(ptx: str) -> str:
    """The chip that a PTX text is written for, as `sm_90`."""
    found = re.search(r"^\s*\.target\s+(sm_\d+[af]?)", ptx, re.MULTILINE)
    return found[1] if found else "sm_90"


@functools.lru_cache(maxsize=32)
def assemble(ptx: str, arch: str | None = None) -> MachineCode:
    """The machine code that ptxas makes of a PTX text.

    Parameters
    ----------
    ptx
        The whole text.
    arch
        The chip, as `sm_90`; what the text is written for by default.

    Raises
    ------
    UsageError
        There is no ptxas, or it refuses the text; its own words follow.

    """
    ptxas, arch = needed("ptxas"), arch or target(ptx)
    with tempfile.TemporaryDirectory(prefix="gpumem-") as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command: list[str | Path] = [ptxas, "-v", "-lineinfo", f"-arch={arch}", source, "-o", made]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).replace(str(source), "the PTX").strip()
            raise UsageError(f"ptxas refuses this for {arch}: {said}")
        return MachineCode(arch, made.read_bytes(), _resources(done.stderr + done.stdout))


def _resources(log: str) -> dict[str, Resources]:
    found = {}
    for part in log.split("Compiling entry function ")[1:]:
        name = part.split("'")[1]

        def number(pattern: str, text: str = part) -> int:
            match = re.search(pattern, text)
            return int(match[1]) if match else 0

        found[name] = Resources(
            number(r"Used (\d+) registers"),
            number(r"(\d+) bytes stack frame"),
            number(r"(\d+) bytes spill stores"),
            number(r"(\d+) bytes spill loads"),
            number(r"(\d+) bytes smem"),
            number(r"used (\d+) barriers"),
        )
    return found


@functools.lru_cache(maxsize=32)
def disassemble(cubin: bytes) -> str:
    """What nvdisasm prints of a cubin, each instruction below the line of the PTX that it comes from."""
    with tempfile.TemporaryDirectory(prefix="gpumem-") as folder:
        code = Path(folder) / "kernel.cubin"
        code.write_bytes(cubin)
        command: list[str | Path] = [needed("nvdisasm"), "-c", "-gp", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"nvdisasm cannot read this cubin: {done.stderr.strip()}")
    return str(done.stdout)
