# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Roofline and decision chart: what binds a kernel
#
# Arithmetic intensity says whether memory binds at all, and a chart of questions what to change first; both can be computed
# from a trace.

# %%
from fractions import Fraction

import lesson
import numpy as np

import gpumem

# %% [markdown]
# A kernel that does `I` operations for each byte it moves can do at most `I x bandwidth` of them a second, or what the arithmetic
# units do, whichever is less. The classic example: `c = a + b` in float32 does 1 operation for 12 bytes.

# %%
intensity = Fraction(1, 12)
a100 = {"bandwidth": 2.039e12, "float16 tensor": 312e12}  # A100 80 GB SXM, NVIDIA's data sheet
reached = float(intensity) * a100["bandwidth"]
f"{intensity} FLOP a byte: {reached / 1e12:.2f} TFLOP/s, {reached / a100['float16 tensor']:.2%} of the peak"

# %% [markdown]
# On the roofline of an H200: the roof is a measured copy (not the data sheet's 4.8 TB/s) and 67 TFLOP/s of float32. The points
# are the operations of this package; their bytes are those that must move.

# %%
copy = max(rung.gb_per_s for rung in lesson.recorded("copy").rungs) * 1e9
peak = 67e12  # H200 SXM, float32, NVIDIA's data sheet
ridge = peak / copy
points = {
    "c = a + b": 1 / 12,
    "sum": 1 / 4,
    "5-point stencil": 5 / 8,
    "5 x 5 filter": 49 / 8,
    "matmul, 128 x 128 tiles": 32,
}
ax = lesson.axes(8, 4)
x = np.geomspace(1 / 32, 256, 200)
ax.plot(x, np.minimum(x * copy, peak) / 1e12, color=lesson.BLUE, linewidth=2)
ax.axvline(ridge, color=lesson.GREY, linestyle="--", linewidth=1)
ax.text(ridge * 1.1, 0.15, f"ridge: {ridge:.1f} FLOP a byte", color="#59636e")
for name, intensity in points.items():
    reach = min(intensity * copy, peak) / 1e12
    ax.plot(intensity, reach, "o", color=lesson.ORANGE)
    ax.annotate(name, (intensity, reach), (6, -12), textcoords="offset points")
ax.set_xscale("log", base=2)
ax.set_yscale("log")
ax.set(xlabel="FLOP for each byte moved", ylabel="TFLOP/s at most", title=f"H200, copy {copy / 1e12:.2f} TB/s")
ax.grid(True, which="major")

# %% [markdown]
# Left of the ridge memory binds: no arithmetic matters, and the ceiling is the time of a copy of the same bytes. That is why this
# package gives fractions of a copy and not GB/s. Transposes, copies and gathers have an intensity of 0.
#
# But a roofline takes the bytes that must move, and a kernel moves what its accesses fetch. A strided copy of one float in 8 moves
# 4.5 times what it needs, and its true intensity is that much less. So the trace's sectors, not the array's bytes, say how far left a kernel
# stands:

# %%
for stride in (1, 2, 8, 32):
    trace = gpumem.trace_stage("read", "strided", (1 << 16,), stride=stride)
    items = (1 << 16) // stride
    moved = 32 * sum(site.sectors for site in trace.sites)
    print(f"stride {stride:2}: {8 * items:7,} bytes wanted, {moved:9,} moved: {moved / 8 / items:.1f} times")

# %% [markdown]
# ## The decision chart
#
# What to look at, in this order:
#
# 1. Is the kernel right? Hazards first.
# 2. Does memory bind it? If it is right of the ridge, look at arithmetic instead.
# 3. Is each access to global memory coalesced? If not: which, at what stride; rearrange, take whole records, stage.
# 4. Does shared memory have conflicts? Pad, or XOR.
# 5. Could accesses be wider? Then more bytes are in flight.
# 6. Is anything moved twice? Else it is at the ceiling.
#
# `trace.advice` asks them of a trace, with the counts that answer, and what they would be after the change. Five stages of
# the ladder, the last of which has nothing wrong:

# %%
asked = [
    ("read", "strided"),
    ("layout", "aos_field"),
    ("transpose", "tiled"),
    ("copy", "scalar"),
    ("copy", "vector4"),
]
for lesson_name, stage in asked:
    trace = gpumem.trace_stage(lesson_name, stage)
    print(f"--- {lesson_name}/{stage}\n{trace.advice[0]}\n")

# %% [markdown]
# ## Predictions held against time
#
# Sectors say how long a stage takes if nothing else bound it: its bytes by a copy's bandwidth. Against what an H200 took, for every
# stage that reads or moves an array of 4-byte items:

# %%
found = []
for name in ("read", "walk2d", "layout", "copy", "transpose"):
    for rung in lesson.recorded(name).rungs:
        stage, _, option = rung.name.partition(" ")
        if rung.kind != "stage" or stage == "tuned":
            continue
        options = {"stride": int(option)} if stage == "strided" else {"offset": 1} if stage == "offset" else {}
        trace = gpumem.trace_stage(name, stage, **options)
        bulk = any(site.kind == "bulk" for site in trace.sites)
        wanted = 8 * (1 << 16) // options.get("stride", 1)
        if name == "layout":
            wanted = 8 * 4096 * (1 if stage.endswith("_field") else 4)
        moved = 32 * sum(site.sectors for site in trace.sites)
        if not bulk:
            found.append((name, rung.name, wanted / moved, rung.of_copy.median))
ax = lesson.axes(6, 5)
colours = dict(
    zip(
        ("read", "walk2d", "layout", "copy", "transpose"),
        (lesson.BLUE, lesson.GREEN, lesson.ORANGE, lesson.RED, "#cc79a7"),
    )
)
for name, colour in colours.items():
    rows = [row for row in found if row[0] == name]
    ax.plot([row[2] for row in rows], [row[3] for row in rows], "o", color=colour, label=name)
for _, rung, predicted, measured in found:
    if predicted / measured > 1.5 or measured / predicted > 1.5:
        ax.annotate(f"{rung}", (predicted, measured), (5, -3), textcoords="offset points", fontsize=7)
ax.plot([0, 1.05], [0, 1.05], color=lesson.GREY, linestyle="--", linewidth=1)
ax.set(
    xlabel="predicted from sectors: bytes wanted by bytes moved",
    ylabel="measured: of a copy",
    xlim=(0, 1.08),
    ylim=(0, 1.08),
)
ax.grid(True)
_ = ax.legend()

# %% [markdown]
# Above the line are stages whose sectors were found in a cache (the field loops of `layout`), below it those that something else binds:
# bank conflicts (`tiled`), bytes in flight (`scalar`, one float a lane), lone sectors (long strides, `gather`). Sectors are a
# bound and not a prediction; what they miss is named by the chart's next questions.
#
# ## To take along
#
# - Know the ceiling first: the time of a copy of the same bytes, on the same machine, in the same minute.
# - Count what is moved, not what is wanted; then ask the chart in its order.
