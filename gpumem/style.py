"""How all figures look: one colour and one marker a stage wherever it is drawn, bytes on a log-2 axis, captions.

The colours are those of Okabe and Ito and of Paul Tol, which people with any kind of colour blindness can tell apart; a
marker goes with each, for print in grey. Names that never meet in one figure may share both. Nothing here changes
matplotlib's settings for others.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from .amounts import format_bytes
from .errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, SKY, GREEN, ORANGE, RED, PURPLE = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"
INDIGO, OLIVE, WINE, TEAL = "#332288", "#999933", "#882255", "#44AA99"
INK, FAINT, LINE, PEAK, COPY = "#222222", "#666666", "#dddddd", "#444444", "#888888"
SHADES = ("#dfe6ee", "#eaeff4", "#f4f6f9")  # of the caches, from the smallest


@dataclass(frozen=True)
class Look:
    """How a name is drawn."""

    colour: str
    marker: str
    dashes: str = "-"
    width: float = 1.4


# Slow to fast, so that the colour of a rung tells its height: warm, then green, then blue.
LOOKS: dict[str, Look] = {
    **dict.fromkeys(("naive", "interleaved", "columns", "scalar"), Look(RED, "s")),
    **dict.fromkeys(("tiled", "blocked", "strided", "unrolled", "vector2", "aos_field"), Look(ORANGE, "^")),
    **dict.fromkeys(("padded", "sequential", "vector4", "offset", "soa_field"), Look(OLIVE, "D")),
    **dict.fromkeys(("swizzled", "first_add", "peeled", "gather", "streaming", "soa_fields"), Look(GREEN, "v")),
    **dict.fromkeys(("bulk", "shuffle", "broadcast", "aos_fields"), Look(PURPLE, "P")),
    **dict.fromkeys(("vectorised", "in_flight", "simd", "access4", "soa_staged"), Look(SKY, "X")),
    **dict.fromkeys(("tuned", "coalesced", "rows"), Look(BLUE, "o", width=2.0)),
    **dict.fromkeys(("access8", "aos_staged"), Look(TEAL, "<")),
    **dict.fromkeys(("access16", "soa_vector"), Look(INDIGO, ">")),
    "aos_vector": Look(BLUE, "o"),
    **dict.fromkeys(("load_default", "store_default"), Look(RED, "s")),
    "load_ldg": Look(ORANGE, "^"),
    "load_ca": Look(OLIVE, "D"),
    "no_allocate": Look(SKY, "X"),
    **dict.fromkeys(("load_cg", "store_cg"), Look(GREEN, "v")),
    **dict.fromkeys(("load_cs", "store_cs"), Look(PURPLE, "P")),
    **dict.fromkeys(("load_cv", "store_wt"), Look(BLUE, "o")),
    "gpumem": Look(BLUE, "o", width=2.0),
    "numpy": Look(WINE, "d", ":"),
    "torch": Look(WINE, "d", ":"),
    "cupy": Look(INDIGO, "*", ":"),
    "hptt": Look(INDIGO, "*", ":"),
    "openblas": Look(TEAL, "h", ":"),
    "cublas": Look(TEAL, "h", ":"),
    "cutensor": Look(OLIVE, "p", ":"),
}
REFERENCE = Look(COPY, "", "--", 1.2)
# Of item sizes, where the curves are those of types.
TYPES: dict[str, Look] = {
    "uint8": Look(RED, "s"),
    "int8": Look(RED, "s"),
    "int16": Look(ORANGE, "^"),
    "uint16": Look(ORANGE, "^"),
    "float16": Look(ORANGE, "^"),
    "float32": Look(GREEN, "D"),
    "int32": Look(GREEN, "D"),
    "float64": Look(SKY, "v"),
    "int64": Look(SKY, "v"),
    "complex128": Look(INDIGO, "o"),
}


def look(name: str, kind: str = "stage") -> Look:
    """How a contestant is drawn, the same in every figure; options of a stage do not change it.

    >>> look("strided 32") == look("strided"), look("memcpy", "reference").dashes
    (True, '--')
    """
    if kind == "reference":
        return REFERENCE
    return LOOKS.get(name) or LOOKS.get(name.split()[0]) or Look(INK, ".")


def new_figure(width: float = 7.4, height: float = 4.4) -> tuple[Figure, Axes]:
    """A figure of its own, known to no window. Raises UsageError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'gpumem[plot]'") from None
    made = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    return made, made.add_subplot()


def new_axes(height: float = 4.4, width: float = 7.4) -> Axes:
    """Axes of a new figure."""
    return new_figure(width, height)[1]


def frame(ax: Axes, *, along: Literal["x", "y"] = "y") -> None:
    """Leaves only what carries meaning: faint lines across, no box."""
    ax.set_axisbelow(True)
    ax.grid(axis=along, color=LINE, linewidth=0.7)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(COPY)
    ax.tick_params(colors=INK, labelsize=8.5, length=3, color=COPY)
    ax.tick_params(axis="y", length=0)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(size=9, color=INK)


def title(ax: Axes, text: str) -> None:
    """What the figure shows, in one line, from the left."""
    ax.set_title(text, fontsize=10.5, color=INK, loc="left", fontweight="bold", pad=10)


def byte_axis(ax: Axes, values: Iterable[float]) -> None:
    """A log-2 axis of bytes whose ticks are powers of two in words: 1 KiB, 16 KiB, 1 MiB."""
    from matplotlib.ticker import FixedLocator, NullLocator

    given = sorted(values)
    ax.set_xscale("log", base=2)
    low, high = (given[0].bit_length() - 1 if isinstance(given[0], int) else _power(given[0])), _power(given[-1])
    step = max(1, -(-(high - low) // 9))
    step = next(each for each in (1, 2, 4, 5, 10, 20) if each >= step)
    start = -(-low // step) * step
    ticks = [2.0**power for power in range(start, high + 1, step)]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(ticks, [format_bytes(tick) for tick in ticks])
    ax.set_xlim(given[0] / 1.15, given[-1] * 1.15)


def _power(value: float) -> int:
    return max(int(value), 1).bit_length() - 1


def caches(ax: Axes, capacities: Mapping[str, int]) -> None:
    """Shades what fits into each cache, from its smaller neighbour's capacity to its own."""
    left, right = ax.get_xlim()
    for (name, capacity), shade in zip(sorted(capacities.items(), key=lambda item: item[1]), SHADES, strict=False):
        edge = min(capacity, right)
        if edge <= left:
            continue
        ax.axvspan(left, edge, color=shade, zorder=-2, linewidth=0, gid=f"cache {name}")
        ax.annotate(
            f"{name} {format_bytes(capacity)}",
            (edge, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7,
            color=FAINT,
        )
        left = edge
    ax.set_xlim(ax.get_xlim())


def level(ax: Axes, value: float, text: str, *, along: str = "x", colour: str = PEAK, side: str = "") -> None:
    """A dashed line right across for a limit, with its name."""
    draw = ax.axhline if along == "x" else ax.axvline
    draw(value, color=colour, linestyle=(0, (5, 3)), linewidth=1.0, zorder=1, label=text)
    if along == "x":
        left = side == "left"
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "bottom"}
        place |= {"xy": (0.0 if left else 1.0, value), "ha": "left" if left else "right"}
        offset = (3 if left else -2, 2)
    else:
        low, high = ax.get_xlim()
        side = side or ("left" if value > 0.8 * high + 0.2 * low else "right")
        place = {"xy": (value, 1.0), "xycoords": ("data", "axes fraction"), "ha": side, "va": "bottom"}
        offset = (0, 2)
    ax.annotate(text, xytext=offset, textcoords="offset points", fontsize=7.5, color=colour, **place)


def names_at_ends(ax: Axes, ends: Sequence[tuple[float, str, str]], *, size: float = 8.5) -> None:
    """Names right of the axes, each at the height of its curve's end, moved apart where they would overlap.

    `ends` are (y, name, colour) rows.
    """
    figure = cast("Figure", ax.figure)
    figure.draw_without_rendering()  # the axes get their height
    low, high = ax.get_ylim()
    points = ax.bbox.height * 72 / figure.dpi / (high - low)
    gap = 1.25 * size / points
    order = sorted(ends, key=lambda end: end[0])
    if not order:
        return
    at = [y for y, _, _ in order]
    for _ in range(200):
        moved = False
        for i in range(len(at) - 1):
            if (short := gap - (at[i + 1] - at[i])) > 1e-9 * (high - low):
                at[i] -= short / 2
                at[i + 1] += short / 2
                moved = True
        if not moved:
            break
    at[0] = max(at[0], low)
    for i in range(1, len(at)):
        at[i] = max(at[i], at[i - 1] + gap)
    for y, (end, name, colour) in zip(at, order, strict=True):
        ax.annotate(
            name,
            (1.0, end),
            xycoords=("axes fraction", "data"),
            xytext=(16, (y - end) * points),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "alpha": 0.45, "shrinkA": 1, "shrinkB": 0},
        )


def caption(figure: Figure, text: str) -> None:
    """Where the figures come from: small, below everything."""
    import textwrap

    width = int(figure.get_figwidth() * 18)
    figure.supxlabel("\n".join(textwrap.wrap(text, width)), fontsize=7, color=FAINT, x=0.01, ha="left")


def origin(environment: Mapping[str, Any], *more: str) -> str:
    """The device, driver, clocks, commit and date of a measurement in one line."""
    clocks = environment.get("clocks") or {}
    parts = []
    if "device" in environment:
        parts.append(str(environment["device"]))
        parts.append(f"CUDA {environment['cuda']}")
        parts += [f"driver {clocks['driver_version']}"] if "driver_version" in clocks else []
        parts += [f"SM {clocks['clocks.sm']} MHz, memory {clocks['clocks.mem']} MHz"] if "clocks.sm" in clocks else []
    else:
        parts.append(f"{environment['cpu']}, {environment['threads']} threads, {environment['isa']}")
    version = f"gpumem {environment['gpumem']}" if environment.get("gpumem") not in (None, "unknown") else "gpumem"
    parts.append(f"{version} at {environment['commit']}" if environment.get("commit") else version)
    if when := environment.get("date"):
        parts.append(datetime.datetime.fromisoformat(when).date().isoformat())
    return " · ".join([*parts, *more])


def check_format(path: Path) -> None:
    """Raises UsageError unless matplotlib is here and writes files with such an ending."""
    formats = sorted(new_figure()[0].canvas.get_supported_filetypes())
    if path.suffix[1:] not in formats:
        raise UsageError(f"cannot plot to {path}: its name must end in one of {', '.join(formats)}")


def save(ax: Axes, path: Path) -> None:
    """Writes the figure of `ax` in the format that the file's name ends in; the same bytes for the same figure."""
    import matplotlib as mpl

    # Text stays text in SVG, so that it can be searched; ids do not change from run to run.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gpumem"}):
        plain = {"Date": None} if path.suffix == ".svg" else {}
        cast("Figure", ax.figure).savefig(path, dpi=150, metadata=plain)


def words(name: str) -> str:
    """A stage's name as it stands in a figure.

    >>> words("first_add"), words("strided 32")
    ('first add', 'strided 32')
    """
    return re.sub("_", " ", name)
