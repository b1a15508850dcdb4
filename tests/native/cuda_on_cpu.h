// What csrc/kernels needs of CUDA, on a CPU: the threads of a block are coroutines that a barrier switches between.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
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
#define __maxnreg__(...)
#define __shared__
#define __align__(n) __attribute__((aligned(n)))

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
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

static unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
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

template <typename T, int SIZE> static T dot(T a, T b, int n)
{
    T sum = 0;
    for (int i = 0; i < n; i++)
        if (SIZE == 1)
            sum += (T)(std::is_signed_v<T> ? (T)(int8_t)(a >> 8 * i) : (T)(uint8_t)(a >> 8 * i)) *
                   (std::is_signed_v<T> ? (T)(int8_t)(b >> 8 * i) : (T)(uint8_t)(b >> 8 * i));
        else
            sum += (T)(std::is_signed_v<T> ? (T)(int16_t)(a >> 16 * i) : (T)(uint16_t)(a >> 16 * i)) *
                   (std::is_signed_v<T> ? (T)(int8_t)(b >> 8 * i) : (T)(uint8_t)(b >> 8 * i));
    return sum;
}

template <typename T> static T __dp4a(T a, T b, T c)
{
    return c + dot<T, 1>(a, b, 4);
}

template <typename T> static T __dp2a_lo(T a, T b, T c)
{
    return c + dot<T, 2>(a, b, 2);
}

template <typename To, typename From> static To same_bits(From from)
{
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static float __uint_as_float(unsigned bits)
{
    return same_bits<float>(bits);
}

static double __longlong_as_double(long long bits)
{
    return same_bits<double>(bits);
}

static long long __double_as_longlong(double x)
{
    return same_bits<long long>(x);
}

static float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}

static float gm_emulated_half(unsigned short bits)
{
    return (float)same_bits<_Float16>(bits);
}

template <typename T> static T __ldg(const T *from)
{
    return *from;
}

// Loads and stores with a hint for the caches, of which a CPU's are told nothing.
#define GM_HINTED(load, store)                                                                                         \
    template <typename T> static T load(const T *from)                                                                 \
    {                                                                                                                  \
        return *from;                                                                                                  \
    }                                                                                                                  \
    template <typename T> static void store(T *to, T value)                                                            \
    {                                                                                                                  \
        *to = value;                                                                                                   \
    }
GM_HINTED(__ldca, __stwb)
GM_HINTED(__ldcg, __stcg)
GM_HINTED(__ldcs, __stcs)
GM_HINTED(__ldcv, __stwt)

template <typename T, int N> struct alignas(sizeof(T) * N) gm_vector_of {
    T item[N];
};
typedef gm_vector_of<unsigned char, 2> uchar2;
typedef gm_vector_of<unsigned char, 4> uchar4;
typedef gm_vector_of<short, 2> short2;
typedef gm_vector_of<short, 4> short4;
typedef gm_vector_of<int, 2> int2;
typedef gm_vector_of<int, 4> int4;
typedef gm_vector_of<float, 2> float2;
typedef gm_vector_of<float, 4> float4;
typedef gm_vector_of<long long, 2> longlong2;
typedef gm_vector_of<double, 2> double2;

// A thread lives on from block to block, and begins the next kernel where it ended the last. What is saved of it is what
// the compiler's own setjmp saves: swapcontext would ask the system twice at each barrier, and once more under a
// sanitizer.
struct gm_thread {
    enum { STACK = 64 * 1024 };
    void *at[5];
    bool finished;
    char stack[STACK];
};
static void *scheduler[5];
static std::vector<std::unique_ptr<gm_thread>> threads;
static std::function<void()> body;

// Apart from its setjmp, or gcc takes it that nothing comes back to there.
static __attribute__((noinline, noclone, noreturn)) void resume(void **to)
{
    __builtin_longjmp(to, 1);
}

static __attribute__((noinline)) void go(void **from, void **to)
{
    if (!__builtin_setjmp(from))
        resume(to);
}

// Threads that wait for one another: a warp's or a block's.
struct gm_barrier {
    unsigned alive, waiting;
    unsigned long passed; // how often all had come
};
static std::vector<gm_barrier> barriers; // of each warp; the last is the block's

static void pass(gm_barrier &barrier)
{
    if (barrier.waiting && barrier.waiting == barrier.alive) {
        barrier.waiting = 0;
        barrier.passed++;
    }
}

static void wait_at(gm_barrier &barrier)
{
    unsigned long before = barrier.passed;
    barrier.waiting++;
    pass(barrier);
    // Also the last to come lets the others go first, so that no thread runs on into the next phase alone.
    do
        go(threads[threadIdx.x]->at, scheduler);
    while (barrier.passed == before);
}

static void __syncthreads()
{
    wait_at(barriers.back());
}

static void __syncwarp(unsigned = 0xffffffffu)
{
    wait_at(barriers[threadIdx.x / 32]);
}

// Whether any thread of the block says so: once in a kernel.
static bool any;

static int __syncthreads_or(int flag)
{
    any |= flag != 0;
    __syncthreads();
    return any;
}

// A lane whose partner is no lane of the warp keeps its own value.
template <typename T> static T __shfl_sync_from(T value, unsigned lane)
{
    static unsigned char values[1024][16];
    unsigned warp = threadIdx.x / 32 * 32;
    memcpy(values[threadIdx.x], &value, sizeof value);
    __syncwarp();
    if (lane < 32 && warp + lane < blockDim.x)
        memcpy(&value, values[warp + lane], sizeof value);
    __syncwarp();
    return value;
}

template <typename T> static T __shfl_sync(unsigned, T value, int lane)
{
    return __shfl_sync_from(value, (unsigned)lane % 32);
}

template <typename T> static T __shfl_down_sync(unsigned, T value, unsigned lanes)
{
    return __shfl_sync_from(value, threadIdx.x % 32 + lanes);
}

template <typename T> static T __shfl_up_sync(unsigned, T value, unsigned lanes)
{
    return __shfl_sync_from(value, threadIdx.x % 32 - lanes);
}

template <typename T> static T __shfl_xor_sync(unsigned, T value, int lanes)
{
    return __shfl_sync_from(value, threadIdx.x % 32 ^ (unsigned)lanes);
}

static void run_thread()
{
    for (;;) {
        gm_thread &self = *threads[threadIdx.x];
        go(self.at, scheduler);
        body();
        self.finished = true;
        for (gm_barrier *barrier : {&barriers[threadIdx.x / 32], &barriers.back()}) {
            barrier->alive--;
            pass(*barrier);
        }
    }
}

// Another thread, which waits for its first kernel; its number is threadIdx.x.
static void add_thread()
{
    static ucontext_t away;
    threads.push_back(std::make_unique<gm_thread>());
    getcontext(&away);
    away.uc_stack.ss_sp = threads.back()->stack;
    away.uc_stack.ss_size = gm_thread::STACK;
    makecontext(&away, run_thread, 0);
    if (!__builtin_setjmp(scheduler))
        setcontext(&away);
}

// Runs a block after the other; within one, every thread as far as its next barrier, in turn. A warp's lanes need not
// run in step, as on the hardware.
static void launch(unsigned grid, unsigned block, const std::function<void()> &kernel)
{
    body = kernel;
    gridDim.x = grid;
    blockDim.x = block;
    for (threadIdx.x = (unsigned)threads.size(); threadIdx.x < block; threadIdx.x++)
        add_thread();
    for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++) {
        memset(shared, 0xCD, sizeof shared);
        any = false;
        barriers.assign((block + 31) / 32, {});
        for (unsigned i = 0; i < block; i++) {
            threads[i]->finished = false;
            barriers[i / 32].alive++;
        }
        barriers.push_back({block, 0, 0});
        for (bool left = true; left;) {
            left = false;
            for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++)
                if (!threads[threadIdx.x]->finished) {
                    go(scheduler, threads[threadIdx.x]->at);
                    left |= !threads[threadIdx.x]->finished;
                }
        }
    }
}
