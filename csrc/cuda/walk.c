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
unsigned gm_divide_by(int64_t by, unsigned *magic, unsigned *shift)
{
    unsigned divisor = (unsigned)by;
    *magic = *shift = 0;
    if (by >= INT64_C(1) << 31)
        return divisor;
    while ((UINT64_C(1) << *shift) < divisor)
        ++*shift;
    *magic = (unsigned)((((UINT64_C(1) << *shift) - divisor) << 32) / divisor + 1);
    return divisor;
}

gm_walk_axis gm_walk_axis_of(gm_axis axis)
{
    gm_walk_axis made = {.src = axis.src, .dst = axis.dst, .high = (unsigned)((uint64_t)axis.len >> 32)};
    made.len = gm_divide_by(axis.len, &made.magic, &made.shift);
    return made;
}

gm_reach gm_reach_of(const gm_plan *plan)
{
    gm_reach reach = {0, plan->item};

    for (int i = 0; i < plan->naxes; i++)
        *(plan->axis[i].src > 0 ? &reach.high : &reach.low) += (plan->axis[i].len - 1) * plan->axis[i].src;
    return reach;
}

void gm_walk_make(gm_walk *walk, const gm_plan *plan, int unit)
{
    int64_t inner = unit ? plan->item / unit : 1;

    walk->naxes = 0;
    walk->units = plan->items * inner;
    walk->wide = walk->units >= INT64_C(1) << 31;
    if (inner > 1)
        walk->axis[walk->naxes++] = gm_walk_axis_of((gm_axis){inner, unit, unit});
    for (int i = plan->naxes - 1; i >= 0; i--)
        walk->axis[walk->naxes++] = gm_walk_axis_of(plan->axis[i]);
}
