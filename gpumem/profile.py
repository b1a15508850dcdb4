"""A launch counted by the hardware: Nsight Compute's report in the shape of the lens's."""

from __future__ import annotations

import csv
import pickle
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _core, ncu
from .arguments import lay_out
from .device_counters import ONLY_RANGES, by_rung, child, command
from .errors import UsageError
from .kernel import Dim, Kernel, dims, size
from .kernel_text import texts
from .launch import job_of
from .metrics import INSTRUCTIONS, METRICS, THREAD_INSTRUCTIONS, known_to
from .trace import Site, Trace

COUNTED = (INSTRUCTIONS, THREAD_INSTRUCTIONS, *(metric.name for metric in METRICS))
# What machine code is called in PTX's words: the longest beginning that fits.
KINDS = {
    "LDGSTS": "copy",
    "LDSM": "ldsm",
    "STSM": "stsm",
    "LD": "load",
    "ST": "store",
    "ATOM": "atom",
    "RED": "red",
    "U": "bulk",
}
NOTE = (
    "Sectors and wavefronts beside an instruction are Nsight Compute's source view, which does not know how shared "
    "loads merge; the totals are the hardware's counters."
)


def profile(kernel: Kernel, grid: Dim, block: Dim, /, *args: Any, shared: int = 0, more: Sequence[str] = ()) -> Trace:
    """Runs a launch on the GPU under Nsight Compute, in a child process: a report of the shape of `kernel.trace`'s.

    The arguments are as there; arrays are copied to the device and stay as they are here. `trace.compare(profile)`
    shows both side by side. more: further metrics of Nsight Compute to count. Needs a GPU, `ncu`, and the permission to
    read counters.

    Raises UsageError (a ValueError) where one of these is missing, or where the launch fails.

    >>> kernel = gpumem.Kernel(gpumem.examples.COPY)
    >>> x = np.ones(256, "f4")
    >>> counted = gpumem.profile(kernel, 1, 256, np.zeros_like(x), x, 256)              # doctest: +SKIP
    >>> kernel.trace(1, 256, np.zeros_like(x), x, 256).compare(counted).equal           # doctest: +SKIP
    True
    """
    layout = lay_out(kernel.parameters, kernel._kernel["parameter_bytes"], args)
    shape = dims("grid", grid), dims("block", block)
    dynamic = size("shared", shared, 1 << 32)
    job = job_of(kernel.ptx.encode() + b"\0", kernel.name, *shape, dynamic, layout)
    with tempfile.TemporaryDirectory(prefix="gpumem-profile-") as folder:
        path = Path(folder) / "job"
        path.write_bytes(pickle.dumps(job))
        start = child("gpumem.launch", "main(sys.argv[1])")
        launches, rows = counted([sys.executable, "-c", start, str(path)], Path(folder) / "report", more=more)
    source = {**kernel.source, "ptx": kernel.ptx}
    return trace_of(launches, rows, dynamic, kernel.arch, source)


def profile_stage(
    lesson: str, stage: str, shape: Sequence[int] | None = None, dtype: Any = "float32", *, more: Sequence[str] = ()
) -> Trace:
    """A stage of the ladder on the GPU under Nsight Compute. PyTorch holds the arrays.

    Raises UsageError as `profile` does, and for names that do not exist.
    """
    from .device_ladder import rungs_of
    from .simulate import stage_named

    rungs = rungs_of([stage_named(lesson, stage)])
    with tempfile.TemporaryDirectory(prefix="gpumem-profile-") as folder:
        asked = command(lesson, shape, dtype, rungs[0][0])
        launches, rows = counted(asked, Path(folder) / "report", more=more)
    found = by_rung(launches, [name for name, _, _ in rungs])
    if not found:
        raise UsageError(f"{lesson}/{stage} cannot take such an array")
    return trace_of(launches, rows, 0, "sm_90", texts(row["file"] for row in rows))


def counted(
    asked: Sequence[str], report: Path, options: Sequence[str] = ONLY_RANGES, more: Sequence[str] = ()
) -> tuple[list[ncu.Launch], list[dict[str, str]]]:
    """The launches of a command, and the instructions of their kernels with what each cost. more: other metrics."""
    metrics = known_to(capability(), dict.fromkeys([*COUNTED, *more]))
    ncu.run_under(asked, report, ["--section", "SourceCounters", "--metrics", ",".join(metrics), *options])
    launches = ncu.parse_raw(ncu.page(report, "raw"), metrics)
    lines = source_lines(ncu.page(report, "source", "--print-source", "cuda,sass"))
    rows = source_rows(ncu.page(report, "source", "--print-source", "sass"))
    for row in rows:
        row["file"], row["line"] = lines.get(row["Address"], ("", "0"))
    return launches, rows


def capability() -> int | None:
    """Of the first CUDA device, as 90; None where that is not known."""
    for device in _core._cuda()["devices"]:
        major, minor = device["capability"]
        return int(10 * major + minor)
    return None


def trace_of(
    launches: Sequence[ncu.Launch],
    rows: Iterable[Mapping[str, str]],
    shared: int,
    arch: str,
    source: Mapping[str, str],
) -> Trace:
    """A report of launches: totals are sums, the launch is the largest."""
    first = max(launches, key=lambda launch: launch.grid)
    total: dict[str, float] = dict.fromkeys(COUNTED, 0)
    for launch in launches:
        for name in COUNTED:
            total[name] += int(launch.counters.get(name, 0))
    if len(launches) == 1:  # ratios have no sum
        total |= launches[0].counters
    names = dict.fromkeys(launch.kernel for launch in launches)
    return Trace(
        " + ".join(names),
        dims("grid", first.grid),
        dims("block", first.block),
        shared,
        arch,
        tuple(site_of(row) for row in rows if row["Address Space"] != "-"),
        int(total[INSTRUCTIONS]),
        int(total[THREAD_INSTRUCTIONS]),
        origin="ncu",
        measured=total,
        notes=(NOTE,),
        source=source,
    )


def source_rows(text: str) -> list[dict[str, str]]:
    """The instructions of ncu's source page in machine code: a table for each kernel."""
    rows: list[dict[str, str]] = []
    header: list[str] = []
    for line in text.splitlines():
        if line.startswith('"Kernel Name"') or not line.startswith('"'):
            continue
        cells = next(csv.reader([line]))
        if cells[0] == "Address":
            header = cells
        elif header and cells[0].startswith("0x"):
            rows.append(dict(zip(header, cells, strict=False)))
    return rows


def source_lines(text: str) -> dict[str, tuple[str, str]]:
    """Of each instruction's address the file and line, from ncu's page of source and machine code.

    Source lines stand there with their quotes as they are, so that it is no CSV.
    """
    found: dict[str, tuple[str, str]] = {}
    file = line = ""
    for row in text.splitlines():
        if match := re.match(r'"File (?:Path|Name)","(.*)"', row):
            file = match[1]
        elif match := re.match(r'"(\d+)",', row):
            line = match[1]
        elif match := re.match(r'"","","(0x[0-9a-f]+)"', row):
            found[match[1]] = (file, line)
    return found


def site_of(row: Mapping[str, str]) -> Site:
    """An instruction of the source page."""
    opcode = row["Source"].split()[1 if row["Source"].lstrip().startswith("@") else 0]
    name = opcode.partition(".")[0]
    kind = next(kind for start, kind in KINDS.items() if name.startswith(start) or start == "U")
    space = row["Address Space"].partition(",")[0].lower()

    def count(column: str) -> int:
        return int(ncu.number(row.get(column, "0").replace("-", "")))

    executed, wavefronts, ideal = (
        count(name) for name in ("Instructions Executed", "L1 Wavefronts Shared", "L1 Wavefronts Shared Ideal")
    )
    is_shared = space == "shared" or wavefronts > 0
    return Site(
        opcode,
        kind,
        space,
        count("Access Size") // 8,
        row.get("file") or None,
        int(row.get("line") or 0),
        0,
        executed,
        count("Predicated-On Thread Instructions Executed"),
        0 if is_shared else executed,
        count("L2 Theoretical Sectors Global"),
        count("L2 Theoretical Sectors Global Ideal"),
        count("L1 Tag Requests Global"),
        executed if is_shared else 0,
        wavefronts,
        ideal,
        max(wavefronts - ideal, 0),
    )
