"""The README and the site say what is true: examples run, tables and pictures are fresh, links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpumem
from gpumem.cli import main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_python_examples_run(page):
    """Those of a page one after another, in one process."""
    code = "\n".join(blocks(page, "python"))
    if "trace_stage(" in code or '"sim"' in code:
        need_kernels()
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=1200, cwd="/"
    )
    assert ran.returncode == 0, ran.stderr


COMMANDS = {
    (name_of(page), line[2:])
    for page in PAGES
    for block in blocks(page, "console")
    for line in block.splitlines()
    if line.startswith("$ ")
}


@pytest.mark.parametrize("page, command", sorted(COMMANDS))
def test_commands_run(page, command, capsys):
    name, *arguments = shlex.split(command)
    assert name == "gpumem"
    if "--stage" in arguments:
        need_kernels()
    assert main(arguments) == 0
    assert capsys.readouterr().out


def need_kernels():
    """Skips where there are no kernels to execute."""
    from gpumem import _core

    if _core._kernel_ptx("read_coalesced_4") is None:
        pytest.skip("built without nvcc")


def test_there_are_examples():
    assert len(blocks(PAGES[0], "python")) >= 2
    assert len({command for _, command in COMMANDS}) >= 5


def test_what_is_generated_is_fresh():
    need_kernels()
    command = [sys.executable, str(ROOT / "tools" / "readme.py"), "--check"]
    path = str(ROOT / "tools")
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": path}
    stale = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
    assert stale.returncode == 0, "make readme\n" + stale.stderr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        target = target.replace("generated/notebooks/", "../notebooks/")  # where the site's build puts a copy
        assert (page.parent / target).exists(), f"{name_of(page)}: {target}"


RUN_TIME = ("ISA", "NUM_THREADS", "HPTT", "OPENBLAS", "CUTENSOR")
BUILD = ("CUDA", "CUDA_ARCHS", "DEBUG")


@pytest.mark.parametrize("variable", [f"GPUMEM_{name}" for name in (*RUN_TIME, *BUILD)])
def test_variables_of_the_environment_are_those_that_the_code_reads(variable):
    sources = [*ROOT.glob("csrc/*/*.c"), *ROOT.glob("gpumem/*.py"), ROOT / "setup.py", *ROOT.glob("tools/build/*.py")]
    assert f"`{variable}`" in (ROOT / "docs" / "install.md").read_text()
    assert any(f'"{variable}"' in source.read_text() for source in sources)


MADE = re.findall(r"make (\w+)", "\n".join(page.read_text() for page in PAGES if name_of(page) != "docs/changelog.md"))
TARGETS = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("target", ["demo", "test", "readme", "docs", "notebooks"])
def test_make_targets_exist_and_are_told(target):
    assert target in TARGETS
    assert target in MADE


def test_the_citation_names_this_version():
    lines = dict(re.findall(r"^([\w-]+): *(.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert lines["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "type"} <= lines.keys()
    assert lines["version"] == project["version"]
    assert lines["license"] == "Apache-2.0"
    assert f"gpumem {project['version']}, rule" in README


def test_every_rule_has_its_anchor():
    text = (ROOT / "docs" / "rules.md").read_text()
    rules = re.findall(r"^### ([A-Z]\d+): ", text, re.MULTILINE)
    anchors = re.findall(r"^\(([a-z]\d+)\)=\n### ", text, re.MULTILINE)
    assert anchors == [rule.lower() for rule in rules]
    assert len(rules) >= 20


def test_the_api_page_has_every_public_name():
    named = re.findall(r"^\.\. auto\w+:: gpumem\.(\w+)(?![\w.])", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted({*gpumem.__all__, "examples"})
