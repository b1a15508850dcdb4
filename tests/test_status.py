"""The one table of errors, csrc/base/status.def, against the code that raises them.

gm_raise() takes its arguments like printf, where no compiler sees the text: what it is given is counted here instead.
"""

import builtins
import re
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[1] / "csrc"

ROW = re.compile(r'^GM_STATUS\((\w+),\s*(\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.MULTILINE)
ROWS = {
    name: (exception, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)))
    for name, exception, text in ROW.findall((CSRC / "base" / "status.def").read_text())
}
# What PyUnicode_FromFormat knows, as far as the table needs it.
DIRECTIVE = re.compile(r"%(?:%|[dsu]|zd|lld|[RSU])")


def arguments(code, start):
    """The arguments of the call whose opening parenthesis is at `start`."""
    parts, depth, quoted = [""], 0, False
    for at, char in enumerate(code[start:], start):
        if char == '"' and code[at - 1] != "\\":
            quoted = not quoted
        if not quoted:
            depth += (char in "([{") - (char in ")]}")
            if depth == 0:
                return [part.strip() for part in parts]
            if char == "," and depth == 1:
                parts.append("")
                continue
        if depth > 1 or char != "(":
            parts[-1] += char
    raise AssertionError("unbalanced parentheses")


def calls():
    """Every gm_raise(GM_ROW, ...) as (file, row, number of arguments after the row)."""
    for path in sorted(CSRC.glob("*/*.c")):
        code = path.read_text()
        for found in re.finditer(r"\bgm_raise(?=\(GM_)", code):
            row, *given = arguments(code, found.end())
            yield path.name, row.removeprefix("GM_"), len(given)


def test_the_table_is_read():
    assert len(ROWS) == (CSRC / "base" / "status.def").read_text().count("\nGM_STATUS(")


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    exception, text = ROWS[name]
    assert issubclass(getattr(builtins, exception), BaseException)
    assert "%" not in DIRECTIVE.sub("", text), "a directive that PyUnicode_FromFormat may not know"
    assert not text.endswith((".", "\n", " "))
    assert [other for other, row in ROWS.items() if row[1] == text] == [name]


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_used(name):
    assert any(re.search(rf"\bGM_{name}\b", path.read_text()) for path in CSRC.glob("*/*.[ch]"))


def test_every_raise_fills_in_its_text():
    found = list(calls())
    assert len(found) > 10
    wrong = [
        (file, row, given)
        for file, row, given in found
        if given != sum(directive != "%%" for directive in DIRECTIVE.findall(ROWS[row][1]))
    ]
    assert not wrong
