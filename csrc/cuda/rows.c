#include "rows.h"
#include "walk.h"

void gm_rows_make(gm_rows *rows, const gm_plan *plan, const char *dst, const char *src)
{
    enum { VECTOR = 16 };
    uint64_t bits = (uintptr_t)dst | (uint64_t)plan->item;
    gm_walk_axis vectors;

    rows->src_end = (uintptr_t)src + (uint64_t)plan->item;
    for (int i = 0; i < plan->naxes; i++) {
        const gm_axis *axis = &plan->axis[i];
        bits |= (uint64_t)axis->dst;
        if (axis->src > 0)
            rows->src_end += (uint64_t)((axis->len - 1) * axis->src);
    }
    rows->run = plan->item;
    rows->vectors = (plan->item + (bits % VECTOR ? VECTOR - 1 : 0) + VECTOR - 1) / VECTOR;
    rows->all = rows->vectors * plan->items;
    gm_walk_divisor(&vectors, rows->vectors);
    rows->magic = vectors.magic;
    rows->shift = vectors.shift;
    gm_walk_make(&rows->walk, plan, 0);
}
