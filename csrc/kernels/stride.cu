/* Copies to one dense run, of rows whose items follow one another in the source from any address on: forwards,
 * backwards, or every second one.
 *
 * Must move 2 * bytes, and 3 * bytes where every second item is left out. A thread writes one aligned vector, which it
 * makes of the two or three of the source that hold its items; lanes side by side read what lies side by side, and what
 * two of them need comes from the first-level cache. Blocks begin with the destination's lines. A vector that has one
 * row's end and the next one's start is made of both, so that all are written whole.
 *
 * On an H200, in parts of the fastest copy: one run at any address 0.99; rows of 23170 bytes forwards 0.98-0.99,
 * backwards 0.97-0.99, every second item of theirs 1.01; rows of 300, 600 and 1200 bytes at odd addresses 0.85, 0.90
 * and 0.95, backwards 0.77, 0.85 and 0.94. A vector a thread, and all the threads that a multiprocessor can have: with
 * 40 registers instead of 32, 0.83-0.90, and with two vectors a thread 0.74-0.94. Lost, one run at an odd address: the
 * second vector from the next lane by shuffles 0.98, from other warps through shared memory 0.92-0.97, all through
 * shared memory by the copy engine 0.96-0.98; two, four and eight vectors a thread 0.96-0.97; past the first-level
 * cache, 128 or 256 bytes at a time to the second, 0.93-0.96; whole vectors that do not begin with lines 0.97-0.99.
 */
#include "stride.h"
#include "vector.cuh"
#include "walk.cuh"

/* How a row's items lie in the source: STEP of UNIT bytes from one to the next. I: int where all bytes can be counted
 * by it, which takes fewer registers. */
template <int UNIT, int STEP, typename I> struct gm_stride_way {
    enum { VECTORS = STEP == 2 ? 3 : 2 }; /* of the source, that hold a vector of the row */

    /* Where the items begin that come to be the row's bytes [at, at + 16). */
    static __device__ __forceinline__ unsigned long long from(const char *in, const gm_stride &p, I row, I at)
    {
        return (unsigned long long)in + row * p.pitch + (STEP < 0 ? UNIT - 16 - (long long)at : (long long)at * STEP);
    }

    /* Those items; at the array's ends byte by byte, as far as they are there. */
    static __device__ __forceinline__ uint4 made(unsigned long long start, const gm_stride &p)
    {
        unsigned long long at = start & ~15ull, half[2] = {0, 0};
        int shift = (int)start & 15;
        uint4 v[VECTORS];

        if (at + 16 > p.src_begin && at + 16 * VECTORS <= p.src_end) {
#pragma unroll
            for (int k = 0; k < VECTORS; k++)
                if (k < VECTORS - 1 || shift)
                    v[k] = __ldg((const uint4 *)at + k);
            if (shift)
#pragma unroll
                for (int k = 0; k + 1 < VECTORS; k++)
                    v[k] = gm_shifted<UNIT>(v[k], v[k + 1], shift);
            return STEP == 1 ? v[0] : STEP < 0 ? gm_reversed<UNIT>(v[0]) : gm_every_second<UNIT>(v[0], v[1]);
        }
#pragma unroll 1
        for (int b = 0; b < 16; b++) {
            at = start + (STEP < 0 ? 16 - UNIT : 0) + (b & -UNIT) * STEP + b % UNIT;
            if (at >= p.src_begin && at < p.src_end) {
                unsigned long long byte = (unsigned long long)*(const unsigned char *)at << b % 8 * 8;
                half[0] |= b < 8 ? byte : 0;
                half[1] |= b < 8 ? 0 : byte;
            }
        }
        return make_uint4((unsigned int)half[0], (unsigned int)(half[0] >> 32), (unsigned int)half[1],
                          (unsigned int)(half[1] >> 32));
    }
};

__device__ __forceinline__ int gm_stride_row(const gm_stride &p, int at)
{
    return (int)gm_divide((unsigned int)at, p.magic, p.shift);
}

__device__ __forceinline__ long long gm_stride_row(const gm_stride &p, long long at)
{
    long long row = (long long)__umul64hi((unsigned long long)at, p.inverse);
    return row * p.row > at ? row - 1 : row;
}

/* ROWS: there are several. */
template <int UNIT, int STEP, typename I, bool ROWS>
__device__ __forceinline__ void move_stride(char *__restrict__ out, const char *__restrict__ in, const gm_stride &p)
{
    typedef gm_stride_way<UNIT, STEP, I> way;
    int before = (int)((unsigned long long)out & 127);
    I bytes = (I)p.bytes, at = ((I)blockIdx.x * GM_STRIDE_THREADS + (int)threadIdx.x) * 16 - before, row = 0;

    if (at <= -16 || at >= bytes)
        return;
    if (ROWS && at > 0)
        row = gm_stride_row(p, at);
    I begin = ROWS ? at - row * (I)p.row : at;
    int rest = ROWS ? (int)min((I)p.row - begin, (I)16) : 16; /* bytes of this row; the others are the next one's */
    uint4 made = way::made(way::from(in, p, row, begin), p);
    if (ROWS && rest < 16 && at + rest < bytes)
        made = gm_joined(made, way::made(way::from(in, p, row + 1, (I)-rest), p), rest);
    if (at >= 0 && at + 16 <= bytes) {
        *(uint4 *)(out + at) = made;
        return;
    }
    unsigned long long low = made.x | (unsigned long long)made.y << 32,
                       high = made.z | (unsigned long long)made.w << 32;
#pragma unroll 1
    for (int b = 0; b < 16; b++)
        if (at + b >= 0 && at + b < bytes)
            out[at + b] = (char)((b < 8 ? low : high) >> b % 8 * 8);
}

/* As many registers as leave a multiprocessor all of its threads, whatever chip the PTX is assembled for. */
#define GM_KERNEL(name, unit, step, index, rows)                                                                       \
    extern "C" __global__ void __maxnreg__(32)                                                                         \
        name(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_stride stride)            \
    {                                                                                                                  \
        move_stride<unit, step, index, rows>(out, in, stride);                                                         \
    }
#define GM_KERNELS(name, unit, step)                                                                                   \
    GM_KERNEL(name##_##unit, unit, step, int, true)                                                                    \
    GM_KERNEL(name##_wide_##unit, unit, step, long long, true)

GM_KERNEL(move_run, 1, 1, long long, false)
GM_KERNELS(move_forwards, 1, 1)
GM_KERNELS(move_backwards, 1, -1)
GM_KERNELS(move_backwards, 2, -1)
GM_KERNELS(move_backwards, 4, -1)
GM_KERNELS(move_backwards, 8, -1)
GM_KERNELS(move_second, 1, 2)
GM_KERNELS(move_second, 2, 2)
GM_KERNELS(move_second, 4, 2)
GM_KERNELS(move_second, 8, 2)
