/* Cuts a plan into blocks: boxes whose footprint is made of long runs on both sides. Pure, but for its tables' memory.
 *
 * The axes of a box are its rows (a chain of axes along which the destination is contiguous), its columns (likewise in
 * the source), and the rest, its matrices: for each of them a rows x columns matrix is transposed. Where a side has no
 * contiguous axis, the axis of its shortest step stands in. */
#pragma once
#include "../base/plan.h"
#include "../base/status.h"

/* Axes that a block may cover in part, the last block being short: the end of either chain, or what stands in for it.
 */
enum { GM_SPLITS = 4 };

typedef struct gm_block_options {
    int staged;               /* tiles build an image of the destination in scratch, which then streams out */
    int walk_dst;             /* go along the destination's runs from block to block, not along the source's */
    int panel;                /* blocks whose columns are one run of the destination each, if the plan has them */
    int apart;                /* the source's runs do not go along axes where those of the destination soon go on */
    int64_t src_run, dst_run; /* bytes that a block's runs should have */
    int64_t rows_step;        /* rows of a strip; a tile's when it is square */
} gm_block_options;

/* The loops inside a block of one extent, as offsets from its first item. */
typedef struct gm_block_shape {
    int64_t rows, cols, strips;        /* strips: of up to rows_step rows, in all matrices together */
    int64_t *row_src;                  /* rows_step for each strip; those past its last row repeat it */
    int64_t *strip_out;                /* bytes from out to a strip's first row */
    int64_t *col_src, *col_out;        /* in the image; in the destination if it is written directly, or by panels */
    int64_t run_lines;                 /* of panels: as in gm_panel; all, or a multiple of GM_LINES */
    int64_t *line_dst, *line_image;    /* likewise; or NULL */
    int64_t runs, run_bytes, *run_dst; /* contiguous stretches of the destination */
} gm_block_shape;

typedef struct gm_block_axis {
    int64_t len, src, dst; /* as in the plan */
    int64_t extent;        /* of a block */
    int64_t steps;         /* blocks along this axis; the last one may be short */
} gm_block_axis;

typedef struct gm_blocks {
    gm_block_options options;
    int64_t item, count;        /* count: of blocks */
    int64_t bytes;              /* of a full block's items */
    int64_t row_step;           /* bytes from row to row of the image, or of the destination */
    int64_t pitch, stage_bytes; /* staged: from run to run; of one image */
    int naxes;
    gm_block_axis axis[GM_MAX_NDIM]; /* outermost loop first */
    int split[GM_SPLITS];            /* the axes that end in a short block, or -1 */
    int walk;                        /* the axis along which destination runs go on from block to block, or -1 */
    int panels;                      /* one matrix in a block, no smaller than a tile */
    int fused;                       /* of panels: columns go on where others of the same block end */
    int src_runs, dst_runs;          /* columns are contiguous in the source, rows in the destination */
    int shapes;
    gm_block_shape shape[1 << GM_SPLITS]; /* bit s: split[s] is short */
    int64_t *memory;                      /* of all tables */
} gm_blocks;

gm_status gm_blocks_make(gm_blocks *blocks, const gm_plan *plan, const gm_block_options *options);
void gm_blocks_free(gm_blocks *blocks);

/* Whether some runs, of the destination or of the source, begin or end inside a cache line. */
int gm_lines_are_shared(const gm_plan *plan, int in_dst, const char *start);
