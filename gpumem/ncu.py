"""Nsight Compute as a child process: what the hardware counts while a program's kernels run.

Metric names are Nsight Compute's own, as it prints them (`ncu --query-metrics` explains each). What is read here holds
no arbitration noise: the `smsp__sass_*` wavefronts are counted by instruction, unlike `l1tex__data_bank_conflicts_*`.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import toolkit
from .errors import UsageError

_LSU = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_SHARED = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
IDEAL_WAVEFRONTS = "memory_l1_wavefronts_shared_ideal"
REQUESTS = {op: _LSU.format("requests", op) for op in ("ld", "st", "atom", "red")}
SECTORS = {op: _LSU.format("sectors", op) for op in ("ld", "st", "atom", "red")}
WAVEFRONTS = {op: _SHARED.format(op) for op in ("ld", "st", "atom", "ldsm", "stsm")}
METRICS = (INSTRUCTIONS, *REQUESTS.values(), *SECTORS.values(), *WAVEFRONTS.values(), IDEAL_WAVEFRONTS)

MISSING = "install NVIDIA's Nsight Compute, or set NCU to its program ncu"
# What ncu says, and what it means for who reads it. The first that occurs in its output is told.
REASONS = (
    (
        "ERR_NVGPUCTRPERM",
        "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run it as root, in a container with "
        "--cap-add=SYS_ADMIN, or have the driver loaded with NVreg_RestrictProfilingToAdminUsers=0",
    ),
    (
        "LibraryNotLoaded",
        "Nsight Compute could not start its profiler (LibraryNotLoaded): the driver of this machine, or its sandbox, "
        "does not let programs be profiled",
    ),
    ("No kernels were profiled", "no kernel ran while Nsight Compute was watching"),
    ("is already being profiled", "another profiler holds the GPU's counters: wait until it has ended"),
    ("Failed to find metric", "this Nsight Compute, or this GPU, does not know a metric"),
    ("not supported", "Nsight Compute does not support this GPU or driver"),
)


@dataclass(frozen=True)
class Launch:
    """One kernel that ran under Nsight Compute: its name, its launch, the NVTX range around it, what was counted."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    label: str
    counters: Mapping[str, float]


@dataclass(frozen=True)
class Counters:
    """What the hardware counted, added up over some launches, by Nsight Compute's names.

    >>> Counters({REQUESTS["ld"]: 2, SECTORS["ld"]: 64}).sectors_per_request("ld")
    32.0
    """

    metrics: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, launches: Iterable[Launch]) -> Counters:
        """The sums over launches."""
        total: dict[str, float] = {}
        for launch in launches:
            for name, value in launch.counters.items():
                total[name] = total.get(name, 0) + value
        return cls(total)

    def sectors_per_request(self, op: str) -> float | None:
        """Sectors of 32 bytes for each warp instruction on global memory; op: ld, st, atom or red. None without one."""
        requests = self.metrics.get(REQUESTS[op], 0)
        return self.metrics.get(SECTORS[op], 0) / requests if requests else None

    @property
    def wavefronts(self) -> float:
        """Passes through shared memory: of loads, stores, atomics and matrix accesses."""
        return sum(self.metrics.get(name, 0) for name in WAVEFRONTS.values())

    @property
    def bank_conflicts(self) -> float | None:
        """Wavefronts beyond those that the same accesses would need without a conflict. None without shared memory."""
        if not self.wavefronts:
            return None
        # Nsight Compute's ideal knows nothing of merged loads, which may need fewer.
        return max(self.wavefronts - self.metrics.get(IDEAL_WAVEFRONTS, 0), 0)

    def to_dict(self) -> dict[str, object]:
        """Plain data: what is shown, and every metric."""
        return {
            "sectors_per_load": self.sectors_per_request("ld"),
            "sectors_per_store": self.sectors_per_request("st"),
            "bank_conflicts": self.bank_conflicts,
            "metrics": dict(self.metrics),
        }


def find() -> Path:
    """The program ncu: $NCU, on the PATH, or where cuda-pathfinder or NVIDIA's installer has it.

    Raises UsageError, naming where it looked.
    """
    if given := os.environ.get("NCU"):
        if shutil.which(given):
            return Path(given)
        raise UsageError(f"NCU is {given!r}, which is no program that can be run: {MISSING}")
    if found := shutil.which("ncu"):
        return Path(found)
    if known := toolkit.tool("ncu"):
        return known
    tried = ["the PATH", *(str(root / "bin") for root in toolkit.roots())]
    installed = Path("/opt/nvidia/nsight-compute")
    tried.append(f"{installed}/*")
    # The newest: its folder is named by its version.
    versions = sorted(installed.glob("*/ncu"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.parent.name)])
    if versions:
        return versions[-1]
    raise UsageError(f"no program ncu in {', '.join(tried)}: {MISSING}")


def collect(
    command: Sequence[str],
    *,
    metrics: Sequence[str] = METRICS,
    options: Sequence[str] = (),
    timeout: float | None = None,
) -> list[Launch]:
    """Runs a command under Nsight Compute and returns its kernel launches in order, with what was counted of each.

    Clocks are left as they are: counts do not depend on them. options: more of ncu's, such as "--profile-from-start",
    "off". timeout: seconds after which the command is ended.

    Raises UsageError where there is no ncu, where the counters may not be read, and where the command fails.
    """
    with tempfile.TemporaryDirectory(prefix="gpumem-ncu-") as folder:
        report = Path(folder) / "report"
        run_under(command, report, ["--metrics", ",".join(metrics), *options], timeout)
        return parse_raw(page(report, "raw"), metrics)


def run_under(command: Sequence[str], report: Path, options: Sequence[str], timeout: float | None = None) -> None:
    """Runs a command under ncu, which writes report.ncu-rep. Raises UsageError as `collect` does."""
    ncu = find()
    watched = [str(ncu), "--target-processes", "all", "--clock-control", "none", "--nvtx", "--force-overwrite"]
    done = _run([*watched, "--export", str(report), *options, *command], timeout)
    if done.returncode or not report.with_name(report.name + ".ncu-rep").exists():
        raise UsageError(why_failed(done.stdout + done.stderr))


def page(report: Path, name: str, *options: str) -> str:
    """A page of a report as CSV, values in base units."""
    given = ["--import", f"{report}.ncu-rep", "--csv", "--page", name, "--print-units", "base", *options]
    done = _run([str(find()), *given], None)
    if done.returncode:
        raise UsageError(why_failed(done.stdout + done.stderr))
    return done.stdout


def _run(command: Sequence[str], timeout: float | None) -> subprocess.CompletedProcess[str]:
    # Numbers as C writes them, whatever the user's language.
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, env=env)
    except subprocess.TimeoutExpired:
        raise UsageError(f"the command did not end within {timeout:g} s under Nsight Compute") from None
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from None


def why_failed(output: str) -> str:
    """One line of what ncu and the program under it printed, that says why there are no counters."""
    for sign, meaning in REASONS:
        if sign in output:
            detail = next(line for line in output.splitlines() if sign in line).strip("= \t")
            return meaning if sign in meaning else f"{meaning}: {detail}"
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("==PROF==")]
    errors = [line for line in lines if "rror" in line]
    said = (errors or lines or ["it said nothing"])[-1].strip("= \t")
    return f"the program under Nsight Compute failed: {said}"


def parse_raw(text: str, metrics: Sequence[str] = METRICS) -> list[Launch]:
    """The launches of ncu's raw page as CSV: a header, a row of units, and a row a launch.

    Raises UsageError for text that is no such table, and where a metric asked for is not in it.
    """
    rows = list(csv.reader(_table(text)))
    if len(rows) < 2 or "Kernel Name" not in rows[0]:
        raise UsageError("Nsight Compute printed no table of launches")
    header = rows[0]
    absent = [name for name in metrics if name not in header]
    if absent:
        raise UsageError(f"Nsight Compute did not count {', '.join(absent)}: this GPU or its version has none")
    launches = []
    for row in rows[2:]:
        cells = dict(zip(header, row, strict=False))
        ranges = [value for name, value in cells.items() if "Push/Pop_Range" in name]
        launches.append(
            Launch(
                cells["Kernel Name"],
                dims(cells.get("Grid Size", "")),
                dims(cells.get("Block Size", "")),
                " ".join(ranges),
                {name: number(cells[name]) for name in metrics},
            )
        )
    return launches


def _table(text: str) -> Iterable[str]:
    """The CSV lines: what ncu says before them begins with ==, and a program may print anything."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith('"ID"'):
            yield line
            break
    yield from (line for line in lines if line.startswith('"'))


def dims(text: str) -> tuple[int, ...]:
    """The lengths in a text such as "(32, 8, 1)"."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def number(cell: str) -> float:
    """A count, which may be printed with commas between thousands; nothing counted is 0."""
    plain = cell.replace(",", "").strip()
    if plain in ("", "n/a", "N/A"):
        return 0
    try:
        return int(plain)
    except ValueError:
        value = float(plain)
        return int(value) if value.is_integer() else value
