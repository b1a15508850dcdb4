// What csrc/kernels needs of CUDA, on a CPU: the threads of a block are coroutines that a barrier switches between.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

using std::max;
using std::min;

#define __device__
#define __global__
#define __forceinline__ inline
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__
#define __align__(n) __attribute__((aligned(n)))

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct gm_index {
    unsigned x;
};
static gm_index threadIdx, blockIdx, blockDim, gridDim;
unsigned char shared[256 * 1024] __attribute__((aligned(128)));

static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

static unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

static unsigned __byte_perm(unsigned a, unsigned b, unsigned which)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    unsigned made = 0;
    for (int i = 0; i < 4; i++)
        made |= (unsigned)(bytes >> 8 * (which >> 4 * i & 7) & 255) << 8 * i;
    return made;
}

static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (bits & 31));
}

template <typename T> static T __ldg(const T *from)
{
    return *from;
}

static ucontext_t scheduler;
static std::vector<ucontext_t> threads;
static std::vector<std::vector<char>> stacks;
static std::vector<bool> finished;
static std::function<void()> body;

static void __syncthreads()
{
    swapcontext(&threads[threadIdx.x], &scheduler);
}

// Whether any thread of the block says so: once in a kernel.
static bool any;

static int __syncthreads_or(int flag)
{
    any |= flag != 0;
    __syncthreads();
    return any;
}

static void run_thread()
{
    body();
    finished[threadIdx.x] = true;
}

// Runs a block after the other; within one, every thread as far as its next barrier, in turn.
static void launch(unsigned grid, unsigned block, const std::function<void()> &kernel)
{
    enum { STACK = 64 * 1024 };
    body = kernel;
    gridDim.x = grid;
    blockDim.x = block;
    threads.resize(block);
    stacks.resize(block, std::vector<char>(STACK));
    for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++) {
        memset(shared, 0xCD, sizeof shared);
        finished.assign(block, false);
        any = false;
        for (unsigned i = 0; i < block; i++) {
            getcontext(&threads[i]);
            threads[i].uc_stack.ss_sp = stacks[i].data();
            threads[i].uc_stack.ss_size = STACK;
            threads[i].uc_link = &scheduler;
            makecontext(&threads[i], run_thread, 0);
        }
        for (bool left = true; left;) {
            left = false;
            for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++)
                if (!finished[threadIdx.x]) {
                    swapcontext(&scheduler, &threads[threadIdx.x]);
                    left |= !finished[threadIdx.x];
                }
        }
    }
}
