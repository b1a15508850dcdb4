/* Small questions about the active lanes of a warp, and whether they step evenly. */
#pragma once
#include "count.h"

static inline int gm_first_lane(uint32_t active)
{
    return __builtin_ctz(active);
}

static inline uint32_t gm_lane_count(uint32_t active)
{
    return (uint32_t)__builtin_popcount(active);
}

/* The active lanes are a run without a gap: always so for a full warp, and for the tail of a loop. */
static inline int gm_lanes_adjacent(uint32_t active)
{
    uint32_t run = active >> gm_first_lane(active);
    return (run & (run + 1)) == 0;
}

/* gm_step64, gm_step32: the step from one lane to the next, which is the step of all of them if gm_steps64 or
 * gm_steps32 is so: each of `lanes` addresses is as far from the one before as the second from the first. The
 * differences are gathered without a branch, so that a full warp's are compared in vector registers. */
#define GM_STEPS(bits)                                                                                                 \
    static inline int##bits##_t gm_step##bits(const uint##bits##_t *addr, uint32_t lanes)                              \
    {                                                                                                                  \
        return lanes > 1 ? (int##bits##_t)(addr[1] - addr[0]) : 0;                                                     \
    }                                                                                                                  \
    static inline int gm_steps##bits(const uint##bits##_t *addr, uint32_t lanes)                                       \
    {                                                                                                                  \
        uint##bits##_t step = (uint##bits##_t)gm_step##bits(addr, lanes), wrong = 0;                                   \
        if (lanes == GM_LANES)                                                                                         \
            for (uint32_t i = 0; i < GM_LANES - 1; i++)                                                                \
                wrong |= addr[i + 1] - addr[i] - step;                                                                 \
        else                                                                                                           \
            for (uint32_t i = 1; i < lanes; i++)                                                                       \
                wrong |= addr[i] - addr[i - 1] - step;                                                                 \
        return wrong == 0;                                                                                             \
    }
GM_STEPS(32)
GM_STEPS(64)
#undef GM_STEPS

/* The active lanes' values, side by side. */
static inline void gm_pack64(uint64_t *to, const uint64_t *from, uint32_t active)
{
    for (; active; active &= active - 1)
        *to++ = from[gm_first_lane(active)];
}
