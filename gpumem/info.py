"""What gpumem found on this machine: what runs, what was chosen and why, what is not possible here and why not."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import dataclass
from typing import Any

from . import _core, machine
from .errors import UsageError
from .table import Column, Shown, Table

EXTRAS = {"rich": ("cli", "tables and progress bars in the terminal"), "matplotlib": ("plot", "plots")}


@dataclass(frozen=True)
class Info(Shown):
    """What `info` found; prints as a table."""

    environment: dict[str, Any]
    isas: list[dict[str, Any]]
    isa_why: str
    threads_why: str
    possible: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            **self.environment,
            "isa_why": self.isa_why,
            "threads_why": self.threads_why,
            "isas": self.isas,
            "possible": self.possible,
        }

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def tables(self) -> list[Table]:
        """The machine; the instruction sets; what is possible."""
        env = self.environment
        caches = ", ".join(f"{name.upper()} {size_text(size)}" for name, size in env["caches"].items() if size)
        rows = [
            ("gpumem", env["gpumem"] + (f", commit {env['commit']}" if env["commit"] else "")),
            ("Python", f"{env['python']}, NumPy {env['numpy']}"),
            ("system", env["system"]),
            ("CPU", env["cpu"]),
            ("cores", f"{env['cores']} allowed"),
            ("threads", f"{env['threads']}: {self.threads_why}"),
            ("caches", caches or "unknown"),
            ("instructions", f"{env['isa']}: {self.isa_why}"),
            ("huge pages", HUGE_PAGES.get(env["huge_pages"], env["huge_pages"])),
        ]
        isas = [(isa["name"], "yes" if isa["runs"] else "no", isa["description"]) for isa in self.isas]
        chosen = [i for i, isa in enumerate(self.isas) if isa["name"] == env["isa"]]
        plain = (Column("", "left"), Column("", "left", prose=True))
        return [
            Table("This machine", plain, rows),
            Table(
                "Instruction sets, best first",
                (Column("name", "left"), Column("runs here", "left"), Column("what it uses", "left", prose=True)),
                isas,
                strong=frozenset(chosen),
            ),
            Table("What is possible here", plain, list(self.possible.items())),
        ]


HUGE_PAGES = {
    "always": "always: big arrays get them",
    "madvise": "madvise: NumPy's big arrays and gpumem's buffers ask for them",
    "never": "never: big arrays cost more address translation; "
    "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled changes it",
}


def info() -> Info:
    """What gpumem found on this machine, what it chose and why.

    >>> found = gpumem.info()
    >>> found.to_dict()["threads"] >= 1
    True
    """
    env = machine.environment()
    possible = {
        "cpu": "yes",
        "cuda": cuda_text(_core._cuda()),
        "lens": lens_text(),
        "ncu": ncu_text(),
    }
    for module, (extra, what) in EXTRAS.items():
        here = importlib.util.find_spec(module) is not None
        possible[module] = f"yes: {what}" if here else f"no {what}: pip install 'gpumem[{extra}]'"
    isas = [{"name": name, "description": text, "runs": bool(runs)} for name, text, runs in _core._isas()]
    return Info(env, isas, isa_why(isas), threads_why(), possible)


def cuda_text(cuda: dict[str, Any]) -> str:
    """The devices and what this build has for them, or why there are none."""
    if not cuda["devices"]:
        return f"no: {cuda['reason']}"
    row = "{name}, compute capability {capability[0]}.{capability[1]}, driver for CUDA {driver[0]}.{driver[1]}"
    names = "; ".join(row.format(**device) for device in cuda["devices"])
    return f"yes: {names}; kernels for {cuda['chips']}"


def lens_text() -> str:
    """What the lens can take here: PTX everywhere, CUDA C and machine code where their tools are."""
    from . import compiler, ptxas

    compiles = "NVRTC" if compiler.load_nvrtc()[0] else "nvcc" if compiler.find_nvcc()[0] else ""
    binds = ptxas.tool("ptxas")
    text = (
        "yes: PTX" + (f", CUDA C by {compiles}" if compiles else "") + (", compared with machine code" if binds else "")
    )
    return text if compiles and binds else f"{text}; more with pip install 'gpumem[lens]'"


def ncu_text() -> str:
    """Whether Nsight Compute is here."""
    from . import ncu

    try:
        return f"yes: {ncu.find()}"
    except UsageError as error:
        return f"no: {error}"


def isa_why(isas: list[dict[str, Any]]) -> str:
    """Why this instruction set and not another."""
    if forced := os.environ.get("GPUMEM_ISA"):
        return f"GPUMEM_ISA={forced} asked for it"
    others = [isa["name"] for isa in isas if isa["runs"]]
    return "the best that runs here" if len(others) > 1 else "the only one that runs here"


def threads_why() -> str:
    """Why so many threads."""
    threads, cores, quota = _core.get_num_threads(), machine.cores_allowed(), machine.cpu_quota()
    if os.environ.get("GPUMEM_NUM_THREADS") == str(threads):
        why = f"GPUMEM_NUM_THREADS={threads} asked for them"
    elif threads == cores:
        why = "one for each core that this process may use"
    else:
        why = "set by gpumem.set_num_threads"
    if quota is not None and quota < threads:
        why += f"; the container grants only {quota:g} cores' worth of time, so fewer may be faster"
    return why


def size_text(size: int) -> str:
    """Bytes in the largest binary unit that keeps a whole number."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"
