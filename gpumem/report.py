"""A trace as one self-contained page: the source with what each line costs, and pictures of what its accesses did.

The page needs no server, no script and nothing from outside; it is light or dark as its reader's system is.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import listing
from .demangle import readable
from .metrics import METRICS
from .pictures import HATCH, STYLE, drawings_of, plural, svg
from .table import Table
from .trace import difference, per, together

if TYPE_CHECKING:
    from .advice import Advice
    from .trace import Comparison, Finding, Site, Trace

OPEN = 12  # of so many instructions all pictures are shown; of more, those that cost more than they must
PAGE = """
:root{color-scheme:light dark;--fg:#1b2733;--bg:#fff;--soft:#55626f;--edge:#d5dbe2;--card:#f5f7f9;--link:#0b57a4;
--bad:#9a3412;--good:#166534}
@media(prefers-color-scheme:dark){:root{--fg:#e4eaf0;--bg:#12171d;--soft:#a6b2be;--edge:#323c47;--card:#1a2129;
--link:#8cc4ff;--bad:#ffb38a;--good:#86d9a5}}
*{box-sizing:border-box}
body{margin:0 auto;padding:0 1rem 3rem;max-width:76rem;color:var(--fg);background:var(--bg);
font:1rem/1.5 system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}
h1{font-size:1.5rem;margin:1.2rem 0 .2rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--edge);padding-bottom:.2rem}
h3{font-size:1rem;margin:0;display:inline;overflow-wrap:anywhere}
a{color:var(--link)}
code,pre{font-family:ui-monospace,Consolas,Menlo,monospace;font-size:.92em}
pre{margin:.4rem 0;overflow-x:auto}
p{margin:.4rem 0}
.soft{color:var(--soft)}
.bad{color:var(--bad);font-weight:600}
.good{color:var(--good);font-weight:600}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem;background:var(--bg);padding:.3rem .6rem;z-index:1}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;margin:.6rem 0;padding:0}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.5rem,1fr));gap:.6rem;margin:1rem 0}
.facts div{background:var(--card);border:1px solid var(--edge);border-radius:.4rem;padding:.5rem .7rem}
.facts dt{color:var(--soft);font-size:.85rem}
.facts dd{margin:0;font-size:1.25rem;font-weight:600;font-variant-numeric:tabular-nums}
.facts small{display:block;font-size:.8rem;font-weight:400;color:var(--soft)}
.note p,.note summary{overflow-wrap:anywhere}
.note{background:var(--card);border:1px solid var(--edge);border-left:.3rem solid var(--edge);border-radius:.3rem;
padding:.4rem .7rem;margin:.4rem 0;max-width:60rem}
.note.error,.note.warning{border-left-color:var(--bad)}
.pics{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:1rem;margin:.6rem 0 0}
.pics svg{width:100%;max-width:36rem;height:auto}
.sites{columns:2 32rem;column-gap:1rem}
.site{border:1px solid var(--edge);border-radius:.4rem;padding:.5rem .8rem;margin:0 0 1rem;break-inside:avoid}
summary{cursor:pointer;padding:.2rem 0}
.gm-scroll{overflow-x:auto}
.gm-scroll table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.gm-scroll td:last-child[style*=left]{min-width:12rem}
table:not(.gm-src) th,table:not(.gm-src) td{padding:.15rem .6rem;border-bottom:1px solid var(--edge)}
caption{text-align:left;font-weight:600;padding:.3rem 0}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:0 1.5rem}
.two>*{min-width:0}
@media(max-width:30rem){body{padding:0 .6rem 2rem}.site{padding:.4rem .35rem}
.gm-scroll table{font-size:.85rem}
.changes small{display:none}}
.changes small{font-weight:400}
@media print{.gm-scroll{overflow:visible}}
"""


def page(trace: Trace) -> str:
    """The report of one trace as an HTML page."""
    items = advice_of(trace)
    sections = [
        ("problems", "Hazards", problems(trace)),
        ("advice", "Advice", "".join(advice_note(trace, item, "") for item in items)),
        ("source", "Source", source(trace, items)),
        ("accesses", "Accesses", accesses(trace)),
        ("counts", "Counts", counts(trace)),
    ]
    shown = [(name, title, body) for name, title, body in sections if body]
    return document(
        f"{readable(trace.kernel)}: memory report",
        f"<h1>{html.escape(readable(trace.kernel))}</h1>{circumstances(trace)}{facts(trace)}",
        shown,
    )


def comparison_page(compared: Comparison) -> str:
    """Two kernels, before and after, side by side as an HTML page."""
    both = compared.first, compared.second
    roles = ("before", "after") if both[0].origin == both[1].origin else tuple(trace.origin for trace in both)
    names = [f"{readable(trace.kernel)} ({role})" for trace, role in zip(both, roles, strict=True)]
    heads = [f"<h3>{html.escape(name)}</h3>" for name in names]

    def side_by_side(parts: Sequence[str]) -> str:
        if not any(parts):
            return ""
        columns = zip(heads, parts, strict=True)
        return f'<div class="two">{"".join(f"<div>{head}{part}</div>" for head, part in columns)}</div>'

    totals = changes(compared, names)
    sections = [
        ("totals", "What changed", totals),
        ("problems", "Hazards", side_by_side([problems(trace, f"{i + 1}-") for i, trace in enumerate(both)])),
        (
            "source",
            "Source",
            side_by_side([source(trace, advice_of(trace), f"{i + 1}-") for i, trace in enumerate(both)]),
        ),
        ("accesses", "Accesses", side_by_side([accesses(trace, f"{i + 1}-") for i, trace in enumerate(both)])),
    ]
    title = " and ".join(dict.fromkeys(readable(trace.kernel) for trace in both))
    summaries = "".join(
        f"<div><p><strong>{html.escape(name)}</strong></p>{circumstances(trace)}{facts(trace)}</div>"
        for name, trace in zip(names, both, strict=True)
    )
    return document(
        f"{title}: compared",
        f'<h1>{html.escape(title)}</h1><div class="two">{summaries}</div>',
        [(name, title, body) for name, title, body in sections if body],
    )


def changes(compared: Comparison, names: Sequence[str]) -> str:
    """The totals of both, in words, with their differences."""
    words = {metric.name: metric.what for metric in METRICS}
    ours, theirs = compared.first.counters, compared.second.counters
    heads = ("count", *names, "difference")
    rows = []
    for name in dict.fromkeys([*ours, *theirs]):
        before, after = ours.get(name), theirs.get(name)
        if not (before or after):
            continue
        broken = html.escape(name).replace("_", "_<wbr>")
        what = f"{html.escape(words.get(name, name))}<br><small>{broken}</small>" if name in words else broken
        cells = [f"{value:,}" if value is not None else "not counted" for value in (before, after)]
        numbers = "".join(
            f'<td style="text-align:right">{cell}</td>'
            for cell in (*cells, difference(before, after).replace("-", "−"))
        )
        strong = ' style="font-weight:bold"' if name in compared.changed else ""
        rows.append(
            f'<tr{strong}><th scope="row" style="text-align:left;font-weight:inherit">{what}</th>{numbers}</tr>'
        )
    sides = ["left", *["right"] * 3]
    head = "".join(
        f'<th scope="col" style="text-align:{side}">{html.escape(each)}</th>'
        for each, side in zip(heads, sides, strict=True)
    )
    return (
        '<div class="gm-scroll changes" tabindex="0" role="region" aria-label="What changed"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def document(title: str, head: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """A page with a way to each of its sections."""
    links = "".join(f'<li><a href="#{name}">{html.escape(heading)}</a></li>' for name, heading, _ in sections)
    body = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}" tabindex="-1">{html.escape(heading)}</h2>{text}</section>'
        for name, heading, text in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{PAGE}{listing.STYLE}{STYLE}</style></head>"
        '<body><a class="skip" href="#main">To the report</a>'
        '<svg width="0" height="0" style="position:absolute" aria-hidden="true" focusable="false">'
        f"<defs>{HATCH}</defs></svg>"
        f'<header>{head}</header><nav aria-label="Contents"><ul>{links}</ul></nav>'
        f'<main id="main" tabindex="-1">{body}</main></body></html>\n'
    )


def circumstances(trace: Trace) -> str:
    """The launch, and what must be known to read its numbers."""
    shape = [" × ".join(f"{n:,}" for n in lengths) for lengths in (trace.grid, trace.block)]
    place = "executed by the lens" if trace.origin == "lens" else "counted by Nsight Compute"
    said = f"{shape[0]} blocks of {shape[1]} threads, {place}, {trace.arch}"
    if trace.shared:
        said += f", {trace.shared:,} bytes of dynamic shared memory"
    if trace.blocks != trace.blocks_total:
        said += f"; {trace.blocks:,} of {trace.blocks_total:,} blocks were executed, and are counted here"
    return f'<p class="soft">{html.escape(said)}.</p>'


def facts(trace: Trace) -> str:
    """The sums that matter first."""
    sums = {
        name: sum(getattr(site, name) for site in trace.sites)
        for name in ("requests", "sectors", "sectors_ideal", "shared", "wavefronts", "wavefronts_ideal", "conflicts")
    }
    rows: list[tuple[str, str, str]] = []
    if sums["requests"]:
        rows.append(("sectors of 32 bytes", f"{sums['sectors']:,}", excess(sums["sectors"], sums["sectors_ideal"])))
        rows.append(("sectors a request", per(sums["sectors"], sums["requests"]), f"{sums['requests']:,} requests"))
    if sums["shared"]:
        rows.append(("wavefronts", f"{sums['wavefronts']:,}", excess(sums["wavefronts"], sums["wavefronts_ideal"])))
        rows.append(("bank conflicts", f"{sums['conflicts']:,}", f"{sums['shared']:,} shared-memory accesses"))
    if trace.instructions:
        rows.append(("warp instructions", f"{trace.instructions:,}", ""))
    rows.append(("hazards", str(len(trace.findings)), "" if trace.findings else "none found"))
    made = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{value}<small>{html.escape(more)}</small></dd></div>"
        for name, value, more in rows
    )
    return f'<dl class="facts">{made}</dl>'


def excess(count: int, ideal: int) -> str:
    """What a count is against its ideal.

    >>> excess(32, 4), excess(4, 4)
    ('8 times the ideal 4', 'the ideal')
    """
    return "the ideal" if count <= ideal else f"{count / ideal:.3g} times the ideal {ideal:,}" if ideal else ""


def problems(trace: Trace, prefix: str = "") -> str:
    """What would go wrong on a GPU."""
    said = [finding_note(trace, found, prefix) for found in trace.findings]
    if trace.ended:
        said.insert(0, f'<div class="note error">The run did not come to its end: {html.escape(trace.why)}.</div>')
    return "".join(said)


def link(trace: Trace, about: Finding | Advice, prefix: str | None) -> str:
    """The way to the line that something is about; nothing for a box that stands there (prefix None)."""
    name, line = finding_place(trace, about)
    if prefix is None or not line:
        return ""
    return f'<a href="#{prefix}{listing.anchor(name, line)}">{html.escape(about.place)}</a>: '


def finding_note(trace: Trace, found: Finding, prefix: str | None) -> str:
    """A hazard in a box."""
    access = f" <code>{html.escape(found.opcode)}</code>" if found.opcode else ""
    return (
        f'<div class="note error"><span class="bad">{html.escape(found.kind)}</span>{access}: '
        f"{link(trace, found, prefix)}{html.escape(found.text)}; {html.escape(found.example)}</div>"
    )


def finding_place(trace: Trace, found: Finding | Advice) -> tuple[str, int]:
    """The text and the line that a hazard, or an advice, belongs to."""
    from pathlib import PurePath

    name = PurePath(found.file).name if found.file else ""
    return (name, found.line) if name in trace.source and found.line else (listing.PTX, found.ptx_line)


def advice_of(trace: Trace) -> list[Advice]:
    """What to change, but for hazards: these have a section of their own."""
    return [item for item in trace.advice if item.rule != "hazards"]


def advice_note(trace: Trace, item: Advice, prefix: str | None) -> str:
    """An advice in a box; folded where it stands at its line."""
    where = link(trace, item, prefix)
    look = "good" if item.level == "none" else "bad" if item.level in ("error", "warning") else "soft"
    head = f'<span class="{look}">{html.escape(item.title)}.</span> {where}{html.escape(item.text)}.'
    said = []
    if item.remedy:
        said.append(f"<p>{html.escape(item.remedy)}</p>")
    if item.code:
        lines = html.escape("\n".join(item.code))
        said.append(f'<pre tabindex="0" role="region" aria-label="Code for {html.escape(item.where)}">{lines}</pre>')
    if item.after:
        was = ", ".join(f"{item.now[count]:,} → {value:,} {count}" for count, value in item.after.items())
        said.append(f'<p class="soft">Predicted: {html.escape(was)} ({html.escape(item.sure)}).</p>')
    if prefix is None and said:
        return f'<details class="note {item.level}"><summary>{head}</summary>{"".join(said)}</details>'
    return f'<div class="note {item.level}"><p>{head}</p>{"".join(said)}</div>'


def source(trace: Trace, items: Sequence[Advice], prefix: str = "") -> str:
    """The source, with hazards and advice below the lines that they are about."""
    notes: dict[tuple[str, int], list[str]] = {}
    for found in trace.findings:
        notes.setdefault(finding_place(trace, found), []).append(finding_note(trace, found, None))
    for item in items:
        if item.level != "none":
            notes.setdefault(finding_place(trace, item), []).append(advice_note(trace, item, None))

    def beside(name: str, line: int) -> str:
        return "".join(notes.get((name, line), ()))

    return listing.listing(trace, beside, prefix)


def accesses(trace: Trace, prefix: str = "") -> str:
    """Each memory instruction with pictures of its worst and its median execution."""
    found = [(site, count) for site, count in together(trace.sites) if site.executions]
    many = len(found) > OPEN
    made = "".join(
        access(trace, site, count, prefix, f"{prefix}access-{i}", is_open=not many or wasteful(site))
        for i, (site, count) in enumerate(found)
    )
    return f'<div class="sites">{made}</div>' if made else ""


def wasteful(site: Site) -> bool:
    """Whether an instruction costs more than it must."""
    return site.sectors > site.sectors_ideal or site.wavefronts > site.wavefronts_ideal


def access(trace: Trace, site: Site, count: int, prefix: str, name: str, *, is_open: bool) -> str:
    """One instruction: its counts in words, and its pictures."""
    here = prefix + listing.anchor(*listing.place(trace, site))
    title = f"{html.escape(site.place)} <code>{html.escape(site.opcode)}</code>"
    costs = ", ".join(part for part in listing.costs([site]) if part)
    look = ' <span class="bad">costs more than it must</span>' if wasteful(site) else ""
    said = [f"{plural(site.executions, 'execution')}, {per(site.lanes, site.executions)} lanes each"]
    if count > 1:
        said.append(f"{count} instructions of this line together")
    if site.requests:
        said.append(f"{site.sectors:,} sectors in {plural(site.requests, 'request')}, ideal {site.sectors_ideal:,}")
    if site.shared:
        ideal = f"ideal {site.wavefronts_ideal:,}, {plural(site.conflicts, 'conflict')}"
        said.append(f"{plural(site.wavefronts, 'wavefront')}, {ideal}")
    pictures = "".join(
        f"<div>{svg([drawing], f'{name}-{i}', alone=False)}</div>" for i, drawing in enumerate(drawings_of(site))
    )
    body = f'<div class="pics">{pictures}</div>' if pictures else '<p class="soft">No picture was recorded.</p>'
    return (
        f'<details class="site" id="{name}"{" open" if is_open else ""}><summary><h3>{title}</h3> '
        f'<span class="soft">{html.escape(costs)}</span>{look}</summary>'
        f'<p class="soft">{html.escape("; ".join(said))}. <a href="#{here}">To the line</a></p>'
        f"{spectrum(site)}{body}</details>"
    )


def times(count: int) -> str:
    """How often, in words.

    >>> times(1), times(1024)
    ('once', '1,024 times')
    """
    return "once" if count == 1 else f"{count:,} times"


def spectrum(site: Site) -> str:
    """How many executions cost how much, where that differs."""
    made = []
    for space in site.spaces():
        rows = [pattern for pattern in site.patterns if pattern.space == space]
        if len(rows) > 1:
            noun = "wavefront" if space == "shared" else "sector"
            costs = ", ".join(f"{plural(pattern.cost, noun)} {times(pattern.times)}" for pattern in rows)
            made.append(f'<p class="soft">{costs}.</p>')
    return "".join(made)


def counts(trace: Trace) -> str:
    """All counts as tables."""
    return "".join(wide(table) for table in trace.count_tables())


def wide(table: Table) -> str:
    """A table that scrolls by itself where it is wider than the page."""
    label = html.escape(table.title or "Totals")
    return f'<div class="gm-scroll" tabindex="0" role="region" aria-label="{label}">{table.html()}</div>'
