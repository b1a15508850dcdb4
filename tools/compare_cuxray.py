#!/usr/bin/env python3
"""The lens beside cuxray, which reads machine code without executing it, on every launch that was measured on an H200.

usage: tools/compare_cuxray.py [OUT.md]     needs ptxas, and cuxray with nvdisasm and cuobjdump: pip install cuxray

Of each launch that uses shared memory: does it have bank conflicts? Right is what the hardware counted: any conflict
where one warp ran, else conflicts of more than 5 % of the shared accesses, since warps that meet add a few. The lens's
requests and sectors are compared with the hardware's; cuxray gives no totals.
"""

import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import profile_truth
import test_truth_counters as truth_tests
import truth
from profile_truth import Launch, launches

import gpumem
from gpumem import ptxas, toolkit

NOISE, WARP = 0.05, 32
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
EXACT = [truth.GLOBAL.format(what, op) for what in ("requests", "sectors") for op in truth_tests.OPS]


@cache
def report(ptx: str, arch: str, block: tuple[int, ...], shared: int) -> dict[str, Any]:
    """What cuxray reports of every kernel of a text, by name."""
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "kernels.cubin"
        code.write_bytes(ptxas.assemble(ptx, arch).cubin)
        threads = ",".join(map(str, block))
        command = [sys.executable, "-m", "cuxray", "report", str(code), "--threads", threads, "--json", "--no-cache"]
        command += ["--smem-dynamic", str(shared)] if shared else []
        path = os.pathsep.join([str(toolkit.needed("nvdisasm").parent), os.environ["PATH"]])
        env = {**os.environ, "PATH": path, "CUXRAY_NO_FETCH": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        sys.exit(f"cuxray failed: {done.stderr.strip()}")
    return {kernel["name"]: kernel["access"] for unit in json.loads(done.stdout)["units"] for kernel in unit["kernels"]}


def measured() -> list[dict[str, int]]:
    """The hardware's counters, in the order of `launches`."""
    rows = [row["counters"] for row in truth_tests.CASES] + [row["counters"] for row in truth_tests.LESSONS]
    return rows + [truth_tests.front(name)["counters"] for name in profile_truth.FRONT]


def row_of(launch: Launch, counters: dict[str, int]) -> dict[str, Any]:
    """What each says of a launch."""
    trace = launch.trace()
    block = gpumem.kernel.dims("block", launch.block)
    said = report(launch.kernel.ptx, launch.kernel.arch, block, launch.shared)[launch.kernel.name]
    ours = truth.counters_of(trace)
    accesses = sum(counters.get(truth.EXECUTED.format("shared", op), 0) for op in ("ld", "st"))
    conflicts = sum(counters.get(CONFLICTS.format(op), 0) for op in ("ld", "st"))
    several = math.prod(block) > WARP or math.prod(gpumem.kernel.dims("grid", launch.grid)) > 1
    exact = [name for name in EXACT if name in counters]
    return {
        "name": launch.name,
        "shared": accesses > 0,
        "conflicts": conflicts > (NOISE * accesses if several else 0),
        "lens": sum(site.conflicts for site in trace.sites) > 0,
        "cuxray": said["conflicted_shared_accesses"] > 0,
        "whole": said["unanalyzed_count"] == 0,
        "differs": [name for name in exact if ours[name] != counters[name]],
    }


def page(rows: list[dict[str, Any]], seconds: float) -> str:
    """What came of it."""
    uses = [row for row in rows if row["shared"]]
    right = {who: sum(row[who] == row["conflicts"] for row in uses) for who in ("lens", "cuxray")}
    wrong = {who: [row["name"] for row in uses if row[who] != row["conflicts"]] for who in ("lens", "cuxray")}
    sure = [row for row in uses if row["whole"]]
    lines = [
        f"| {len(rows)} launches measured on an H200 | gpumem's lens | cuxray {importlib.metadata.version('cuxray')} |",
        "| --- | --- | --- |",
        f"| every access of the launch accounted for | {len(rows)} | {sum(row['whole'] for row in rows)} |",
        f"| bank conflicts or none, of the {len(uses)} that use shared memory: judged rightly | {right['lens']} "
        f"| {right['cuxray']} |",
        f"| the same, where cuxray could read every access ({len(sure)}) "
        f"| {sum(row['lens'] == row['conflicts'] for row in sure)} "
        f"| {sum(row['cuxray'] == row['conflicts'] for row in sure)} |",
        f"| requests and sectors equal to the hardware's | {sum(not row['differs'] for row in rows)} | gives none |",
        "",
        *(f"Judged wrongly by {who}: {', '.join(names) or 'none'}." for who, names in wrong.items()),
        f"Other counts than the hardware's: {', '.join(row['name'] for row in rows if row['differs']) or 'none'}.",
        f"Both together took {seconds:.0f} s.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    start = time.monotonic()
    rows = [row_of(launch, counters) for launch, counters in zip(launches(), measured(), strict=True)]
    text = page(rows, time.monotonic() - start)
    print(text, end="")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)


if __name__ == "__main__":
    main()
