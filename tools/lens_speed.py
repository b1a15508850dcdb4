"""How fast the lens is: warp instructions a second, and beside Numba's CUDA simulator on the same kernel.

usage: python tools/lens_speed.py [--json]

Needs nvcc or NVRTC; Numba's row is left out where Numba is not installed. One core; bounds checks and counters on.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

import gpumem

ROUNDS = 5
SIDE, NUMBA_SIDE = 2048, 64
SOURCE = """
extern "C" __global__ void padded(float *out, const float *in, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void mix(float *out, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned k = i;
    float a = i, b = 1.5f;
    for (int r = 0; r < rounds; r++) {
        k = (k ^ (k << 13)) + (k >> 7) * 3u;
        a = a * b + (float)(k & 255u);
        b = b * 0.999f + 0.001f;
    }
    out[i] = a + b + k;
}
"""
NUMBA = """
import time, numpy as np
from numba import cuda, float32
@cuda.jit
def padded(out, x, n):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    c, r = cuda.blockIdx.x * 32 + tx, cuda.blockIdx.y * 32 + ty
    for j in range(0, 32, 8):
        tile[ty + j, tx] = x[(r + j) * n + c]
    cuda.syncthreads()
    c, r = cuda.blockIdx.y * 32 + tx, cuda.blockIdx.x * 32 + ty
    for j in range(0, 32, 8):
        out[(r + j) * n + c] = tile[tx, ty + j]
n = SIDE
x, out = np.arange(n * n, dtype="f4"), np.zeros(n * n, "f4")
start = time.perf_counter()
padded[(n // 32, n // 32), (32, 8)](out, x, n)
print(time.perf_counter() - start)
assert (out.reshape(n, n) == x.reshape(n, n).T).all()
"""


def seconds(call):
    """The median of some rounds, after one that is not counted."""
    call()
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def transpose(kernel, side, **options):
    """A call that traces the transpose of a square, once checked."""
    x, out = np.arange(side * side, dtype="f4"), np.zeros(side * side, "f4")
    grid = (side // 32, side // 32)

    def run():
        return kernel.trace(grid, (32, 8), out, x, side, threads=1, machine_code=False, **options)

    run()
    assert (out.reshape(side, side) == x.reshape(side, side).T).all()
    return run


def numba_seconds():
    """The time that Numba's simulator takes for NUMBA_SIDE squared, or None without Numba."""
    program = NUMBA.replace("SIDE", str(NUMBA_SIDE))
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"no figure for Numba: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    padded, mix = gpumem.Kernel(SOURCE, "padded"), gpumem.Kernel(SOURCE, "mix")
    out = np.zeros(1 << 14, "f4")
    runs = {
        "arithmetic mix": lambda: mix.trace(128, 128, out, 1000, watch=(), threads=1, machine_code=False),
        f"padded transpose {SIDE}^2": transpose(padded, SIDE, watch=()),
        f"padded transpose {SIDE}^2, hazards watched": transpose(padded, SIDE),
    }
    figures = {name: {"instructions": run().instructions, "seconds": seconds(run)} for name, run in runs.items()}
    for figure in figures.values():
        figure["millions_a_second"] = figure["instructions"] / figure["seconds"] / 1e6
    theirs, ours = numba_seconds(), seconds(transpose(padded, NUMBA_SIDE, watch=()))
    result = {"figures": figures, "side": NUMBA_SIDE, "lens_seconds": ours, "numba_seconds": theirs}
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for name, figure in figures.items():
        print(f"{name:45} {figure['millions_a_second']:8.1f} M warp instructions/s")
    if theirs:
        times = f"{theirs:.3f} s, the lens {ours * 1e3:.3f} ms: {theirs / ours:.0f} times"
        print(f"padded transpose {NUMBA_SIDE}^2: Numba's simulator {times}")


main()
