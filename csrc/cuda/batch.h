/* Finds batches of permutes of small arrays of bytes. */
#pragma once
#include "../base/plan.h"
#include "../kernels/batch.h"

typedef struct gm_batch_launch {
    gm_batch batch;
    unsigned blocks, threads, shared;
} gm_batch_launch;

/* Whether the plan permutes contiguous pieces, each where it lies, in whole vectors for a device of so many
 * multiprocessors; fills in `launch` if so. */
int gm_batch_make(gm_batch_launch *launch, const gm_plan *plan, const char *dst, const char *src, int processors);

/* Whether that is better than the tile kernels: for pieces that these look up byte by byte, and enough of them. */
int gm_batch_suits(const gm_batch_launch *launch);
