/* Pieces of work, for every thread a range of neighbouring ones, far from the others'. Cores that have no cache in
 * common wait for one another where one writes lines that the other's prefetchers have just brought, and they bring
 * what lies behind the end of every run. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

/* `left`: how many of them nobody has taken yet. Its owner takes them from `first` on, others from `last` down. */
typedef struct gm_share {
    _Alignas(64) _Atomic int64_t left;
    _Atomic int64_t last;
    int64_t first;
} gm_share;

static inline void gm_share_set(gm_share *share, int64_t first, int64_t end)
{
    atomic_init(&share->left, end - first);
    atomic_init(&share->last, end);
    share->first = first;
}

/* The next piece for a thread: of its own share, else one as far as may be from where another works; or -1. */
static inline int64_t gm_share_take(gm_share *shares, int parts, int part)
{
    if (atomic_fetch_sub(&shares[part].left, 1) > 0)
        return shares[part].first++;
    for (int k = 1; k < parts; k++) {
        gm_share *other = &shares[(part + k) % parts];
        if (atomic_fetch_sub(&other->left, 1) > 0)
            return atomic_fetch_sub(&other->last, 1) - 1;
    }
    return -1;
}
