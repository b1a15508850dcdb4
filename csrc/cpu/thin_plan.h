/* How thin movement cuts a plan into blocks, and which kernel fills a block. Pure: touches no data. */
#pragma once
#include "thin.h"

/* One axis, `split`, is cut into pieces of `step` positions. A block is such a piece with every axis that lies inside
 * it on either side, so that both the source and the destination of a block are few long runs. */
typedef struct gm_thin_plan {
    int64_t item;
    gm_axis split;
    int64_t step, blocks; /* the last block takes the remainder as well: up to 2 * step - 1 positions */
    int ninner, nouter;   /* outermost first, as in the plan */
    gm_axis inner[GM_MAX_NDIM], outer[GM_MAX_NDIM];
    int64_t outers;           /* the product of their lengths */
    int64_t dst_run, src_run; /* bytes of a run for each position along `split` */
    int64_t dst_rows;         /* runs that a block has in the destination */
    int64_t cell;             /* bytes of a block for each position along `split` */
    int64_t shortest;         /* the shorter of the runs of a block, in bytes */
} gm_thin_plan;

/* 0 if there is no such axis: the destination is contiguous nowhere, or the blocks would not fit into a cache. */
int gm_thin_cut(gm_thin_plan *cut, const gm_plan *plan);
