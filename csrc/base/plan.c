#include "plan.h"
#include <stdlib.h>

enum { CACHE_LINE = 64 };

/* Axes that the destination walks in large steps come first; summed axes (dst == 0) last, in the source's order. */
static int before(const gm_axis *a, const gm_axis *b)
{
    if (a->dst != b->dst)
        return a->dst > b->dst;
    return llabs(a->src) > llabs(b->src);
}

/* Stable, and as good as any sort for so few axes; qsort would leave ties to the C library's taste. */
static void sort(gm_axis *axis, int n)
{
    for (int i = 1; i < n; i++) {
        gm_axis moving = axis[i];
        int j = i;
        for (; j > 0 && before(&moving, &axis[j - 1]); j--)
            axis[j] = axis[j - 1];
        axis[j] = moving;
    }
}

/* Two neighbours are one axis when a step along the outer equals a whole run along the inner, on both sides. */
static int fusable(const gm_axis *outer, const gm_axis *inner)
{
    return outer->src == inner->src * inner->len && outer->dst == inner->dst * inner->len;
}

/* A destination walked backwards is the same walk forwards from its other end. A summed axis has no direction there:
 * it goes forwards through the source. */
static void face_forwards(gm_plan *plan, gm_axis *axis)
{
    if (axis->dst < 0 || (axis->dst == 0 && axis->src < 0)) {
        plan->dst_start += axis->dst * (axis->len - 1);
        plan->src_start += axis->src * (axis->len - 1);
        axis->dst = -axis->dst;
        axis->src = -axis->src;
    }
}

static gm_family family_of(const gm_plan *plan)
{
    if (plan->items == 0)
        return GM_EMPTY;
    if (plan->naxes == 0)
        return GM_FLAT;
    if (plan->item >= CACHE_LINE)
        return GM_ROWS;
    if (plan->src_axis >= 0 && plan->dst_axis >= 0)
        return GM_TILE;
    return GM_GENERAL;
}

void gm_plan_make(gm_plan *plan, int64_t itemsize, int ndim, const int64_t *shape, const int64_t *src,
                  const int64_t *dst)
{
    gm_axis *axis = plan->axis;
    int kept = 0;

    plan->itemsize = plan->item = itemsize;
    plan->src_start = plan->dst_start = 0;
    plan->items = itemsize > 0;

    /* The stride of an axis of length 1 means nothing and may hold anything: never look at it. */
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            plan->items = 0;
    for (int i = 0; i < ndim && plan->items; i++)
        if (shape[i] != 1) {
            axis[kept] = (gm_axis){shape[i], src[i], dst[i]};
            face_forwards(plan, &axis[kept++]);
        }
    sort(axis, kept);

    int n = 0;
    for (int i = 0; i < kept; i++) {
        if (n > 0 && fusable(&axis[n - 1], &axis[i]))
            axis[n - 1] = (gm_axis){axis[n - 1].len * axis[i].len, axis[i].src, axis[i].dst};
        else
            axis[n++] = axis[i];
    }
    if (n > 0 && axis[n - 1].src == plan->item && axis[n - 1].dst == plan->item)
        plan->item *= axis[--n].len;

    plan->naxes = n;
    plan->src_axis = plan->dst_axis = -1;
    for (int i = 0; i < n; i++) {
        plan->items *= axis[i].len;
        if (axis[i].src == plan->item)
            plan->src_axis = i;
        if (axis[i].dst == plan->item)
            plan->dst_axis = i;
    }
    plan->family = family_of(plan);
}

const char *gm_family_name(gm_family family)
{
    static const char *const name[] = {"empty", "flat", "rows", "tile", "general"};
    return name[family];
}
