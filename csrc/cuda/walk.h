/* Makes the kernels' form of a plan. */
#pragma once
#include "../base/plan.h"
#include "../kernels/walk.h"

/* The widest access, of 16 bytes at the most, that fits the item, every step and both pointers. */
int gm_walk_unit(const gm_plan *plan, const char *dst, const char *src);

/* The plan in units of `unit` bytes, which divides the item; 0: in whole items. */
void gm_walk_make(gm_walk *walk, const gm_plan *plan, int unit);

/* Fills in `len`, `high`, and for lengths below 2^31 what divides by it. */
void gm_walk_divisor(gm_walk_axis *axis, int64_t len);
