/* A square that is transposed where it lies, as the kernel takes it. Plain C, for both compilers. */
#pragma once
#include "walk.h"

typedef struct gm_swap {
    long long n;           /* rows, and columns */
    long long row, column; /* bytes from one to the next */
    long long pairs;       /* of tiles: one on either side of the diagonal, or one on it */
    gm_walk batch;         /* from a square's number to its place; src alone counts */
} gm_swap;
