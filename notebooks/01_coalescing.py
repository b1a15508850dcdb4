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
# # Coalescing: what a warp's access costs
#
# A warp's 32 lanes are served together: what costs is not how many bytes they want, but how many sectors of 32 bytes
# these lie in.

# %%
import lesson
import numpy as np

import gpumem

# %% [markdown]
# The lesson's kernel reads one item in `stride`, and stores what it read side by side
# (`csrc/kernels/read.cu`):
#
# ```c
# long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
# if (i < read.n)
#     out[i] = in[i * read.stride];
# ```
#
# The lens executes it on the CPU, and counts as the hardware does. With neighbours, a warp's load of 32 floats is 128 bytes:
# 4 sectors, all of their bytes wanted. The same is true of the store, whatever the stride.

# %%
coalesced = gpumem.trace_stage("read", "strided", (1 << 16,), stride=1)
coalesced

# %% [markdown]
# One execution of the load, drawn: a row is a sector, a column a byte of it, and each cell names its lane.

# %%
coalesced.plot()

# %% [markdown]
# With a stride of 4 floats, 16 sectors bring 128 bytes that are wanted and 384 that are not (hatched):

# %%
gpumem.trace_stage("read", "strided", (1 << 16,), stride=4).plot()

# %% [markdown]
# And so on, with strides from 1 to 64 floats:

# %%
strides = np.arange(1, 65)
traces = [gpumem.trace_stage("read", "strided", (1 << 16,), stride=k) for k in strides.tolist()]
counted = [lesson.sectors(trace, "load") for trace in traces]

ax = lesson.axes()
ax.plot(strides, strides, color=lesson.GREY, linestyle="--", label="“stride k costs k times as much”")
ax.plot(strides, np.array(counted) / 4, color=lesson.BLUE, linewidth=2, label="sectors, by those of stride 1")
ax.set(xlabel="stride (floats)", ylabel="times stride 1")
ax.set(ylim=(0, 34), xlim=(1, 64), xticks=[1, 8, 16, 32, 48, 64])
ax.annotate(
    "8 floats are 32 bytes: from here on\neach lane has a sector of its own",
    (8, 8),
    (24, 14),
    arrowprops={"arrowstyle": "-"},
)
_ = ax.legend(loc="upper right")

# %% [markdown]
# ## Stride 32 costs 8 times the sectors, not 32 times
#
# It is often said that a stride of 32 floats makes a load 32 times as expensive, one transaction a lane instead of one. It
# takes 32 sectors where 4 would do: 8 times. From a stride of 8 on the count no longer grows, since a lane cannot touch
# more than one sector for its 4 bytes.
#
# And the time? The store is the same in all of them, so a stride of 8 moves (32 + 4) sectors where 4 + 4 would do, 4.5 times
# as many. What an H200 takes:

# %%
measured = lesson.ladder("read")
of_copy = lesson.fractions(measured)
shown = [1, 2, 4, 8, 16, 32]
time = {k: of_copy["strided 1"] / of_copy[f"strided {k}"] for k in shown}
moved = {k: (min(4 * k, 32) + 4) / 8 for k in shown}

ax = lesson.axes()
place = np.arange(len(shown))
for shift, colour, label, values in (
    (-0.27, lesson.GREY, "the stride", {k: k for k in shown}),
    (0, lesson.BLUE, "sectors moved (load and store)", moved),
    (0.27, lesson.ORANGE, "time for an item", time),
):
    drawn = ax.bar(place + shift, list(values.values()), 0.25, color=colour, label=label)
    ax.bar_label(drawn, [f"{value:.3g}" for value in values.values()], fontsize=8, padding=1)
ax.set(xticks=place, xticklabels=[f"stride {k}" for k in shown], ylabel="times stride 1")
ax.set_title(lesson.where(measured))
_ = ax.legend()

# %% [markdown]
# and every stride from 1 to 64:

# %%
lesson.curve("stride").plot().figure

# %% [markdown]
# Neither curve is the stride. Up to 8 the time stays below the sectors: a plain copy of one float a lane does not use all of the
# bandwidth ([vector access](05_vector_access.ipynb) says why), so there is some to spare. Beyond 8 the sectors stay and the time
# grows on, to 5.4 times at 16: memory delivers 64 bytes at a time, two sectors, and from a stride of 16 on one of the two is
# for nobody. At 32 it is 6.3.
#
# ## Two dimensions
#
# The same mistake in its usual form: lanes that run down a column. In row-major order neighbours of a column lie a whole row
# apart, and each lane opens a sector, on both sides.

# %%
walks = {stage: gpumem.trace_stage("walk2d", stage) for stage in ("columns", "rows")}
print({stage: (lesson.sectors(trace, "load"), lesson.sectors(trace, "store")) for stage, trace in walks.items()})
times = lesson.ladder("walk2d")
lesson.bars(lesson.axes(5, 2.5), lesson.fractions(times))

# %% [markdown]
# Fractions of a copy's speed: 0.09 against 0.58. All that differs is which of the two indices `threadIdx.x` adds to.
#
# ## Anywhere
#
# A gather whose index points anywhere takes nearly a sector a lane, like a long stride, and is as slow.

# %%
gather = gpumem.trace_stage("read", "gather")
most = max(site.sectors / site.requests for site in gather.sites if site.kind == "load")
most, of_copy["gather"], of_copy["strided 32"]

# %% [markdown]
# ## To take along
#
# - Count sectors: the distinct 32-byte segments that a warp touches ([rules G1 to G3](../docs/rules.md)).
# - Let `threadIdx.x` run along the axis that lies together in memory.
# - What cannot be arranged so in the input can be turned round in shared memory: [transpose](06_transpose.ipynb).
#
# On your own kernel: `gpumem trace k.cu ...` prints sectors per request and the ideal for each line, and marks what wastes.
