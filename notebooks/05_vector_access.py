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
# # Vector access: bytes in flight
#
# 16 bytes a lane raise the bandwidth that a copy reaches by half, though every sector was full before: what grows is how
# much is under way.

# %%
import lesson

import gpumem

# %% [markdown]
# A copy of one float a thread is coalesced: 4 sectors a load, every byte wanted. The same with `float2` and `float4`:

# %%
for stage in ("scalar", "vector2", "vector4"):
    trace = gpumem.trace_stage("copy", stage, (1 << 16,))
    total = sum(site.sectors for site in trace.sites)
    each = lesson.sectors(trace, "load")
    print(f"{stage:9}{each:5.0f} sectors a load, {total:,} in all, {trace.instructions:,} instructions")

# %% [markdown]
# The sectors in all are the same. By what is commonly taught, coalescing is all there is to it, so these three should be equally
# fast. They are not:

# %%
measured = {dtype: lesson.ladder("copy", dtype) for dtype in ("uint8", "float32", "float64")}
sizes = {"uint8": 1, "float32": 4, "float64": 8}
wide = {"scalar": 1, "vector2": 2, "vector4": 4}

ax = lesson.axes(8, 3.6)
for dtype in measured:
    of_copy = lesson.fractions(measured[dtype])
    points = {sizes[dtype] * n: of_copy[stage] for stage, n in wide.items() if stage in of_copy}
    ax.plot(list(points), list(points.values()), "o-", color=lesson.colour(dtype), label=dtype, markersize=7)
ax.axhline(1, color=lesson.GREY, linestyle="--", linewidth=1)
ax.set_xscale("log", base=2)
ax.set(xticks=[1, 2, 4, 8, 16], xticklabels=[1, 2, 4, 8, 16], xlabel="bytes that a lane's access moves")
ax.set(ylabel="of the fastest copy", ylim=(0, 1.1), title=lesson.where(measured["float32"]))
_ = ax.legend()

# %% [markdown]
# One curve for all three types: what counts are the bytes of an access, not the type. 4 bytes reach 0.64, 8 reach 0.91, 16
# reach 1.00.
#
# ## Why
#
# Memory is far away: a load that misses the caches takes most of a microsecond. By Little's law the bandwidth reached is the
# bytes in flight divided by that time. One multiprocessor holds 2048 threads; with one load of 4 bytes each, 132 of them have
# at most 2048 * 132 * 4 bytes under way. From what the scalar copy reaches we can read the time off:

# %%
rung = next(rung for rung in measured["float32"].rungs if rung.name == "scalar")
read = rung.gb_per_s / 2 * 1e9  # half of what moves is read
in_flight = 2048 * 132 * 4
print(
    f"{in_flight / 1e6:.2f} MB in flight, {read / 1e12:.2f} TB/s read: {in_flight / read * 1e9:.0f} ns a load, at most"
)
best = next(rung for rung in measured["float32"].rungs if rung.name == "vector4").gb_per_s / 2 * 1e9
print(f"for {best / 1e12:.2f} TB/s: {best * in_flight / read / 2048 / 132:.1f} bytes a thread")

# %% [markdown]
# Threads spend a part of their time elsewhere, so the true latency is shorter, but the proportion holds: a thread needs about 6
# bytes under way, all of the time, and one float is not enough. Other ways to the same end, at 4 bytes an item:

# %%
ax = lesson.axes(8, 2.8)
lesson.bars(ax, lesson.fractions(measured["float32"]))
_ = ax.set(ylabel="of the fastest copy", ylim=(0, 1.12))

# %% [markdown]
# All of them, of items of 1 to 16 bytes, against the bytes that a multiprocessor can have under way:

# %%
lesson.curve("flight").plot().figure

# %% [markdown]
# `in_flight` loads four vectors before it stores one, `bulk` leaves it all to the copy engine and uses no register. For a copy,
# one vector a thread already is enough.
#
# ## To take along
#
# - Coalesced is not yet fast: count bytes in flight, `threads x loads before the first use x width`.
# - Take 16 bytes an access where alignment allows it; single bytes need it most (0.20 to 1.00).
# - Where it does not, unroll: several independent loads before the first store.
