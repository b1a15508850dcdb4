#include "walk.h"
#include <stdint.h>

int gm_walk_unit(const gm_plan *plan, const char *dst, const char *src)
{
    /* The lowest bit that is set anywhere is the alignment that all share. */
    uint64_t bits = 16 | (uint64_t)plan->item | (uint64_t)(uintptr_t)dst | (uint64_t)(uintptr_t)src;
    for (int i = 0; i < plan->naxes; i++)
        bits |= (uint64_t)plan->axis[i].src | (uint64_t)plan->axis[i].dst;
    return (int)(bits & (0 - bits));
}

/* Granlund and Montgomery's division by an invariant, for dividends below 2^31. */
void gm_walk_divisor(gm_walk_axis *axis, int64_t len)
{
    uint32_t divisor = (uint32_t)len;
    axis->len = divisor;
    axis->high = (uint32_t)((uint64_t)len >> 32);
    axis->magic = axis->shift = 0;
    if (len >= INT64_C(1) << 31)
        return;
    while ((UINT64_C(1) << axis->shift) < divisor)
        axis->shift++;
    axis->magic = (uint32_t)((((UINT64_C(1) << axis->shift) - divisor) << 32) / divisor + 1);
}

void gm_walk_make(gm_walk *walk, const gm_plan *plan, int unit)
{
    int64_t inner = unit ? plan->item / unit : 1;

    walk->naxes = 0;
    walk->units = plan->items * inner;
    walk->wide = walk->units >= INT64_C(1) << 31;
    if (inner > 1) {
        gm_walk_divisor(&walk->axis[0], inner);
        walk->axis[0].src = walk->axis[0].dst = unit;
        walk->naxes = 1;
    }
    for (int i = plan->naxes - 1; i >= 0; i--) {
        gm_walk_axis *axis = &walk->axis[walk->naxes++];
        gm_walk_divisor(axis, plan->axis[i].len);
        axis->src = plan->axis[i].src;
        axis->dst = plan->axis[i].dst;
    }
}
