/* Reduces a copy between two strided views to the fewest, best ordered loops, and says which kernels suit it.
 * Pure: touches no data. Serves movement (copy, transpose, permute) and sums (a summed axis has dst == 0) alike. */
#pragma once
#include "array.h"

typedef struct gm_axis {
    int64_t len;      /* items, > 1 once planned */
    int64_t src, dst; /* bytes from one item to the next; dst >= 0 once planned, src may have any sign */
} gm_axis;

typedef enum gm_family {
    GM_EMPTY,   /* nothing to move */
    GM_FLAT,    /* one run, contiguous on both sides: naxes == 0, `item` is the whole of it */
    GM_ROWS,    /* runs of at least a cache line, contiguous on both sides: `item` is a run */
    GM_TILE,    /* the source is contiguous along axis[src_axis], the destination along another, axis[dst_axis] */
    GM_GENERAL, /* anything else: every second column, reversed axes, broadcasts, strided outputs */
} gm_family;

typedef struct gm_plan {
    gm_family family;
    int64_t itemsize;             /* of the arrays, in bytes */
    int64_t item;                 /* bytes that move as one: itemsize, widened by an axis contiguous on both sides */
    int64_t items;                /* how many of them: the product of the lengths */
    int64_t src_start, dst_start; /* bytes from the arrays' data to the first item in the order of the axes */
    int src_axis, dst_axis;       /* the axes whose src, or dst, step is one item; -1 where there is none */
    int naxes;
    gm_axis axis[GM_MAX_NDIM]; /* outermost first, by descending dst step */
} gm_plan;

/* Plans dst[i, j, ...] = src[i, j, ...] for two views of one shape; strides in bytes.
 * Drops axes of length 1, turns negative dst steps round, orders the axes for the destination, fuses neighbours,
 * and widens the item by an axis that is contiguous on both sides. */
void gm_plan_make(gm_plan *plan, int64_t itemsize, int ndim, const int64_t *shape, const int64_t *src,
                  const int64_t *dst);

const char *gm_family_name(gm_family family);
