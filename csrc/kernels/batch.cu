/* Permutes batches of small arrays of bytes: matrices of 17 x 33, blocks of images, heads.
 *
 * Must move 2 * items bytes. Each array is a contiguous piece on both sides, so that a step of whole arrays whose bytes
 * are whole vectors is read and written as it lies. A thread makes the same 16 bytes of every step, from the same 16
 * places of shared memory: it finds them once, and then takes 16 loads, 12 permutations, a store and an asynchronous
 * load of a later step for its vector. Blocks stay, one step after the other, with the next two under way.
 *
 * Lanes take their bytes in different orders, chosen such that they are on different banks, and turn the vector
 * afterwards (csrc/cuda/tile_turn.c).
 *
 * Limited by shared memory and by the waiting for the slowest. On an H200, in parts of a copy's speed, beside the tile
 * kernels, which look up each place: 120000 of 17 x 33 0.84-0.88 for 0.63, 65536 of 32 x 32 0.93 for 0.87. Lost there:
 * vectors taken apart and scattered, instead of gathered (17 x 33 0.77-0.82); bulk copies (the same); places two to a
 * register, so that a third block fits (0.85); four steps instead of three (the same); pieces of 25 bytes (5 x 5: 0.85
 * for 0.88 in tiles, whose table is short).
 */
#include "async.cuh"
#include "batch.h"
#include "vector.cuh"
#include "walk.cuh"

/* Where a byte lies in the source, relative to the step's first: its index on each axis, counted on. */
typedef struct gm_batch_place {
    unsigned int index[GM_BATCH_AXES];
    int src;
} gm_batch_place;

__device__ __forceinline__ gm_batch_place gm_batch_place_of(const gm_batch &p, unsigned int byte)
{
    gm_batch_place at = {{0}, 0};

#pragma unroll
    for (int k = 0; k < GM_BATCH_AXES; k++)
        if (k < p.naxes) {
            unsigned int next = k + 1 < p.naxes ? gm_divide(byte, p.axis[k].magic, p.axis[k].shift) : 0;
            at.index[k] = byte - next * p.axis[k].len;
            at.src += (int)at.index[k] * p.axis[k].src;
            byte = next;
        }
    return at;
}

/* One byte further along the destination. */
__device__ __forceinline__ void gm_batch_next(const gm_batch &p, gm_batch_place *at)
{
#pragma unroll
    for (int k = 0; k < GM_BATCH_AXES; k++) {
        at->src += p.axis[k].src;
        if (k + 1 == p.naxes || ++at->index[k] < p.axis[k].len)
            break;
        at->index[k] = 0;
        at->src -= (int)p.axis[k].len * p.axis[k].src;
    }
}

/* Sixteen bytes to shared memory, or what there are of them. */
__device__ __forceinline__ void gm_batch_fetch(unsigned char *to, const char *in, const gm_batch &p,
                                               unsigned long long at)
{
    if (at + 16 <= p.bytes)
        gm_async_copy(to, in + at);
    else
        for (int i = 0; at + i < p.bytes; i++)
            to[i] = (unsigned char)in[at + i];
}

__device__ __forceinline__ uint4 gm_batch_gather(const unsigned char *from, const int *place)
{
    uint4 made;
    unsigned int *word = &made.x;

#pragma unroll
    for (int w = 0; w < 4; w++) {
        unsigned int a = from[place[4 * w]], b = from[place[4 * w + 1]];
        unsigned int c = from[place[4 * w + 2]], d = from[place[4 * w + 3]];
        word[w] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
    }
    return made;
}

/* Blocks of so many threads fit a multiprocessor: two, on chips whose multiprocessors have no more than 1024 one. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#    define GM_BATCH_ROOM 1
#else
#    define GM_BATCH_ROOM 2
#endif

extern "C" __global__ void __launch_bounds__(GM_BATCH_THREADS, GM_BATCH_ROOM)
    move_batch(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_batch p)
{
    enum { STAGES = GM_BATCH_STAGES };
    extern __shared__ __align__(128) unsigned char shared[];
    unsigned int thread = threadIdx.x, bytes = p.vectors * 16;
    bool works = thread < p.vectors;
    int turn = (int)((thread % 32 >> p.turn_shift) * p.turn_step) & 15, place[16];

#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        unsigned int step = blockIdx.x + s * gridDim.x;
        if (works && step < p.steps)
            gm_batch_fetch(shared + s * bytes + thread * 16, in, p, (unsigned long long)step * bytes + thread * 16);
        gm_async_commit();
    }
    gm_batch_place at = gm_batch_place_of(p, thread * 16 + turn), begin = gm_batch_place_of(p, thread * 16);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        if (i + turn == 16)
            at = begin;
        place[i] = at.src;
        gm_batch_next(p, &at);
    }
    unsigned int stage = 0, later_stage = STAGES - 1;
    for (unsigned int step = blockIdx.x; step < p.steps; step += gridDim.x) {
        gm_async_wait_but<STAGES - 2>();
        __syncthreads(); /* the step has come, and the one before is done with */
        unsigned int later = step + (STAGES - 1) * gridDim.x;
        if (works && later < p.steps)
            gm_batch_fetch(shared + later_stage * bytes + thread * 16, in, p,
                           (unsigned long long)later * bytes + thread * 16);
        gm_async_commit();
        if (works) {
            unsigned long long to = (unsigned long long)step * bytes + thread * 16;
            uint4 made = gm_later<1>(gm_batch_gather(shared + stage * bytes, place), turn);
            if (to + 16 <= p.bytes)
                *(uint4 *)(out + to) = made;
            else
#pragma unroll
                for (int i = 0; i < 16; i++)
                    if (to + i < p.bytes)
                        out[to + i] = (char)((&made.x)[i / 4] >> (i % 4 * 8));
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        later_stage = later_stage + 1 == STAGES ? 0 : later_stage + 1;
    }
}
