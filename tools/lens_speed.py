"""How fast the lens is: warp instructions a second, over cores, and beside Numba's CUDA simulator on the same kernel.

usage: python tools/lens_speed.py [--json]

Needs nvcc or NVRTC; Numba's row is left out where Numba is not installed. Bounds checks and counters are on; accesses
are counted as the PTX is written.
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
SIDE, WHOLE, NUMBA_SIDE = 2048, 4096, 64
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


def seconds(*calls, rounds=ROUNDS):
    """The median of some rounds of each call, taken in turns, after one round that is not counted."""
    taken = [[] for _ in calls]
    for count in range(rounds + 1):
        for call, times in zip(calls, taken, strict=True):
            start = time.perf_counter()
            call()
            if count:
                times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in taken]


def transpose(kernel, side, threads=1, **options):
    """A call that traces the transpose of a square, once checked."""
    x, out = np.arange(side * side, dtype="f4"), np.zeros(side * side, "f4")
    grid = (side // 32, side // 32)

    def run():
        return kernel.trace(grid, (32, 8), out, x, side, threads=threads, machine_code=False, **options)

    run()
    assert (out.reshape(side, side) == x.reshape(side, side).T).all()
    return run


def arithmetic(kernel, threads=1):
    out = np.zeros(1 << 14, "f4")
    return lambda: kernel.trace(128, 128, out, 1000, watch=(), threads=threads, machine_code=False)


def numba_seconds():
    """The time that Numba's simulator takes for NUMBA_SIDE squared, or None without Numba."""
    program = NUMBA.replace("SIDE", str(NUMBA_SIDE))
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"no figure for Numba: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return float(done.stdout)


def cores():
    """How many there are for this process."""
    return len(os.sched_getaffinity(0))


def measured():
    """All figures, as they are printed and as --json has them."""
    padded, mix = gpumem.Kernel(SOURCE, "padded"), gpumem.Kernel(SOURCE, "mix")
    runs = {
        "arithmetic mix": arithmetic(mix),
        f"padded transpose {SIDE}^2": transpose(padded, SIDE, watch=()),
        f"padded transpose {SIDE}^2, shared memory watched": transpose(padded, SIDE, watch=("shared",)),
        f"padded transpose {SIDE}^2, registers watched too": transpose(padded, SIDE),
    }
    figures = {
        name: {"instructions": run().instructions, "seconds": taken}
        for (name, run), taken in zip(runs.items(), seconds(*runs.values()), strict=True)
    }
    for figure in figures.values():
        figure["millions_a_second"] = figure["instructions"] / figure["seconds"] / 1e6
    counts = sorted({2**k for k in range(cores().bit_length())} | {cores()})
    scaling = {
        f"padded transpose {WHOLE}^2": seconds(*(transpose(padded, WHOLE, n, watch=()) for n in counts), rounds=3),
        "arithmetic mix": seconds(*(arithmetic(mix, n) for n in counts), rounds=3),
    }
    ours = seconds(transpose(padded, NUMBA_SIDE, watch=()))[0]
    return {
        "schema": "gpumem.lens_speed/1",
        "figures": figures,
        "threads": counts,
        "scaling": scaling,
        "side": NUMBA_SIDE,
        "lens_seconds": ours,
        "numba_seconds": numba_seconds(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measured()
    if options.json:
        print(json.dumps(result, indent=1))
        return
    print("one core, million warp instructions a second")
    for name, figure in result["figures"].items():
        print(f"  {name:52} {figure['millions_a_second']:8.1f}")
    print("cores: seconds (times as fast as on one)")
    for name, taken in result["scaling"].items():
        each = (f"{n}: {t:.3f} ({taken[0] / t:.2f})" for n, t in zip(result["threads"], taken, strict=True))
        print(f"  {name:52} {', '.join(each)}")
    theirs, ours = result["numba_seconds"], result["lens_seconds"]
    if theirs:
        print(
            f"seconds for the padded transpose {NUMBA_SIDE}^2: Numba's simulator {theirs:.3f}, the lens {ours:.5f}: ",
            end="",
        )
        print(f"{theirs / ours:.0f} times")


if __name__ == "__main__":
    main()
