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
# # Cache hints: what they change, and what not
#
# A hint says how long a line is worth keeping. It changes no sector and no request, and a copy that streams runs at the same
# speed with each of them.

# %%
import lesson

import gpumem

# %% [markdown]
# Eleven kernels copy the same array an item a thread, and differ in one word of one instruction (without a hint they are written
# `volatile`, so that no compiler puts one in):

# %%
for stage in gpumem.stages("cache"):
    trace = gpumem.trace_stage("cache", stage.name, (1 << 14,))
    load, store = (next(site for site in trace.sites if site.kind == kind) for kind in ("load", "store"))
    counted = f"{load.sectors / load.requests:.0f} + {store.sectors / store.requests:.0f} sectors"
    print(f"{stage.name:14}{load.opcode:38}{store.opcode:34}{counted}")

# %% [markdown]
# The sectors are the same, 4 and 4, and so are the requests ([rule G5](../docs/rules.md)). The time:

# %%
measured = lesson.ladder("cache")
ax = lesson.axes(8, 3.2)
for i, rung in enumerate(rung for rung in measured.rungs if rung.kind == "stage"):
    of = rung.of_copy
    ax.plot([of.low, of.high], [i, i], color=lesson.BLUE, linewidth=5, solid_capstyle="butt")
    ax.plot(of.median, i, "|", color="white", markersize=8)
names = list(lesson.fractions(measured))
ax.set_yticks(range(len(names)), names)
ax.invert_yaxis()
ax.set(xlabel="of the fastest copy (quartiles, median)", xlim=(0.6, 0.68), title=lesson.where(measured))
ax.grid(axis="x")

# %% [markdown]
# All between 0.63 and 0.65. It is often taught that `__ldg` or a streaming store makes a kernel faster. For data that is touched
# once nothing can be kept, so that there is nothing for a hint to change; and since sm_35 compilers use the read-only
# path by themselves where they can prove that it is allowed. What limits this copy is one float a lane
# ([vector access](05_vector_access.ipynb)): 16 bytes a lane are worth 56 %, the best of the hints 1 %.
#
# ## Where they matter
#
# Where something else would profit from the room: a table that is read again and again next to a stream that is read
# once. Mark the stream (`.cs`, `L1::no_allocate`), and the table stays. A tile transpose of float32 on an H200 gained 2 % of a copy
# by `__stcs` stores: its writes do not push out lines that neighbouring blocks still read. The lens counts no hits, since that
# takes a model of the caches.
#
# `ld.cv` and volatile loads are no tuning: they ask memory again each time, for values that others write.
#
# ## To take along
#
# - Hints change who is evicted, not what is fetched.
# - Look for them last, and measure both ways in one run.
