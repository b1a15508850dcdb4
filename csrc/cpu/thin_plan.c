#include "thin_plan.h"
#include <stdlib.h>

enum {
    LONG_RUN = 512,          /* of cuts that have runs as long as this none is better than another */
    STEP_RUN = 1 << 10,      /* bytes that the runs of a block should have */
    SMALL_BLOCK = 4 << 10,   /* from here on the cost of starting a block no longer shows */
    LARGE_BLOCK = 192 << 10, /* source and image of a block share the second-level cache with the next block's source */
    LOOSE = 8,               /* a source of which at least 1 / LOOSE is wanted counts as one run */
};

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Cuts along axis `m`. */
static int cut_along(gm_thin_plan *cut, const gm_plan *plan, int m)
{
    const gm_axis *split = &plan->axis[m];
    int64_t src_dense = plan->item, reach = 1;

    *cut = (gm_thin_plan){.item = plan->item, .split = *split, .outers = 1, .dst_rows = 1};
    cut->cell = cut->dst_run = plan->item;
    for (int k = 0; k < plan->naxes; k++) {
        const gm_axis *axis = &plan->axis[k];
        int in_dst = axis->dst < split->dst, in_src = llabs(axis->src) < llabs(split->src);
        if (k == m)
            continue;
        if (!in_dst && !in_src) {
            cut->outer[cut->nouter++] = *axis;
            cut->outers *= axis->len;
            continue;
        }
        cut->inner[cut->ninner++] = *axis;
        if (axis->len > LARGE_BLOCK / cut->cell)
            return 0;
        cut->cell *= axis->len;
        if (in_dst)
            cut->dst_run *= axis->len;
        else
            cut->dst_rows *= axis->len;
        if (in_src) {
            src_dense *= axis->len;
            reach = at_least(reach, llabs(axis->src) * axis->len);
        }
    }
    if (cut->dst_run != split->dst)
        return 0;
    /* Positions whose source lies close together are one run; others are runs of their own. */
    int joined = llabs(split->src) <= LOOSE * at_least(src_dense, 64);
    cut->src_run = joined ? at_least(llabs(split->src), 1) : src_dense;

    int64_t step = (STEP_RUN - 1) / cut->dst_run + 1;
    if (joined)
        step = at_least(step, (STEP_RUN - 1) / cut->src_run + 1);
    step = at_most(at_least(step, SMALL_BLOCK / cut->cell), LARGE_BLOCK / cut->cell);
    if (step >= 64)
        step = step / 64 * 64;
    cut->step = at_most(at_least(step, 1), split->len);
    cut->blocks = split->len / cut->step;
    cut->shortest = at_most(cut->step * cut->dst_run, joined ? cut->step * cut->src_run : src_dense);
    return 1;
}

int gm_thin_cut(gm_thin_plan *cut, const gm_plan *plan)
{
    int best = -1;
    int64_t longest = 0, largest = 0;

    /* Of equals the innermost wins, whose blocks are the smallest; but not very small ones that end several runs each.
     */
    for (int m = 0; m < plan->naxes; m++)
        if (cut_along(cut, plan, m)) {
            int64_t runs = at_most(cut->shortest, LONG_RUN),
                    block = cut->dst_rows > 1 ? cut->step * cut->cell : INT64_MAX;
            block = at_most(block, SMALL_BLOCK);
            if (runs > longest || (runs == longest && block >= largest)) {
                best = m;
                longest = runs;
                largest = block;
            }
        }
    return best >= 0 && cut_along(cut, plan, best);
}
