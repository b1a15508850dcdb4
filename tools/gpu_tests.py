"""Runs the tests that need a GPU, there, and records how they went: how many passed, which were skipped and why.

usage: python tools/gpu_tests.py -o notebooks/data/tests/h200.json [PYTEST ARGUMENTS...]

Exit status 1 where anything failed; it is recorded all the same. `make readme` prints the record. The same tests under
compute-sanitizer: tools/compute_sanitizer.py.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
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


def main() -> int:
    """Runs and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options, arguments = parser.parse_known_args()

    from gpumem import device_work

    device_work.need_torch()
    record = {
        "schema": "gpumem.tests/1",
        "environment": device_work.environment(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "tests": run_tests(arguments),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(record, indent=1) + "\n")
    return int(record["tests"]["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
