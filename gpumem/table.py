"""One table, three looks: aligned text, rich in a terminal, HTML in a notebook; and JSON with a row a line."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import rich.console
    import rich.table

WIDEST = 160
NARROWEST_PROSE = 24
BAR = 10


@dataclass(frozen=True)
class Column:
    """A heading and how its cells are set. `prose` may be wrapped to fit the terminal; nothing else is."""

    title: str
    align: Literal["left", "right"] = "right"
    prose: bool = False


@dataclass(frozen=True)
class Table:
    """Cells are text already: numbers are formatted by whoever knows their unit. `strong` rows stand out."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    strong: frozenset[int] = field(default_factory=frozenset)

    def text(self, width: int | None = None) -> str:
        """Aligned plain text, at most `width` columns where the prose column can give way (default: the terminal's)."""
        import shutil

        width = width or min(shutil.get_terminal_size((120, 24)).columns, WIDEST)
        widths = [
            max([len(column.title), *(len(row[i]) for row in self.rows)]) for i, column in enumerate(self.columns)
        ]
        for i, column in enumerate(self.columns):
            if column.prose:
                others = sum(widths) - widths[i] + 2 * (len(widths) - 1)
                widths[i] = min(widths[i], max(NARROWEST_PROSE, len(column.title), width - others))
        lines = [self.title] if self.title else []
        if any(column.title for column in self.columns):
            lines += self._lines([column.title for column in self.columns], widths)
            lines.append("  ".join("-" * w for w in widths))
        for row in self.rows:
            lines += self._lines(row, widths)
        for note in self.notes:
            lines += textwrap.wrap(note, width)
        return "\n".join(lines)

    def _lines(self, cells: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
        """The lines of one row: more than one where prose is wrapped."""
        blocks = [
            (textwrap.wrap(cell, max(w, 1)) or [""]) if column.prose else [cell]
            for cell, w, column in zip(cells, widths, self.columns, strict=True)
        ]
        for k in range(max(map(len, blocks))):
            parts = [block[k] if k < len(block) else "" for block in blocks]
            yield "  ".join(
                part.rjust(w) if column.align == "right" else part.ljust(w)
                for part, w, column in zip(parts, widths, self.columns, strict=True)
            ).rstrip()

    def html(self) -> str:
        """A self-contained <table>, every cell escaped."""
        import html

        def cells(tag: str, row: Sequence[str]) -> str:
            scope = ' scope="col"' if tag == "th" else ""
            return "".join(
                f'<{tag}{scope} style="text-align:{column.align}">{html.escape(cell)}</{tag}>'
                for cell, column in zip(row, self.columns, strict=True)
            )

        caption = f'<caption style="text-align:left">{html.escape(self.title)}</caption>' if self.title else ""
        head = f"<thead><tr>{cells('th', [column.title for column in self.columns])}</tr></thead>"
        strong = ' style="font-weight:bold"'
        body = "".join(
            f"<tr{strong if i in self.strong else ''}>{cells('td', row)}</tr>" for i, row in enumerate(self.rows)
        )
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return f"<table>{caption}{head}<tbody>{body}</tbody></table>{notes}"

    def rich(self) -> rich.table.Table:
        """The same as a rich table; needs rich."""
        import rich.box
        import rich.table
        from rich.text import Text

        table = rich.table.Table(
            title=Text(self.title, style="bold") if self.title else None,
            title_justify="left",
            box=rich.box.SIMPLE_HEAD,
            pad_edge=False,
            show_header=any(column.title for column in self.columns),
            caption=Text("\n".join(self.notes)) if self.notes else None,
            caption_justify="left",
            caption_style="dim",
        )
        for column in self.columns:
            table.add_column(Text(column.title), justify=column.align, no_wrap=not column.prose)
        for i, row in enumerate(self.rows):
            table.add_row(*map(Text, row), style="bold" if i in self.strong else None)
        return table


class Shown:
    """What people look at: prints as its tables, is HTML in a notebook, and is drawn by rich where rich prints it."""

    def tables(self) -> list[Table]:
        """The tables that it prints as."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())

    def __rich__(self) -> rich.console.Group:
        from rich.console import Group

        return Group(*(table.rich() for table in self.tables()))


class Tables(Shown):
    """Any tables, shown as one thing."""

    def __init__(self, tables: list[Table]) -> None:
        self._tables = tables

    def tables(self) -> list[Table]:
        """The tables."""
        return self._tables


def bar(fraction: float) -> str:
    """A fraction of 1 as a bar of BAR characters, in eighths of one; more than 1 fills it.

    >>> bar(0.5)
    '█████     '
    """
    eighths = round(max(0.0, min(fraction, 1.0)) * BAR * 8)
    blocks = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
    return blocks.ljust(BAR)


def json_by_line(plain: Mapping[str, Any], last: str) -> str:
    """JSON whose list `last` comes last, an item a line: short to read, and a changed item is a changed line.

    >>> print(json_by_line({"rows": [{"a": 1}, {"a": 2}], "op": "sum"}, "rows"))
    {
     "op": "sum",
     "rows": [
      {"a": 1},
      {"a": 2}
     ]
    }
    """
    head = json.dumps({name: value for name, value in plain.items() if name != last}, indent=1)
    items = ",\n".join(f"  {json.dumps(item)}" for item in plain[last])
    return f'{head[:-2]},\n "{last}": [\n{items}\n ]\n}}'
