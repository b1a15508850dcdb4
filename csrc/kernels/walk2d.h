/* A dense matrix as the kernels of the lesson `walk2d` take it. Plain C, for both compilers. */
#pragma once

typedef struct gm_walk2d {
    long long items, rows, columns;
    unsigned int magic, shift; /* for n / the length of a line, where there are fewer than 2^31 items */
} gm_walk2d;
