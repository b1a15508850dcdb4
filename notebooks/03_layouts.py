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
# # Layouts: records or planes
#
# Reading one field of records fetches all of them; planes give each field its own coalesced stream, and turning one into
# the other runs at the speed of a copy.

# %%
import lesson
import numpy as np

import gpumem

# %% [markdown]
# Records of 4 floats (an array of structures) next to 4 planes (a structure of arrays), 4096 of each. A kernel that wants one
# field:

# %%
counted = {stage: gpumem.trace_stage("layout", stage) for stage in ("aos_field", "soa_field")}
{stage: lesson.sectors(trace, "load") for stage, trace in counted.items()}

# %%
counted["aos_field"].plot()

# %% [markdown]
# The same 32 floats are 16 sectors in records, 4 in planes. The picture is that of a stride of 4, and so is the remedy: let
# neighbouring lanes read neighbours.
#
# ## What each way of turning them round counts
#
# Records to planes and back, three ways: field by field, through shared memory, a record (16 bytes) in one access.

# %%
ways = ("fields", "staged", "vector")
stages = [f"{kind}_{way}" for kind in ("aos", "soa") for way in ways]
print(f"{'sectors in all':>32}{'requests':>20}")
print(f"{'':12}{'loads':>10}{'stores':>10}{'loads':>10}{'stores':>10}{'wavefronts':>12}")
for stage in stages:
    trace = gpumem.trace_stage("layout", stage)
    kinds = [[site for site in trace.sites if site.kind == kind] for kind in ("load", "store")]
    counted = [sum(site.sectors for site in sites) for sites in kinds]
    counted += [sum(site.requests for site in sites) for sites in kinds]
    passes = sum(site.wavefronts for site in trace.sites)
    print(f"{stage:12}" + "".join(f"{count:10,}" for count in counted) + f"{passes:12,}")

# %% [markdown]
# 64 KiB are 2,048 sectors: what is more is fetched, or opened, again. What they reach:

# %%
measured = lesson.ladder("layout")
of_copy = lesson.fractions(measured)
ax = lesson.axes(8, 3)
lesson.bars(ax, of_copy)
ax.axhline(1, color=lesson.GREY, linestyle="--", linewidth=1)
_ = ax.set(title=lesson.where(measured), ylabel="of a copy", ylim=(0, 1.12))

# %% [markdown]
# Three things that the counts alone would not tell:
#
# - `aos_fields` loads the same sectors four times and still runs at 0.98: the second to fourth load of a record find their
#   sectors in the first-level cache, so that memory sees them once. Sectors of loads that hit are cheap.
# - `soa_fields` is the mirror image, and reaches 0.67 only: each store opens the record's sectors again, and stores are not
#   gathered as loads are.
# - The staged ways count best and are not the fastest: a barrier between load and store costs bytes in flight. A record that
#   fits one vector access needs no shared memory.
#
# One field of records costs more than its share: `aos_field` 0.39 next to `soa_field` 0.62, though four fields together would
# be read at 0.98.
#
# ## In Python
#
# `to_soa` and `to_aos` do it for any record: structured arrays, `(n, k)` arrays, on the CPU and on a GPU.

# %%
points = np.zeros(100_000, [("id", "i4"), ("position", "f8", 3), ("flag", "u1")])
points["position"] = np.random.default_rng(0).random((100_000, 3))
planes = gpumem.to_soa(points)
{name: (plane.shape, plane.strides) for name, plane in planes.items()}

# %%
assert gpumem.to_aos(planes, dtype=points.dtype).tobytes() == points.tobytes()
image = np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8)
assert (gpumem.permute_dims(image, (2, 0, 1)) == image.transpose(2, 0, 1)).all()

# %% [markdown]
# ## To take along
#
# - Keep in planes what is read field by field; convert once, at the speed of a copy.
# - A record of 8 or 16 bytes may stay one: read it whole, as a vector.
# - Judge loads by the sectors that miss, stores by the sectors that they open.
