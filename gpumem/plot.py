"""Figures of sweeps, ladders, benchmarks and rooflines; `gpumem plot` draws what a file holds, as its schema says.

matplotlib is needed only when a plot is asked for. How things look stands in style.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import style
from .devices import Device, device
from .errors import UsageError
from .recorded import made_from, read_json
from .style import check_format as check_format
from .style import save as save
from .timing import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .ladder import Ladder
    from .result import Result
    from .sweep_result import Point, Sweep

AROUND_ZERO = 1.12  # room above the highest of what is drawn
COUNTS = {
    "banks": (("wavefronts_per_load",), "wavefronts of an executed shared load"),
    **dict.fromkeys(("read", "walk2d", "reduce"), (("sectors_per_load",), "sectors of an executed load")),
}
SECTORS = (("sectors_per_load", "sectors_per_store"), "sectors of an executed load and store together")


def known(environment: Mapping[str, Any]) -> Device | None:
    """The device of a measurement, where it is a GPU of the table."""
    try:
        return device(environment) if "device" in environment else None
    except UsageError:
        return None


def limits(
    ax: Axes, environment: Mapping[str, Any], copy: float, against: str, *, along: str = "x", side: str = ""
) -> float:
    """Dashed lines for the memory's peak and for the measured copy, both GB/s; the height of the higher one."""
    side = side if along == "x" else "right"  # the two may be close to one another
    style.level(
        ax,
        copy,
        f"measured {against} {copy:,.{0 if copy >= 100 else 1}f} GB/s",
        along=along,
        colour=style.FAINT,
        side=side,
    )
    found = known(environment)
    if not found:
        return copy
    peak = found.memory_peak / 1e9
    style.level(ax, peak, f"theoretical peak {peak:,.0f} GB/s", along=along, side=side if along == "x" else "")
    return max(copy, peak)


def verb(lesson: str) -> str:
    """What must happen to each byte: a sum writes none."""
    return "read" if lesson == "reduce" else "read and written"


def cache_sizes(environment: Mapping[str, Any]) -> dict[str, int]:
    """The caches of a measurement's device, by name."""
    if "device" in environment:
        found = known(environment)
        return {"L2": found.l2_bytes} if found else {}
    return {name.upper(): int(size) for name, size in environment.get("caches", {}).items()}


# --- sweeps ----------------------------------------------------------------------------------------------------------


def plot_sweep(sweep: Sweep, ax: Axes | None = None) -> Axes:
    """A curve for each contestant, its quartiles as a band, over the axis of the sweep."""
    ax = ax or style.new_axes()
    style.frame(ax)
    if sweep.counted:
        ends = draw_counts(sweep, ax)
        ax.set_ylim(0, None)
    else:
        ends = draw_times(sweep, ax)
    scale(sweep, ax)
    rounds = (
        f"medians and quartiles of {sweep.setting['repeat']} rounds" if not sweep.counted else "counted by the lens"
    )
    cold = "each call from a cold cache" if sweep.device == "cuda" else ""
    style.title(ax, f"{sweep.lesson} over {sweep.over}{kind_of(sweep)}")
    style.caption(cast("Figure", ax.figure), style.origin(sweep.environment, *filter(None, (rounds, cold))))
    if by_type(sweep):
        lines = [line for line in ax.lines if line.get_label() in style.TYPES]
        ax.legend(handles=lines, fontsize=8.5, frameon=False, loc="lower right", title="items", title_fontsize=8.5)
    else:
        style.names_at_ends(ax, ends)
    return ax


def by_type(sweep: Sweep) -> bool:
    """Whether the curves are those of types: where the axis is an access, which each stage makes of another width."""
    return sweep.over in ("width", "flight") and sweep.device != "cpu"


def kind_of(sweep: Sweep) -> str:
    """The type of the items, where there is only one."""
    types = {point.dtype for point in sweep.points}
    return f", {types.pop()}" if len(types) == 1 else ""


def place(sweep: Sweep, point: Point) -> float:
    """Where a point stands: over sizes by all bytes that are touched, which is what a cache has to hold."""
    if sweep.over != "size":
        return point.x
    best = sweep.best.get(point.cell)
    return best.bytes if best else point.bytes


def draw_times(sweep: Sweep, ax: Axes) -> list[tuple[float, str, str]]:
    """The curves of a measured sweep; what is to be written at their ends."""
    ends, highest = [], 0.0
    for name, kind, shown, points in curves(sweep):
        xs = [place(sweep, point) for point in points]
        spreads = [point.gb_per_s for point in points]
        ys = [spread.median for spread in spreads]
        look = style.TYPES.get(shown) or style.look(name, kind)
        few = len(points) <= 20
        ax.fill_between(xs, [s.low for s in spreads], [s.high for s in spreads], color=look.colour, alpha=0.18, lw=0)
        ax.plot(
            xs,
            ys,
            color=look.colour,
            marker=look.marker if few else "",
            markersize=4,
            linestyle=look.dashes if kind != "scatter" else "",
            linewidth=look.width,
            label=shown,
            zorder=2 if kind == "reference" else 3,
        )
        ends.append((ys[-1], style.words(shown), look.colour))
        highest = max(highest, *ys)
    best = [sweep.best[cell] for cell in sorted(sweep.best)]
    # Of the largest arrays; where all are alike, of all.
    copy = best[-1].gb_per_s.median if sweep.over in ("size", "threads") else median(p.gb_per_s.median for p in best)
    highest = max(highest, limits(ax, sweep.environment, copy, sweep.against, side=emptier(ax, copy)))
    ax.set_ylim(0, AROUND_ZERO * highest)
    of_use = sweep.over in ("stride", "offset") and sweep.lesson != "banks"
    ax.set_ylabel("GB/s that are of use" if of_use else f"GB/s {verb(sweep.lesson)}")
    return ends


def emptier(ax: Axes, height: float) -> str:
    """The side where the curves keep further away from a height: where its name can stand."""
    rows = [(float(x), abs(float(y) - height)) for line in ax.lines for x, y in np.asarray(line.get_xydata())]
    order = sorted({x for x, _ in rows})
    left, right = set(order[: max(1, len(order) // 3)]), set(order[-max(1, len(order) // 3) :])
    near = [min((gap for x, gap in rows if x in side), default=0.0) for side in (left, right)]
    return "left" if near[0] > near[1] else "right"


def curves(sweep: Sweep) -> list[tuple[str, str, str, list[Point]]]:
    """(name, kind, what it is called, points) of each curve: types where the axis is the access, contestants else."""
    if by_type(sweep):
        found: dict[str, list[Point]] = {}
        for point in sweep.points:
            if point.kind == "stage":
                found.setdefault(point.dtype, []).append(point)
        return [(t, "stage", t, sorted(points, key=lambda p: p.x)) for t, points in found.items()]
    made = []
    for (name, _), points in sweep.series().items():
        if points[0].kind != "reference":
            made.append((name, points[0].kind, name, points))
    best = [sweep.best[cell] for cell in sorted(sweep.best)]
    if sweep.over in ("size", "threads") and len(best) > 1:
        made.append((sweep.against, "reference", sweep.against, sorted(best, key=lambda p: p.x)))
    return made


def draw_counts(sweep: Sweep, ax: Axes) -> list[tuple[float, str, str]]:
    """The curves of a counted sweep."""
    counters, text = COUNTS.get(sweep.lesson, SECTORS)
    ends = []
    for name, kind, shown, points in curves(sweep):
        held = [point for point in points if all(counter in point.counters for counter in counters)]
        look = style.TYPES.get(shown) or style.look(name, kind)
        ys = [sum(point.counters[counter] for counter in counters) for point in held]
        xs = [place(sweep, point) for point in held]
        ax.plot(xs, ys, color=look.colour, marker=look.marker, markersize=4, label=shown)
        ends += [(ys[-1], style.words(shown), look.colour)] if ys else []
    ax.set_ylabel(text)
    return ends


def scale(sweep: Sweep, ax: Axes) -> None:
    """The axis of the sweep: bytes by powers of two, all else as it is."""
    from .sweep_result import AXES

    values = sorted({place(sweep, point) for *_, points in curves(sweep) for point in points})
    if sweep.over in ("size", "flight", "width"):
        style.byte_axis(ax, values)
        if sweep.over == "size":
            style.caches(ax, {} if sweep.counted else cache_sizes(sweep.environment))
            ax.set_xlabel(f"bytes {verb(sweep.lesson)}")
            return
    elif max(values) >= 32:
        ax.set_xticks([value for value in values if value % 8 == 0 or value == values[0]])
        ax.set_xlim(values[0] - 0.5, values[-1] + 0.5)
    else:
        ax.set_xticks(values)
    ax.set_xlabel(AXES[sweep.over])


# --- ladders ---------------------------------------------------------------------------------------------------------


def plot_ladder(ladder: Ladder, ax: Axes | None = None) -> Axes:
    """A bar for each rung, GB/s from zero, between the measured copy and the memory's peak."""
    rungs = [rung for rung in ladder.rungs if rung.kind != "reference"]
    best = max((r for r in ladder.rungs if r.kind == "reference"), key=lambda rung: rung.gb_per_s)
    ax = ax or style.new_axes(1.5 + 0.34 * len(rungs))
    style.frame(ax, along="x")
    for i, rung in enumerate(rungs):
        look = style.look(rung.name, rung.kind)
        spread = Spread.of([rung.bytes / taken / 1e9 for taken in rung.seconds])
        ax.barh(
            i, spread.median, color=look.colour, height=0.68, hatch="///" if rung.kind == "peer" else "", ec="white"
        )
        ax.plot([spread.low, spread.high], [i, i], color=style.INK, linewidth=1.2)
        reached = f"{spread.median:,.{0 if spread.median >= 100 else 1}f}"
        ax.annotate(
            f"{reached} GB/s, {rung.of_copy.median:.0%} of {ladder.against}",
            (max(spread.median, spread.high), i),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=style.INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8},
        )
    ax.set_yticks(range(len(rungs)), [style.words(rung.name) for rung in rungs])
    ax.set_ylim(len(rungs) - 0.4, -0.7)
    peak = known(ladder.environment)
    highest = max(peak.memory_peak / 1e9 if peak else 0, best.gb_per_s, *(rung.gb_per_s for rung in rungs))
    ax.set_xlim(0, 1.02 * highest)
    limits(ax, ladder.environment, best.gb_per_s, ladder.against, along="y")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel(f"GB/s that must be {verb(ladder.lesson)}")
    shape = " × ".join(f"{length:,}" for length in ladder.shape)
    style.title(ax, f"{ladder.lesson}, {shape} {ladder.dtype}")
    ax.title.set_y(1.05)
    rounds = max(len(rung.seconds) for rung in ladder.rungs)
    style.caption(
        cast("Figure", ax.figure), style.origin(ladder.environment, f"medians and quartiles of {rounds} rounds")
    )
    return ax


# --- benchmarks ------------------------------------------------------------------------------------------------------


def plot_result(result: Result, ax: Axes | None = None) -> Axes:
    """A line for each group and a dot for each of its rows: gpumem's filled, the peers' hollow."""
    groups = result.groups()
    ax = ax or style.new_axes(1.6 + 0.42 * len(groups))
    style.frame(ax, along="x")
    for i, (name, rows) in enumerate(groups.items()):
        ax.axhline(i, color=style.LINE, linewidth=1, zorder=0)
        for peer in result.peers:
            figures = [row.figure(peer).median for row in rows if peer in row.seconds]
            look = style.look(peer, "peer")
            ax.plot(
                figures, [i] * len(figures), look.marker, mfc="none", mec=look.colour, ms=4.5, label="" if i else peer
            )
        figures = [row.figure().median for row in rows]
        ours = style.look("gpumem")
        ax.plot(
            figures,
            [i] * len(figures),
            "o",
            color=ours.colour,
            ms=5,
            alpha=0.55,
            mec="none",
            label="" if i else "gpumem",
        )
        text = f"{name}, of {rows[0].group.against}"
        ax.annotate(text, (0, i), xytext=(3, 5), textcoords="offset points", fontsize=7.5, color=style.FAINT)
    ax.set_yticks([])
    ax.set_ylim(len(groups) - 0.5, -0.8)
    ax.set_xlim(0, max(1.05, ax.get_xlim()[1]))
    style.level(ax, 1.0, "", along="y", colour=style.COPY)
    ax.set_xlabel("fraction of the reference of the same rounds; a dot is a row's median")
    style.title(ax, f"{result.op}: every row of the benchmark")
    ax.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, handletextpad=0.2)
    style.caption(cast("Figure", ax.figure), style.origin(result.environment))
    return ax


# --- files -----------------------------------------------------------------------------------------------------------


def draw_sweep(data: Mapping[str, Any]) -> Axes:
    """A recorded sweep."""
    from .sweep_result import Sweep

    return plot_sweep(Sweep.from_dict(data))


def draw_ladder(data: Mapping[str, Any]) -> Axes:
    """A recorded ladder."""
    from .ladder import Ladder

    return plot_ladder(Ladder.from_dict(data))


def draw_result(data: Mapping[str, Any]) -> Axes:
    """A recorded benchmark."""
    from .result import Result

    return plot_result(Result.from_dict(data))


def draw_roofline(data: Mapping[str, Any]) -> Axes:
    """A recorded roofline."""
    from .roofline import Roofline

    return Roofline.from_dict(data).plot()


def draw_measured(data: Mapping[str, Any]) -> Axes:
    """A recorded launch, traced and timed."""
    from .measured import Measured

    return Measured.from_dict(data).plot()


def draw_estimates(data: Mapping[str, Any]) -> Axes:
    """Recorded estimates."""
    from .estimate import Estimates

    return Estimates.from_dict(data).plot()


DRAW: dict[str, Callable[[Mapping[str, Any]], Axes]] = {
    "gpumem.sweep/1": draw_sweep,
    "gpumem.ladder/1": draw_ladder,
    "gpumem.bench/1": draw_result,
    "gpumem.roofline/1": draw_roofline,
    "gpumem.measured/1": draw_measured,
    "gpumem.estimates/1": draw_estimates,
}


def plot_file(path: Path, to: Path) -> None:
    """Draws what a file of gpumem holds, as its schema says, into a file of the format that its name ends in.

    Raises UsageError for a file that cannot be read, or that holds nothing that can be drawn.
    """
    data = read_json(path)
    schema = data.get("schema") if isinstance(data, dict) else None
    incomplete = f"{path} is no whole {schema}"
    if schema == "gpumem.trace/1":
        made_from(data, lambda data: draw_trace(data, to), incomplete)
        return
    if schema not in DRAW:
        raise UsageError(f"{path}: schema {schema!r} cannot be drawn; there are {', '.join([*DRAW, 'gpumem.trace/1'])}")
    save(made_from(data, DRAW[schema], incomplete), to)


def draw_trace(data: Mapping[str, Any], to: Path) -> None:
    """The accesses of a trace, each as a picture of lanes and sectors: an SVG."""
    from .pictures import everything
    from .trace import Trace

    everything(Trace.from_dict(data)).save(to)
