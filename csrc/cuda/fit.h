/* Finds matrices of short columns. */
#pragma once
#include "../base/plan.h"
#include "../kernels/fit.h"

typedef struct gm_fit_launch {
    gm_fit fit;
    int large; /* which kernel: move_fit_large */
    unsigned blocks, threads, shared;
} gm_fit_launch;

/* Whether the plan is one of matrices whose columns are whole vectors, short, and follow one another in the destination
 * without a gap; fills in `launch` if so. */
int gm_fit_make(gm_fit_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src);

/* Whether that is better than the kernels for tiles of one height: there is enough for the whole device. */
int gm_fit_suits(const gm_fit_launch *launch);
