"""Pictures of one warp's access to memory, as SVG.

Global memory: a row for each 32-byte sector that the access costs, a column for each of its bytes; bytes that nobody
asked for are hatched. Shared memory: a row for each wavefront, a column for each of the 32 banks; banks that idle are
hatched. Cells name their lanes. So a picture has as many rows as the access costs, and less hatching is better.

The same drawing stands in the report, in notebooks and in files. It is text of this module's own: no library draws it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import _core
from .errors import UsageError
from .pattern import LANES, Pattern

if TYPE_CHECKING:
    from .trace import Site, Trace

SECTOR, LINE, BANKS, WORD = 32, 128, 32, 4
COLUMNS = 32  # the bytes of a sector; the banks of shared memory
CELL, ROW, GAP, LEFT, RIGHT = 11, 13, 3, 46, 4
WIDTH = LEFT + COLUMNS * CELL + RIGHT
HEAD, AXIS, FOOT = 30, 12, 24  # above the rows: two lines and the columns' names; below: the legend
CAPTION = 20
LETTER = 4.1  # the width of a digit in a cell
MOST_ROWS = 64  # drawn; a picture of more says how many are missing
QUARTER = LANES // 4


class Cell(NamedTuple):
    """What some lanes have in one row: columns from `column` on."""

    row: int
    column: int
    span: int
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """A picture without its looks: a label a row, the rows that begin a new group, and the cells."""

    labels: tuple[str, ...]
    breaks: frozenset[int]
    cells: tuple[Cell, ...]

    def free(self, row: int) -> list[tuple[int, int]]:
        """Columns of a row that no lane has, as first and number: bytes moved for nothing, or banks that idle."""
        taken = {cell.column + i for cell in self.cells if cell.row == row for i in range(cell.span)}
        runs: list[tuple[int, int]] = []
        for column in range(COLUMNS):
            if column in taken:
                continue
            if runs and sum(runs[-1]) == column:
                runs[-1] = runs[-1][0], runs[-1][1] + 1
            else:
                runs.append((column, 1))
        return runs

    @property
    def idle(self) -> int:
        """How many columns are free, in all rows."""
        return sum(count for row in range(len(self.labels)) for _, count in self.free(row))


def grid_of(pattern: Pattern) -> Grid:
    """Where each lane stands in the picture. There are as many rows as the access costs.

    >>> every_other = Pattern(8, 1, (0, 0, 0), 0, "x", tuple(range(0, 256, 8)), "global", 4, "global load")
    >>> grid = grid_of(every_other)
    >>> len(grid.labels), grid.cells[1], grid.idle
    (8, Cell(row=0, column=8, span=4, lanes=(1,)), 128)
    """
    if pattern.space == "shared":
        return wavefronts(pattern)
    return copied(pattern) if pattern.targets else sectors(pattern)


def sectors(pattern: Pattern) -> Grid:
    """The sectors of global or local memory, lowest first. Atomics on one address take one pass a lane."""
    serial = pattern.rule in ("global atom", "global cas")
    labels: list[str] = []
    breaks: set[int] = set()
    cells: list[Cell] = []
    before = None
    for piece, (touched, names) in enumerate(_pieces(pattern)):
        for sector in sorted({at // SECTOR for at, _, _ in touched}):
            here: dict[int, list[int]] = {}
            for at, _, lane in touched:
                if at // SECTOR == sector:
                    here.setdefault(at % SECTOR, []).append(lane)
            span = min(touched[0][1], SECTOR)
            for turn in range(max(map(len, here.values())) if serial else 1):
                if before is not None and before != (piece, sector - 1) and turn == 0:
                    breaks.add(len(labels))
                for column, lanes in sorted(here.items()):
                    served = lanes[turn : turn + 1] if serial else lanes
                    if served:
                        cells.append(Cell(len(labels), column, span, tuple(served)))
                labels.append(names.get(sector, f"{sector * SECTOR:,}") if turn == 0 else "again")
            before = piece, sector
    return Grid(tuple(labels), frozenset(breaks), tuple(cells))


def copied(pattern: Pattern) -> Grid:
    """cp.async.cg, which goes past the first-level cache: a row each time a line meets 32 bytes of shared memory.

    Columns are these 32 bytes; where several lanes copy to one place, only the last one's bytes are fetched.
    """
    places = {
        target: (address, lane)
        for lane, (address, target) in enumerate(zip(pattern.addresses, pattern.targets, strict=True))
        if address is not None and target is not None
    }
    rows: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for target, (address, lane) in places.items():
        rows.setdefault((address // LINE, target // SECTOR), []).append((address, target % SECTOR, lane))
    met = sorted(rows.values(), key=min)
    first = [min(address for address, _, _ in lanes) // SECTOR for lanes in met]
    return Grid(
        tuple(f"{sector * SECTOR:,}" for sector in first),
        frozenset(row for row in range(1, len(met)) if first[row] != first[row - 1] + 1),
        tuple(
            Cell(row, column, pattern.width, (lane,))
            for row, lanes in enumerate(met)
            for column, lane in sorted((column, lane) for _, column, lane in lanes)
        ),
    )


Touched = list[tuple[int, int, int]]  # address, bytes, lane


def _pieces(pattern: Pattern) -> Iterable[tuple[Touched, dict[int, str]]]:
    """What is fetched at once: all of it, but local memory a word at a time, each lane's beside its neighbour's."""
    places = [(lane, at) for lane, at in enumerate(pattern.addresses) if at is not None]
    if pattern.space != "local":
        yield [(at, pattern.width, lane) for lane, at in places], {}
        return
    for word in range(0, pattern.width, WORD):
        touched, names = [], {}
        for lane, start in places:
            at = start + word
            lies = at // WORD * LINE + lane * WORD + at % WORD
            touched.append((lies, min(pattern.width, WORD), lane))
            names[lies // SECTOR] = f"{at // WORD * WORD:+,}"
        yield touched, names


def served(pattern: Pattern) -> tuple[int, bytes]:
    """How many wavefronts an access to shared memory takes, and each lane's: by the counter's own rule."""
    at = np.array([address or 0 for address in pattern.addresses], np.uint64).astype(np.uint32)
    active = sum(1 << lane for lane in pattern.lanes)
    return _core._wavefronts(pattern.rule, at.tobytes(), active, min(pattern.width, 16))


def wavefronts(pattern: Pattern) -> Grid:
    """The wavefronts of an access to shared memory, and which banks each of them uses for which lanes."""
    count, turns = served(pattern)
    width = 16 if pattern.rule.startswith("matrix") else pattern.width
    span = max(1, min(width, 16) // WORD)
    found: dict[tuple[int, int], list[int]] = {}
    for lane in pattern.lanes:
        address = pattern.addresses[lane] or 0
        unit = address // WORD // span * span
        found.setdefault((turns[lane], unit), []).append(lane)
    times = 2 if pattern.rule == "shared cas" else 1  # compare, then store
    cells = [
        Cell(row + again, unit % BANKS, span, tuple(lanes))
        for (row, unit), lanes in sorted(found.items())
        for again in range(times)
    ]
    labels = tuple(f"{row + 1}" for row in range(count))
    return Grid(labels, frozenset(_group_breaks(cells, LANES // span)), tuple(sorted(cells)))


def _group_breaks(cells: Iterable[Cell], size: int) -> Iterable[int]:
    """Rows in which the next group of lanes begins: half-warps of 8-byte accesses, quarter-warps of 16-byte ones."""
    first: dict[int, int] = {}
    for cell in cells:
        first[cell.row] = min(first.get(cell.row, LANES), cell.lanes[0] // size)
    return (row for row, group in first.items() if row and group != first.get(row - 1, group))


# --- words --------------------------------------------------------------------------------------------------------


def lane_words(lanes: Sequence[int]) -> str:
    """Lanes in few letters.

    >>> lane_words((0, 1, 2, 3)), lane_words((0, 16)), lane_words((0, 2, 4, 6, 31))
    ('0–3', '0,16', '0,2,4,6,31')
    """
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and lane == runs[-1][-1] + 1:
            runs[-1].append(lane)
        else:
            runs.append([lane])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}{',' if len(run) == 2 else '–'}{run[-1]}" for run in runs]
    return ",".join(words)


def in_cell(lanes: Sequence[int], span: int) -> str:
    """What a cell says: its lanes, or how many they are."""
    room = int((span * CELL - 1) / LETTER)
    words = lane_words(lanes)
    return words if len(words) <= room else f"×{len(lanes)}" if len(f"×{len(lanes)}") <= room else "+"


def plural(count: int, word: str) -> str:
    """A count with its noun.

    >>> plural(1, "sector"), plural(1024, "sector")
    ('1 sector', '1,024 sectors')
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def ideal(pattern: Pattern) -> int:
    """What the access would cost, had its lanes' items lain side by side: by the counter's own rule."""
    if pattern.space == "local":
        words = max(1, pattern.width // WORD)
        return words * -(-len(pattern.lanes) * min(pattern.width, WORD) // SECTOR)
    addresses = np.array([[address or 0 for address in pattern.addresses]], np.uint64)
    shared = np.array([[at or 0 for at in pattern.targets or pattern.addresses]], np.uint64).astype(np.uint32)
    active = np.array([sum(1 << lane for lane in pattern.lanes)], np.uint32)
    counts = np.frombuffer(_core._count(pattern.rule, addresses, shared, active, pattern.width), np.uint32)
    return int(counts[2])


def headline(pattern: Pattern) -> str:
    """What the access costs, against what it might.

    >>> headline(Pattern(8, 1, (0, 0, 0), 0, "x", tuple(range(0, 256, 8)), "global", 4, "global load"))
    '8 sectors, 4 would do'
    """
    noun = "wavefront" if pattern.space == "shared" else "sector"
    best = ideal(pattern)
    said = plural(pattern.cost, noun)
    return f"{said}, {best:,} would do" if best < pattern.cost else f"{said}, none too many"


def circumstances(pattern: Pattern, kind: str = "") -> str:
    """Where it was executed, and how many executions are like it."""
    where = f"block ({', '.join(map(str, pattern.block))}), warp {pattern.warp}"
    what = {"shared": "shared memory", "local": "local memory"}.get(pattern.space, pattern.buffer or "global memory")
    like = f"{pattern.times:,} executions cost so much" if pattern.times > 1 else "executed once"
    return f"{kind}: {what}, {where}; {like}" if kind else f"{what}, {where}; {like}"


def described(pattern: Pattern, grid: Grid) -> str:
    """The picture in words."""
    lanes = pattern.lanes
    steps = {b - a for a, b in zip(_reached(pattern), _reached(pattern)[1:], strict=False)}
    step = steps.pop() if len(steps) == 1 else None
    apart = "at scattered addresses" if step is None else f"{step} bytes apart"
    if step == pattern.width:
        apart = "side by side"
    elif step == 0:
        apart = "all at one address"
    if len(lanes) == 1:
        apart = "alone"
    who = f"Lanes {lane_words(lanes)}" if len(lanes) > 1 else f"Lane {lanes[0]}"
    said = f"{who}, {pattern.width} bytes each, {apart}: {headline(pattern)}."
    if pattern.space == "shared":
        fullest = max(
            range(BANKS),
            key=lambda bank: sum(cell.column <= bank < cell.column + cell.span for cell in grid.cells),
        )
        most = sum(cell.column <= fullest < cell.column + cell.span for cell in grid.cells)
        return f"{said} Bank {fullest} is used in {most} of {plural(len(grid.labels), 'wavefront')}."
    if "again" in grid.labels:
        return f"{said} Lanes on one address are served one after another."
    return f"{said} {grid.idle:,} of {len(grid.labels) * SECTOR:,} bytes are moved for nothing."


def _reached(pattern: Pattern) -> list[int]:
    return [address for address in pattern.addresses if address is not None]


# --- drawing ------------------------------------------------------------------------------------------------------

# Tints that people with any colour vision tell apart, dark letters on each; on light and on dark paper.
TINTS = ("#8fc6ec", "#f4dc82", "#86d0b3", "#f2b68c")
INK = "#14202b"
STYLE = (
    ".gm-pic{font:7px/1 system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-variant-numeric:tabular-nums}"
    ".gm-pic text{fill:currentColor}"
    ".gm-pic .h{font-size:11px;font-weight:600}"
    ".gm-pic .s{font-size:8px}"
    ".gm-pic .m{text-anchor:middle}.gm-pic .e{text-anchor:end}"
    f".gm-pic .c text{{fill:{INK};text-anchor:middle}}.gm-pic .n text{{font-size:6.3px}}"
    ".gm-pic .f{fill:none;stroke:currentColor;stroke-opacity:.5;stroke-width:.7}"
    ".gm-pic .t{fill:none;stroke:currentColor;stroke-opacity:.18;stroke-width:.6}"
    + "".join(f".gm-pic .q{i}{{fill:{tint}}}" for i, tint in enumerate(TINTS))
)
PAPER = (
    ".gm-pic{color:#1b2733;background:#fff}@media(prefers-color-scheme:dark){.gm-pic{color:#e4eaf0;background:#12171d}}"
)
HATCH = (
    '<pattern id="gm-hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0V4" stroke="currentColor" stroke-opacity=".4" stroke-width="1.1"/></pattern>'
)


class Drawing(NamedTuple):
    """A picture's inside, and what it is called."""

    height: int
    body: str
    title: str
    description: str


def draw(pattern: Pattern, title: str, kind: str = "") -> Drawing:
    """The picture of one execution. `title` says which instruction, `kind` which of its executions."""
    grid = grid_of(pattern)
    rows = min(len(grid.labels), MOST_ROWS)
    tops = [HEAD + AXIS]
    for row in range(1, rows + 1):
        tops.append(tops[-1] + ROW + (GAP if row in grid.breaks else 0))
    parts = [
        f'<text class="h" x="{LEFT}" y="11">{headline(pattern)}</text>',
        f'<text class="s" x="{LEFT}" y="23">{html.escape(circumstances(pattern, kind))}</text>',
        _axis(pattern.space),
        *(_row(grid.labels[row], grid.free(row), tops[row]) for row in range(rows)),
        *(_cell(cell, tops[cell.row]) for cell in grid.cells if cell.row < rows),
    ]
    bottom = tops[rows - 1] + ROW
    if rows < len(grid.labels):
        bottom += ROW
        parts.append(f'<text class="s" x="{LEFT}" y="{bottom - 3}">and {len(grid.labels) - rows:,} more rows</text>')
    parts.append(_legend(pattern, bottom + 8))
    data = f'data-rows="{len(grid.labels)}" data-cost="{pattern.cost}" data-times="{pattern.times}"'
    body = f"<g {data}>{''.join(parts)}</g>"
    return Drawing(bottom + FOOT, body, title, described(pattern, grid))


def _axis(space: str) -> str:
    names = "bank" if space == "shared" else "byte"
    marks = [f'<text class="e" x="{LEFT - 5}" y="{HEAD + AXIS - 4}">{names}</text>']
    step = 1 if space == "shared" else WORD
    for column in range(0, COLUMNS, step):
        x = LEFT + column * CELL + (CELL / 2 if step == 1 else 0)
        kind = ' class="m"' if step == 1 else ""
        marks.append(f'<text{kind} x="{x:g}" y="{HEAD + AXIS - 4}">{column}</text>')
    return "".join(marks)


def _row(label: str, free: Sequence[tuple[int, int]], top: int) -> str:
    hatched = "".join(f"M{LEFT + first * CELL} {top}h{count * CELL}v{ROW}h-{count * CELL}z" for first, count in free)
    ticks = "".join(f"M{LEFT + column * CELL} {top}v{ROW}" for column in range(WORD, COLUMNS, WORD))
    return (
        f'<text class="e" x="{LEFT - 5}" y="{top + 9}">{label}</text>'
        f'<path d="{hatched}" fill="url(#gm-hatch)"/><path class="t" d="{ticks}"/>'
        f'<rect class="f" x="{LEFT}" y="{top}" width="{COLUMNS * CELL}" height="{ROW}"/>'
    )


def _cell(cell: Cell, top: int) -> str:
    x, width = LEFT + cell.column * CELL, cell.span * CELL
    look, noun = "c" if cell.span > 1 else "c n", "lane" if len(cell.lanes) == 1 else "lanes"
    return (
        f'<g class="{look}"><title>{noun} {lane_words(cell.lanes)}</title>'
        f'<rect class="q{cell.lanes[0] // QUARTER}" x="{x + 0.75}" y="{top + 0.75}" width="{width - 1.5}" '
        f'height="{ROW - 1.5}" rx="1.5"/>'
        f'<text x="{x + width / 2:g}" y="{top + 9}">{in_cell(cell.lanes, cell.span)}</text></g>'
    )


def _legend(pattern: Pattern, top: int) -> str:
    noun = "row" if pattern.rule.startswith("matrix") else "lane"
    made, x = [], LEFT
    for quarter in range(4):
        words = f"{noun}s {quarter * QUARTER}–{quarter * QUARTER + QUARTER - 1}"
        made.append(f'<rect class="q{quarter}" x="{x}" y="{top}" width="8" height="8" rx="1.5"/>')
        made.append(f'<text x="{x + 11}" y="{top + 7}">{words}</text>')
        x += 20 + round(len(words) * 3.9)
    what = "bank that idles" if pattern.space == "shared" else "byte nobody asked for"
    made.append(f'<rect x="{x}" y="{top}" width="8" height="8" fill="url(#gm-hatch)"/>')
    made.append(f'<text x="{x + 11}" y="{top + 7}">{what}</text>')
    return "".join(made)


def svg(drawings: Sequence[Drawing], name: str = "gm", *, alone: bool = True) -> str:
    """Drawings, one below the other, as one SVG element.

    name: what ids begin with, different for each picture of a page. alone: for a file of its own, with style, paper and
    namespace; else the page has STYLE and the pattern HATCH, and letters take its colour.
    """
    height, parts, before = 0, [], ""
    for drawing in drawings:
        if alone and drawing.title != before:  # a page says so itself
            height += CAPTION
            parts.append(f'<text class="h" x="{RIGHT}" y="{height - 6}">{html.escape(drawing.title)}</text>')
        parts.append(f'<g transform="translate(0 {height})">{drawing.body}</g>')
        height, before = height + drawing.height, drawing.title
    title = html.escape("; ".join(dict.fromkeys(drawing.title for drawing in drawings)))
    description = html.escape(" ".join(drawing.description for drawing in drawings))
    head = (
        f'class="gm-pic" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{title}</title><desc id="{name}-d">{description}</desc>'
    )
    if not alone:
        return f"<svg {head}{''.join(parts)}</svg>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{2 * height}" {head}'
        f"<style>{PAPER}{STYLE}</style><defs>{HATCH}</defs>{''.join(parts)}</svg>"
    )


class Picture:
    """Drawings that a notebook shows, and that can be saved as SVG.

    >>> copy = gpumem.Kernel(gpumem.examples.COPY)
    >>> x, out = np.arange(1024, dtype="f4"), np.zeros(1024, "f4")
    >>> picture = copy.trace(8, 128, out, x, 1024).plot()
    >>> picture.drawings[0].title
    'ptx:24: ld.global.f32'
    """

    def __init__(self, drawings: Sequence[Drawing]) -> None:
        self.drawings = tuple(drawings)

    def _repr_svg_(self) -> str:
        return svg(self.drawings)

    def _repr_html_(self) -> str:
        return f'<div style="max-width:46em">{svg(self.drawings)}</div>'

    def __repr__(self) -> str:
        return "\n".join(f"{drawing.title}: {drawing.description}" for drawing in self.drawings)

    def save(self, path: str | Path) -> None:
        """Writes an SVG file."""
        if Path(path).suffix.lower() != ".svg":
            raise UsageError(f"cannot write {path}: pictures of access patterns are SVG, so its name must end in .svg")
        Path(path).write_text(self._repr_svg_() + "\n", encoding="utf-8")


def drawings_of(site: Site, which: str = "both") -> list[Drawing]:
    """The worst and the median execution of a site, of each space that it went to; one where these cost the same."""
    if which not in ("both", "worst", "median"):
        raise UsageError(f"no execution {which!r}: there are 'worst', 'median' and 'both'")
    title, made = f"{site.place}: {site.opcode}", []
    for space in site.spaces():
        worst, median = site.worst(space), site.median(space)
        if worst is None or median is None:
            continue
        if worst == median:
            made.append(draw(worst, title, "every one" if site_count(site, space) == 1 else "worst and median"))
            continue
        if which in ("both", "worst"):
            made.append(draw(worst, title, "worst"))
        if which in ("both", "median"):
            made.append(draw(median, title, "median"))
    return made


def everything(trace: Trace) -> Picture:
    """All memory instructions of a trace, those of one line and opcode together. Raises UsageError without patterns."""
    from .trace import together

    drawings = [drawing for site, _ in together(trace.sites) for drawing in drawings_of(site)]
    if not drawings:
        raise UsageError(f"{trace.kernel}: no access patterns were recorded: they are of the lens alone")
    return Picture(drawings)


def site_count(site: Site, space: str) -> int:
    """How many different costs a site has in one space."""
    return sum(pattern.space == space for pattern in site.patterns)


def plot(trace: Trace, line: int | str | None = None, which: str = "worst") -> Picture:
    """The pictures of a line's instructions; of the one that costs most, where no line is given. See `Trace.plot`."""
    from .trace import together

    sites = [site for site, _ in together(trace.sites) if site.patterns]
    if not sites:
        raise UsageError(f"{trace.kernel}: no access patterns were recorded: they are of the lens alone")
    if line is None:
        return Picture(drawings_of(max(sites, key=trace.share), which))
    found = [site for site in sites if line in (site.where, site.line or site.ptx_line)]
    if not found:
        there = ", ".join(dict.fromkeys(site.where for site in sites))
        raise UsageError(f"nothing to draw at line {line}: there are accesses at {there}")
    return Picture([drawing for site in found for drawing in drawings_of(site, which)])
