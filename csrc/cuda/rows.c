#include "rows.h"
#include "../base/integers.h"
#include "walk.h"

void gm_rows_make(gm_rows *rows, const gm_plan *plan, const char *dst, const char *src)
{
    enum { VECTOR = 16 };
    uint64_t bits = (uintptr_t)dst | (uint64_t)plan->item;

    for (int i = 0; i < plan->naxes; i++)
        bits |= (uint64_t)plan->axis[i].dst;
    rows->src_end = (uintptr_t)src + (uint64_t)gm_reach_of(plan).high;
    rows->run = plan->item;
    rows->vectors = gm_pieces(plan->item + (bits % VECTOR ? VECTOR - 1 : 0), VECTOR);
    rows->all = rows->vectors * plan->items;
    gm_divide_by(rows->vectors, &rows->magic, &rows->shift);
    gm_walk_make(&rows->walk, plan, 0);
}
