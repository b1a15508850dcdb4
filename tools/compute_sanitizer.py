"""Runs the tests that need a GPU under compute-sanitizer; any report fails the run.

usage: python tools/compute_sanitizer.py [-o RECORD.json] [--tools memcheck,racecheck] [--processes N]

memcheck sees every access of our kernels to memory, racecheck pairs of accesses to shared memory that nothing orders.

The tests take small sizes (GPUMEM_TEST_SMALL=1, tests/sizes.py) and are shared out over processes, each under a
compute-sanitizer of its own; what such runs leave out they say with the reason. The interpreter is the one that runs
this: it has gpumem as built, pytest, NumPy and PyTorch. Exit status 1 for a report, a failure, or a test that was not
reached.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
RESULT = re.compile(r"^(tests/\S+?::.*?) (PASSED|FAILED|SKIPPED|ERROR)\b", re.MULTILINE)
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
# PyTorch's cache of memory would let an access beyond an array hit what lies next to it; padding does the rest.
ENVIRONMENT = {"GPUMEM_TEST_SMALL": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTHONUNBUFFERED": "1"}
OPTIONS = {
    "memcheck": ["--padding", "64", "--track-stream-ordered-races", "all"],
    "racecheck": ["--racecheck-report", "all"],
}


def find_sanitizer() -> str:
    """The program: on PATH, or in the toolkit's folder."""
    toolkit = Path(os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda")
    places = [toolkit / "bin" / "compute-sanitizer", toolkit / "compute-sanitizer" / "compute-sanitizer"]
    found = shutil.which("compute-sanitizer") or next((str(place) for place in places if place.exists()), None)
    if not found:
        sys.exit("no compute-sanitizer: it is part of the CUDA toolkit, and has to be on PATH")
    return found


def collect(arguments: list[str]) -> list[str]:
    """The tests, in pytest's order."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "gpu",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, text=True, check=False
    )
    tests = [line for line in done.stdout.splitlines() if line.startswith("tests/") and "::" in line]
    return tests or sys.exit(f"no tests: {done.stdout}")


# Seconds that tests took on an H200, by what their names hold; the first that fits counts.
SECONDS = [("test_device_ladder.py", 2.8), ("comes_back_as_a_tensor", 3.3), ("[transpose-", 1.8), ("[banks-", 1.8)]
SECONDS += [("test_run.py", 0.8), ("test_cupy", 6.0), ("test_every_view", 1.0), ("", 0.5)]


def weight(test: str) -> float:
    """About how long a test takes."""
    return next(seconds for part, seconds in SECONDS if part in test)


def shares(tests: list[str], count: int) -> list[list[str]]:
    """As many runs of neighbours, which load the same kernels, that take about as long as one another."""
    total, cut = sum(map(weight, tests)), [list[str]() for _ in range(count)]
    before = 0.0
    for test in tests:
        cut[min(int(before / total * count), count - 1)].append(test)
        before += weight(test)
    return [share for share in cut if share]


@dataclass
class Share:
    """One process with its tests."""

    tool: str
    tests: list[str]
    folder: Path
    number: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    seconds: float | None = None
    last: str = field(default="")

    @property
    def path(self) -> Path:
        return self.folder / f"{self.tool}-{self.number}"

    def start(self, sanitizer: str, kernels: str) -> None:
        command = [
            sanitizer,
            *("--tool", self.tool, *OPTIONS[self.tool]),
            # Calls of the driver that fail are meant to: tests provoke them.
            *("--error-exitcode", "9", "--require-cuda-init", "no", "--report-api-errors", "no"),
            *("--kernel-name", kernels, "--log-file", f"{self.path}.reports"),
            *(sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", f"--junitxml={self.path}.xml", "-rN"),
            *("--durations=0", "--durations-min=0.05", *self.tests),
        ]
        with Path(f"{self.path}.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, stdout=log, stderr=subprocess.STDOUT
            )
        self.started = time.monotonic()

    def results(self) -> dict[str, str]:
        """What has become of its tests so far."""
        log = Path(f"{self.path}.log")
        return dict(RESULT.findall(log.read_text(errors="replace"))) if log.exists() else {}

    def reports(self) -> int | None:
        """How many reports there are, or None where the tool did not come to its end."""
        found = SUMMARY.findall(Path(f"{self.path}.reports").read_text(errors="replace")) if self.ended else []
        return sum(map(int, found)) if found else None

    @property
    def ended(self) -> bool:
        return (
            self.process is not None and self.process.returncode is not None and Path(f"{self.path}.reports").exists()
        )

    def reasons(self) -> collections.Counter[str]:
        """Why tests were left out."""
        report = Path(f"{self.path}.xml")
        if not report.exists():
            return collections.Counter()
        skipped = (case.find("skipped") for case in ElementTree.parse(report).getroot().iter("testcase"))
        return collections.Counter(found.get("message", "") for found in skipped if found is not None)


def say(all_shares: list[Share], begun: float) -> None:
    """How far it is."""
    parts = []
    for tool in dict.fromkeys(share.tool for share in all_shares):
        own = [share for share in all_shares if share.tool == tool]
        done, left = sum(len(share.results()) for share in own), sum(share.seconds is None for share in own)
        parts.append(f"{tool} {done} of {sum(len(share.tests) for share in own)} tests, {left} processes left")
    print(f"{time.monotonic() - begun:5.0f} s  {'; '.join(parts)}", flush=True)


def run(all_shares: list[Share], sanitizer: str, processes: int, limit: float) -> None:
    """All of them, so many at a time, for so long."""
    stems = "|".join(sorted(path.stem for path in (ROOT / "csrc" / "kernels").glob("*.cu")))
    kernels = f"regex=^(move|{stems})_"  # kernels are called after their file, or move_
    waiting, running, begun, said = list(all_shares), list[Share](), time.monotonic(), 0.0
    while (waiting or running) and time.monotonic() - begun < limit:
        while waiting and len(running) < processes:
            running.append(waiting.pop(0))
            running[-1].start(sanitizer, kernels)
        time.sleep(0.2)
        for share in [share for share in running if share.process and share.process.poll() is not None]:
            running.remove(share)
            share.seconds = time.monotonic() - share.started
        if time.monotonic() - said >= 10:
            say(all_shares, begun)
            said = time.monotonic()
    for share in running:
        assert share.process
        share.process.terminate()
    for share in running:
        assert share.process
        try:
            share.process.wait(5)
        except subprocess.TimeoutExpired:
            share.process.kill()
            share.process.wait()
    say(all_shares, begun)


def outcome(own: list[Share]) -> dict[str, Any]:
    """What a tool found: tests by result, those left out with their reasons, those not reached, and reports."""
    results = collections.Counter(result for share in own for result in share.results().values())
    tests = sum(len(share.tests) for share in own)
    reports = [share.reports() for share in own]
    reasons: collections.Counter[str] = collections.Counter()
    for share in own:
        reasons += share.reasons()
    failed = results["FAILED"] + results["ERROR"]
    return {
        "tests": tests,
        "passed": results["PASSED"],
        "failed": failed,
        "left_out": dict(reasons.most_common()),
        "not_reached": tests - sum(results.values()),
        "reports": sum(count or 0 for count in reports),
        "unfinished_processes": sum(count is None for count in reports),
        "seconds": [round(share.seconds, 1) if share.seconds else None for share in own],
    }


def main() -> int:
    """Runs and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--tools", default="memcheck,racecheck")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds")
    parser.add_argument("--logs", type=Path, help="a folder where the logs of the processes stay")
    options, arguments = parser.parse_known_args()
    sanitizer = find_sanitizer()

    from gpumem import device_work

    device_work.need_torch()
    tools = options.tools.split(",")
    tests = collect(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        each = shares(tests, max(options.processes // len(tools), 1))
        all_shares = [Share(tool, share, folder, i) for i, share in enumerate(each) for tool in tools]
        run(all_shares, sanitizer, options.processes, options.limit)
        found = {tool: outcome([share for share in all_shares if share.tool == tool]) for tool in tools}
        for share in all_shares:
            if share.reports() or "FAILED" in share.results().values():
                print(Path(f"{share.path}.reports").read_text(errors="replace")[:8000])
                print(Path(f"{share.path}.log").read_text(errors="replace")[-8000:])
    print(json.dumps(found, indent=1))
    record = {
        "schema": "gpumem.sanitizer/1",
        "environment": device_work.environment(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "tools": found,
    }
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(record, indent=1) + "\n")
    bad = ("failed", "not_reached", "reports", "unfinished_processes")
    return int(any(tool[what] for tool in found.values() for what in bad))


if __name__ == "__main__":
    sys.exit(main())
