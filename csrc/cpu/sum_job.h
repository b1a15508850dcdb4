/* How the simd and tuned stages cut a sum up: sum_cut.c decides, sum.c carries it out.
 *
 * A piece is two-dimensional: an axis of results ("across") by an axis that is summed ("along"). Its form follows from
 * which of them is contiguous. A gap of less than a cache line is read and thrown away rather than stepped over. */
#pragma once
#include "sum_kernels.h"
#include <stdatomic.h>

typedef enum gm_sum_form {
    GM_SUM_RUN,      /* along is contiguous: each row is summed */
    GM_SUM_COLUMNS,  /* across is contiguous, gaps apart: rows are added to one another */
    GM_SUM_FOLD,     /* the same with few columns: rows are joined to wide ones, and the wide sum folded at the end */
    GM_SUM_PACK_RUN, /* neither is: a small tile is gathered first, then as RUN */
    GM_SUM_PACK_COLUMNS, /* then as COLUMNS */
} gm_sum_form;

typedef struct gm_sum_job {
    const gm_sum_kernels *kernels;
    gm_dtype from, to;
    int64_t size, parts; /* bytes of an item, accumulators for one */
    const char *src;
    char *dst;

    gm_sum_form form;
    gm_axis across, along;
    int collapse;               /* across is itself summed */
    int64_t col_gap, row_gap;   /* items from one column to the next, and, for FOLD, from one row to the next */
    int64_t join;               /* FOLD: rows to a wide one, a power of two */
    int kept_axes, summed_axes; /* the others, outermost first */
    gm_axis kept[GM_MAX_NDIM + 1], summed[GM_MAX_NDIM + 1];

    /* A group is the results that come from the same pieces; a slab is the pieces of it that a thread takes. */
    int64_t across_block, across_blocks, along_block, along_blocks;
    int64_t groups, width;       /* width: accumulators of a group */
    int64_t pieces, slab, slabs; /* of a group; pieces in a slab */
    int64_t unit, units;         /* groups (or slabs of one, if there are several) that a thread takes at once */
    int64_t bytes;               /* read in all */
    int64_t work, tile;          /* accumulators that a thread works in; the last ones hold a tile */

    gm_sum_write_fn *write; /* for contiguous results, or NULL */
    gm_sum_past_fn *past;   /* for those of a few rows, or NULL */
    gm_sum_few_fn *few;     /* for those of rows of a few items, or NULL */
    void (*fence)(void);    /* after a thread's last write */
    gm_acc *partial;        /* groups x slabs x width, where there are several slabs */
    gm_acc *workspace;      /* threads x work */
    atomic_llong next;      /* unit to take */
    int threads;            /* that join the slabs */
} gm_sum_job;

/* Fills in all but the last eight. */
void gm_sum_cut(gm_sum_job *job, const gm_plan *plan, char *dst, gm_dtype to, const char *src, gm_dtype from);
