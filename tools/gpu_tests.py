"""Runs the tests that need a GPU, there, and records how they went: how many passed, which were skipped and why.

usage: python tools/gpu_tests.py -o notebooks/data/tests/h200.json [--sanitize] [PYTEST ARGUMENTS...]

--sanitize runs the small ones under compute-sanitizer too (tools/compute_sanitizer.sh). Exit status 1 where anything
failed; it is recorded all the same. `make readme` prints the record.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent


def counts(report: Path) -> dict[str, Any]:
    """What a JUnit report of pytest says."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    skipped = [case.find("skipped") for case in suite.iter("testcase")]
    reasons = collections.Counter(found.get("message", "") for found in skipped if found is not None)
    total, failed, errors = (int(suite.get(name, "0")) for name in ("tests", "failures", "errors"))
    passed = total - failed - errors - sum(reasons.values())
    return {"passed": passed, "failed": failed + errors, "skipped": dict(reasons.most_common())}


def run_tests(arguments: list[str]) -> dict[str, Any]:
    """Runs `pytest -m gpu`."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments],
            cwd=ROOT,
            check=False,
        )
        return counts(report)


def run_sanitizer(tool: str, arguments: list[str]) -> dict[str, Any]:
    """Runs the small tests under one of compute-sanitizer's tools."""
    done = subprocess.run(
        [ROOT / "tools" / "compute_sanitizer.sh", *arguments],
        env={**os.environ, "PYTHON": sys.executable, "TOOLS": tool},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    reports = re.findall(r"SUMMARY: (\d+)", done.stdout)
    return {
        "passed": int(passed[1]) if passed else 0,
        "reports": sum(map(int, reports)) if reports else None,
        "ok": done.returncode == 0,
    }


def main() -> int:
    """Runs and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--sanitize", action="store_true")
    options, arguments = parser.parse_known_args()

    from gpumem import device_work

    device_work.need_torch()
    record = {
        "schema": "gpumem.tests/1",
        "environment": device_work.environment(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "tests": run_tests(arguments),
        "sanitizer": {tool: run_sanitizer(tool, arguments) for tool in ("memcheck", "racecheck") if options.sanitize},
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(record, indent=1) + "\n")
    return int(record["tests"]["failed"] > 0 or not all(tool["ok"] for tool in record["sanitizer"].values()))


if __name__ == "__main__":
    sys.exit(main())
