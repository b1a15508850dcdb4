/* From a unit's number to its place on both sides. */
#pragma once
#include "walk.h"

typedef struct gm_place {
    long long src, dst; /* bytes */
} gm_place;

/* Division by a number that the host knew: a multiplication instead of some twenty instructions. */
__device__ __forceinline__ unsigned int gm_divide(unsigned int n, unsigned int magic, unsigned int shift)
{
    return (unsigned int)(((unsigned long long)__umulhi(n, magic) + n) >> shift);
}

__device__ __forceinline__ gm_place gm_place_of(const gm_walk &walk, long long i)
{
    gm_place at = {0, 0};

    if (!walk.wide) {
        unsigned int n = (unsigned int)i;
        for (int k = 0; k < walk.naxes; k++) {
            const gm_walk_axis &axis = walk.axis[k];
            unsigned int next = gm_divide(n, axis.magic, axis.shift), index = n - next * axis.len;
            at.src += index * axis.src;
            at.dst += index * axis.dst;
            n = next;
        }
        return at;
    }
    for (int k = 0; k < walk.naxes; k++) {
        const gm_walk_axis &axis = walk.axis[k];
        long long len = (long long)axis.high << 32 | axis.len, next = i / len, index = i - next * len;
        at.src += index * axis.src;
        at.dst += index * axis.dst;
        i = next;
    }
    return at;
}
