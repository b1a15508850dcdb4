"""CONTRIBUTING.md's new stage, step by step as it is told, in a copy of the tree: it builds, runs, passes tests."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WALK = (ROOT / "CONTRIBUTING.md").read_text().partition("## A stage in ten minutes")[2].partition("\n## ")[0]


def shown(language):
    """The indented blocks of the walk-through."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```", WALK, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The tree with the stage that is shown, built for the CPU, without optimisation."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("compilers do not run under the sanitizers' runtimes")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")
    for module in ("setuptools", "tvm_ffi"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    made = tmp_path_factory.mktemp("gpumem")
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "data")
    for folder in ("csrc", "gpumem", "tests", "tools"):
        shutil.copytree(
            ROOT / folder, made / folder, ignore=ignored if folder != "gpumem" else shutil.ignore_patterns("*.so")
        )
    for file in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, made)

    row, kernel = shown("c")
    table = made / "csrc" / "base" / "stages.def"
    text = table.read_text()
    behind = re.search(r"^GM_STAGE\(copy, naive, CPU.*\n", text, re.MULTILINE)
    table.write_text(text[: behind.end()] + row + text[behind.end() :])
    assert "`csrc/cpu/runs.c`" in WALK
    (made / "csrc" / "cpu" / "runs.c").write_text(kernel)

    quick = made / "cc"
    quick.write_text(f'#!/bin/sh\nexec {shlex.quote(compiler)} "$@" -O0\n')
    quick.chmod(0o755)
    return made, {**os.environ, "CC": str(quick), "GPUMEM_CUDA": "0", "GPUMEM_WERROR": "1", "PYTHONPATH": str(made)}


def test_the_steps_do_what_they_say(tree):
    folder, environment = tree
    (steps,) = shown("sh")
    said = {}
    for line in steps.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "python"
        ran = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=1800
        )
        assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
        said[line] = ran.stdout
    _, stages, ladder, tests = said
    assert re.search(r"copy +runs +cpu +what lies together", said[stages])
    assert re.search(r"^runs .*memcpy", said[ladder], re.MULTILINE)
    assert re.search(r"[1-9]\d* passed", said[tests])
    assert "failed" not in said[tests]


def test_without_kernels_their_tests_are_skipped(tree):
    folder, environment = tree
    for arguments in (
        ["setup.py", "-q", "build_ext", "--inplace"],
        [
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/test_mix.py",
            "tests/test_pictures.py",
            "-k",
            "not measured",
        ],
    ):
        ran = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=1800
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "this gpumem was built without nvcc, and has no kernels to execute" in ran.stdout
    assert re.search(r"[1-9]\d* passed", ran.stdout)


def test_it_is_c_as_ours_is(tree):
    formatter = shutil.which("clang-format-14")
    if not formatter:
        pytest.skip("needs clang-format-14")
    folder, _ = tree
    shutil.copy(ROOT / ".clang-format", folder)
    subprocess.run([formatter, "--dry-run", "-Werror", "csrc/cpu/runs.c", "csrc/base/stages.h"], cwd=folder, check=True)


# What "Where things are" says: the folders that a folder's files may include from.
BELOW = {
    "base": set(),
    "cpu": {"base"},
    "simt": {"base"},
    "kernels": {"base"},
    "cuda": {"base", "kernels"},
    "bind": {"base", "cpu", "cuda", "simt"},
}


@pytest.mark.parametrize("folder", BELOW)
def test_arrows_point_down_only(folder):
    files = [path for path in (ROOT / "csrc" / folder).iterdir() if path.suffix not in (".orig", ".swp")]
    text = "\n".join(path.read_text() for path in files)
    included = set(re.findall(r'#include "\.\./(\w+)/', text))
    assert included <= BELOW[folder]
    assert folder == "bind" or not re.search(r"#include <(Python|numpy/\w+)\.h>", text)
    assert folder in ("cuda", "kernels") or "#include <cuda" not in text


def test_every_folder_has_its_place():
    assert {path.name for path in (ROOT / "csrc").iterdir() if path.is_dir()} == set(BELOW)
