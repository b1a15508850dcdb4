"""The picture of a roofline: operations a byte against operations a second, both logarithmic."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from . import style
from .roofline import Roofline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX<>"
COLOURS = (style.BLUE, style.RED, style.GREEN, style.PURPLE, style.ORANGE, style.INDIGO, style.TEAL, style.WINE)


def plot_roofline(roof: Roofline, ax: Axes | None = None) -> Axes:
    """Each kernel as a point on or under the roof; filled where its time was measured, hollow where it is the least."""
    ax = ax or style.new_axes()
    style.frame(ax)
    where = roof.device
    kinds = list(dict.fromkeys([work.kind for work in roof.works] + ["fp32", "tensor fp16"]))
    ridges = [roof.ridge(kind) for kind in kinds]
    intensities = [work.intensity for work in roof.works]
    low, high = min([*intensities, 0.1]) / 3, max([*intensities, *ridges]) * 3
    ax.set_xscale("log")
    ax.set_yscale("log")
    top = max(ridges)
    ax.plot([low, top], [low * where.bandwidth, top * where.bandwidth], color=style.INK, linewidth=1.6)
    middle = (low * min(ridges)) ** 0.5
    copy = "measured copy" if where.copy else "memory"
    ax.set_xlim(low, high)
    slowest = min([work.speed for work in roof.works if work.speed] + [low * where.bandwidth])
    ax.set_ylim(slowest / 2, max(where.peak(kind) for kind in kinds) * 4)
    ax.annotate(
        f"{copy} {where.bandwidth / 1e9:,.0f} GB/s",
        (middle, middle * where.bandwidth),
        xytext=(0, 5),
        textcoords="offset points",
        rotation=45,
        rotation_mode="anchor",
        transform_rotates_text=True,
        ha="center",
        va="bottom",
        fontsize=8,
        color=style.FAINT,
    )
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
    for i, work in enumerate(roof.works):
        colour = COLOURS[i % len(COLOURS)]
        speed = work.speed or roof.attainable(work)
        face = colour if work.measured else "white"
        ax.plot(
            [work.intensity], [speed], MARKERS[i % len(MARKERS)], ms=7, mec=colour, mfc=face, mew=1.6, label=work.name
        )
        ax.annotate(
            work.name, (work.intensity, speed), xytext=(8, -3), textcoords="offset points", fontsize=8.5, color=colour
        )
    ax.set_xlabel("operations a byte of memory")
    ax.set_ylabel("operations a second")
    style.title(ax, f"Under the roof of {where.name}")
    said = "filled: measured; hollow: the least time of the device" if roof.works else ""
    style.caption(cast("Figure", ax.figure), f"{where.source or 'figures of the driver'} · {said}")
    return ax
