#include "stride.h"
#include "walk.h"
#include "../base/integers.h"
#include <stdio.h>
#include <stdlib.h>

enum { VECTOR = 16, LINE = 128 };

/* How a row's items lie in the source, and from which length of a row in bytes on these kernels are the faster ones. */
typedef struct gm_stride_way {
    const char *kernel;
    int step, shortest;
} gm_stride_way;

static const gm_stride_way ways[] = {{"move_forwards", 1, 64}, {"move_backwards", -1, 256}, {"move_second", 2, 32}};

/* The row that the plan ends with, and its way; NULL if there is none. */
static const gm_stride_way *way_of(const gm_plan *plan, int unit, int64_t *row)
{
    *row = plan->item;
    if (plan->naxes == 0 || plan->item >= ways->shortest)
        return ways;
    const gm_axis *last = &plan->axis[plan->naxes - 1];
    *row = plan->item * last->len;
    if (plan->item <= VECTOR / 2 && unit >= plan->item && last->dst == plan->item)
        for (size_t i = 1; i < sizeof ways / sizeof *ways; i++)
            if (last->src == ways[i].step * plan->item)
                return &ways[i];
    return NULL;
}

int gm_stride_make(gm_stride_launch *made, const gm_plan *plan, int unit, const char *dst, const char *src)
{
    int64_t row;
    const gm_stride_way *way = way_of(plan, unit, &row);
    int outer = plan->naxes - (way != ways);
    gm_stride *stride = &made->stride;

    if (!way || outer > 1 || (outer == 1 && (plan->axis[0].dst != row || row < way->shortest)))
        return 0;
    if (outer == 1 && llabs(plan->axis[0].src) < way->step * plan->item)
        return 0; /* the next row lies in the gaps of this one: (n, 2) to (2, n) */
    gm_reach reach = gm_reach_of(plan);
    stride->src_begin = (uintptr_t)src + (uint64_t)reach.low;
    stride->src_end = (uintptr_t)src + (uint64_t)reach.high;
    stride->bytes = plan->items * plan->item;
    stride->row = row;
    stride->pitch = outer ? plan->axis[0].src : 0;
    gm_divide_by(row, &stride->magic, &stride->shift);
    stride->inverse = UINT64_MAX / (uint64_t)row + 1;
    int wide = stride->bytes > INT32_MAX - 2 * GM_STRIDE_THREADS * VECTOR;
    if (!outer && way == ways)
        snprintf(made->kernel, sizeof made->kernel, "move_run");
    else
        snprintf(made->kernel, sizeof made->kernel, "%s%s_%d", way->kernel, wide ? "_wide" : "",
                 way == ways ? 1 : (int)plan->item);
    made->blocks = gm_pieces(stride->bytes + (int64_t)((uintptr_t)dst % LINE), VECTOR * GM_STRIDE_THREADS);
    return 1;
}
