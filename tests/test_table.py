"""Tables: aligned as text, wrapped where prose is, escaped as HTML."""

import io

import pytest

from gpumem.table import Column, Table, bar

TABLE = Table(
    "Title",
    [Column("name", "left"), Column("ms"), Column("idea", "left", prose=True)],
    [["a", "1.5", "one two three four five six seven"], ["longer", "22.5", "<b>"]],
    ["a note"],
    frozenset([1]),
)


def test_text_is_aligned_and_wraps_only_prose():
    assert TABLE.text(width=40).splitlines() == [
        "Title",
        "name      ms  idea",
        "------  ----  --------------------------",
        "a        1.5  one two three four five",
        "              six seven",
        "longer  22.5  <b>",
        "a note",
    ]


def test_prose_of_which_there_is_none_takes_no_room():
    assert Table("", [Column(""), Column("", prose=True)], [["1", ""]]).text() == "1"


def test_html_escapes_every_cell_and_marks_strong_rows():
    page = TABLE.html()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("font-weight:bold") == 1


def test_rich_shows_every_cell():
    console = pytest.importorskip("rich.console")
    out = console.Console(width=80, record=True, file=io.StringIO())
    out.print(TABLE.rich())
    text = out.export_text()
    assert all(cell in text for cell in ("Title", "name", "22.5", "<b>", "a note"))


def test_a_table_without_rows_has_its_heading():
    assert Table("", [Column("a", "left")], []).text() == "a\n-"


@pytest.mark.parametrize(
    "fraction, drawn",
    [(0.0, ""), (0.0125, "▏"), (0.5, "█████"), (0.55, "█████▌"), (1.0, "█" * 10), (7.0, "█" * 10), (-1.0, "")],
)
def test_bar(fraction, drawn):
    assert bar(fraction) == drawn.ljust(10)
