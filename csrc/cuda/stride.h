/* Rows of strided items to one dense run. */
#pragma once
#include "../base/plan.h"
#include "../kernels/stride.h"

typedef struct gm_stride_launch {
    char kernel[32];
    int64_t blocks;
    gm_stride stride;
} gm_stride_launch;

/* 0 if the plan is something else, or has rows too short for it; dst and src are those of its first item, `unit` is the
 * widest access that fits both sides everywhere. */
int gm_stride_make(gm_stride_launch *made, const gm_plan *plan, int unit, const char *dst, const char *src);
