/* The watch's accesses to shared memory: each place is compared with its last write and its readers, then noted.
 *
 * All lanes are compared before the first one is noted: what one instruction does in several lanes happens at once, and
 * is no race in itself. */
#include "watch_state.h"
#include "count_lanes.h"
#include <string.h>

enum { EXEMPT_IN_WARP = GM_BY_ATOMIC, EXEMPT_BETWEEN_WARPS = GM_BY_ATOMIC | GM_BY_VOLATILE };

typedef struct access {
    gm_watch *watch;
    const uint32_t *seen; /* what this warp has seen of the others, and its own last meeting of all lanes */
    uint32_t site, warp, bytes;
    unsigned how;
    uint32_t by;   /* of the warp's lane 0 */
    uint32_t said; /* kinds (bits) that this instruction has a finding of */
} access;

static void report(access *a, gm_finding_kind kind, uint32_t lane, uint32_t address, uint32_t by, uint32_t other)
{
    uint32_t bit = UINT32_C(1) << kind;
    gm_watch_report(a->watch, kind, a->site, a->how, a->bytes, a->warp * GM_LANES + lane, address,
                    by >> GM_BY_SITE_SHIFT, other, !(a->said & bit));
    a->said |= bit;
}

static void report_race(access *a, uint32_t lane, uint32_t address, uint32_t by, uint32_t other)
{
    report(a, other / GM_LANES == a->warp ? GM_FINDING_RACE_WARP : GM_FINDING_RACE_SHARED, lane, address, by, other);
}

/* Accesses that are meant to meet: both atomic, or both volatile in two warps. */
static int meant(const access *a, uint32_t by)
{
    uint32_t exempt = gm_by_thread(by) / GM_LANES == a->warp ? EXEMPT_IN_WARP : EXEMPT_BETWEEN_WARPS;
    return a->by & exempt && by & exempt;
}

/* The usual case in one look: the clock is one that this warp has seen of the other. */
static inline int plainly_before(const access *a, uint32_t clock, uint32_t by)
{
    return clock < a->seen[gm_by_thread(by) / GM_LANES];
}

/* Reports the last write of a place if the lane's access does not come after it. */
static int races_with_write(access *a, uint32_t at, uint32_t lane, uint32_t address)
{
    const gm_shadow *place = &a->watch->place;
    uint32_t clock = place->wrote[at] & ~GM_PENDING, by = place->by[at], other = gm_by_thread(by);
    if (clock < a->watch->first)
        return 0;
    if (by & GM_BY_COPY)
        report(a, GM_FINDING_ASYNC_PENDING, lane, address, by, other);
    else if (gm_before(&a->watch->order, a->warp, lane, other, clock) || meant(a, by))
        return 0;
    else
        report_race(a, lane, address, by, other);
    return 1;
}

static int races_with_reader(access *a, const gm_reader *reader, uint32_t at, uint32_t lane, uint32_t address)
{
    uint32_t clock = reader->clock[at], by = reader->by[at];
    if (clock < a->watch->first || plainly_before(a, clock, by) || meant(a, by))
        return 0;
    for (uint32_t rest = reader->lanes[at]; rest; rest &= rest - 1) {
        uint32_t other = gm_by_thread(by) + (uint32_t)gm_first_lane(rest);
        if (gm_before(&a->watch->order, a->warp, lane, other, clock))
            continue;
        report_race(a, lane, address, by, other);
        return 1;
    }
    return 0;
}

/* Compares one lane's places: one finding is enough. */
static void compare_lane(access *a, uint32_t at, uint32_t n, uint32_t lane, uint32_t address)
{
    const gm_shadow *place = &a->watch->place;
    for (uint32_t i = at; i < at + n; i++) {
        if (races_with_write(a, i, lane, address))
            return;
        if (a->how & GM_HOW_WRITE && (races_with_reader(a, &place->reader[0], i, lane, address) ||
                                      races_with_reader(a, &place->reader[1], i, lane, address)))
            return;
    }
}

/* 1 if one of a lane's n places holds no value. */
static uint32_t never_written(const gm_watch *watch, uint32_t at, uint32_t n)
{
    const gm_shadow *place = &watch->place;
    uint32_t never = 0;
    for (uint32_t i = at; i < at + n; i++)
        never |= (place->wrote[i] & ~GM_PENDING) < watch->first ||
                 (place->wrote[i] & GM_PENDING && !(place->by[i] & GM_BY_COPY));
    return never;
}

/* A reader's place is that of its own warp, or else one that it comes after: who does not come after the one forgotten
 * cannot come after this one. Readers of one warp and time share a place, as exempt as the least exempt of them. */
static inline void note_read(const access *a, uint32_t at, uint32_t lane, uint32_t now)
{
    const uint32_t flags = GM_BY_ATOMIC | GM_BY_VOLATILE;
    const gm_shadow *place = &a->watch->place;
    const gm_reader *first = &place->reader[0], *second = &place->reader[1];
    uint32_t lanes = UINT32_C(1) << lane, by = a->by;
    if (gm_by_thread(first->by[at] ^ by) &&
        (!gm_by_thread(second->by[at] ^ by) || !plainly_before(a, first->clock[at], first->by[at]))) {
        if (second->clock[at] == now && !gm_by_thread(second->by[at] ^ by))
            lanes |= second->lanes[at], by &= second->by[at] | ~flags;
        if (first->clock[at] > now) {
            second->clock[at] = now, second->lanes[at] = lanes, second->by[at] = by;
            return;
        }
        second->clock[at] = first->clock[at], second->lanes[at] = first->lanes[at], second->by[at] = first->by[at];
    } else if (first->clock[at] == now && !gm_by_thread(first->by[at] ^ by)) {
        lanes |= first->lanes[at], by &= first->by[at] | ~flags;
    }
    first->clock[at] = now, first->lanes[at] = lanes, first->by[at] = by;
}

static inline void note_write(const access *a, uint32_t at, uint32_t lane, uint32_t now, uint32_t pending)
{
    a->watch->place.wrote[at] = now | pending;
    a->watch->place.by[at] = a->by + lane;
}

/* All lanes, n places each, side by side from place `at`: if everything that ever happened there is before this, it is
 * noted, and the answer is 1; 0: a closer look is needed. `from`: a clock that a place must have been written since. */
static inline int row(const access *a, uint32_t at, const uint32_t n, uint32_t from, uint32_t now, uint32_t pending)
{
    const gm_shadow *place = &a->watch->place;
    const uint32_t count = n * GM_LANES, least = a->watch->order.least[a->warp];
    const int writes = a->how & GM_HOW_WRITE;
    uint32_t *wrote = place->wrote + at, *read = place->reader[0].clock + at, late = 0;
    for (uint32_t i = 0; i < count; i++)
        late |= (wrote[i] - from >= least - from) | (read[i] >= least);
    if (late)
        return 0;
    uint32_t *clock = writes ? wrote : read, *by = (writes ? place->by : place->reader[0].by) + at;
    for (uint32_t i = 0; i < count; i++)
        clock[i] = now | pending;
    for (uint32_t lane = 0; lane < GM_LANES; lane++)
        for (uint32_t i = 0; i < n; i++)
            by[lane * n + i] = a->by + (writes ? lane : 0);
    uint32_t *lanes = place->reader[0].lanes + at;
    for (uint32_t lane = 0; lane < GM_LANES && !writes; lane++)
        for (uint32_t i = 0; i < n; i++)
            lanes[lane * n + i] = UINT32_C(1) << lane;
    return 1;
}

uint32_t gm_watch_note(gm_watch *watch, uint32_t site, unsigned how, uint32_t flags, uint32_t warp,
                       const uint32_t addr[GM_LANES], uint32_t active, uint32_t bytes)
{
    access a = {.watch = watch,
                .seen = watch->order.seen[warp],
                .site = site,
                .warp = warp,
                .bytes = bytes,
                .how = how,
                .by = gm_by(warp * GM_LANES, how, site) | flags};
    const gm_shadow *place = &watch->place;
    uint32_t n = bytes >> watch->shift, now = watch->order.clock[warp], count = 0, unwritten = 0;
    const int writes = how & GM_HOW_WRITE, reads = !writes || how & GM_HOW_UPDATES;
    const uint32_t least = watch->order.least[warp], from = reads ? watch->first : 0;
    const uint32_t pending = flags & GM_BY_COPY ? GM_PENDING : 0, start = addr[0] >> watch->shift;
    uint32_t at[GM_LANES], late[GM_LANES], all = 0;
    uint8_t lane[GM_LANES];

    if (active == UINT32_MAX && gm_steps32(addr, GM_LANES) && addr[1] - addr[0] == bytes &&
        start + (uint64_t)n * GM_LANES <= watch->units &&
        (n == 1 ? row(&a, start, 1, from, now, pending) : row(&a, start, n, from, now, pending)))
        return 0;

    for (uint32_t rest = active; rest; rest &= rest - 1) {
        uint32_t i = (uint32_t)gm_first_lane(rest), unit = addr[i] >> watch->shift;
        at[count] = unit;
        lane[count] = (uint8_t)i;
        count += n <= watch->units && unit <= watch->units - n;
    }
    for (uint32_t k = 0; k < count; k++) {
        late[k] = 0;
        for (uint32_t i = at[k]; i < at[k] + n; i++)
            late[k] |= (place->wrote[i] - from >= least - from) | (writes && place->reader[0].clock[i] >= least);
        all |= late[k];
    }
    for (uint32_t k = 0; all && k < count; k++) {
        if (!late[k])
            continue;
        compare_lane(&a, at[k], n, lane[k], addr[lane[k]]);
        if (reads)
            unwritten |= never_written(watch, at[k], n) << lane[k];
    }
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = at[k]; i < at[k] + n; i++)
            if (writes)
                note_write(&a, i, lane[k], now, pending);
            else
                note_read(&a, i, lane[k], now);
    return unwritten;
}

uint32_t gm_watch_shared(gm_watch *watch, uint32_t site, unsigned how, uint32_t warp, const uint32_t addr[GM_LANES],
                         uint32_t active, uint32_t bytes)
{
    return gm_watch_note(watch, site, how, 0, warp, addr, active, bytes);
}

void gm_watch_unwritten(gm_watch *watch, uint32_t site, uint32_t warp, const uint32_t addr[GM_LANES], uint32_t lanes,
                        uint32_t bytes)
{
    access a = {.watch = watch, .site = site, .warp = warp, .bytes = bytes};
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)gm_first_lane(rest);
        report(&a, GM_FINDING_UNWRITTEN_SHARED, lane, addr[lane], (uint32_t)GM_WATCH_SITES << GM_BY_SITE_SHIFT,
               UINT32_MAX);
    }
}

uint32_t gm_watch_keep(gm_watch *watch, uint32_t site, uint32_t warp, const uint32_t addr[GM_LANES], uint32_t lanes,
                       uint32_t bytes)
{
    uint32_t number = ++watch->kept_count;
    gm_kept *kept = &watch->kept[number % GM_KEPT];
    *kept = (gm_kept){.number = number, .site = site, .warp = warp, .bytes = bytes, .lanes = lanes};
    memcpy(kept->addr, addr, sizeof kept->addr);
    return number;
}

/* The value may have come to other lanes by a shuffle. */
int gm_watch_used(gm_watch *watch, uint32_t number, uint32_t lanes)
{
    gm_kept *kept = &watch->kept[number % GM_KEPT];
    if (kept->number != number)
        return 0;
    lanes &= kept->lanes;
    if (!lanes && !kept->said)
        lanes = kept->lanes & (0 - kept->lanes);
    gm_watch_unwritten(watch, kept->site, kept->warp, kept->addr, lanes, kept->bytes);
    kept->lanes &= ~lanes;
    kept->said = 1;
    return 1;
}

uint32_t gm_watch_never(const gm_watch *watch, const uint32_t addr[GM_LANES], uint32_t lanes, uint32_t bytes)
{
    uint32_t never = 0, n = bytes >> watch->shift;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint32_t i = (uint32_t)gm_first_lane(rest), at = addr[i] >> watch->shift;
        if (n <= watch->units && at <= watch->units - n)
            never |= never_written(watch, at, n) << i;
    }
    return never;
}

void gm_watch_unknown(gm_watch *watch, const uint32_t addr[GM_LANES], uint32_t lanes, uint32_t bytes)
{
    uint32_t n = bytes >> watch->shift;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint32_t at = addr[gm_first_lane(rest)] >> watch->shift;
        for (uint32_t i = at; n <= watch->units && at <= watch->units - n && i < at + n; i++)
            watch->place.wrote[i] |= GM_PENDING;
    }
}
