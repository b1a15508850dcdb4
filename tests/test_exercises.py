"""The exercises: each reference passes, each wrong solution fails for its own reason, and nothing hostile gets on.

Solutions lie in tests/data/exercises as CUDA C and as the PTX that NVRTC makes of it (tools/exercise_ptx.py), so that
no compiler is needed. The first line of a wrong one says how it fails: kinds of faults, and a piece of the text.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpumem import compiler
from gpumem.errors import UsageError
from gpumem.exercise_check import FAULTS, check
from gpumem.exercises import EXERCISES, exercise

DATA = Path(__file__).parent / "data" / "exercises"
ROOT = Path(__file__).parent.parent
KERNELS = [each.number for each in EXERCISES if each.cases]
QUESTIONS = [each.number for each in EXERCISES if each.questions]
SOLUTIONS = sorted(path.relative_to(DATA).with_suffix("") for path in DATA.rglob("*.cu"))


def solution(name):
    path = DATA / name
    return path.with_suffix(".cu").read_text(), path.with_suffix(".ptx").read_text()


@pytest.mark.parametrize("name", [str(name) for name in SOLUTIONS if name.name.startswith("reference")])
@pytest.mark.parametrize("seed", [0, None])
def test_references_pass(name, seed):
    found = check(int(name.split("/")[0]), solution(name)[1], f"{name}.ptx", seed=seed)
    assert found.passed, str(found)
    assert re.search(r"the results of \d+ launches", found.done[0])


@pytest.mark.parametrize("name", [str(name) for name in SOLUTIONS if name.name.startswith("wrong")])
def test_wrong_solutions_fail_for_the_right_reason(name):
    source, ptx = solution(name)
    wanted = [part.partition(": ")[::2] for part in source.splitlines()[0].removeprefix("// fails: ").split("|")]
    found = check(int(name.split("/")[0]), ptx, f"{name}.ptx", seed=0)
    assert not found.passed
    assert any(fault.kind == kind and text in str(fault) for fault in found.faults for kind, text in wanted), str(found)
    assert all(fault.kind in FAULTS for fault in found.faults)
    if found.faults[0].kind == "counters":
        assert re.fullmatch(r"wrong_\w+\.cu:\d+", found.faults[0].where)
        assert found.faults[0].case


def test_wrong_results_name_the_line_that_stores_them():
    naive = check(10, solution("10/wrong_copies")[1], seed=0).faults[0]
    assert naive.where == "wrong_copies.cu:9"
    assert "nothing was stored to out" in check(10, solution("10/wrong_nothing")[1], seed=0).faults[0].text
    around = check(7, solution("07/wrong_unchanged")[1], seed=0).faults[0]
    assert (around.kind, around.where) == ("result", "wrong_unchanged.cu:6")
    assert "out[1]: " in around.text


def test_each_exercise_has_wrong_solutions():
    for number in KERNELS:
        names = [name.name for name in SOLUTIONS if int(name.parts[0]) == number]
        assert "reference" in names
        assert sum(name.startswith("wrong") for name in names) >= 4


@pytest.mark.parametrize("number", KERNELS)
def test_starters_are_not_solutions(number):
    if compiler.load_nvrtc()[0] is None and compiler.find_nvcc()[0] is None:
        pytest.skip("no NVRTC and no nvcc here")
    found = check(number, exercise(number).starter, "start.cu", seed=0)
    assert not found.passed
    assert found.faults[0].kind in ("counters", "hazard", "result")


# questions


def truth(number):
    asked = exercise(number)
    return {question.name: question.truth(asked.trace(), asked) for question in asked.questions}


def answers(values):
    return "\n".join(f"// answer {name} = {value}" for name, value in values.items())


@pytest.mark.parametrize("number", QUESTIONS)
def test_the_executed_truth_passes_and_nothing_else(number):
    right = truth(number)
    assert check(number, answers(right)).passed
    for name, value in right.items():
        other = {"yes": "no", "no": "yes"}.get(value) or value + 1
        found = check(number, answers({**right, name: other}))
        assert [fault.kind for fault in found.faults] == ["answer"]
        assert f"answer {name} = {other} is wrong" in found.faults[0].text
        for nonsense in ("?", "", "lots", "nan", "1e999"):
            assert len(check(number, answers({**right, name: nonsense})).faults) == 1


@pytest.mark.parametrize("number", [1, 2, 4])
def test_answers_worked_out_by_hand_are_the_executed_truth(number):
    found = check(number, (DATA / "answers" / f"{number}_reference.txt").read_text())
    assert found.passed, str(found)


def test_the_profile_answered_from_its_table():
    """What is read off the printed table, worked out independently of the checker."""
    trace = exercise(9).trace()
    lines = {}
    for site in trace.sites:
        lines.setdefault(site.line, []).append(site)
    source = exercise(9).starter.splitlines()
    store = next(i for i, text in enumerate(source, 1) if "i * 8" in text)
    bank = next(i for i, text in enumerate(source, 1) if "t * 8 + k" in text)
    warps = 16 * 128 // 32
    # tile: 8 stores and 8 loads a warp, one wavefront each; in: 8, records and both stores: 4 sectors each at the least
    given = {"line": store, "used": "12.5 %", "conflicts": bank, "wavefronts": 16 * warps, "sectors": 11 * 4 * warps}
    assert check(9, answers(given)).passed, str(check(9, answers(given)))


def test_a_wrong_answer_quotes_its_line():
    found = check(2, answers({**truth(2), "d": 8}))
    assert "line 21, sum += in[3072 + 3 * t];" in found.faults[0].text


def test_starters_have_no_answers():
    for number in QUESTIONS:
        found = check(number, exercise(number).starter)
        assert len(found.faults) == len(exercise(number).questions)
        assert all("is missing" in fault.text for fault in found.faults)


# hostile texts

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


@pytest.mark.parametrize(
    "text, kind",
    [
        ("", "compile"),
        (HEAD, "compile"),
        (
            HEAD + ".visible .entry transpose(.param .u64 a, .param .u64 b, .param .u32 c, .param .u32 d) { bogus; }",
            "compile",
        ),
        (HEAD + "{" * 100_000, "compile"),
        (HEAD + ".visible .entry transpose(.param .u64 a) { ret; }", "signature"),
        (
            HEAD + ".visible .entry transpose(.param .f32 a, .param .u64 b, .param .u32 c, .param .u32 d) { ret; }",
            "signature",
        ),
    ],
)
def test_texts_that_are_no_kernel(text, kind):
    if not compiler.is_ptx(text) and compiler.load_nvrtc()[0] is None and compiler.find_nvcc()[0] is None:
        pytest.skip("no NVRTC and no nvcc here")
    found = check(10, text, "mine.ptx")
    assert [fault.kind for fault in found.faults] == [kind]


@pytest.mark.parametrize(
    "line",
    ['#include "/dev/zero"', "#include </dev/zero>", "#include <../k.cuh>", "# include THIS", '#embed "/etc/passwd"'],
)
def test_nothing_is_included_but_headers(line):
    found = check(10, f"{line}\n{exercise(10).starter}")
    assert [fault.kind for fault in found.faults] == ["compile"]
    assert "toolkit's headers" in found.faults[0].text


def test_a_text_has_its_limit():
    assert "characters" in check(10, " " * (1 << 21)).faults[0].text


def test_headers_may_be_included():
    if compiler.load_nvrtc()[0] is None and compiler.find_nvcc()[0] is None:
        pytest.skip("no NVRTC and no nvcc here")
    found = check(10, "#include <cuda_fp16.h>\n" + exercise(10).starter, seed=0)
    assert found.faults[0].kind == "counters"


def test_results_cannot_be_known_beforehand():
    one, two, again = (exercise(10).cases(random(seed)) for seed in (1, 2, 1))
    assert [case.label for case in one] != [case.label for case in two]
    assert [case.label for case in one] == [case.label for case in again]
    assert (one[3].arguments["in"] != two[3].arguments["in"]).any()


def random(seed):
    import numpy as np

    return np.random.default_rng(seed)


# the command


def test_the_list_and_a_text(said):
    status, out, err = said("exercises")
    assert (status, err) == (0, "")
    for each in EXERCISES:
        assert each.skill in out
    assert [row["number"] for row in json.loads(said("exercises", "--json")[1])] == list(range(1, 11))
    out = said("exercises", "9")[1]
    assert "Read" not in out.split("\n")[0]
    assert "start.cu:" in out
    assert "wavefronts" in out
    assert json.loads(said("exercises", "9", "--json")[1])["profile"]["kernel"] == "work"


def test_a_starter_is_written_once(said, tmp_path):
    path = tmp_path / "mine.cu"
    assert said("exercises", "5", "-o", path)[0] == 0
    assert path.read_text() == exercise(5).starter
    status, _, err = said("exercises", "5", "-o", path)
    assert (status, "is there already" in err) == (2, True)
    assert said("exercises", "-o", path)[0] == 2


def test_check_says_by_its_status_what_came_of_it(said, tmp_path):
    status, out, _ = said("check", "10", DATA / "10/reference.ptx")
    assert (status, "passed" in out) == (0, True)
    status, out, _ = said("check", "10", DATA / "10/wrong_unpadded.ptx", "--json", "--seed", "5")
    found = json.loads(out)
    assert (status, found["passed"], found["seed"], found["schema"]) == (1, False, 5, "gpumem.check/1")
    assert found["faults"][0]["where"].startswith("wrong_unpadded.cu:")
    assert "32.00 wavefronts" in found["faults"][0]["text"]
    for arguments in (("check", "11", DATA / "10/reference.ptx"), ("check", "10", tmp_path / "none.cu")):
        assert said(*arguments)[0] == 2
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00\x81")
    assert said("check", "10", tmp_path / "binary.cu")[0] == 2


def test_without_a_compiler_it_is_said_what_to_install(monkeypatch):
    for module in ("gpumem.compiler", "gpumem.exercise_check"):
        monkeypatch.setattr(f"{module}.load_nvrtc", lambda: (None, ()))
        monkeypatch.setattr(f"{module}.find_nvcc", lambda: (None, ()))
    with pytest.raises(UsageError, match=r"gpumem\[lens\]"):
        check(5, exercise(5).starter)


def test_ptx_is_current():
    """By the compiler that made it; another one's differs."""
    if compiler.load_nvrtc()[0] is None:
        pytest.skip("no NVRTC here")
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import exercise_ptx
    finally:
        sys.path.remove(str(ROOT / "tools"))
    release = re.compile(r"release [\d.]+, V[\d.]+")
    sources = exercise_ptx.sources()
    assert len(sources) >= 50
    made = release.search(sources[0].with_suffix(".ptx").read_text())[0]
    if release.search(exercise_ptx.made(sources[0]))[0] != made:
        pytest.skip(f"the PTX was made by {made}")
    assert [str(source) for source in sources if not exercise_ptx.current(source)] == []


def test_the_wheel_has_the_exercises():
    """Each file of the data folder is named by pyproject's package data."""
    import tomllib

    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["gpumem.data"]
    folder = ROOT / "gpumem" / "data"
    held = {path for pattern in patterns for path in folder.glob(pattern)}
    assert {path for path in (folder / "exercises").rglob("*") if path.is_file()} <= held


def test_the_command_works_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "gpumem", "check", "6", str(DATA / "06/wrong_scalar.ptx")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "counters" in done.stdout
