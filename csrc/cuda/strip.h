/* Finds matrices that strips suit, and cuts them. */
#pragma once
#include "../base/plan.h"
#include "../kernels/strip.h"

typedef struct gm_strip_launch {
    gm_strip strip;
    unsigned blocks, threads, shared;
} gm_strip_launch;

/* Whether there is a kernel of strips for the plan; fills in `launch` if so. */
int gm_strip_make(gm_strip_launch *launch, const gm_plan *plan, int unit, const char *src);

/* Whether it is better than the tiles of matrices: for rows or columns that begin inside a vector somewhere, and sides
 * that fill the strips. */
int gm_strip_suits(const gm_strip_launch *launch, const gm_plan *plan, const char *dst, const char *src,
                   int most_shared);
