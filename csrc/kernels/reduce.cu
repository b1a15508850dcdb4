/* Sums: each block makes one number of its items, and the same kernel is launched on these numbers until one is left.
 *
 * Must move n * sizeof(T) bytes. Each number is added at one place in one order, so the same bits come out every time.
 * A float32 sum adds in float32, but as a tree: its error grows with log2(n). Integers add up to 64 bits.
 * Counts beside a stage are per block of 256 threads, 4-byte items: what its 8 warps do for the additions in shared
 * memory, where each of 8 steps halves the numbers that are left.
 */
#include "access.cuh"
#include "reduce.h"

template <typename T, typename A> __device__ __forceinline__ A reduce_item(const T *in, long long n, long long i)
{
    return i < n ? (A)in[i] : A();
}

/* interleaved: every 2nd, 4th, 8th thread adds. No bank conflict, but warps diverge: all 8 stay busy for 5 of 8 steps
 * with ever fewer lanes that do something. */
template <typename T, typename A> __device__ void reduce_interleaved(A *__restrict__ out, const T *__restrict__ in, const gm_reduce &p)
{
    __shared__ A part[GM_REDUCE_THREADS];
    int t = threadIdx.x;

    gm_put(&part[t], reduce_item<T, A>(in, p.n, (long long)blockIdx.x * GM_REDUCE_THREADS + t));
    __syncthreads();
    for (int step = 1; step < GM_REDUCE_THREADS; step *= 2) {
        if (t % (2 * step) == 0)
            gm_put(&part[t], (A)(gm_get(&part[t]) + gm_get(&part[t + step])));
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = gm_get(&part[0]);
}

/* strided: the first threads add, so that whole warps retire. Their items lie 2, 4, 8 ... words apart: up to 8 lanes
 * want one bank. As many wavefronts as before in all, but a warp has to wait for more of its own: on an H200 1.27 times
 * as long as interleaved. */
template <typename T, typename A> __device__ void reduce_strided(A *__restrict__ out, const T *__restrict__ in, const gm_reduce &p)
{
    __shared__ A part[GM_REDUCE_THREADS];
    int t = threadIdx.x;

    gm_put(&part[t], reduce_item<T, A>(in, p.n, (long long)blockIdx.x * GM_REDUCE_THREADS + t));
    __syncthreads();
    for (int step = 1; step < GM_REDUCE_THREADS; step *= 2) {
        int i = 2 * step * t;
        if (i < GM_REDUCE_THREADS)
            gm_put(&part[i], (A)(gm_get(&part[i]) + gm_get(&part[i + step])));
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = gm_get(&part[0]);
}

/* The tree that the next two stages share: the first threads add what lies half of the rest away. */
template <typename A> __device__ __forceinline__ void reduce_tree(A *part)
{
    int t = threadIdx.x;

    for (int step = GM_REDUCE_THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (t < step)
            gm_put(&part[t], (A)(gm_get(&part[t]) + gm_get(&part[t + step])));
    }
}

/* sequential: neighbouring lanes on neighbouring words: no conflict, and whole warps retire. */
template <typename T, typename A> __device__ void reduce_sequential(A *__restrict__ out, const T *__restrict__ in, const gm_reduce &p)
{
    __shared__ A part[GM_REDUCE_THREADS];
    int t = threadIdx.x;

    gm_put(&part[t], reduce_item<T, A>(in, p.n, (long long)blockIdx.x * GM_REDUCE_THREADS + t));
    reduce_tree(part);
    if (t == 0)
        out[blockIdx.x] = gm_get(&part[0]);
}

/* first_add: a thread adds two items on their way to shared memory. Before, half of the threads did nothing but load. */
template <typename T, typename A> __device__ void reduce_first_add(A *__restrict__ out, const T *__restrict__ in, const gm_reduce &p)
{
    __shared__ A part[GM_REDUCE_THREADS];
    int t = threadIdx.x;
    long long i = (long long)blockIdx.x * 2 * GM_REDUCE_THREADS + t;

    gm_put(&part[t], (A)(reduce_item<T, A>(in, p.n, i) + reduce_item<T, A>(in, p.n, i + GM_REDUCE_THREADS)));
    reduce_tree(part);
    if (t == 0)
        out[blockIdx.x] = gm_get(&part[0]);
}

template <typename A> __device__ __forceinline__ A reduce_warp(A sum)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, lanes);
    return sum;
}

/* The block's sum, in its first thread. */
template <typename A> __device__ __forceinline__ A reduce_block(A sum)
{
    enum { WARPS = GM_REDUCE_THREADS / 32 };
    __shared__ A part[WARPS];
    int t = threadIdx.x;

    sum = reduce_warp(sum);
    if (t % 32 == 0)
        gm_put(&part[t / 32], sum);
    __syncthreads();
    return t < 32 ? reduce_warp(t < WARPS ? gm_get(&part[t]) : A()) : A();
}

/* shuffle: lanes add from register to register; shared memory carries 8 numbers, and there is 1 barrier instead of 8. */
template <typename T, typename A> __device__ void reduce_shuffle(A *__restrict__ out, const T *__restrict__ in, const gm_reduce &p)
{
    long long i = (long long)blockIdx.x * 2 * GM_REDUCE_THREADS + threadIdx.x;
    A sum = reduce_block((A)(reduce_item<T, A>(in, p.n, i) + reduce_item<T, A>(in, p.n, i + GM_REDUCE_THREADS)));

    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

template <typename T> union gm_reduce_vector {
    uint4 whole;
    T item[16 / sizeof(T)];
};

/* vectorised: loads of 16 bytes, 16 sectors a warp, four of them under way in each thread. Block 0 adds the items before
 * the first whole vector and behind the last. */
template <typename T, typename A> __device__ void reduce_vectorised(A *__restrict__ out, const T *__restrict__ in, const gm_reduce &p)
{
    enum { ITEMS = 16 / sizeof(T) };
    const uint4 *vectors = (const uint4 *)(in + p.head);
    long long first = (long long)blockIdx.x * GM_REDUCE_VECTORS * GM_REDUCE_THREADS + threadIdx.x;
    gm_reduce_vector<T> vector[GM_REDUCE_VECTORS];
    A sum = A();

#pragma unroll
    for (int k = 0; k < GM_REDUCE_VECTORS; k++) {
        long long i = first + k * GM_REDUCE_THREADS;
        vector[k].whole = i < p.vectors ? vectors[i] : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < GM_REDUCE_VECTORS; k++)
#pragma unroll
        for (int j = 0; j < ITEMS; j++)
            sum += (A)vector[k].item[j];
    if (blockIdx.x == 0) {
        long long tail = p.head + p.vectors * ITEMS + threadIdx.x;
        if (threadIdx.x < p.head)
            sum += (A)in[threadIdx.x];
        if (tail < p.n && threadIdx.x < ITEMS)
            sum += (A)in[tail];
    }
    sum = reduce_block(sum);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

#define GM_KERNEL(name, suffix, type, sum)                                                                             \
    extern "C" __global__ void __launch_bounds__(GM_REDUCE_THREADS) name##_##suffix(sum *__restrict__ out, const type *__restrict__ in, const __grid_constant__ gm_reduce p) \
    {                                                                                                                  \
        name<type, sum>(out, in, p);                                                                                   \
    }
#define GM_KERNELS(name)                            \
    GM_KERNEL(name, float32, float, float)          \
    GM_KERNEL(name, float64, double, double)        \
    GM_KERNEL(name, int32, int, long long)          \
    GM_KERNEL(name, int64, long long, long long)

GM_KERNELS(reduce_interleaved)
GM_KERNELS(reduce_strided)
GM_KERNELS(reduce_sequential)
GM_KERNELS(reduce_first_add)
GM_KERNELS(reduce_shuffle)
GM_KERNELS(reduce_vectorised)
