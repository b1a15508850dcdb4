/* Finds bytes of a few planes that become records, or the other way round. */
#pragma once
#include "../base/plan.h"
#include "../kernels/weave.h"

typedef struct gm_weave_launch {
    gm_weave weave;
    int weaves, fields; /* which kernel: move_weave of so many fields, otherwise move_unweave */
    unsigned blocks, threads, shared;
} gm_weave_launch;

/* Whether the plan is one of two to four fields in whole vectors on both sides; fills in `launch` if so. */
int gm_weave_make(gm_weave_launch *launch, const gm_plan *plan, const char *dst, const char *src);
