/* What the kernels of sums share: one sum out of a block's threads, and one out of several blocks. */
#pragma once
#include "sum.h"
#include "sum_types.cuh"
#include "walk.cuh"

/* The place of index i over n axes, innermost first; `wide`: 64-bit division is needed. */
__device__ __forceinline__ gm_place gm_sum_place(const gm_walk_axis *axes, int n, int wide, long long i)
{
    gm_place at = {0, 0};

    for (int k = 0; k < n; k++) {
        const gm_walk_axis &axis = axes[k];
        long long next = 0; /* nothing is left behind the last axis */
        if (k + 1 < n)
            next = wide ? i / ((long long)axis.high << 32 | axis.len)
                        : (long long)gm_divide((unsigned int)i, axis.magic, axis.shift);
        long long index = k + 1 < n ? i - next * ((long long)axis.high << 32 | axis.len) : i;
        at.src += index * axis.src;
        at.dst += index * axis.dst;
        i = next;
    }
    return at;
}

/* Every partial sum carries the tag of its launch in the same 16 bytes, which are written and read as one: whoever
 * finds the tag has the sum, and neither a counter nor a fence is needed. The block that waits is the last of its
 * group, which the blocks before it do not wait for. It wipes the tags: a graph launches with the same tag again. */
template <typename A>
__device__ __forceinline__ void gm_sum_share(unsigned long long *scratch, long long i, A value, unsigned long long tag)
{
    unsigned long long *at = scratch + 2 * i, bits = 0;
    memcpy(&bits, &value, sizeof value);
#ifdef __CUDA_ARCH__
    asm volatile("{\n.reg .b128 both;\nmov.b128 both, {%1, %2};\nst.relaxed.gpu.global.b128 [%0], both;\n}" ::"l"(
                     __cvta_generic_to_global(at)),
                 "l"(bits), "l"(tag)
                 : "memory");
#else
    at[0] = bits;
    at[1] = tag;
#endif
}

__device__ __forceinline__ ulonglong2 gm_sum_shared(const unsigned long long *at)
{
    ulonglong2 both;
#ifdef __CUDA_ARCH__
    asm volatile("{\n.reg .b128 both;\nld.relaxed.gpu.global.b128 both, [%2];\nmov.b128 {%0, %1}, both;\n}"
                 : "=l"(both.x), "=l"(both.y)
                 : "l"(__cvta_generic_to_global(at))
                 : "memory");
#else
    both.x = at[0];
    both.y = at[1];
#endif
    return both;
}

/* The sum of `count` partial sums, `step` apart. */
template <typename A>
__device__ __forceinline__ A gm_sum_collect(unsigned long long *scratch, long long first, long long step, int count,
                                            unsigned long long tag)
{
    enum { AT_ONCE = 4 };
    A sum = gm_sum_zero<A>();

    for (int i = 0; i < count; i += AT_ONCE) {
        ulonglong2 found[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k < count)
                found[k] = gm_sum_shared(scratch + 2 * (first + (i + k) * step));
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k < count) {
                unsigned long long *at = scratch + 2 * (first + (i + k) * step);
                while (found[k].y != tag)
                    found[k] = gm_sum_shared(at);
                A value;
                memcpy(&value, &found[k].x, sizeof value);
                gm_sum_share(scratch, first + (i + k) * step, value, ~tag);
                sum += value;
            }
    }
    return sum;
}

/* Sums over teams of neighbouring lanes; every lane has its team's. */
template <typename A> __device__ __forceinline__ A gm_sum_lanes(A a, int lanes)
{
    for (int apart = lanes / 2; apart; apart /= 2)
        a += __shfl_xor_sync(0xffffffffu, a, apart);
    return a;
}

/* The sum over a block, in thread 0; `room` holds a sum for each warp. */
template <typename A> __device__ __forceinline__ A gm_sum_block(A a, A *room)
{
    int warps = (int)blockDim.x / 32, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;

    a = gm_sum_lanes(a, 32);
    if (warps == 1)
        return a;
    if (lane == 0)
        room[warp] = a;
    __syncthreads();
    return gm_sum_lanes(lane < warps ? room[lane] : gm_sum_zero<A>(), 32);
}

/* The sum of a block's own part and of `others` parts that are left at `first`, `step` apart; in thread 0. */
template <typename A>
__device__ __forceinline__ A gm_sum_join(A own, A *room, const gm_sum &sum, long long first, long long step, int others)
{
    int threads = (int)blockDim.x, me = (int)threadIdx.x;
    int mine = me < others ? (others - me - 1) / threads + 1 : 0;
    A found = gm_sum_collect<A>(sum.scratch, first + me * step, threads * step, mine, sum.tag);

    if (me == 0)
        found += own;
    __syncthreads(); /* the room is used again */
    return gm_sum_block(found, room);
}

/* Makes one result out of all slices of a group of one: stores it, or leaves a part for the last slice. Of very many
 * slices, each bunch leaves one part of its own, so that the last one has few to wait for and to add. */
template <class S, typename A = typename S::acc>
__device__ __forceinline__ void gm_sum_finish(char *out, A a, A *room, const gm_sum &sum, unsigned int group,
                                              unsigned int slice)
{
    unsigned int slices = sum.slices, place = slice, first = 0;

    if (sum.bunch) { /* of one group */
        unsigned int bunch = slice / sum.bunch;
        first = bunch * sum.bunch;
        unsigned int last = min(first + sum.bunch, slices) - 1;
        if (slice == last) {
            a = gm_sum_join(a, room, sum, first, 1, (int)(last - first));
            place = slices + bunch;
        }
        if (slice + 1 == slices)
            a = gm_sum_join(a, room, sum, slices, 1, (int)bunch);
    } else if (slices > 1 && slice + 1 == slices)
        a = gm_sum_join(a, room, sum, group, sum.groups, (int)slices - 1);
    if (threadIdx.x != 0)
        return;
    if (slice + 1 < slices)
        gm_sum_share(sum.scratch, (long long)place * sum.groups + group, a, sum.tag);
    else
        gm_sum_store<S>(out, sum, a);
}

/* A kernel whose sum has axes; so many of its blocks are to fit on a multiprocessor. */
#define GM_SUM_KERNEL(name, call, blocks, type)                                                                        \
    extern "C" __global__ void __launch_bounds__(GM_SUM_THREADS, blocks)                                               \
        name##_##type(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_sum sum,         \
                      const __grid_constant__ gm_sum_axes axes)                                                        \
    {                                                                                                                  \
        call(out, in, sum, axes);                                                                                      \
    }

#define GM_SUM_TYPES(KERNEL)                                                                                           \
    KERNEL(bool)                                                                                                       \
    KERNEL(int8)                                                                                                       \
    KERNEL(int16)                                                                                                      \
    KERNEL(int32)                                                                                                      \
    KERNEL(int64)                                                                                                      \
    KERNEL(uint8)                                                                                                      \
    KERNEL(uint16)                                                                                                     \
    KERNEL(uint32)                                                                                                     \
    KERNEL(float16)                                                                                                    \
    KERNEL(bfloat16)                                                                                                   \
    KERNEL(float32)                                                                                                    \
    KERNEL(float64)
