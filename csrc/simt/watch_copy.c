/* The watch's asynchronous copies: a cp.async writes its places at some time until its thread waits for its group.
 * Until then nobody may touch them, the thread itself included; from then on they are written by that thread at that
 * time. */
#include "watch_state.h"
#include "../base/memory.h"
#include "count_lanes.h"
#include <string.h>

/* A warp's copies that are waited for late or never: more than these are taken as waited for. */
enum { MOST_PENDING = 4096 };

static gm_pending *new_pending(gm_pendings *all)
{
    if (all->count == all->capacity) {
        uint32_t capacity = all->capacity ? 2 * all->capacity : 8;
        gm_pending *list = capacity <= MOST_PENDING ? gm_alloc(capacity * sizeof *list) : NULL;
        if (!list)
            return NULL;
        if (all->count)
            memcpy(list, all->list, all->count * sizeof *list);
        gm_free(all->list);
        all->list = list;
        all->capacity = capacity;
    }
    return &all->list[all->count++];
}

void gm_watch_copy(gm_watch *watch, uint32_t site, uint32_t warp, const uint32_t addr[GM_LANES], uint32_t active,
                   uint32_t bytes)
{
    gm_pendings *all = &watch->pending[warp];
    while (active) {
        /* Lanes that have committed as many groups are one entry; nearly always that is all of them. */
        uint32_t group = all->committed[gm_first_lane(active)], alike = 0;
        for (uint32_t rest = active; rest; rest &= rest - 1)
            if (all->committed[gm_first_lane(rest)] == group)
                alike |= rest & (0 - rest);
        gm_pending *entry = new_pending(all);
        gm_watch_note(watch, site, GM_HOW_WRITE, entry ? GM_BY_COPY : 0, warp, addr, alike, bytes);
        if (entry) {
            *entry = (gm_pending){.active = alike, .bytes = bytes, .group = group, .site = site};
            memcpy(entry->addr, addr, sizeof entry->addr);
        }
        active &= ~alike;
    }
}

void gm_watch_copy_commit(gm_watch *watch, uint32_t warp, uint32_t active)
{
    for (; active; active &= active - 1)
        watch->pending[warp].committed[gm_first_lane(active)]++;
}

/* The lane's copy is there now: its places are written at this time of the warp, unless somebody else wrote them since,
 * which was a finding. */
static void finish_lane(gm_watch *watch, uint32_t warp, const gm_pending *entry, uint32_t lane)
{
    uint32_t by = gm_by(warp * GM_LANES + lane, 0, entry->site), at = entry->addr[lane] >> watch->shift;
    const gm_shadow *place = &watch->place;
    for (uint32_t i = at; i < at + (entry->bytes >> watch->shift) && i < watch->units; i++)
        if (place->by[i] == (by | GM_BY_COPY) && place->wrote[i] >= (watch->first | GM_PENDING)) {
            place->by[i] = by;
            place->wrote[i] = watch->order.clock[warp];
        }
}

void gm_watch_copy_wait(gm_watch *watch, uint32_t warp, uint32_t active, uint32_t left, int all)
{
    gm_pendings *pending = &watch->pending[warp];
    uint32_t kept = 0;
    if (all) {
        gm_watch_copy_commit(watch, warp, active);
        left = 0;
    }
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int lane = gm_first_lane(rest);
        uint32_t done = pending->committed[lane] > left ? pending->committed[lane] - left : 0;
        pending->done[lane] = done > pending->done[lane] ? done : pending->done[lane];
    }
    for (uint32_t e = 0; e < pending->count; e++) {
        gm_pending *entry = &pending->list[e];
        for (uint32_t rest = entry->active; rest; rest &= rest - 1) {
            uint32_t lane = (uint32_t)gm_first_lane(rest);
            if (entry->group >= pending->done[lane])
                continue;
            finish_lane(watch, warp, entry, lane);
            entry->active &= ~(UINT32_C(1) << lane);
        }
        if (entry->active)
            pending->list[kept++] = *entry;
    }
    pending->count = kept;
}

void gm_watch_arrived(gm_watch *watch, uint32_t offset, uint32_t bytes)
{
    uint32_t end = (offset + bytes) >> watch->shift;
    const gm_shadow *place = &watch->place;
    for (uint32_t at = offset >> watch->shift; at < end && at < watch->units; at++) {
        place->wrote[at] = watch->first;
        place->by[at] = 0;
        place->reader[0].clock[at] = place->reader[1].clock[at] = 0;
    }
}
