"""Plots of ladders and benchmarks. The only module that needs matplotlib, and only when a plot is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from .errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .ladder import Ladder
    from .result import Result

COLOURS = {"stage": "#3568a8", "peer": "#b8792b", "reference": "#9aa3ad"}
OURS, LINE, REFERENCE = COLOURS["stage"], "#d9dde2", COLOURS["reference"]


def new_axes(height: float) -> Axes:
    """Axes of a new figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'gpumem[plot]'") from None
    return Figure(figsize=(8, height), layout="constrained").add_subplot()


def quiet_frame(ax: Axes) -> None:
    """Leaves only what carries meaning."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.axvline(1.0, color=REFERENCE, linewidth=1, zorder=0)


def plot_ladder(ladder: Ladder, ax: Axes | None = None) -> Axes:
    """A bar for each rung as a fraction of the reference, with its quartiles and GB/s."""
    ax = ax or new_axes(0.8 + 0.38 * len(ladder.rungs))
    for i, rung in enumerate(ladder.rungs):
        of = rung.of_copy
        ax.barh(i, of.median, color=COLOURS[rung.kind], height=0.7)
        ax.plot([of.low, of.high], [i, i], color="black", linewidth=1)
        ax.text(max(of.median, of.high) + 0.01, i, f"{rung.gb_per_s:.1f} GB/s", va="center", fontsize=8)
    ax.set_yticks(range(len(ladder.rungs)), [rung.name for rung in ladder.rungs])
    ax.invert_yaxis()
    quiet_frame(ax)
    env = ladder.environment
    ax.set_xlabel(f"fraction of a {ladder.against} of the same bytes (median, quartiles)")
    shape = " × ".join(map(str, ladder.shape))
    place = env.get("device") or f"{env['cpu']}, {env['threads']} threads"
    ax.set_title(f"{ladder.lesson}, {shape} {ladder.dtype}: {place}", fontsize=10)
    return ax


def plot_result(result: Result, ax: Axes | None = None) -> Axes:
    """A line for each group and a dot for each of its rows: gpumem's filled, the peers' hollow."""
    groups = result.groups()
    ax = ax or new_axes(1.2 + 0.45 * len(groups))
    markers = dict(zip(result.peers, "osD^", strict=False))
    for i, (name, rows) in enumerate(groups.items()):
        ax.axhline(i, color=LINE, linewidth=1, zorder=0)
        for peer, marker in markers.items():
            figures = [row.figure(peer).median for row in rows if peer in row.seconds]
            label = peer if not i else None
            ax.plot(figures, [i] * len(figures), marker, mfc="none", mec=COLOURS["peer"], ms=4, label=label)
        figures = [row.figure().median for row in rows]
        ax.plot(figures, [i] * len(figures), "o", color=OURS, ms=5, alpha=0.6, label="gpumem" if not i else None)
        ax.text(0, i - 0.3, f"{name}, of {rows[0].group.against}", fontsize=7, va="center", color="#555")
    ax.set_yticks([])
    ax.set_ylim(len(groups) - 0.5, -0.7)
    ax.set_xlim(0, max(1.05, ax.get_xlim()[1]))
    quiet_frame(ax)
    env = result.environment
    ax.set_xlabel("fraction of the reference of the same rounds; each dot is a row's median")
    ax.set_title(f"{result.op}: {env['cpu']}, {env['threads']} threads, {env['isa']}", fontsize=10, loc="right")
    ax.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False)
    return ax


def check_format(path: Path) -> None:
    """Raises UsageError unless matplotlib is here and writes files with such an ending."""
    formats = sorted(new_axes(1).figure.canvas.get_supported_filetypes())
    if path.suffix[1:] not in formats:
        raise UsageError(f"cannot plot to {path}: its name must end in one of {', '.join(formats)}")


def save(ax: Axes, path: Path) -> None:
    """Writes the figure of `ax` in the format that the file's name ends in."""
    cast("Figure", ax.figure).savefig(path, dpi=150)
