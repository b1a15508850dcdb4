"""The README's pictures as SVG: plain text, the same from the same data, readable on light and dark pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import gpumem

WIDTH = 880
STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1f2328; } .small { font-size: 12px; fill: #59636e; }
.inside { font-size: 12px; fill: #ffffff !important; }
.name { font-family: ui-monospace, monospace; } .ours { fill: #0072b2; }
.other { fill: #e69f00; } .thin { fill: #56b4e9; }
.rule { stroke: #8c959f; stroke-dasharray: 4 3; } .used { fill: #0072b2; } .unused { fill: url(#hatch); stroke: none; }
.sector { fill: none; stroke: #59636e; } .hatch { stroke: #b8bfc7; }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc; } .small { fill: #9198a1; } .ours, .used { fill: #4aa8e0; }
.thin { fill: #2f6c93; } .sector { stroke: #9198a1; } .hatch { stroke: #57606a; } }"""


def svg(height: int, title: str, parts: Sequence[str]) -> str:
    """The document."""
    hatch = (
        '<defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<line class="hatch" x1="0" y1="0" x2="0" y2="4"/></pattern></defs>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            hatch,
            *parts,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Words at a place."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A bar or a cell."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{kind}"/>'


WHY = {
    "torch": "PyTorch's t().contiguous()",
    "naive": "a warp's store touches 32 sectors to deliver 128 bytes",
    "tiled": "both sides coalesced; a column of the tile: one bank, 32 times",
    "padded": "an item more a row: the column lies on 32 banks",
    "swizzled": "an XOR instead: the same, and no memory spent",
    "bulk": "the copy engine brings the tile",
    "vectorised": "16 bytes an access, all loads in flight before a store",
    "tuned": "any shape, alignment and tail",
}


def ladder(recorded: Path) -> str:
    """The transpose ladder of the H200: a bar a stage for float32, a thin one for uint8."""
    both = [
        json.loads((recorded / "h200" / f"ladder-transpose-{dtype}.json").read_text()) for dtype in ("float32", "uint8")
    ]
    rungs = [{rung["name"]: rung["of_copy"]["median"] for rung in each["rungs"]} for each in both]
    left, full, top, step = 96, 330, 46, 34
    device = both[0]["environment"]["device"]
    parts = [
        text(0, 16, f"Transposing a 16384 x 16384 matrix on an {device}, as a fraction of a copy of the same bytes"),
        *(rect(left, 24, 18, 10, "ours"), text(left + 24, 33, "float32", "small")),
        *(rect(left + 84, 26, 18, 6, "thin"), text(left + 108, 33, "uint8, 32768 x 32768", "small")),
    ]
    for i, (name, why) in enumerate(WHY.items()):
        y = top + i * step
        wide, narrow = rungs[0][name], rungs[1][name]
        parts += [
            text(left - 8, y + 15, name, "name", "end"),
            rect(left, y, full * wide, 14, "other" if name == "torch" else "ours"),
            rect(left, y + 15, full * narrow, 7, "thin"),
            text(left + full * wide - 5, y + 12, f"{wide:.2f}", "inside", "end")
            if wide > 0.8
            else text(left + full * max(wide, narrow) + 6, y + 12, f"{wide:.2f}", "small"),
            text(left + full + 44, y + 15, why, "small"),
        ]
    end = top + len(WHY) * step
    parts += [
        f'<line class="rule" x1="{left + full}" y1="{top - 6}" x2="{left + full}" y2="{end - 6}"/>',
        text(left + full, end + 8, "1.00: a copy, 4.25 TB/s", "small", "middle"),
    ]
    return svg(end + 16, "The transpose ladder on an H200", parts)


READS = (
    ("coalesced", {}, "neighbours"),
    ("offset", {"offset": 1}, "one float off"),
    ("strided", {"stride": 2}, "stride 2"),
    ("strided", {"stride": 4}, "stride 4"),
    ("strided", {"stride": 8}, "stride 8"),
    ("strided", {"stride": 32}, "stride 32"),
)


def access(recorded: Path) -> str:
    """What a warp's load of 32 floats fetches: its sectors, counted by the lens, and what of them is wanted."""
    left, pitch, cell, top, step = 96, 18.4, 2, 34, 40
    parts = [
        text(
            0, 16, "What a warp fetches to read 32 floats: each box is a sector of 32 bytes, and hatched is thrown away"
        )
    ]
    for i, (stage, options, words) in enumerate(READS):
        stride, offset = options.get("stride", 1), options.get("offset", 0)
        addresses = [4 * (offset + lane * stride) for lane in range(32)]
        touched = sorted({address // 32 for address in addresses})
        trace = gpumem.trace_stage("read", stage, (1 << 15,), **options)
        (load,) = [site for site in trace.sites if site.kind == "load" and site.requests]
        if round(load.sectors / load.requests) != len(touched):
            raise SystemExit(f"read/{stage}: {load.sectors / load.requests} sectors, drawn {len(touched)}")
        y = top + i * step
        parts.append(text(left - 8, y + 14, words, "", "end"))
        for j, sector in enumerate(touched):
            x = left + j * pitch
            parts.append(rect(x, y, 8 * cell, 20, "unused"))
            parts += [rect(x + (a % 32) / 4 * cell, y, cell, 20, "used") for a in addresses if a // 32 == sector]
            parts.append(rect(x, y, 8 * cell, 20, "sector"))
        note = f"{len(touched)} sectors, {400 / len(touched):.3g} % used"
        parts.append(text(left + len(touched) * pitch + 8, y + 14, note, "small"))
    return svg(top + len(READS) * step, "Sectors of a warp's load by stride", parts)


TILES = {
    "tiled": "tiled: a column of the tile lies on one bank",
    "padded": "padded: one item more a row",
    "swizzled": "swizzled: column ^ row, no memory spent",
}


def banks(recorded: Path) -> str:
    """A warp's load of a column of the tile, by stage: its wavefronts, as the lens's report draws them."""
    from gpumem.pictures import drawings_of, svg

    drawings = []
    for stage, title in TILES.items():
        trace = gpumem.trace_stage("transpose", stage, (128, 128))
        load = next(site for site in trace.sites if site.kind == "load" and site.shared)
        drawings += [drawing._replace(title=title) for drawing in drawings_of(load, "worst")]
    return svg(drawings) + "\n"


PICTURES: dict[str, Callable[[Path], str]] = {"ladder": ladder, "access": access, "banks": banks}
