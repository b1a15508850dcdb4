/* The watch's clocks: what barriers, warp barriers, releases and acquires put in order; and how findings are told. */
#include "watch_state.h"
#include "../base/memory.h"
#include "count_lanes.h"
#include "space.h"
#include <string.h>

/* Places are cleared when the clocks come near their end; otherwise a new block only begins at a later clock. */
#define LAST_CLOCK (GM_PENDING / 2)

static void forget(gm_watch *watch)
{
    memset(watch->place.all, 0, (size_t)GM_SHADOW_ARRAYS * watch->units * sizeof *watch->place.all);
}

/* What warp w has seen of others has changed. */
static void find_least(gm_watch *watch, uint32_t w)
{
    uint32_t least = watch->order.seen[w][0];
    for (uint32_t x = 1; x < watch->warps; x++)
        least = watch->order.seen[w][x] < least ? watch->order.seen[w][x] : least;
    watch->order.least[w] = least;
}

gm_watch *gm_watch_new(const gm_watch_setup *setup)
{
    gm_watch *watch = gm_alloc(sizeof *watch);
    if (!watch)
        return NULL;
    memset(watch, 0, sizeof *watch);
    watch->setup = *setup;
    watch->shift = setup->grain == 1 ? 0 : setup->grain == 2 ? 1 : 2;
    watch->units = (setup->shared_bytes + (1u << watch->shift) - 1) >> watch->shift;
    watch->warps = (setup->block[0] * setup->block[1] * setup->block[2] + GM_LANES - 1) / GM_LANES;
    gm_shadow *place = &watch->place;
    place->all = gm_alloc(((size_t)GM_SHADOW_ARRAYS * watch->units + 1) * sizeof *place->all);
    if (!place->all || watch->warps > GM_WATCH_WARPS) {
        gm_watch_free(watch);
        return NULL;
    }
    uint32_t **array[GM_SHADOW_ARRAYS] = {
        &place->wrote,           &place->by,           &place->reader[0].clock,
        &place->reader[0].lanes, &place->reader[0].by, &place->reader[1].clock,
        &place->reader[1].lanes, &place->reader[1].by,
    };
    for (size_t i = 0; i < GM_SHADOW_ARRAYS; i++)
        *array[i] = place->all + i * watch->units;
    forget(watch);
    return watch;
}

void gm_watch_free(gm_watch *watch)
{
    if (!watch)
        return;
    for (int w = 0; w < GM_WATCH_WARPS; w++) {
        gm_free(watch->order.lanes[w]);
        gm_free(watch->pending[w].list);
    }
    gm_free(watch->place.all);
    gm_free(watch);
}

void gm_watch_block(gm_watch *watch, const uint32_t block[3], uint64_t number)
{
    gm_order *order = &watch->order;
    uint32_t last = watch->first;
    for (uint32_t w = 0; w < watch->warps; w++)
        last = order->clock[w] > last ? order->clock[w] : last;
    if (last >= LAST_CLOCK) {
        forget(watch);
        last = 0;
    }
    watch->first = last + 1;
    watch->blocks++;
    watch->number = number;
    memcpy(watch->block, block, sizeof watch->block);
    order->apart = 0;
    for (uint32_t w = 0; w < watch->warps; w++) {
        order->clock[w] = watch->first + 1;
        watch->handed[w].any = watch->handed[w].asked = 0;
        memset(watch->handed[w].fenced, 0, sizeof watch->handed[w].fenced);
        for (uint32_t x = 0; x < watch->warps; x++)
            order->seen[w][x] = watch->first + 1;
        order->least[w] = watch->first + 1;
        watch->pending[w].count = 0;
        memset(watch->pending[w].committed, 0, sizeof watch->pending[w].committed);
        memset(watch->pending[w].done, 0, sizeof watch->pending[w].done);
    }
}

int gm_lane_order(const gm_order *order, uint32_t warp, uint32_t lane, uint32_t other, uint32_t clock)
{
    return clock < order->lanes[warp][lane][other % GM_LANES];
}

static void join(uint32_t *into, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        into[i] = from[i] > into[i] ? from[i] : into[i];
}

static void all_lanes_meet(gm_watch *watch, uint32_t warp)
{
    gm_order *order = &watch->order;
    order->seen[warp][warp] = ++order->clock[warp];
    order->apart &= ~(UINT32_C(1) << warp);
    find_least(watch, warp);
}

/* What each lane of a warp has seen of the others, where that is not the same for all; NULL: no memory. */
static uint32_t (*lanes_apart(gm_order *order, uint32_t warp))[GM_LANES]
{
    uint32_t(*of)[GM_LANES] = order->lanes[warp];
    if (!of && !(of = order->lanes[warp] = gm_alloc(GM_LANES * sizeof *of)))
        return NULL;
    if (!(order->apart >> warp & 1))
        memset(of, 0, GM_LANES * sizeof *of);
    order->apart |= UINT32_C(1) << warp;
    return of;
}

void gm_watch_warp_barrier(gm_watch *watch, uint32_t warp, uint32_t lanes, uint32_t alive)
{
    gm_order *order = &watch->order;
    uint32_t(*of)[GM_LANES] = (lanes & alive) == alive ? NULL : lanes_apart(order, warp);
    if (!of) {
        all_lanes_meet(watch, warp); /* without memory nothing is reported that may be right */
        return;
    }
    order->clock[warp]++;
    uint32_t met[GM_LANES] = {0};
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        join(met, of[gm_first_lane(rest)], GM_LANES);
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        met[gm_first_lane(rest)] = order->clock[warp];
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        memcpy(of[gm_first_lane(rest)], met, sizeof met);
}

void gm_watch_hand_over(gm_watch *watch, uint32_t warp, uint32_t lanes)
{
    gm_handed *handed = &watch->handed[warp];
    uint32_t now = ++watch->order.clock[warp];
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        handed->fenced[gm_first_lane(rest)] = now;
    gm_watch_strong(watch, warp, lanes, GM_HOW_WRITE);
}

void gm_watch_take_over(gm_watch *watch, uint32_t warp, uint32_t lanes)
{
    const gm_handed *handed = &watch->handed[warp];
    if (!handed->any || !lanes)
        return;
    uint32_t(*of)[GM_LANES] = lanes_apart(&watch->order, warp);
    if (!of)
        all_lanes_meet(watch, warp);
    for (uint32_t rest = of ? lanes : 0; rest; rest &= rest - 1)
        join(of[gm_first_lane(rest)], handed->over, GM_LANES);
}

void gm_watch_fence(gm_watch *watch, uint32_t warp, uint32_t lanes)
{
    gm_handed *handed = &watch->handed[warp];
    gm_watch_release(watch, UINT64_MAX, warp);
    gm_watch_acquire(watch, UINT64_MAX, warp);
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        handed->fenced[gm_first_lane(rest)] = watch->order.clock[warp];
    gm_watch_take_over(watch, warp, lanes & handed->asked);
    handed->asked &= ~lanes;
}

void gm_watch_strong(gm_watch *watch, uint32_t warp, uint32_t lanes, unsigned how)
{
    const gm_order *order = &watch->order;
    gm_handed *handed = &watch->handed[warp];
    if (!(how & GM_HOW_WRITE) || how & GM_HOW_UPDATES)
        handed->asked |= lanes;
    for (uint32_t rest = how & GM_HOW_WRITE ? lanes : 0; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)gm_first_lane(rest);
        if (!handed->fenced[lane])
            continue;
        if (order->apart >> warp & 1) /* what it took over it hands on */
            join(handed->over, order->lanes[warp][lane], GM_LANES);
        handed->over[lane] = handed->fenced[lane];
        handed->any = 1;
    }
}

void gm_watch_barrier(gm_watch *watch, uint32_t warps)
{
    gm_order *order = &watch->order;
    uint32_t met[GM_WATCH_WARPS] = {0}, now = 0;
    for (uint32_t rest = warps; rest; rest &= rest - 1) {
        uint32_t warp = (uint32_t)gm_first_lane(rest);
        join(met, order->seen[warp], watch->warps);
        now = order->clock[warp] > now ? order->clock[warp] : now;
    }
    /* One time for all of them, so that `least` tells each that all is in order. */
    now++;
    for (uint32_t rest = warps; rest; rest &= rest - 1)
        met[gm_first_lane(rest)] = now;
    order->apart &= ~warps;
    for (uint32_t rest = warps; rest; rest &= rest - 1) {
        uint32_t warp = (uint32_t)gm_first_lane(rest);
        order->clock[warp] = now;
        memcpy(order->seen[warp], met, sizeof met);
        find_least(watch, warp);
    }
}

/* The slot of a key in this block; where all are taken, one is shared: then more is in order than needs be, and a race
 * may be missed, but none is made up. */
static gm_released *released(gm_watch *watch, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 58);
    for (size_t i = 0; i < GM_RELEASED; i++) {
        gm_released *slot = &watch->released[(at + i) % GM_RELEASED];
        if (slot->block != watch->blocks) {
            *slot = (gm_released){.key = key, .block = watch->blocks};
            return slot;
        }
        if (slot->key == key)
            return slot;
    }
    return &watch->released[at];
}

void gm_watch_release(gm_watch *watch, uint64_t key, uint32_t warp)
{
    gm_released *slot = released(watch, key);
    join(slot->seen, watch->order.seen[warp], watch->warps);
    slot->seen[warp] = ++watch->order.clock[warp];
}

void gm_watch_acquire(gm_watch *watch, uint64_t key, uint32_t warp)
{
    uint32_t *seen = watch->order.seen[warp], *clock = &watch->order.clock[warp];
    uint32_t own = seen[warp]; /* between its lanes nothing is put in order */
    join(seen, released(watch, key)->seen, watch->warps);
    seen[warp] = own;
    for (uint32_t x = 0; x < watch->warps; x++) /* no clock is behind what it has seen */
        *clock = seen[x] > *clock ? seen[x] : *clock;
    find_least(watch, warp);
}

static void position(const gm_watch *watch, uint32_t thread, uint32_t at[3])
{
    const uint32_t *block = watch->setup.block;
    at[0] = thread % block[0];
    at[1] = thread / block[0] % block[1];
    at[2] = thread / block[0] / block[1];
}

void gm_watch_report(gm_watch *watch, gm_finding_kind kind, uint32_t site, unsigned how, uint32_t bytes,
                     uint32_t thread, uint32_t address, uint32_t other_site, uint32_t other_thread, int first)
{
    gm_finding what = {.kind = kind, .space = GM_SPACE_SHARED, .writes = how & GM_HOW_WRITE, .bytes = (uint16_t)bytes};
    gm_finding_example example = {.buffer = -1,
                                  .address = address,
                                  .offset = address,
                                  .number = watch->number,
                                  .other_thread = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                  .other_block = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    if (site < GM_WATCH_SITES)
        what.place = watch->setup.site[site];
    if (other_site < GM_WATCH_SITES)
        what.other = watch->setup.site[other_site];
    memcpy(example.block, watch->block, sizeof example.block);
    position(watch, thread, example.thread);
    if (other_thread != UINT32_MAX)
        position(watch, other_thread, example.other_thread);
    gm_findings_add(watch->setup.findings, &what, &example, first);
}
