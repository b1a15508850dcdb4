"""Pictures of limits: kernels under the roof of a device, and stages next to its speed of light."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from . import style
from .estimate import Estimate, Estimates
from .roofline import Roofline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX<>"
COLOURS = (style.BLUE, style.RED, style.GREEN, style.PURPLE, style.ORANGE, style.INDIGO, style.TEAL, style.WINE)


def plot_roofline(roof: Roofline, ax: Axes | None = None) -> Axes:
    """Each kernel as a point on or under the roof; filled where its time was measured, hollow where it is the least.

    One that moves no bytes stands at the right edge.
    """
    ax = ax or style.new_axes()
    style.frame(ax)
    where = roof.device
    usual = (kind for kind in where.kinds if kind in ("fp32", "tensor fp16"))
    kinds = list(dict.fromkeys([*(work.kind for work in roof.works), *usual]))
    ridges = [roof.ridge(kind) for kind in kinds]
    finite = [work.intensity for work in roof.works if work.bytes]
    low, high = min([*finite, 0.1]) / 3, max([*finite, *ridges]) * 3
    intensities = [min(work.intensity, high) for work in roof.works]
    ax.set_xscale("log")
    ax.set_yscale("log")
    top = max(ridges)
    ax.plot([low, top], [low * where.bandwidth, top * where.bandwidth], color=style.INK, linewidth=1.6)
    middle = (max([low, *intensities]) * min(ridges)) ** 0.5 if min(ridges) > max(intensities) else low * 4
    copy = "measured copy" if where.copy else "memory"
    ax.set_xlim(low, high)
    slowest = min([work.speed for work in roof.works if work.speed] + [low * where.bandwidth])
    ax.set_ylim(slowest / 2, max(where.peak(kind) for kind in kinds) * 4)
    for kind, ridge in zip(kinds, ridges, strict=True):
        peak = where.peak(kind)
        ax.plot([ridge, high], [peak, peak], color=style.INK, linewidth=1.2, linestyle="-" if kind == "fp32" else "--")
        ax.annotate(
            f"{kind} {peak / 1e12:,.3g} TFLOP/s",
            (high, peak),
            xytext=(-2, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=style.FAINT,
        )
    kernels = list(dict.fromkeys(work.kernel for work in roof.works))  # a colour each, traced and measured
    speeds = {i: work.speed or roof.attainable(work) for i, work in enumerate(roof.works)}
    order = sorted(speeds, key=lambda i: (intensities[i], -speeds[i]))
    for i, work in enumerate(roof.works):
        look = kernels.index(work.kernel)
        colour, marker = COLOURS[look % len(COLOURS)], MARKERS[look % len(MARKERS)]
        face = colour if work.measured else "white"
        at, edge = (intensities[i], speeds[i]), intensities[i] == high
        ax.plot(*at, marker, ms=7, mec=colour, mfc=face, mew=1.6, label=work.name, clip_on=not edge)
        pair = sum(other.kernel == work.kernel for other in roof.works) > 1
        below = work.measured if pair else order.index(i) % 2 == 0  # neighbours keep clear of one another
        ax.annotate(
            work.name,
            at,
            xytext=(-7 if edge else 7, -11 if below else 5),
            textcoords="offset points",
            ha="right" if edge else "left",
            fontsize=8.5,
            color=colour,
        )
    ax.set_xlabel("operations a byte of memory")
    ax.set_ylabel("operations a second")
    style.title(ax, f"Under the roof of {where.name}")
    said = "filled: measured; hollow: the least time of the device" if roof.works else ""
    style.caption(cast("Figure", ax.figure), f"{where.source or 'figures of the driver'} · {said}")
    along_roof(ax, f"{copy} {where.bandwidth / 1e9:,.0f} GB/s", middle, where.bandwidth)
    return ax


def along_roof(ax: Axes, text: str, at: float, bandwidth: float) -> None:
    """Writes along the slanted roof, at the angle that it has on the page."""
    cast("Figure", ax.figure).draw_without_rendering()  # the axes get their size
    (x0, y0), (x1, y1) = ax.transData.transform([(each, each * bandwidth) for each in (at, 2 * at)])
    ax.annotate(
        text,
        (at, at * bandwidth),
        xytext=(-3, 4),
        textcoords="offset points",
        rotation=math.degrees(math.atan2(y1 - y0, x1 - x0)),
        rotation_mode="anchor",
        ha="center",
        fontsize=8,
        color=style.FAINT,
    )


BINDS = {
    "memory": (style.BLUE, "o"),
    "L2": (style.RED, "s"),
    "L1 wavefronts": (style.GREEN, "D"),
    "issue slots": (style.PURPLE, "P"),
    "latency": (style.ORANGE, "^"),
}
FAR = 0.25  # of the measured time: an estimate that is further off is named
CLOSE = 0.012  # of the axis: dots that are closer stand above one another


def plot_estimates(found: Estimates, ax: Axes | None = None) -> Axes:
    """A line a lesson, a dot a stage: the least time of the device as a part of the measured one."""
    groups: dict[str, list[Estimate]] = {}
    for row in found.rows:
        groups.setdefault(f"{row.lesson}, {row.dtype}", []).append(row)
    ax = ax or style.new_axes(1.9 + 0.42 * len(groups))
    style.frame(ax, along="x")
    right = max(1.1, 1.12 * max(found.shares))
    ax.axvspan(1 - FAR, 1 + FAR, color=style.SHADES[1], lw=0, zorder=-2)
    ax.axvline(1, color=style.INK, linewidth=1.2, zorder=1)
    shown = set()
    for i, rows in enumerate(groups.values()):
        before, lift, up = -1.0, 0, False
        for row in sorted(rows, key=lambda each: each.share):
            lift = lift + 1 if row.share - before < CLOSE * right else 0
            before = row.share if not lift else before
            colour, marker = BINDS[row.binds]
            label = "" if row.binds in shown else row.binds
            shown.add(row.binds)
            at = i + 0.2 - 0.13 * min(lift, 5)
            ax.plot(row.share, at, marker, mfc=colour, mec="white", mew=0.6, ms=6.5, label=label, ls="", zorder=3)
            if abs(row.share - 1) > FAR:
                up = not up
                ax.annotate(
                    style.words(row.stage),
                    (row.share, at),
                    xytext=(3, 4 if up else -6),
                    textcoords="offset points",
                    rotation=30 if up else -30,
                    rotation_mode="anchor",
                    va="baseline" if up else "top",
                    fontsize=7.5,
                    color=style.INK,
                )
    ax.set_yticks(range(len(groups)), list(groups))
    ax.set_ylim(len(groups) - 0.4, -0.8)
    ax.set_xlim(0, right)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set_xlabel("least time of the device, as a part of the measured time (shaded: within a quarter)")
    style.title(ax, "How close every stage comes to its speed of light, by what binds")
    order = [name for name in BINDS if name in shown]
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    ax.legend([handles[name] for name in order], order, fontsize=8, frameon=False, loc="lower right", handletextpad=0.2)
    style.caption(cast("Figure", ax.figure), f"{style.origin(found.environment)} · {found.error()}")
    return ax
