"""What the notebooks share: ladders measured here or recorded on an H200, counts of the lens, and how figures look."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

import gpumem
from gpumem import _core, style
from gpumem.pictures import Picture, drawings_of

HERE = Path(__file__).resolve().parent
GPU = bool(_core._cuda()["devices"])
BLUE, ORANGE, GREEN, RED, GREY = style.BLUE, style.ORANGE, style.GREEN, style.RED, style.COPY

mpl.rcParams.update(
    {
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.axisbelow": True,
        "figure.constrained_layout.use": True,
        "figure.dpi": 96,
        "font.size": 10,
        "grid.color": "#d9dde2",
        "legend.frameon": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "gpumem",
    }
)

ENERGY = r"""
struct alignas(16) particle { float x, y, z, mass; };

extern "C" __global__ void energy(float *out, const particle *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 0.5f * p[i].mass * (p[i].x * p[i].x + p[i].y * p[i].y + p[i].z * p[i].z);
}
"""

if (jupyter := sys.modules.get("IPython")) and (shell := jupyter.get_ipython()):
    shell.run_line_magic("matplotlib", "inline")
    shell.run_line_magic("config", 'InlineBackend.figure_formats = ["svg"]')
    plain = '{"bbox_inches": "tight", "metadata": {"Date": None}}'
    shell.run_line_magic("config", f"InlineBackend.print_figure_kwargs = {plain}")


def recorded(lesson: str, dtype: str = "float32") -> gpumem.Ladder:
    """The ladder that was measured on an H200."""
    return gpumem.Ladder.read(HERE / "data" / "h200" / f"ladder-{lesson}-{dtype}.json")


def ladder(lesson: str, dtype: str = "float32") -> gpumem.Ladder:
    """The ladder measured on this machine's GPU (which needs PyTorch), or, where there is none, the recorded one."""
    if GPU and importlib.util.find_spec("torch"):
        return gpumem.ladder(lesson, dtype=dtype, device="cuda", progress=False)
    return recorded(lesson, dtype)


def recorded_roof(name: str) -> gpumem.Roofline:
    """A kernel under the roof of the H200 that timed it."""
    return gpumem.Roofline.from_dict(json.loads((HERE / "data" / "h200" / f"roofline-{name}.json").read_text()))


def roof(name: str, measure: Callable[[], gpumem.Measured]) -> gpumem.Roofline:
    """A kernel as traced and as timed by this machine's GPU, or, where there is none, the recorded one."""
    return gpumem.roofline(measure()) if GPU else recorded_roof(name)


def curve(name: str) -> gpumem.Sweep:
    """A sweep that was measured on an H200."""
    return gpumem.Sweep.read(HERE / "data" / "h200" / f"sweep-{name}.json")


def fractions(rungs: gpumem.Ladder) -> dict[str, float]:
    """Of a copy of the same bytes, by stage."""
    return {rung.name: rung.of_copy.median for rung in rungs.rungs if rung.kind == "stage"}


def where(rungs: gpumem.Ladder) -> str:
    """On what it was measured."""
    environment = rungs.environment
    return f"{environment['device']}, driver {environment['clocks']['driver_version']}, {environment['commit']}"


def sectors(trace: gpumem.Trace, kind: str) -> float:
    """Sectors of a request to global memory; kind: load or store."""
    sites = [site for site in trace.sites if site.kind == kind and site.requests]
    return sum(site.sectors for site in sites) / max(sum(site.requests for site in sites), 1)


def wavefronts(trace: gpumem.Trace, kind: str) -> float:
    """Wavefronts of an access to shared memory; kind: load or store."""
    sites = [site for site in trace.sites if site.kind == kind and site.shared]
    return sum(site.wavefronts for site in sites) / max(sum(site.shared for site in sites), 1)


def shared_load(lesson: str, stage: str):
    """A picture of a stage's load from shared memory."""
    sites = gpumem.trace_stage(lesson, stage).sites
    return Picture(drawings_of(next(site for site in sites if site.kind == "load" and site.shared), "worst"))


def colour(name: str) -> str:
    """Of a stage or a type: the same in every figure."""
    return style.TYPES[name].colour if name in style.TYPES else style.look(name).colour


def bars(ax, values: dict[str, float]) -> None:
    """A bar a name, its value on it."""
    known = [colour(name) if name.split()[0] in style.LOOKS else BLUE for name in values]
    drawn = ax.bar(list(values), list(values.values()), color=known, width=0.7)
    ax.bar_label(drawn, [f"{value:.2f}" for value in values.values()], padding=2, fontsize=9)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="both", length=0)


def axes(width: float = 8, height: float = 3, count: int = 1):
    """A figure's axes, side by side."""
    _, made = plt.subplots(1, count, figsize=(width, height))
    return made


def kernel(source: str, name: str) -> gpumem.Kernel:
    """A kernel of a CUDA C text: compiled here, or, where there is no compiler, the PTX that is kept of this text."""
    kept = HERE / "data" / "ptx" / f"{name}-{hashlib.sha256(source.encode()).hexdigest()[:8]}.ptx"
    try:
        made = gpumem.Kernel(source, name, file=f"{name}.cu")
    except ValueError as error:
        if "no compiler" not in str(error):
            raise
        return gpumem.Kernel(kept.read_text(), name, file=kept.name)
    if os.environ.get("GPUMEM_KEEP_PTX"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(made.ptx.replace(f"{HERE}/", ""))
    return made


def frame(x: float, y: float, width: float, height: float) -> Rectangle:
    """A frame round a part of a picture."""
    return Rectangle((x, y), width, height, fill=False, edgecolor=RED, linewidth=2)
