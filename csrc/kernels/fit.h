/* Matrices of short columns, and the tiles that are cut to them. Plain C, for both compilers. */
#pragma once
#include "matrix.h"

enum {
    GM_FIT_AXES = 16,
    GM_FIT_COLUMN_AXES = 4,
    GM_FIT_THREADS = 128,
    GM_FIT_LARGE_THREADS = 256, /* of a block with a larger tile */
    GM_FIT_HELD = 8             /* vectors that a thread holds: whole eights (gm_fit_place) */
};

/* A tile is `row.n` rows of each of `parts`: of pieces of a batch, or of one matrix whose columns are longer. */
typedef struct gm_fit {
    unsigned int columns, tile; /* in all, of a tile */
    unsigned int parts, parts_in_all;
    unsigned int piece;             /* columns of a part; 0: all parts have the same columns */
    int row_src, part_src;          /* bytes from one to the next in the source, */
    unsigned int pitch, part_pitch; /* in shared memory */
    gm_matrix_divisor row, vectors; /* rows of a part, and vectors of such a row */
    unsigned int rows_at_a_time;    /* that a block reads */
    unsigned int part_tall;         /* vectors of a column in a part */
    gm_matrix_divisor tall, words;  /* vectors of a column, and words of a row, in a tile */
    int ngrid, column_grid, part_grid, ncolumn;
    gm_walk_axis grid[GM_FIT_AXES];          /* of the blocks, innermost first */
    gm_walk_axis column[GM_FIT_COLUMN_AXES]; /* of which column follows which in the source, innermost first */
} gm_fit;
