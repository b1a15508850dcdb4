/* Small arithmetic of sizes that C has no words for. */
#pragma once
#include <stdint.h>

static inline int64_t gm_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gm_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How many pieces of `each` n is cut into, the last one perhaps a shorter one. */
static inline int64_t gm_pieces(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* n, or the next multiple of `to` above it; n itself where `to` is 0. */
static inline uint64_t gm_round_up(uint64_t n, uint64_t to)
{
    return to > 1 ? (n + to - 1) / to * to : n;
}

/* The greatest common divisor; of 0 and b it is b. */
static inline uint64_t gm_common(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
