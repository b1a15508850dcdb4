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
# # Transpose: the whole ladder
#
# From 0.13 of a copy's speed to 0.96 in five steps, each of which removes what the one before was limited by.

# %%
import lesson
import numpy as np

import gpumem

# %% [markdown]
# Either the load or the store of a transpose runs down a column. What the lens counts for each stage, 256 x 256 floats:

# %%
stages = [stage.name for stage in gpumem.stages("transpose", "cuda")]
traces = {stage: gpumem.trace_stage("transpose", stage, (256, 256)) for stage in stages}
print(f"{'':12}{'sectors a load':>15}{'a store':>9}{'wavefronts a shared load':>26}{'instructions':>14}")
for stage, trace in traces.items():
    counted = lesson.sectors(trace, "load"), lesson.sectors(trace, "store"), lesson.wavefronts(trace, "load")
    print(f"{stage:12}{counted[0]:15.1f}{counted[1]:9.1f}{counted[2]:26.1f}{trace.instructions:14,}")

# %% [markdown]
# `naive` pays for its stores in sectors, each of which takes 4 bytes; `tiled` for its loads from shared memory in wavefronts.

# %%
traces["naive"].plot()

# %%
lesson.shared_load("transpose", "tiled")

# %% [markdown]
# What an H200 makes of it:

# %%
measured = {dtype: lesson.ladder("transpose", dtype) for dtype in ("float64", "float32", "uint8")}
ax = lesson.axes(9, 3.6)
for i, (dtype, rungs) in enumerate(measured.items()):
    of_copy = lesson.fractions(rungs)
    place = np.arange(len(stages)) + 0.27 * (i - 1)
    drawn = ax.bar(place, [of_copy[stage] for stage in stages], 0.25, color=lesson.colour(dtype), label=dtype)
    ax.bar_label(drawn, [f"{of_copy[stage]:.2f}" for stage in stages], fontsize=7, padding=1)
ax.axhline(1, color=lesson.GREY, linestyle="--", linewidth=1)
ax.set(xticks=range(len(stages)), xticklabels=stages, ylabel="of a copy", ylim=(0, 1.12))
ax.set_title(lesson.where(measured["float32"]))
_ = ax.legend(loc="upper left")

# %% [markdown]
# - **naive** reads rows and writes columns: 32 sectors a store, 8 times what they deliver. Wider items waste less of a sector, so
#   float64 reaches 0.25, bytes 0.03.
# - **tiled** stages a tile of 32 x 32 in shared memory, so that both sides are coalesced; reading the tile's column is a 32-way
#   conflict. 2.9 times faster all the same.
# - **padded** and **swizzled** remove the conflict, by an item a row or by an XOR. 1.7 times for float32, and next to nothing for
#   bytes: there the conflict was not what limited it.
# - **bulk** and **vectorised** have more bytes in flight: the copy engine brings whole tiles, or each lane moves 16 bytes an
#   access. For bytes that is what everything before lacked: 0.22 to 0.95.
#
# By what is commonly taught the transpose is done when its bank conflicts are gone. It is 0.62 of a copy then; the rest is
# [bytes in flight](05_vector_access.ipynb).
#
# Sizes from 64 KiB to 4 GiB, each call from a cold cache: small matrices are bound by the launch and by latency, whatever the stage;
# from some 64 MiB on each stage has reached its own level.

# %%
lesson.curve("transpose-float32").plot().figure

# %% [markdown]
# ## What the chart would say
#
# `trace.advice` asks the questions in this order. Of `tiled` it finds the conflict, and by search over the addresses traced the
# padding and the XOR that end it; its prediction is what `padded` counts:

# %%
advice = traces["tiled"].advice[0]
print(advice)

# %%
wavefronts = sum(site.wavefronts for site in traces["padded"].sites)
assert advice.after["wavefronts"] == wavefronts
advice.now, advice.after

# %% [markdown]
# ## Where the time goes at each stage
#
# Sectors and wavefronts for each KiB that must move, next to the time:

# %%
items = 256 * 256
moved = 2 * items * 4 / 1024
work = {
    "sectors": [sum(site.sectors for site in trace.sites) / moved for trace in traces.values()],
    "wavefronts": [sum(site.wavefronts for site in trace.sites) / moved for trace in traces.values()],
    "time, copy = 1": [1 / lesson.fractions(measured["float32"])[stage] for stage in stages],
}
for ax, (name, values), colour in zip(lesson.axes(9, 2.8, 3), work.items(), (lesson.BLUE, lesson.ORANGE, lesson.GREEN)):
    ax.barh(stages, values, color=colour)
    ax.invert_yaxis()
    ax.set_title(name if "time" in name else f"{name} a KiB")
    ax.grid(axis="x")
    ax.grid(axis="y", visible=False)

# %% [markdown]
# ## The same on a CPU
#
# Cache lines instead of sectors, and registers instead of shared memory, but the same steps: use each line whole while it is
# there, move whole vectors, have enough under way. On the machine that ran this notebook:

# %%
gpumem.ladder("transpose", (2048, 2048), "float32", repeat=3, progress=False)

# %% [markdown]
# ## To take along
#
# - Coalesce both sides by way of a tile, then remove its conflicts, then widen the accesses: in this order.
# - Count again after each step. A remedy for what does not limit (conflicts, for bytes) gains nothing.
# - `gpumem.transpose` does all of it for any shape, strides and item size.
