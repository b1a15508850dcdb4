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
import json

import lesson
import numpy as np

import gpumem
from gpumem.estimate import Estimates
from gpumem.light import speed_of_light

# %% [markdown]
# A kernel that does `I` operations for each byte it moves can do at most `I x bandwidth` of them a second, or what the arithmetic
# units do, whichever is less. The classic example: `c = a + b` in float32 does 1 operation for 12 bytes.

# %%
add = gpumem.Kernel(gpumem.examples.ADD)
a, b, c = (np.ones(4096, "f4") for _ in range(3))
roof = gpumem.roofline(add.trace(32, 128, c, a, b, 4096), device="A100")
peak = roof.device.peak("tensor fp16")
reached = roof.attainable(roof["add"])
print(f"{roof['add'].intensity:.4f} FLOP a byte: {reached / 1e12:.2f} TFLOP/s,")
print(f"{reached / peak:.2%} of the {peak / 1e12:.0f} TFLOP/s that its tensor cores could do")

# %% [markdown]
# Under the roof of an H200, whose slanted part is a measured copy. Operations come from the instructions that the lens executed, bytes
# from the sectors that it counted; the height is what no resource of the chip forbids.

# %%
traces = [gpumem.trace_stage("reduce", stage, (1 << 18,)) for stage in ("interleaved", "first_add", "vectorised")]
energy = lesson.kernel(lesson.ENERGY, "energy")
traces.append(energy.trace(40, 256, np.zeros(10_000, "f4"), np.ones((10_000, 4), "f4"), 10_000))
traces.append(add.trace(32, 128, c, a, b, 4096))
under = gpumem.roofline(traces, device="H200")
under

# %%
under.plot().figure

# %% [markdown]
# Hollow points are the least time that the chip allows. With a GPU, a launch is timed as well, once the lens has found nothing wrong with
# it, and stands there twice (below: on this machine's GPU, or as an H200 timed it). `gpumem roofline energy.cu --grid ...` does the same.

# %%
n = 1 << 24


def measured() -> gpumem.Measured:
    p, out = np.random.default_rng(0).random((n, 4), np.float32), np.zeros(n, np.float32)
    return energy.measure(n // 256, 256, out, p, n)


taken = lesson.roof("energy", measured)
taken

# %%
taken.plot().figure

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
# ## The speed of light held against time
#
# For each resource (memory, the second-level cache, wavefronts, issue slots, the latency of the bytes in flight) the time that it
# alone would need: no launch is faster than the slowest of them. For one stage:

# %%
speed_of_light(gpumem.trace_stage("transpose", "tiled", (1024, 1024)), "H200")

# %% [markdown]
# And for every stage of every ladder that was timed on an H200, next to what it took:

# %%
recorded = json.loads((lesson.HERE / "data" / "h200" / "estimates.json").read_text())
estimates = Estimates.from_dict(recorded)
print(estimates.error())
estimates.plot().figure

# %% [markdown]
# Colours say which resource binds. What takes much longer than its bound keeps one resource idle while it waits for another, between
# barriers for example; what is faster found its data in a cache.
#
# ## To take along
#
# - Know the ceiling first: the time of a copy of the same bytes, on the same machine, in the same minute.
# - Count what is moved, not what is wanted; then ask the chart in its order.
