/* Batches of permutes of bytes that take a contiguous piece of the source to the same piece of the destination. Plain
 * C, for both compilers. */
#pragma once
#include "walk.h"

enum {
    GM_BATCH_AXES = 4,      /* of a piece, and the pieces themselves */
    GM_BATCH_THREADS = 576, /* of a block, at the most: each has one vector */
    GM_BATCH_STAGES = 3     /* steps of a block that are in shared memory at a time */
};

typedef struct gm_batch_axis {
    unsigned int len, magic, shift; /* as in gm_walk_axis */
    int src;                        /* bytes from one index to the next */
} gm_batch_axis;

typedef struct gm_batch {
    unsigned long long bytes; /* in all */
    unsigned int steps;       /* of whole pieces; a block takes every gridDim.x-th */
    unsigned int vectors;     /* of a step */
    int naxes;
    int turn_shift, turn_step;         /* as in gm_tile */
    gm_batch_axis axis[GM_BATCH_AXES]; /* innermost first on the destination's side; the last is that of the pieces */
} gm_batch;
