"""A kernel's source as HTML: beside each line what it costs, as words and as a bar, and what there is to say about it.

The same piece stands in the report and in notebooks.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trace import Site, Trace

AROUND = 4  # lines shown before and behind one that costs something
WHOLE = 40  # files of at most so many lines are shown whole
ROW, CELL = 'role="row"', 'role="cell"'  # said again: a table that is laid out otherwise is none for a screen reader
MOST_LINES = 1 << 24
PTX = "ptx"  # how the PTX is called among the source texts

STYLE = (
    ".gm-listing{container-type:inline-size}"
    ".gm-src{border-collapse:collapse;width:100%;font:.85em/1.5 ui-monospace,Consolas,Menlo,monospace}"
    ".gm-src th,.gm-src td{padding:0 .6em;text-align:left;font-weight:normal;vertical-align:top}"
    ".gm-src .code{white-space:pre-wrap;overflow-wrap:anywhere;width:100%}"
    ".gm-src thead th{font-weight:600}"
    ".gm-src tbody th{text-align:right;opacity:.75}"
    ".gm-src .heat{min-width:17em;background:linear-gradient(90deg,rgba(232,110,30,.42) var(--heat),"
    "rgba(232,110,30,.09) var(--heat))}"
    ".gm-src .beside td{padding:.1em .6em .6em;font-family:system-ui,sans-serif}"
    # Where there is no room for three columns the cost stands above its line.
    "@container(max-width:46rem){.gm-src thead{display:none}"
    ".gm-src tr{display:grid;grid-template-columns:3em minmax(0,1fr)}"
    ".gm-src .heat{grid-column:1/-1;grid-row:1;padding-left:3.6em;min-width:0}.gm-src .none{display:none}"
    ".gm-src .beside td{grid-column:1/-1}}"
)


def lines_of(trace: Trace) -> dict[str, dict[int, list[Site]]]:
    """For each source text the lines that have memory instructions, or call a function that has, and these."""
    found: dict[str, dict[int, list[Site]]] = {name: defaultdict(list) for name in trace.source}
    for site in trace.sites:
        for name, line in dict.fromkeys((place(trace, site), *calls(trace, site))):
            if name in found:
                found[name][line].append(site)
    return {name: dict(by_line) for name, by_line in found.items() if by_line}


def texts_of(trace: Trace) -> dict[str, Any]:
    """The source texts that have memory instructions; of the PTX, which may hold other kernels, the lines shown."""
    made: dict[str, Any] = {}
    for name, by_line in lines_of(trace).items():
        made[name] = trace.source[name]
        if name == PTX:
            lines = trace.source[name].splitlines()
            shown = {*_shown(by_line, len(lines)), len(lines)}  # the last one tells how many there are
            made[name] = {str(number): lines[number - 1] for number in sorted(shown)}
    return made


def texts_from(data: Mapping[str, Any]) -> dict[str, str]:
    """What `texts_of` gave, lines that were left out being empty."""
    made = {}
    for name, text in data.items():
        if not isinstance(text, str):
            last = max(map(int, text), default=0)
            if last > MOST_LINES:
                raise ValueError(f"source {name}: {last} lines are too many")
            text = "\n".join(text.get(str(number), "") for number in range(1, last + 1))
        made[name] = text
    return made


def place(trace: Trace, site: Site) -> tuple[str, int]:
    """The text in which an instruction is shown, and the line there: its source, or the PTX."""
    name = PurePath(site.file).name if site.file else ""
    return (name, site.line) if name in trace.source and site.line else (PTX, site.ptx_line)


def calls(trace: Trace, site: Site) -> list[tuple[str, int]]:
    """Where, in texts that there are, the functions are called that an instruction was inlined from."""
    made = []
    for call in site.calls:
        file, _, line = call.rpartition(":")
        if (name := PurePath(file).name) in trace.source:
            made.append((name, int(line)))
    return made


def listing(trace: Trace, beside: Callable[[str, int], str] | None = None, prefix: str = "") -> str:
    """The lines of each source text that have memory instructions, in a <details> of its own; needs STYLE.

    beside: gives HTML for a text and a line, shown below that line; lines that have some are shown. prefix: of the
    lines' ids.
    """
    return "".join(
        _file(trace, name, trace.source[name].splitlines(), by_line, beside, prefix)
        for name, by_line in lines_of(trace).items()
    )


def anchor(name: str, line: int) -> str:
    """The id of a line.

    >>> anchor("my kernel.cu", 7)
    'line-my-kernel-cu-7'
    """
    return f"line-{''.join(letter if letter.isalnum() else '-' for letter in name)}-{line}"


def _file(
    trace: Trace,
    name: str,
    lines: list[str],
    by_line: Mapping[int, Sequence[Site]],
    beside: Callable[[str, int], str] | None,
    prefix: str,
) -> str:
    notes = {} if beside is None else {number: beside(name, number) for number in range(1, len(lines) + 1)}
    rows = []
    before = 0
    for number in _shown([*by_line, *(number for number, note in notes.items() if note)], len(lines)):
        if number != before + 1:
            rows.append(f'<tr {ROW}><th {CELL}></th><td {CELL} class="none"></td><td {CELL} class="code">…</td></tr>')
        rows.append(_row(trace, prefix + anchor(name, number), number, lines[number - 1], by_line.get(number, [])))
        if notes.get(number):
            note = f'<td {CELL} class="none" colspan="2"></td><td {CELL}>{notes[number]}</td>'
            rows.append(f'<tr {ROW} class="beside">{note}</tr>')
        before = number
    shown = html.escape("PTX" if name == PTX else name)
    heads = "".join(f'<th role="columnheader" scope="col">{head}</th>' for head in ("line", "cost", "source"))
    return (
        f'<details open class="gm-listing"><summary>{shown}</summary>'
        f'<table class="gm-src" role="table" aria-label="{shown}"><thead><tr {ROW}>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></details>"
    )


def _shown(marked: Iterable[int], count: int) -> list[int]:
    if count <= WHOLE:
        return list(range(1, count + 1))
    near = {line + step for line in marked for step in range(-AROUND, AROUND + 1)}
    return sorted(line for line in near if 1 <= line <= count)


def _row(trace: Trace, name: str, number: int, text: str, sites: Sequence[Site]) -> str:
    share = heat(trace, sites)
    said = "; ".join(dict.fromkeys(costs(sites)))
    part = f" ({share:.0%})" if share else ""
    cost = f'<td {CELL} class="none"></td>'
    if said:
        cost = f'<td {CELL} class="heat" style="--heat:{100 * share:.0f}%">{html.escape(said)}{part}</td>'
    code = f'<td {CELL} class="code">{html.escape(text)}</td>'
    return f'<tr {ROW} id="{name}"><th role="rowheader" scope="row">{number}</th>{cost}{code}</tr>'


def heat(trace: Trace, sites: Sequence[Site]) -> float:
    """The part of all sectors, or of all wavefronts, that some sites take: the larger one."""
    parts = []
    for count in ("sectors", "wavefronts"):
        whole = sum(getattr(site, count) for site in trace.sites)
        parts.append(sum(getattr(site, count) for site in sites) / whole if whole else 0.0)
    return max(parts)


def costs(sites: Iterable[Site]) -> list[str]:
    """What instructions cost each time, kind by kind: sectors, or wavefronts."""
    sums: dict[tuple[str, str], list[int]] = {}
    for site in sites:
        for unit, cost, times in (
            ("sectors", site.sectors, site.requests),
            ("wavefronts", site.wavefronts, site.shared),
        ):
            if times:
                both = sums.setdefault((site.kind, unit), [0, 0])
                both[0] += cost
                both[1] += times
    return [
        f"{kind} {cost / times:.3g} {unit if cost != times else unit[:-1]}"
        for (kind, unit), (cost, times) in sums.items()
    ]
