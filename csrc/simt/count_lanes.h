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

/* The step from one lane to the next, which is the step of all of them if gm_steps is so. */
static inline int64_t gm_step64(const uint64_t *addr, uint32_t lanes)
{
    return lanes > 1 ? (int64_t)(addr[1] - addr[0]) : 0;
}

static inline int32_t gm_step32(const uint32_t *addr, uint32_t lanes)
{
    return lanes > 1 ? (int32_t)(addr[1] - addr[0]) : 0;
}

/* Whether each of `lanes` addresses is as far from the one before as the second from the first. The differences are
 * gathered without a branch, so that a full warp's are compared in vector registers. */
static inline int gm_steps64(const uint64_t *addr, uint32_t lanes)
{
    uint64_t step = (uint64_t)gm_step64(addr, lanes), wrong = 0;
    if (lanes == GM_LANES)
        for (uint32_t i = 0; i < GM_LANES - 1; i++)
            wrong |= addr[i + 1] - addr[i] - step;
    else
        for (uint32_t i = 1; i < lanes; i++)
            wrong |= addr[i] - addr[i - 1] - step;
    return wrong == 0;
}

static inline int gm_steps32(const uint32_t *addr, uint32_t lanes)
{
    uint32_t step = (uint32_t)gm_step32(addr, lanes), wrong = 0;
    if (lanes == GM_LANES)
        for (uint32_t i = 0; i < GM_LANES - 1; i++)
            wrong |= addr[i + 1] - addr[i] - step;
    else
        for (uint32_t i = 1; i < lanes; i++)
            wrong |= addr[i] - addr[i - 1] - step;
    return wrong == 0;
}

/* The active lanes' values, side by side. */
static inline void gm_pack64(uint64_t *to, const uint64_t *from, uint32_t active)
{
    for (; active; active &= active - 1)
        *to++ = from[gm_first_lane(active)];
}
