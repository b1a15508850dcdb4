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
# # Shared memory: 32 banks
#
# Lanes that want different words of one bank wait for one another. Padding or an XOR puts a column on 32 banks, and a
# conflict that hides behind memory costs nothing.

# %%
import lesson
import numpy as np

import gpumem

# %% [markdown]
# The word at byte address `a` lies on bank `a / 4 % 32`. A warp's access takes one pass (wavefront) for each different word on the
# busiest bank; lanes that want the same word are answered together. The lesson's kernels store a tile side by side and read it
# with a stride:

# %%
strides = range(34)


def passes(k):
    stage, options = ("strided", {"stride": k}) if k else ("broadcast", {})
    return lesson.wavefronts(gpumem.trace_stage("banks", stage, (1 << 14,), **options), "load")


counted = {k: passes(k) for k in strides}
ax = lesson.axes(8, 3)
ax.bar(list(counted), list(counted.values()), color=lesson.BLUE, width=0.8)
ax.set(
    xlabel="stride (words; 0: all lanes one word)", ylabel="wavefronts a load", xticks=[0, 1, 2, 4, 8, 16, 24, 32, 33]
)
assert all(counted[k] == np.gcd(k, 32) for k in strides if k)

# %% [markdown]
# gcd(stride, 32): odd strides are free, 32 takes 32 passes, 33 takes one. Reading a column of a tile of 32 x 32 floats is the
# stride of 32. Three ways to lay the tile out, each cell coloured by its bank; the column that a warp reads is framed.

# %%
row, column = np.mgrid[:32, :32]
layouts = {
    "dense: tile[32][32]": row * 32 + column,
    "padded: tile[32][33]": row * 33 + column,
    "swizzled: column ^ row": row * 32 + (column ^ row),
}
for ax, (name, word) in zip(lesson.axes(9, 3.2, 3), layouts.items()):
    ax.imshow(word % 32, cmap="twilight", interpolation="nearest")
    ax.add_patch(lesson.frame(7.5, -0.5, 1, 32))
    banks = len(set(word[:, 8] % 32))
    ax.set(title=name, xlabel=f"column 8 lies on {banks} bank{'s' * (banks > 1)}", xticks=[], yticks=[])
    ax.grid(False)

# %% [markdown]
# What such a load looks like: a row is a wavefront, a column a bank. Dense, one bank is busy and 31 idle (hatched), 32
# times over; padded, one pass serves all lanes. Swizzled, the same, in another order.

# %%
lesson.shared_load("banks", "strided")

# %%
lesson.shared_load("banks", "padded")

# %%
lesson.shared_load("banks", "swizzled")

# %%
for stage in ("strided", "padded", "swizzled"):
    trace = gpumem.trace_stage("banks", stage)
    print(f"{stage:10}{lesson.wavefronts(trace, 'store'):6.0f} a store{lesson.wavefronts(trace, 'load'):6.0f} a load")

# %% [markdown]
# ## Wider accesses
#
# 8 and 16 bytes a lane are served in halves and quarters of a warp: 2 and 4 wavefronts are no conflict, but 2 and 4 times the
# bytes ([rule S1](../docs/rules.md)). Loads whose neighbours agree merge ([rule S3](../docs/rules.md)).

# %%
for size in (4, 8, 16):
    trace = gpumem.trace_stage("banks", f"access{size}")
    conflicts = sum(site.conflicts for site in trace.sites)
    print(f"{size:2} bytes: {lesson.wavefronts(trace, 'load'):.0f} wavefronts, {conflicts} conflicts")

# %% [markdown]
# ## What a conflict costs
#
# All of these kernels copy by way of shared memory, so memory's time is there to hide behind:

# %%
measured = lesson.ladder("banks")
of_copy = lesson.fractions(measured)
shown = {k: of_copy[f"strided {k}"] for k in (1, 2, 4, 8, 16, 32)}
ax = lesson.axes(8, 3)
lesson.bars(ax, {f"{k}-way" if k > 1 else "none": value for k, value in shown.items()})
ax.axhline(1, color=lesson.GREY, linestyle="--", linewidth=1)
_ = ax.set(xlabel="bank conflict of each load", ylabel="of a copy", ylim=(0, 1.12), title=lesson.where(measured))

# %%
lesson.curve("banks").plot().figure

# %% [markdown]
# A 4-way conflict costs one per cent, an 8-way one five; it is the 16- and 32-way conflicts that outlast the memory they hide
# behind. Count wavefronts against what else must be done in the time: shared memory serves one a cycle on each
# multiprocessor.
#
# ## To take along
#
# - A stride that is odd is free. Pad a row of 32 words by one item, or XOR the column with the row.
# - Wavefronts of 8- and 16-byte accesses are not conflicts.
# - Do not chase 2-way conflicts in a kernel that waits for memory.
