/* Arrays of many allocators begin 16 bytes behind a line. What lies before the first whole line moves by itself, so
 * that all the rest is aligned. */
#include "tile_move.h"
#include "../base/integers.h"
#include "matrices.h"
#include "tile.h"
#include "tile_blocks.h"
#include "tile_run.h"

/* The plan's first `n` along an axis become `head`, if there are any. */
static int cut(gm_plan *plan, gm_plan *head, int i, int64_t n)
{
    if (n == 0)
        return 0;
    gm_axis *axis = &plan->axis[i];
    *head = *plan;
    head->axis[i].len = n;
    head->items = plan->items / axis->len * n;
    plan->items -= head->items;
    axis->len -= n;
    plan->src_start += n * axis->src;
    plan->dst_start += n * axis->dst;
    return 1;
}

/* Items before the first line boundary of a side, if that is where all its runs have theirs, and they are long. */
static int64_t items_before_line(const gm_plan *plan, int in_dst, const char *start)
{
    enum { LONG = 16 * 64 };
    int64_t bytes = (int64_t)(-(uintptr_t)start & 63), len = plan->axis[in_dst ? plan->dst_axis : plan->src_axis].len;
    int uniform = !gm_lines_are_shared(plan, in_dst, start + bytes);
    return uniform && bytes % plan->item == 0 && len * plan->item >= LONG ? bytes / plan->item : 0;
}

/* Whether a line shared by two runs of the destination is put together in the caches anyhow: one panel ends where the
 * next one begins, or the runs beside each other are so short that both write to it while it is there (where lines of
 * the source are whole, to have whole ones of the destination as well is better yet). */
static int ends_meet(const gm_cpu *cpu, const gm_plan *plan, const char *src)
{
    enum { LONG_RUN = 4 << 10, PANEL = 1 << 10 }; /* bytes; PANEL: of the source's runs */
    const gm_axis *cols = &plan->axis[plan->src_axis];
    int64_t run = plan->axis[plan->dst_axis].len * plan->item;
    for (int i = 0; i < plan->naxes; i++)
        if (plan->axis[i].dst == run && run <= LONG_RUN && i != plan->src_axis)
            return 1;
    return run * gm_least(cols->len, PANEL / plan->item) <= cpu->l2_bytes &&
           gm_lines_are_shared(plan, 0, src + plan->src_start);
}

gm_status gm_move_blocks(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how)
{
    if (!how->staged || !how->simd || plan->family != GM_TILE || gm_tile_size(plan->item) < 0)
        return gm_run_blocks(cpu, plan, dst, src, how);

    gm_plan rest = *plan;
    gm_plan edge[2];
    int n = 0;
    if (!ends_meet(cpu, plan, src))
        n += cut(&rest, &edge[0], plan->dst_axis, items_before_line(plan, 1, dst + plan->dst_start));
    n += cut(&rest, &edge[n], plan->src_axis, items_before_line(plan, 0, src + plan->src_start));
    gm_status status = gm_run_blocks(cpu, &rest, dst, src, how);
    for (int i = 0; status == GM_OK && i < n; i++)
        gm_move_matrices(cpu, &edge[i], dst, src, how->threads);
    return status;
}
