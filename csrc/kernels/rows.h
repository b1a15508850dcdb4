/* Runs that are contiguous on both sides, as the kernels take them. Plain C, for both compilers. */
#pragma once
#include "walk.h"

typedef struct gm_rows {
    unsigned long long src_end; /* no byte from here on is read */
    long long run;              /* bytes */
    long long vectors;          /* of the destination's 16-byte vectors that a run may touch */
    long long all;              /* of all runs */
    unsigned int magic, shift;  /* for n / vectors, where `all` is below 2^31 */
    gm_walk walk;               /* from a run's number to its place */
} gm_rows;
