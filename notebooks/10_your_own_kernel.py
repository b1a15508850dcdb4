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
# # Bring your own kernel
#
# Any CUDA C, or the PTX of any compiler: what goes wrong, what each line costs, what to change, and whether the change
# did it, all without a GPU.

# %%
import lesson
import numpy as np

# %% [markdown]
# CUDA C is compiled by NVRTC (`pip install 'gpumem[lens]'`) or nvcc; where there is neither, this notebook takes the PTX that was
# made of these texts. The first kernel works on records of four floats:

# %%
ENERGY = r"""
struct particle { float x, y, z, mass; };

extern "C" __global__ void energy(float *out, const particle *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        out[i] = 0.5f * p[i].mass * (p[i].x * p[i].x + p[i].y * p[i].y + p[i].z * p[i].z);
}
"""
energy = lesson.kernel(ENERGY, "energy")
energy

# %% [markdown]
# ## Is it right?
#
# NumPy arrays are the device's buffers. What a kernel may reach is what it was given, and nothing else, so that the first wrong
# access is found, with the line, the thread and the buffer:

# %%
n = 10_000
p = np.random.default_rng(0).random((n, 4), np.float32)
out = np.zeros(n, np.float32)
trace = energy.trace(40, 256, out, p, n, names=["out", "p", "n"])
for finding in trace.findings:
    print(finding)

# %% [markdown]
# `i <= n` should be `i < n`. It has no effect on `out` that a test would see, and on a GPU it mostly has none at all, until an array
# ends where a page does.

# %%
ENERGY = ENERGY.replace("i <= n", "i < n")
energy = lesson.kernel(ENERGY, "energy")
trace = energy.trace(40, 256, out, p, n, names=["out", "p", "n"])
assert not trace.findings
np.testing.assert_allclose(out, 0.5 * p[:, 3] * (p[:, :3] ** 2).sum(1), rtol=1e-5)

# %% [markdown]
# ## What does it cost?

# %%
trace

# %%
trace.plot()

# %% [markdown]
# Four loads of 4 bytes, 16 sectors each: lanes are 16 bytes apart. The chart:

# %%
for advice in trace.advice:
    print(advice, end="\n\n")

# %% [markdown]
# Two remedies: planes, if other kernels want single fields too; or, since a record is 16 bytes and aligned, one load of it whole.
# `alignas(16)` is enough for the compiler to do that:

# %%
WIDE = ENERGY.replace("struct particle", "struct alignas(16) particle")
wide = lesson.kernel(WIDE, "energy")
better = wide.trace(40, 256, out, p, n, names=["out", "p", "n"])
trace.compare(better)

# %% [markdown]
# A quarter of the requests and of the sectors; each of them is now used whole. On a GPU, `gpumem profile` shows the same counters, and
# `wide.launch(40, 256, out, p, n)` runs it.
#
# ## Races
#
# The second kernel averages neighbours by way of shared memory, and forgets the barrier. On a GPU it is right nearly always: a warp
# reads its neighbour's edge before that was written only where warps drift apart.

# %%
SMOOTH = r"""
extern "C" __global__ void smooth(float *out, const float *in, int n)
{
    __shared__ float tile[258];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;

    tile[t + 1] = i < n ? in[i] : 0;
    if (t == 0)
        tile[0] = i > 0 && i <= n ? in[i - 1] : 0;
    if (t == 255)
        tile[257] = i + 1 < n ? in[i + 1] : 0;
    if (i < n)
        out[i] = (tile[t] + tile[t + 1] + tile[t + 2]) / 3;
}
"""
x, y = np.random.default_rng(1).random(n, np.float32), np.zeros(n, np.float32)
smooth = lesson.kernel(SMOOTH, "smooth")
for finding in smooth.trace(40, 256, y, x, n, names=["out", "in", "n"]).findings:
    print(finding)

# %%
MENDED = SMOOTH.replace("    if (i < n)\n", "    __syncthreads();\n    if (i < n)\n")
mended = lesson.kernel(MENDED, "smooth").trace(40, 256, y, x, n, names=["out", "in", "n"])
assert not mended.findings
edges = np.pad(x, 1)
np.testing.assert_allclose(y, (edges[:-2] + edges[1:-1] + edges[2:]) / 3, rtol=1e-5)
print(mended.advice[0])

# %% [markdown]
# ## From the shell, and in your own CI
#
# ```sh
# gpumem trace energy.cu --kernel energy --grid 40 --block 256 --arg out:f32[10000] --arg p:f32[10000,4]=random --arg 10000
# gpumem advise energy.cu ... --fail-on hazards,uncoalesced,conflicts --sarif energy.sarif
# ```
#
# `trace` exits with status 1 where it found a hazard, `advise` where it found what `--fail-on` names. Kernels of Triton, Numba and
# others: give their PTX (`compiled.asm["ptx"]` in Triton, `kernel.inspect_asm()` in Numba).
#
# ## To take along
#
# - Test kernels in the lens: it needs no GPU, gives the same answer each time, and a wrong access is found the first time.
# - Assert counters as you assert results: `trace.counters` has Nsight Compute's names.
