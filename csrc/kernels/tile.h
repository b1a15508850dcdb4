/* A box of a plan's axes as the tile kernels take it: by value, in units that one load or store moves.
 * Plain C, for both compilers.
 *
 * The destination is contiguous along a chain of axes, the source along another; an axis may be in both. A tile takes
 * the first axes of each chain whole, and steps along the last: `along` the destination's, `across` on the source's. */
#pragma once

enum { GM_TILE_AXES = 32, GM_TILE_CHAIN = 24 };

typedef struct gm_tile_axis {
    unsigned int len, magic, shift; /* as in gm_walk_axis */
    int image;                      /* bytes from one index to the next in shared memory */
    long long src, dst;             /* bytes from one index to the next */
} gm_tile_axis;

typedef struct gm_tile_divisor {
    unsigned int n, magic, shift;
} gm_tile_divisor;

typedef struct gm_tile {
    unsigned long long src_begin,
        src_end;                     /* no byte before or from there on is read, but in an aligned vector's start */
    long long reach_low, reach_high; /* what a tile may read, relative to its first item */
    /* blocks: which tile, its coordinates fastest first */
    int ngrid, along_grid, across_grid;
    /* along the destination's chain */
    int along_step, ahead; /* indices a tile; and before it, for runs that start inside a 16-byte vector */
    long long along_len, along_src;
    int along_image;
    gm_tile_divisor period; /* units that one index of the last axis stands for */
    int chain;              /* axes of the period */
    int skew_shift;         /* 16 bytes of image stay free after every 1 << skew_shift indices of the first axis */
    /* on the source's chain */
    int across_step;
    long long across_len;
    /* what is read: rows of one contiguous run each */
    int nrows_axes, rows_along, rows_across; /* which of them are clipped: `along`, the last one, and `across`; or -1 */
    int rows_fixed;                          /* rows, without `along` */
    int group_shift;       /* `along` is inside the run: a row is 1 << group_shift of its indices; or -1 */
    int run_low, run_high; /* bytes of the run, relative to its first item, but for the axis that is clipped */
    int run_clipped;       /* 0 none, 1 across, 2 along */
    int run_src;           /* that axis' step */
    gm_tile_divisor row_vectors;
    int image_start; /* of the image in shared memory, behind the tables */
    /* what is written */
    int nruns_axes, runs_clipped; /* whether the last of them is `across` */
    int runs_fixed;
    int run_vectors;
    int lanes_shift;                /* neighbouring lanes take neighbouring runs: 1 << lanes_shift of them */
    gm_tile_divisor vector_threads; /* threads that share a run */
    int teams;                      /* groups of them */
    int turn_shift,
        turn_step;           /* 1 << turn_shift lanes begin with the same unit of a vector, the next turn_step later */
    int steady, steady_step; /* whether a thread's next vector lies in the image as its first, so many bytes further */
    int table, row_list;     /* the table of the period, the list of rows: bytes from the start of shared memory */
    gm_tile_axis grid[GM_TILE_AXES], rows[GM_TILE_CHAIN], runs[GM_TILE_CHAIN], period_axis[GM_TILE_CHAIN];
} gm_tile;
