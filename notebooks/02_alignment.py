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
# # Alignment: where an array begins
#
# A view that begins inside a sector costs each warp one sector more; a vector that begins off its own size is an error.

# %%
import lesson
import numpy as np

import gpumem

# %% [markdown]
# A warp reads 32 neighbouring floats, but the first of them is `offset` floats behind the start of an allocation, which
# is a multiple of 256 bytes. Sectors of each load:

# %%
offsets = range(34)
traces = [gpumem.trace_stage("read", "offset", (65536 + k,), offset=k) for k in offsets]
counted = {k: lesson.sectors(trace, "load") for k, trace in zip(offsets, traces)}

ax = lesson.axes(8, 2.6)
colours = [lesson.BLUE if k % 8 == 0 else lesson.ORANGE for k in offsets]
ax.bar(list(counted), list(counted.values()), color=colours, width=0.8)
_ = ax.set(xlabel="offset (floats)", ylabel="sectors a load", xticks=range(0, 34, 8), ylim=(0, 6))

# %%
traces[1].plot()

# %% [markdown]
# 4 where the offset is a multiple of 8 floats, 32 bytes; else 5, whatever it is. The often-told "misalignment doubles the
# transactions" was true of segments of 128 bytes, two of which a warp touches at every offset but those of 32 floats. It is
# a quarter more sectors.
#
# ## What it costs
#
# Sectors are counted at the first-level cache, and the fifth sector of a warp is the first one of the next warp: it is fetched
# from memory once, and mostly found in a cache the second time. So the time hardly grows:

# %%
measured = lesson.ladder("read")
of_copy = lesson.fractions(measured)
ax = lesson.axes(4, 2.5)
lesson.bars(ax, {"offset 0": of_copy["coalesced"], "offset 1": of_copy["offset 1"]})
ax.set_title(lesson.where(measured))
f"{of_copy['coalesced'] / of_copy['offset 1'] - 1:.1%} more time for 25% more sectors"

# %%
lesson.curve("offset").plot().figure

# %% [markdown]
# ## Vectors must be aligned
#
# A `float4` load needs an address that is a multiple of 16. From any other it is an error on the device, which ends the
# context. The stage `vector4` refuses such an array before anything is written; here on the CPU, by the lens:

# %%
x = np.arange(4097, dtype="f4")
try:
    gpumem.run("copy", "vector4", x[1:], device="sim")
except ValueError as error:
    print(error)

# %% [markdown]
# What the lens says of a kernel that does it all the same (PTX, since a compiler would not):

# %%
kernel = gpumem.Kernel(
    gpumem.examples.COPY.replace("ld.global.f32 %f1, [%rd4];", "ld.global.v2.f32 {%f1, %f1}, [%rd4];")
)
trace = kernel.trace(1, 32, np.zeros(64, "f4"), np.zeros(64, "f4"), 32)
print(*trace.findings, sep="\n")

# %% [markdown]
# ## Any address at full speed
#
# `peeled` moves 16 bytes an access from and to any address: it does head and tail by themselves, so that the stores are
# aligned, and where source and destination differ it reads the vectors on both sides of each store and shifts them together
# in registers. The benchmark's misaligned copies, next to what libraries do:

# %%
from gpumem.result import Result

copies = Result.read(lesson.HERE / "data" / "h200" / "copy.json")
rows = copies.groups()["cuda misaligned"]
ax = lesson.axes(8, 3)
place = np.arange(len(rows))
colours = {"gpumem": lesson.BLUE, "torch": lesson.ORANGE, "cupy": lesson.GREEN}
for shift, (peer, colour) in zip((-0.27, 0, 0.27), colours.items()):
    values = [row.figure(peer).median for row in rows]
    ax.bar(place + shift, values, 0.25, color=colour, label=peer)
ax.axhline(1, color=lesson.GREY, linestyle="--", linewidth=1)
names = [row.case["name"].replace(", ", "\n") for row in rows]
ax.set_xticks(place, names, fontsize=7)
ax.set(ylabel="of an aligned copy", ylim=(0, 1.3))
_ = ax.legend(ncols=3, loc="upper right")

# %% [markdown]
# From a byte that is no multiple of 4 the libraries move bytes, and fall to 0.62; `peeled` stays at 0.93. From multiples of 4
# they move floats, several of them in flight, and are a little ahead, 0.97: shifting costs more than narrower accesses there.
#
# ## To take along
#
# - Begin arrays, and rows of matrices (their pitch), at multiples of 32 bytes; allocations do, views need not.
# - A misaligned stream of full warps costs a few per cent, not twice the time.
# - Vector accesses need their own alignment: peel a head, or ask whoever calls for it ([rule G4](../docs/rules.md)).
