/* Finds matrices that strips suit, and cuts them. */
#include "strip.h"
#include "../base/integers.h"
#include "walk.h"
#include <string.h>

static const struct {
    int unit, rows, threads;
} kernels[] = {
#define KERNEL(unit, type, rows, threads) {unit, rows, threads},
    GM_STRIPS(KERNEL)
#undef KERNEL
};
enum { KERNELS = sizeof kernels / sizeof *kernels };
enum { FEW = 150, MANY = 8000 }; /* blocks */

int gm_strip_make(gm_strip_launch *launch, const gm_plan *plan, int unit, const char *src)
{
    enum { SHORT = 3, LONG = 4 };
    gm_strip *strip = &launch->strip;
    int kernel = 0;
    int64_t matrices = 1;

    while (kernel < KERNELS && kernels[kernel].unit != unit)
        kernel++;
    if (kernel == KERNELS || plan->item != unit || plan->src_axis < 0 || plan->dst_axis < 0 ||
        plan->src_axis == plan->dst_axis)
        return 0;
    const gm_axis *rows = &plan->axis[plan->dst_axis], *columns = &plan->axis[plan->src_axis];
    if (rows->dst != unit || columns->src != unit || rows->len > INT32_MAX / 2 || columns->len > INT32_MAX / 2)
        return 0;
    memset(strip, 0, sizeof *strip);
    strip->src_end = (uintptr_t)src + (uint64_t)gm_reach_of(plan).high;
    for (int i = plan->naxes - 1; i >= 0; i--) {
        const gm_axis *axis = &plan->axis[i];
        if (axis == rows || axis == columns)
            continue;
        if (strip->nbatch == GM_STRIP_BATCH || axis->len > INT32_MAX / matrices)
            return 0;
        matrices *= axis->len;
        strip->batch[strip->nbatch++] = gm_walk_axis_of(*axis);
    }
    strip->src_pitch = rows->src;
    strip->dst_pitch = columns->dst;
    strip->rows = (unsigned)rows->len;
    strip->columns = (unsigned)columns->len;
    strip->even = rows->src / unit % 2 == 0;
    /* The last rows may be fewer than complete a sector. Longer strips read less twice, and end less evenly. */
    int64_t step = GM_STRIP_LINE / unit, strips = gm_pieces(columns->len, SHORT * step),
            fewer = gm_pieces(columns->len, LONG * step),
            row_tiles = gm_pieces(rows->len + GM_STRIP_SECTOR / unit - 1, kernels[kernel].rows);
    if (matrices * row_tiles > INT32_MAX / strips)
        return 0;
    strip->steps = SHORT;
    if (unit == 2 && matrices * row_tiles * fewer >= MANY) {
        strip->steps = LONG;
        strips = fewer;
    }
    GM_DIVIDE_BY(&strip->row_tiles, row_tiles);
    GM_DIVIDE_BY(&strip->strips, strips);
    launch->blocks = (unsigned)(matrices * row_tiles * strips);
    launch->threads = (unsigned)kernels[kernel].threads;
    launch->shared = (unsigned)GM_STRIP_SHARED(unit, kernels[kernel].rows);
    return 1;
}

int gm_strip_suits(const gm_strip_launch *launch, const gm_plan *plan, const char *dst, const char *src,
                   int most_shared)
{
    enum { VECTOR = 16, BLOCKS = 3, SIDE = 2048 };
    const gm_strip *strip = &launch->strip;
    const int64_t unit = plan->item;
    uint64_t bits =
        (uintptr_t)dst | (uintptr_t)src | (uint64_t)(strip->rows * unit) | (uint64_t)(strip->columns * unit);

    for (int i = 0; i < plan->naxes; i++) {
        bits |= i == plan->dst_axis ? 0 : (uint64_t)plan->axis[i].dst;
        bits |= i == plan->src_axis ? 0 : (uint64_t)plan->axis[i].src;
    }
    return bits % VECTOR && BLOCKS * (int)launch->shared <= most_shared && launch->blocks >= (unit == 2 ? FEW : MANY) &&
           strip->rows * unit >= SIDE && strip->columns * unit >= SIDE;
}
