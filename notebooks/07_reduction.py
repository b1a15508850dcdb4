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
# # Reduction: divergence is not a bank conflict
#
# Seven kernels that add up an array, from 0.21 of the speed of a read to 1.01; the first is slow because its warps diverge,
# and has no bank conflict at all.

# %%
import lesson
import numpy as np

import gpumem

# %% [markdown]
# A block adds up its items in shared memory, halving the number of partial sums in each step. Which threads add which items
# is all that sets the first three apart:
#
# ```c
# interleaved:  if (tid % (2 * s) == 0)     sum[tid] += sum[tid + s];                for s = 1, 2, 4 ...
# strided:      if (2 * s * tid < threads)  sum[2 * s * tid] += sum[2 * s * tid + s];  for s = 1, 2, 4 ...
# sequential:   if (tid < s)                sum[tid] += sum[tid + s];                for s = threads / 2 ... 1
# ```
#
# It is often said of the first, the modulo test, that it suffers from bank conflicts. The lens counts:

# %%
stages = [stage.name for stage in gpumem.stages("reduce", "cuda")]
traces = {stage: gpumem.trace_stage("reduce", stage, (1 << 18,)) for stage in stages}
print(f"{'':12}{'conflicts':>10}{'instructions an item':>22}{'lanes active':>14}")
for stage, trace in traces.items():
    conflicts = sum(site.conflicts for site in trace.sites)
    lanes = trace.thread_instructions / trace.instructions
    print(f"{stage:12}{conflicts:10,}{trace.instructions * 32 / (1 << 18):22.1f}{lanes:14.1f}")

# %% [markdown]
# `interleaved` has none: its active lanes are 2, 4, 8 ... words apart, but as many fewer of them are active, so that no two
# want the same bank. What it has is divergence: every warp stays at work in every step, with half as many lanes as in the step
# before. The conflicts belong to `strided`, which keeps the lanes together and spreads the words.
#
# Active lanes of each access to shared memory, step by step:

# %%
steps = {}
for stage in ("interleaved", "strided", "sequential"):
    stores = [site for site in traces[stage].sites if site.space == "shared" and site.kind == "store"]
    steps[stage] = [(site.executions, site.lanes, site.conflicts) for site in stores[1:]]
left, right = lesson.axes(9, 3, 2)
for stage, rows in steps.items():
    colour = lesson.colour(stage)
    number = np.arange(1, len(rows) + 1)
    left.plot(number, [lanes / executions for executions, lanes, _ in rows], "o-", color=colour, label=stage)
    right.plot(number, [conflicts / executions for executions, _, conflicts in rows], "o-", color=colour)
left.set(title="lanes active in a warp's store", xlabel="step", ylim=(0, 34))
right.set(title="conflicts of a warp's store", xlabel="step")
_ = left.legend()

# %% [markdown]
# And the time, as a fraction of reading the same bytes:

# %%
measured = lesson.ladder("reduce")
ax = lesson.axes(8, 3)
lesson.bars(ax, lesson.fractions(measured))
ax.axhline(1, color=lesson.GREY, linestyle="--", linewidth=1)
_ = ax.set(title=lesson.where(measured), ylabel="of a read", ylim=(0, 1.15))

# %%
lesson.curve("reduce-float32").plot().figure

# %% [markdown]
# On this chip the variant with conflicts (0.17) is slower than the one that diverges (0.21), and curing both (`sequential`, 0.22)
# gains little: all three read one item a thread and then spend their instructions on eight steps with barriers. What counts is
# the work for an item that was read:
#
# - `first_add` adds two items on the way in, so that half as many threads go through the steps: 0.41;
# - `shuffle` adds from register to register, with one barrier for eight: 0.55;
# - `vectorised` reads 16 bytes a load, four of them in flight: 1.01, a read's own speed.
#
# ## Which bits come out
#
# Adding floats in another order gives another result. `tuned`, which `gpumem.sum` uses, adds in an order that the shape and the
# chip decide alone: the same bits each time, and float32 is added up in double precision.

# %%
ones = np.ones(2**24 + 10, np.float32)
int(gpumem.sum(ones)), int(np.add.accumulate(ones)[-1])

# %% [markdown]
# ## To take along
#
# - Ask the counters before naming the cause: no conflict was counted where many would look for one ([rule C3](../docs/rules.md)).
# - Keep active lanes together, and words on different banks; then do less work an item.
# - A reduction is a read: its ceiling is a read's bandwidth, and bytes in flight reach it.
