"""The README says what is true: its examples run, its tables are fresh."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gpumem.cli import main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code):
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, timeout=120, cwd="/")


COMMANDS = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, capsys):
    name, *arguments = shlex.split(command)
    assert name == "gpumem"
    assert main(arguments) == 0
    assert capsys.readouterr().out


def test_there_are_examples():
    assert len(blocks("python")) >= 2
    assert len(COMMANDS) >= 4


def test_generated_tables_are_fresh():
    command = [sys.executable, str(ROOT / "tools" / "readme.py"), "--check"]
    stale = subprocess.run(
        command, env={**os.environ, "PYTHONSAFEPATH": "1"}, capture_output=True, text=True, timeout=120
    )
    assert stale.returncode == 0, "README.md is stale: make readme\n" + stale.stderr


RUN_TIME = ("ISA", "NUM_THREADS", "HPTT", "OPENBLAS", "CUTENSOR")
BUILD = ("CUDA", "CUDA_ARCHS", "DEBUG")


@pytest.mark.parametrize("variable", [f"GPUMEM_{name}" for name in (*RUN_TIME, *BUILD)])
def test_variables_of_the_environment_are_those_that_the_code_reads(variable):
    sources = [*ROOT.glob("csrc/*/*.c"), *ROOT.glob("gpumem/*.py"), ROOT / "setup.py", *ROOT.glob("tools/build/*.py")]
    assert f"`{variable}`" in README
    assert any(f'"{variable}"' in source.read_text() for source in sources)


@pytest.mark.parametrize("target", ["demo", "test", "readme"])
def test_make_targets_exist(target):
    assert f"make {target}" in README
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
