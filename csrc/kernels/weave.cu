/* Weaves bytes of two to four planes into records, and takes records apart: images, pixel shuffles, patches.
 *
 * Must move 2 * items bytes. Every plane and every record of 16 items begins at a vector, on both sides. A thread has a
 * vector of each plane, whose bytes it deals out in registers, two or three permutations for each word of four; a warp
 * shares the records through shared memory of its own, so that its lanes store, or load, vectors side by side. There is
 * no barrier but the warp's. Units follow one another along the destination, whatever axes they are: a record of 16
 * items is written by neighbours also where the planes are read 16 bytes at a time (patches of images).
 *
 * Limited by memory. On an H200, in parts of a copy's speed, beside the kernels that take any number of fields:
 * 64 images of 3 x 224 x 224 to pixels 0.98-1.05 for 0.75-0.81, patches of 16 x 16 of them 0.91-0.95 for 0.74-0.77,
 * pixel shuffle 0.95-0.96 for 0.85 and back 0.95-0.98 for 0.82, four planes of 6144 x 6144 0.975 for 0.95; the same as
 * there for pairs and images taken apart. Two units a thread instead of one: from -0.03 (four planes, patches) to +0.01
 * (two).
 */
#include "matrix.cuh"
#include "weave.h"

/* Four words' bytes, each the next word's: a0 a1 a2 a3, b0 ... become a0 b0 c0 d0, a1 ... */
__device__ __forceinline__ void gm_weave_four(unsigned int *made, const unsigned int *from)
{
    unsigned int ab = __byte_perm(from[0], from[1], 0x5140), cd = __byte_perm(from[2], from[3], 0x5140);
    unsigned int ab_high = __byte_perm(from[0], from[1], 0x7362), cd_high = __byte_perm(from[2], from[3], 0x7362);

    made[0] = __byte_perm(ab, cd, 0x5410);
    made[1] = __byte_perm(ab, cd, 0x7632);
    made[2] = __byte_perm(ab_high, cd_high, 0x5410);
    made[3] = __byte_perm(ab_high, cd_high, 0x7632);
}

/* A word of each plane becomes as many of records. */
template <int FIELDS> __device__ __forceinline__ void gm_weave_words(unsigned int *made, const unsigned int *from)
{
    if constexpr (FIELDS == 2) {
        made[0] = __byte_perm(from[0], from[1], 0x5140);
        made[1] = __byte_perm(from[0], from[1], 0x7362);
    } else if constexpr (FIELDS == 3) {
        made[0] = __byte_perm(__byte_perm(from[0], from[1], 0x1040), from[2], 0x3410);
        made[1] = __byte_perm(__byte_perm(from[0], from[1], 0x6205), from[2], 0x3250);
        made[2] = __byte_perm(__byte_perm(from[0], from[1], 0x0730), from[2], 0x7216);
    } else
        gm_weave_four(made, from);
}

/* And back. */
template <int FIELDS> __device__ __forceinline__ void gm_unweave_words(unsigned int *made, const unsigned int *from)
{
    if constexpr (FIELDS == 2) {
        made[0] = __byte_perm(from[0], from[1], 0x6420);
        made[1] = __byte_perm(from[0], from[1], 0x7531);
    } else if constexpr (FIELDS == 3) {
        made[0] = __byte_perm(__byte_perm(from[0], from[1], 0x0630), from[2], 0x5210);
        made[1] = __byte_perm(__byte_perm(from[0], from[1], 0x0741), from[2], 0x6210);
        made[2] = __byte_perm(__byte_perm(from[0], from[1], 0x0052), from[2], 0x7410);
    } else
        gm_weave_four(made, from); /* the transpose of four by four, which is its own inverse */
}

/* Where the records' vector `v` lies: eight lanes whose vectors are FIELDS apart are on different banks, as are eight
 * whose vectors are neighbours. */
template <int FIELDS> __device__ __forceinline__ int gm_weave_place(int v)
{
    return FIELDS == 3 ? v : v + (v >> 3);
}

template <int FIELDS, bool WEAVES>
__device__ void move_weave(char *__restrict__ out, const char *__restrict__ in, const gm_weave &p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint4 *staged = (uint4 *)shared + warp * GM_WEAVE_STAGED(FIELDS);
    unsigned int base = (blockIdx.x * GM_WEAVE_WARPS + warp) * 32; /* the warp's first unit */
    gm_place at = gm_matrix_place(p.axis, p.naxes, min(base + lane, p.units - 1));
    uint4 vector[FIELDS];
    unsigned int word[FIELDS * 4], made[FIELDS * 4];

#pragma unroll
    for (int k = 0; k < FIELDS; k++) {
        int v = k * 32 + lane, owner = WEAVES ? lane : v / FIELDS; /* whose unit the vector is of */
        long long from =
            WEAVES ? at.src + k * p.plane : __shfl_sync(0xffffffffu, at.src, owner) + (v - owner * FIELDS) * 16;
        if (base + owner < p.units)
            vector[k] = __ldg((const uint4 *)(in + from));
    }
    if constexpr (WEAVES) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
#pragma unroll
            for (int k = 0; k < FIELDS; k++)
                word[k] = (&vector[k].x)[w];
            gm_weave_words<FIELDS>(made + w * FIELDS, word);
        }
#pragma unroll
        for (int k = 0; k < FIELDS; k++)
            staged[gm_weave_place<FIELDS>(lane * FIELDS + k)] =
                make_uint4(made[4 * k], made[4 * k + 1], made[4 * k + 2], made[4 * k + 3]);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < FIELDS; k++) {
            int v = k * 32 + lane, owner = v / FIELDS;
            long long to = __shfl_sync(0xffffffffu, at.dst, owner) + (v - owner * FIELDS) * 16;
            if (base + owner < p.units)
                *(uint4 *)(out + to) = staged[gm_weave_place<FIELDS>(v)];
        }
    } else {
#pragma unroll
        for (int k = 0; k < FIELDS; k++)
            staged[gm_weave_place<FIELDS>(k * 32 + lane)] = vector[k];
        __syncwarp();
#pragma unroll
        for (int k = 0; k < FIELDS; k++) {
            uint4 part = staged[gm_weave_place<FIELDS>(lane * FIELDS + k)];
            word[4 * k] = part.x;
            word[4 * k + 1] = part.y;
            word[4 * k + 2] = part.z;
            word[4 * k + 3] = part.w;
        }
#pragma unroll
        for (int w = 0; w < 4; w++)
            gm_unweave_words<FIELDS>(made + w * FIELDS, word + w * FIELDS);
        if (base + lane < p.units)
#pragma unroll
            for (int k = 0; k < FIELDS; k++)
                *(uint4 *)(out + at.dst + k * p.plane) =
                    make_uint4(made[k], made[FIELDS + k], made[2 * FIELDS + k], made[3 * FIELDS + k]);
    }
}

#define GM_KERNEL(name, fields, weaves)                                                                                \
    extern "C" __global__ void __launch_bounds__(32 * GM_WEAVE_WARPS)                                                  \
        name##_##fields(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_weave weave)   \
    {                                                                                                                  \
        move_weave<fields, weaves>(out, in, weave);                                                                    \
    }
GM_KERNEL(move_weave, 2, true)
GM_KERNEL(move_weave, 3, true)
GM_KERNEL(move_weave, 4, true)
GM_KERNEL(move_unweave, 2, false)
GM_KERNEL(move_unweave, 3, false)
GM_KERNEL(move_unweave, 4, false)
#undef GM_KERNEL
