"""The command line: data to stdout, progress to stderr, one line for an error, exit statuses that scripts can use."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gpumem
from gpumem.cli import COMMANDS

SMALL = ["--shape", "64x64", "--repeat", "3"]


def run(*arguments, **options):
    command = [sys.executable, "-m", "gpumem", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200, **options)


def test_stages_as_table_and_as_json(said):
    status, out, err = said("stages", "transpose")
    assert (status, err) == (0, "")
    assert [line.split()[1] for line in out.splitlines()[2:] if line[0] != " "] == [
        stage.name for stage in gpumem.stages("transpose")
    ]
    status, out, err = said("stages", "--json")
    assert json.loads(out) == [stage.to_dict() for stage in gpumem.stages()]


def test_info_names_what_runs_and_why(said):
    status, out, err = said("info")
    assert (status, err) == (0, "")
    for part in ("This machine", "NumPy", "cores", "threads", "Instruction sets", "cuda", "no: "):
        assert part in out
    data = json.loads(said("info", "--json")[1])
    assert data["isa"] in [isa["name"] for isa in data["isas"] if isa["runs"]]
    assert data["isas"][-1]["name"] == "portable"
    assert data["threads"] == gpumem.get_num_threads()


def test_info_says_what_the_environment_asked_for():
    env = {**os.environ, "GPUMEM_ISA": "portable", "GPUMEM_NUM_THREADS": "1"}
    data = json.loads(run("info", "--json", env=env).stdout)
    assert (data["isa"], data["threads"]) == ("portable", 1)
    assert data["isa_why"] == "GPUMEM_ISA=portable asked for it"
    assert data["threads_why"].startswith("GPUMEM_NUM_THREADS=1 asked for")


def test_ladder_prints_data_to_stdout_and_progress_to_stderr(said):
    status, out, err = said("ladder", "transpose", *SMALL)
    assert status == 0
    assert "tuned" in out
    assert "transpose ladder:" in err
    assert "transpose ladder:" not in out
    status, out, err = said("ladder", "copy", *SMALL, "--dtype", "uint8", "--json", "-q")
    assert (status, err) == (0, "")
    assert json.loads(out)["dtype"] == "uint8"


def test_files_are_written(said, tmp_path):
    pytest.importorskip("matplotlib")
    record, plot = tmp_path / "a.json", tmp_path / "a.png"
    assert said("ladder", *SMALL, "-q", "-o", str(record), "--plot", str(plot))[0] == 0
    assert json.loads(record.read_text())["schema"] == "gpumem.ladder/1"
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_bench_records_and_shows_again(said, tmp_path):
    record = tmp_path / "tiny.json"
    arguments = ("bench", "transpose", "--filter", "tiny", "--repeat", "3", "--peers", "numpy", "-q")
    status, out, err = said(*arguments, "-o", str(record))
    assert (status, err) == (0, "")
    assert said("bench", "--from", str(record))[1] == out
    rows = said("bench", "--from", str(record), "--rows")[1]
    assert rows.endswith(out)
    assert rows.count("whole call") > out.count("whole call")
    listed = said("bench", "--list", "--filter", "tiny")[1].splitlines()
    assert len(listed) == len(json.loads(record.read_text())["rows"])


@pytest.mark.parametrize(
    "arguments, line",
    [
        (
            ["ladder", "transpsoe"],
            "no lesson 'transpsoe': there are copy, transpose, reduce; did you mean 'transpose'?",
        ),
        (["ladder", "--dtype", "flot32"], "no dtype 'flot32': there are bool, int8, "),
        (
            ["ladder", "--device", "sim", "--repeat", "3"],
            "device 'sim': its kernels are counted, not timed: nothing to",
        ),
        (["ladder", "--shape", "4xx"], "shape '4xx': lengths with x or commas between them"),
        (["ladder", "--repeat", "x"], "argument --repeat: invalid int value: 'x'"),
        (["ladder", "--plot", "a.xyz"], "its name must end in one of"),
        (["ladder", "-o", "/nowhere/a.json"], "cannot write /nowhere/a.json"),
        (["stages", "transpsoe"], "no lesson 'transpsoe': there are "),
        (["stages", "--device", "gpu"], "no device 'gpu': there are cpu, cuda, sim"),
        (["bench", "tranpose"], "no operation 'tranpose': there are transpose, copy, sum; did you mean 'transpose'?"),
        (["bench", "--filter", "zzz"], "no row matches 'zzz'; the groups of 'transpose' are: "),
        (["bench", "--peers", "nump"], "no peer 'nump': there are numpy, hptt, openblas, torch"),
        (["bench", "--from", "/nowhere.json"], "cannot read /nowhere.json: No such file"),
        (["bench", "--from", __file__], "is no JSON: "),
        (["ladder", "--dtype", "1:2"], "no dtype '1:2': there are bool, int8, "),
        (["ladder", "-o", "/tmp"], "cannot write /tmp"),
        (["laddder"], "invalid choice: 'laddder'"),
        (["ladder", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["roofline", "--device", "cuda"], "unrecognized arguments: --device"),  # is not --devices
        (["stages", "--js"], "unrecognized arguments: --js"),
        (["--vers"], "unrecognized arguments: --vers"),
    ],
)
def test_wrong_commands_are_one_line_and_status_2(said, arguments, line):
    status, out, err = said(*arguments)
    assert (status, out) == (2, "")
    assert line in err
    assert err.startswith("gpumem")
    assert err.count("\n") == 1


BENCH = {"schema": "gpumem.bench/1", "op": "copy", "rows": [], "peers": {}, "skipped": []}


@pytest.mark.parametrize("command", ["bench --from", "compare x.json", "plot", "advise", "metrics"])
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "NaN",
        "\udcff",
        *(json.dumps({"schema": f"gpumem.{kind}/1"}) for kind in ("bench", "sweep", "ladder", "trace", "roofline")),
        json.dumps({**BENCH, "environment": {}, "rows": [{}]}),
        json.dumps({**BENCH, "environment": {}, "rows": [None]}),
        json.dumps({**BENCH, "environment": 3, "rows": {"a": 1}}),
    ],
    ids=lambda text: text[:40],
)
def test_files_that_others_have_written_are_named(said, monkeypatch, tmp_path, command, text):
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_bytes(text.encode(errors="surrogateescape"))
    status, out, err = said(*command.split(), "x.json")
    assert (status, out) == (2, "")
    assert "x.json" in err
    assert err.count("\n") == 1


def test_what_cannot_be_written_is_named_without_a_number(said, tmp_path):
    (tmp_path / "add.ptx").write_text(gpumem.examples.ADD)
    launch = [tmp_path / "add.ptx", "--grid", 1, "--block", 128, *["--arg", "f32[128]"] * 3, "--arg", 128]
    assert said("trace", *launch, "--html", tmp_path) == (2, "", f"gpumem trace: {tmp_path}: Is a directory\n")


def test_a_launch_that_accesses_nothing_is_shown(said, tmp_path):
    (tmp_path / "add.ptx").write_text(gpumem.examples.ADD)
    launch = [tmp_path / "add.ptx", "--grid", 1, "--block", 128, *["--arg", "f32[128]"] * 3, "--arg", 0]
    status, out, _ = said("trace", *launch)
    assert status == 0
    assert "add" in out


def test_a_wrong_result_is_status_1(said, monkeypatch):
    monkeypatch.setattr("gpumem._core.transpose", lambda *args, **options: None)
    status, out, err = said("ladder", *SMALL, "-q")
    assert (status, out) == (1, "")
    assert err.startswith("gpumem ladder: transpose/naive is wrong at (0, 0)")


@pytest.mark.parametrize(
    "arguments",
    [
        ["ladder", "banks", "--device", "sim"],
        ["trace", "--stage", "transpose/padded"],
        ["advise", "--stage", "transpose/tiled"],
        ["roofline", "--stage", "copy/scalar", "--on", "H200"],
        ["sweep", "read", "--offsets", "0:1", "--device", "sim", "-q"],
    ],
)
def test_a_build_without_kernels_says_so_in_one_line(said, monkeypatch, arguments):
    monkeypatch.setattr("gpumem._core._kernel_ptx", lambda name: None)
    status, out, err = said(*arguments)
    assert (status, out) == (2, "")
    assert (
        err
        == f"gpumem {arguments[0]}: device 'sim': this gpumem was built without nvcc, and has no kernels to execute\n"
    )


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_help_has_examples_that_name_real_commands(said, command):
    status, out, err = said(*command, "--help")
    assert (status, err) == (0, "")
    if command:
        examples = out.partition("examples:\n")[2].splitlines()
        assert examples
        assert all("gpumem " + command[0] in line for line in examples)
    else:
        assert all(name in out for name in COMMANDS)
    assert said(*command, "-h")[1] == out


def test_without_a_command_it_helps(said):
    assert said()[1] == said("--help")[1]
    assert said("--version")[1].startswith("gpumem ")


def test_the_module_and_the_script_are_the_same():
    assert (
        run("stages", "copy").stdout
        == subprocess.run(
            [os.path.join(os.path.dirname(sys.executable), "gpumem"), "stages", "copy"],  # noqa: PTH118, PTH120
            capture_output=True,
            text=True,
            timeout=1200,
            check=True,
        ).stdout
    )


def test_letters_that_an_output_has_not_are_replaced():
    done = run("ladder", "copy", *SMALL, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, encoding="latin-1")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "naive" in done.stdout
    assert "?" in done.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_outputs_may_be_closed(closed, tmp_path):
    command = [sys.executable, "-m", "gpumem", "ladder", "copy", *SMALL, "-o", str(tmp_path / "a.json")]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert json.loads((tmp_path / "a.json").read_text())["lesson"] == "copy"


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m gpumem stages | head -1"
    ended = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=1200)
    assert ended.stderr == ""
    assert ended.returncode == 0


def test_an_interrupt_ends_it_at_once_and_says_so():
    # A shell starts its background jobs with the interrupt ignored, and that is inherited. While other libraries are
    # still being imported they may lose it: it is sent once the rounds have begun, which every line tells.
    code = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "import gpumem.console as console; console.SECONDS_BETWEEN_LINES = 0.0; "
    code += "runpy.run_module('gpumem', run_name='__main__')"
    command = [sys.executable, "-c", code, "ladder", "--shape", "2048x2048", "--repeat", "100000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert any("round 2 of" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=1200)
    assert process.returncode == 130
    assert out == ""
    assert err.endswith("interrupted\n")
    assert "Traceback" not in err
