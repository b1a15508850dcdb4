/* Lays a plan out for the matrix kernels. */
#pragma once
#include "../base/plan.h"
#include "../kernels/matrix.h"

typedef struct gm_matrix_tile {
    const char *kernel;
    int even;  /* takes whole vectors alone */
    int whole; /* only for a side that it takes whole */
    int unit, rows, columns, threads;
    unsigned shared;
    int way; /* in which rows come to shared memory */
} gm_matrix_tile;

extern const gm_matrix_tile gm_matrix_tiles[];
extern const int gm_matrix_tile_count;

/* A side of the matrices: axes that follow one another without a gap, on the destination's side for the rows, on the
 * source's for the columns. */
typedef struct gm_side {
    int axis[GM_MATRIX_AXES], n;
    int64_t len; /* of all of them */
} gm_side;

/* A plan as matrices. */
typedef struct gm_matrix_shape {
    gm_side rows, columns;
    int stacked;                      /* the last axis of the rows does not follow the others in the destination */
    int ahead;                        /* rows that complete a tile's first line */
    int src_aligned;                  /* every row starts on a sector's boundary */
    int alone;                        /* there is one matrix, not stacked */
    int packed;                       /* every row begins where the one before ends */
    int even;                         /* as in gm_matrix */
    int axes;                         /* of the plan */
    int whole;                        /* rows and columns are whole vectors on both sides */
    double bytes;                     /* all that moves one way */
    unsigned char taken[GM_MAX_NDIM]; /* axes of the matrices */
} gm_matrix_shape;

typedef struct gm_matrix_launch {
    gm_matrix matrix;
    const gm_matrix_tile *tile;
    unsigned blocks, threads, shared;
} gm_matrix_launch;

/* Whether the plan is one of matrices, in units of `unit` bytes. */
int gm_matrix_read(gm_matrix_shape *shape, const gm_plan *plan, int unit, const char *dst, const char *src);

/* Fills in the launch for a tile of that unit; 0 if it has too many blocks. */
int gm_matrix_lay_out(gm_matrix_launch *launch, const gm_matrix_tile *tile, const gm_matrix_shape *shape,
                      const gm_plan *plan, const char *src);

/* Whether the matrix kernels suit the plan; fills in the launch for the best tile. */
int gm_matrix_make(gm_matrix_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src,
                   int most_shared);
