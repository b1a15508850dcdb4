/* Finds records of few fields in a plan that makes planes of them, or planes that become records. */
#pragma once
#include "../base/plan.h"
#include "../kernels/planes.h"

typedef struct gm_planes_launch {
    gm_planes planes;
    int to_planes; /* which kernel: move_planes, otherwise move_records */
    unsigned blocks, threads, shared;
} gm_planes_launch;

/* Whether the plan is one of records in units of `unit` bytes; fills in `launch` if so. */
int gm_planes_make(gm_planes_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src);

/* Whether these kernels are better for it than those for matrices and boxes: for long planes, enough for the whole
 * device, and records of any number of fields but multiples of 16, for which too many lanes would be on one bank. */
int gm_planes_suits(const gm_planes_launch *launch, int unit);
