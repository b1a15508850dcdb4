/* Makes the kernels' form of a plan. */
#pragma once
#include "../base/plan.h"
#include "../kernels/walk.h"

/* The widest access, of 16 bytes at the most, that fits the item, every step and both pointers. */
int gm_walk_unit(const gm_plan *plan, const char *dst, const char *src);

/* The plan in units of `unit` bytes, which divides the item; 0: in whole items. */
void gm_walk_make(gm_walk *walk, const gm_plan *plan, int unit);

/* An axis as the kernels take it. */
gm_walk_axis gm_walk_axis_of(gm_axis axis);

/* Sets what divides by `by`, if that is below 2^31; returns its low half. */
unsigned gm_divide_by(int64_t by, unsigned *magic, unsigned *shift);
/* The same for the types of divisors that kernels have, each with the members n, magic and shift. */
#define GM_DIVIDE_BY(divisor, by) ((divisor)->n = gm_divide_by(by, &(divisor)->magic, &(divisor)->shift))

/* Bytes from a plan's first item to where its source begins, and to where it ends: none outside may be read. */
typedef struct gm_reach {
    int64_t low, high;
} gm_reach;
gm_reach gm_reach_of(const gm_plan *plan);
