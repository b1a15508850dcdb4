"""Reports that Nsight Compute has written (.ncu-rep), as traces: no GPU is needed, nor ncu where ncu-report is there.

`pip install 'gpumem[ncu]'` brings NVIDIA's package ncu-report; else the program ncu of a machine is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import ncu
from .errors import UsageError
from .explain import EXPLAINED
from .kernel import dims
from .metrics import INSTRUCTIONS, THREAD_INSTRUCTIONS
from .profile import COUNTED, NOTE, site_of, source_lines, source_rows, trace_of
from .sass import UnknownInstructionError, sass_access
from .table import Shown, Table
from .trace import Trace

SUFFIX = ".ncu-rep"
WANTED = tuple(dict.fromkeys([*COUNTED, *(row.name for row in EXPLAINED)]))
# A column of ncu's source page, and the metric that it shows instruction by instruction.
COLUMNS = {
    "Instructions Executed": "inst_executed",
    "Predicated-On Thread Instructions Executed": "thread_inst_executed_true",
    "L2 Theoretical Sectors Global": "memory_l2_theoretical_sectors_global",
    "L2 Theoretical Sectors Global Ideal": "memory_l2_theoretical_sectors_global_ideal",
    "L1 Tag Requests Global": "memory_l1_tag_requests_global",
    "L1 Wavefronts Shared": "memory_l1_wavefronts_shared",
    "L1 Wavefronts Shared Ideal": "memory_l1_wavefronts_shared_ideal",
    "Access Size": "memory_access_size_type",
}
REMEDY = "pip install 'gpumem[ncu]', or install NVIDIA's Nsight Compute"


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """The launches of a report, each as a trace."""

    traces: tuple[Trace, ...]

    def tables(self) -> list[Table]:
        """Those of each launch."""
        return [table for trace in self.traces for table in trace.tables()]

    def to_json(self) -> str:
        """A list of traces as JSON."""
        return json.dumps([trace.to_dict() for trace in self.traces], indent=1)


def read(path: Path | str) -> list[Trace]:
    """The launches of a report in their order, as `gpumem.profile` gives them; metrics that it has not are left out.

    Raises UsageError (a ValueError) for a file that is no report, and where neither the package ncu-report nor the
    program ncu is there.
    """
    report = Path(path)
    if not report.is_file():
        raise UsageError(f"cannot read {report}: there is no such file")
    try:
        import ncu_report
    except ImportError:
        return [_by_program(report)]
    try:
        traces = [trace_of_action(action) for action in _actions(ncu_report.load_report(str(report)))]
    except (RuntimeError, AttributeError) as error:  # the package's own, or of the nothing that it returns
        raise UsageError(f"{report} is no report of Nsight Compute: {error}") from None
    if not traces:
        raise UsageError(f"{report} is no report of Nsight Compute, or has no launch")
    return traces


def _actions(context: Any) -> Iterator[Any]:
    for i in range(context.num_ranges()):
        found = context.range_by_idx(i)
        for j in range(found.num_actions()):
            yield found.action_by_idx(j)


def _value(action: Any, name: str) -> float | None:
    metric = action.metric_by_name(name)
    return None if metric is None else metric.as_double()


def trace_of_action(action: Any) -> Trace:
    """One launch of a report, an IAction of ncu_report."""
    counters = {name: value for name in WANTED if (value := _value(action, name)) is not None}
    whole = {name: int(value) if value.is_integer() else value for name, value in counters.items()}

    def number(name: str) -> int:
        return int(_value(action, name) or 0)

    chip = "".join(str(number(f"device__attribute_compute_capability_{part}")) for part in ("major", "minor"))
    shape = [[number(f"launch__{what}_dim_{axis}") or 1 for axis in "xyz"] for what in ("grid", "block")]
    sites = tuple(site_of(row) for row in instructions(action))
    return Trace(
        action.name(),
        dims("grid", shape[0]),
        dims("block", shape[1]),
        number("launch__shared_mem_per_block_dynamic"),
        f"sm_{chip}",
        sites,
        int(whole.get(INSTRUCTIONS, 0)),
        int(whole.get(THREAD_INSTRUCTIONS, 0)),
        origin="ncu",
        measured=whole,
        notes=(NOTE,) if sites else (),
    )


def instructions(action: Any) -> Iterator[dict[str, str]]:
    """The memory instructions of a launch as rows of ncu's source page; none where the report has no such page."""
    columns = {column: _by_address(action, metric) for column, metric in COLUMNS.items()}
    for address in columns["Instructions Executed"]:
        text = action.sass_by_pc(address)
        try:
            made = sass_access(" ".join(text.split()))
        except UnknownInstructionError:
            made = None
        if made is None:
            continue
        source = action.source_info(address)
        space = made.split()[0].partition(".")[2].partition(".")[0] or "shared"
        yield {
            "Source": text,
            "Address Space": space.capitalize(),
            "file": source.file_name() if source else "",
            "line": str(source.line()) if source else "0",
            **{column: str(values.get(address, 0)) for column, values in columns.items()},
        }


def _by_address(action: Any, name: str) -> dict[int, int]:
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return {}
    where = metric.correlation_ids()
    return {where.as_uint64(i): metric.as_uint64(i) for i in range(metric.num_instances())}


def _by_program(report: Path) -> Trace:
    """The same from the pages that the program ncu prints; several launches as one."""
    try:
        ncu.find()
    except UsageError as error:
        raise UsageError(f"to read {report}: no package ncu-report, and {error}; {REMEDY}") from None
    base = report.with_suffix("")
    text = ncu.page(base, "raw")
    launches = ncu.parse_raw(text, [name for name in WANTED if f'"{name}"' in text])
    lines = source_lines(ncu.page(base, "source", "--print-source", "cuda,sass"))
    rows = source_rows(ncu.page(base, "source", "--print-source", "sass"))
    for row in rows:
        row["file"], row["line"] = lines.get(row["Address"], ("", "0"))
    return trace_of(launches, rows, 0, "sm_90", {})
