#include "compact.h"
#include "../base/memory.h"
#include <stdlib.h>

enum {
    LOOSE = 8,        /* items: at steps of up to so many, a copy row by row is fast */
    LEAST = 64 << 10, /* bytes: less is not worth two passes */
    RUN = 1 << 10,    /* bytes that a slab's runs in the destination should have */
};

/* The axis of the source's smallest steps but for the one along which the destination is contiguous. */
static int source_axis(const gm_plan *plan)
{
    int found = -1;
    for (int k = 0; k < plan->naxes; k++)
        if (k != plan->dst_axis && plan->axis[k].src &&
            (found < 0 || llabs(plan->axis[k].src) < llabs(plan->axis[found].src)))
            found = k;
    return found;
}

int gm_compact_suits(const gm_plan *plan)
{
    int k = source_axis(plan);
    return plan->dst_axis >= 0 && k >= 0 && plan->items * plan->item >= LEAST &&
           llabs(plan->axis[k].src) <= LOOSE * plan->item &&
           llabs(plan->axis[k].src) < llabs(plan->axis[plan->dst_axis].src);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The lengths of a slab of up to `most` bytes, and its axes in `order`, from the source's smallest steps on. */
static void cut_slab(const gm_plan *plan, int64_t most, int64_t *extent, int *order)
{
    const gm_axis *axis = plan->axis;
    int b = plan->dst_axis;
    int64_t bytes;

    for (int k = 0; k < plan->naxes; k++) {
        int i = k;
        for (; i > 0 && llabs(axis[order[i - 1]].src) > llabs(axis[k].src); i--)
            order[i] = order[i - 1];
        order[i] = k;
    }
    extent[b] = least(axis[b].len, RUN / plan->item);
    bytes = extent[b] * plan->item;
    for (int i = 0; i < plan->naxes; i++) {
        int k = order[i];
        if (k != b) {
            extent[k] = least(axis[k].len, bytes < most ? most / bytes : 1);
            bytes *= extent[k];
        }
    }
    if (bytes < most)
        extent[b] = least(axis[b].len, extent[b] * (most / bytes));
}

gm_status gm_move_compact(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how)
{
    int64_t extent[GM_MAX_NDIM], index[GM_MAX_NDIM] = {0}, most = cpu->l3_bytes / 8, bytes = plan->item;
    int order[GM_MAX_NDIM], n = plan->naxes;
    gm_status status = GM_OK;

    cut_slab(plan, most, extent, order);
    for (int k = 0; k < n; k++)
        bytes *= extent[k];
    char *slab = gm_alloc((size_t)bytes);
    if (!slab)
        return GM_NO_MEMORY;
    dst += plan->dst_start;
    src += plan->src_start;
    for (;;) {
        int64_t shape[GM_MAX_NDIM], from[GM_MAX_NDIM], to[GM_MAX_NDIM], dense[GM_MAX_NDIM], step = plan->item;
        char *at = dst;
        const char *start = src;
        for (int i = 0; i < n; i++) {
            int k = order[i];
            shape[k] = least(extent[k], plan->axis[k].len - index[k]);
            from[k] = plan->axis[k].src;
            to[k] = plan->axis[k].dst;
            dense[k] = step;
            step *= shape[k];
            at += index[k] * to[k];
            start += index[k] * from[k];
        }
        gm_plan in, out;
        gm_plan_make(&in, plan->item, n, shape, from, dense);
        gm_plan_make(&out, plan->item, n, shape, dense, to);
        status = gm_move_tuned(cpu, &in, slab, start);
        if (status == GM_OK)
            status = gm_move_blocks(cpu, &out, at, slab, how);
        int k = n - 1;
        for (; k >= 0 && status == GM_OK; k--) {
            index[k] += extent[k];
            if (index[k] < plan->axis[k].len)
                break;
            index[k] = 0;
        }
        if (k < 0 || status != GM_OK)
            break;
    }
    gm_free(slab);
    return status;
}
