"""tools/compute_sanitizer.py: how tests are shared out, and what counts as a clean run. Needs neither it nor a GPU."""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import compute_sanitizer  # noqa: E402

# Stands in for the program: writes its report where it is told to, then does what WAY says.
PROGRAM = """#!{python}
import os, pathlib, subprocess, sys, time
arguments = sys.argv[1:]
options, command = arguments[: arguments.index(sys.executable)], arguments[arguments.index(sys.executable) :]
tool, reports = options[options.index("--tool") + 1], pathlib.Path(options[options.index("--log-file") + 1])
log = next(argument for argument in command if argument.startswith("--junitxml=")).removeprefix("--junitxml=")
tests, way = [argument for argument in command if "::" in argument], os.environ["WAY"]
assert os.environ["GPUMEM_TEST_SMALL"] == "1"
cases = ""
for test in tests:
    if way == "stuck" and test == tests[-1]:
        pathlib.Path(log + ".stuck").touch()
        time.sleep(600)
    left_out = "left" in test
    print(test, "SKIPPED" if left_out else "FAILED" if way == "wrong" else "PASSED", "[  1%]", flush=True)
    cases += "<testcase>" + '<skipped message="too large"/>' * left_out + "</testcase>"
pathlib.Path(log).write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
if way != "crashed":
    count = int(way == "race" and tool == "racecheck")
    what = "RACECHECK SUMMARY" if tool == "racecheck" else "ERROR SUMMARY"
    reports.write_text(f"========= {what}: {count} of them")
"""
TESTS = [f"tests/test_a.py::test_{i}[(3, 4)-u1]" for i in range(9)] + ["tests/test_b.py::test_left_out"]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_shares_are_all_tests_in_their_order(count):
    cut = compute_sanitizer.shares(TESTS, count)
    assert [test for share in cut for test in share] == TESTS
    assert all(cut)
    assert len(cut) <= count


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the tool over TESTS with such a program; returns its status and its record."""

    def call(way, *arguments):
        program = tmp_path / "compute-sanitizer"
        program.write_text(PROGRAM.replace("{python}", sys.executable))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        monkeypatch.setenv("WAY", way)
        monkeypatch.setattr(compute_sanitizer, "collect", lambda arguments: TESTS)
        monkeypatch.setattr("gpumem.device_work.need_torch", lambda: None)
        monkeypatch.setattr("gpumem.device_work.environment", lambda: {"device": "none"})
        record = tmp_path / "record.json"
        monkeypatch.setattr(sys, "argv", ["compute_sanitizer.py", "--processes", "4", "-o", str(record), *arguments])
        return compute_sanitizer.main(), json.loads(record.read_text())["tools"]

    return call


def test_a_clean_run(run):
    status, tools = run("clean")
    assert status == 0
    for tool in ("memcheck", "racecheck"):
        found = tools[tool]
        assert (found["tests"], found["passed"], found["failed"]) == (10, 9, 0)
        assert found["left_out"] == {"too large": 1}
        assert (found["reports"], found["not_reached"], found["unfinished_processes"]) == (0, 0, 0)


def test_a_report_a_failure_and_a_crash_fail_the_run(run):
    status, tools = run("race")
    assert (status, tools["memcheck"]["reports"], tools["racecheck"]["reports"]) == (1, 0, 2)
    status, tools = run("wrong", "--tools", "memcheck")
    assert (status, tools["memcheck"]["failed"], tools["memcheck"]["passed"]) == (1, 9, 0)
    status, tools = run("crashed")
    assert (status, tools["memcheck"]["unfinished_processes"]) == (1, 2)


def test_what_the_time_does_not_suffice_for_is_counted(run, tmp_path, monkeypatch):
    def clock():  # the time is over once both hang, however long it took them to get there
        return 3600.0 * (len(list(tmp_path.glob("logs/*.stuck"))) == 2)

    monkeypatch.setattr(compute_sanitizer, "time", SimpleNamespace(monotonic=clock, sleep=time.sleep))
    status, tools = run("stuck", "--tools", "racecheck", "--processes", "2", "--logs", str(tmp_path / "logs"))
    assert status == 1
    assert (tools["racecheck"]["not_reached"], tools["racecheck"]["unfinished_processes"]) == (2, 2)
