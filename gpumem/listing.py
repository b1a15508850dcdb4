"""A kernel's source as HTML, its lines coloured by what they cost."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .trace import Site, Trace

AROUND = 3  # lines shown before and behind one that costs something
WHOLE = 80  # files of at most so many lines are shown whole
PTX = "ptx"  # how the PTX is called among the source texts


def listing(trace: Trace) -> str:
    """The lines of each source text that have memory instructions, in a <details> of its own."""
    made = []
    for name, text in trace.source.items():
        by_line: dict[int, list[Site]] = defaultdict(list)
        for site in trace.sites:
            if name == PTX:
                if not (site.file and PurePath(site.file).name in trace.source):
                    by_line[site.ptx_line].append(site)
            elif site.file and PurePath(site.file).name == name:
                by_line[site.line].append(site)
        if by_line:
            made.append(_file(trace, name, text.splitlines(), by_line))
    return "".join(made)


def _file(trace: Trace, name: str, lines: list[str], by_line: dict[int, list[Site]]) -> str:
    rows = []
    before = 0
    for number in _shown(by_line, len(lines)):
        if number != before + 1:
            rows.append("<tr><td></td><td></td><td>…</td></tr>")
        rows.append(_row(trace, number, lines[number - 1], by_line.get(number, [])))
        before = number
    return (
        f"<details open><summary>{html.escape(name)}</summary>"
        '<table style="border-collapse:collapse;font-family:monospace;white-space:pre">'
        f"{''.join(rows)}</table></details>"
    )


def _shown(marked: Iterable[int], count: int) -> list[int]:
    if count <= WHOLE:
        return list(range(1, count + 1))
    near = {line + step for line in marked for step in range(-AROUND, AROUND + 1)}
    return sorted(line for line in near if 1 <= line <= count)


def _row(trace: Trace, number: int, text: str, sites: list[Site]) -> str:
    heat = min(1.0, sum(trace.share(site) for site in sites))
    said = " ".join(part for site in sites if (part := _cost(site)))
    colour = f"background:rgba(255,96,0,{0.1 + 0.6 * heat:.2f})" if heat else ""
    right = "text-align:right;padding-right:1em;opacity:.6"
    return (
        f'<tr style="{colour}"><td style="{right}">{number}</td>'
        f'<td style="text-align:right;padding-right:1em">{html.escape(said)}</td>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
    )


def _cost(site: Site) -> str:
    """What an instruction costs each time, in a few letters: sectors, or wavefronts."""
    if site.requests:
        return f"{site.sectors / site.requests:.3g} sectors"
    return f"{site.wavefronts / site.shared:.3g} wavefronts" if site.shared else ""
