/* The watch's accesses to shared memory: each place is compared with its last write and its readers, then noted.
 *
 * All lanes are compared before the first one is noted: what one instruction does in several lanes happens at once, and
 * is no race in itself. */
#include "watch_state.h"
#include "count_lanes.h"

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

/* Reports the last write of the place if the lane's access does not come after it. */
static int races_with_write(access *a, const gm_shadow *place, uint32_t lane, uint32_t address)
{
    if (place->clock < a->watch->first)
        return 0;
    uint32_t other = gm_by_thread(place->by);
    if (place->by & GM_BY_COPY)
        report(a, GM_FINDING_ASYNC_PENDING, lane, address, place->by, other);
    else if (gm_before(&a->watch->order, a->warp, lane, other, place->clock) || meant(a, place->by))
        return 0;
    else
        report_race(a, lane, address, place->by, other);
    return 1;
}

static int races_with_reader(access *a, const gm_reader *reader, uint32_t lane, uint32_t address)
{
    if (reader->clock < a->watch->first || plainly_before(a, reader->clock, reader->by) || meant(a, reader->by))
        return 0;
    for (uint32_t rest = reader->lanes; rest; rest &= rest - 1) {
        uint32_t other = gm_by_thread(reader->by) + (uint32_t)gm_first_lane(rest);
        if (gm_before(&a->watch->order, a->warp, lane, other, reader->clock))
            continue;
        report_race(a, lane, address, reader->by, other);
        return 1;
    }
    return 0;
}

/* Compares one lane's places: one finding is enough. */
static void compare_lane(access *a, const gm_shadow *place, uint32_t n, uint32_t lane, uint32_t address)
{
    for (uint32_t i = 0; i < n; i++) {
        if (races_with_write(a, &place[i], lane, address))
            return;
        if (a->how & GM_HOW_WRITE && (races_with_reader(a, &place[i].reader[0], lane, address) ||
                                      races_with_reader(a, &place[i].reader[1], lane, address)))
            return;
    }
}

/* Whether a lane's n places need no closer look; *unwritten becomes 1 if one of them was never written. */
static inline int all_before(const access *a, const gm_shadow *place, uint32_t n, uint32_t *unwritten)
{
    uint32_t first = a->watch->first;
    int good = 1;
    for (uint32_t i = 0; i < n; i++) {
        const gm_shadow *p = &place[i];
        *unwritten |= p->clock < first;
        good &= (p->by & GM_BY_COPY) == 0 && plainly_before(a, p->clock, p->by);
        if (a->how & GM_HOW_WRITE)
            good &= plainly_before(a, p->reader[0].clock, p->reader[0].by) &&
                    plainly_before(a, p->reader[1].clock, p->reader[1].by);
    }
    return good;
}

/* A reader's slot is that of its own warp, or else one that it comes after: who does not come after the one forgotten
 * cannot come after this one. Readers of one warp and time share a slot, as exempt as the least exempt of them. */
static inline void note_read(const access *a, gm_shadow *place, uint32_t lane, uint32_t now)
{
    const uint32_t flags = GM_BY_ATOMIC | GM_BY_VOLATILE;
    gm_reader *slot = &place->reader[0], *second = &place->reader[1];
    if (gm_by_thread(slot->by ^ a->by) &&
        (!gm_by_thread(second->by ^ a->by) || !plainly_before(a, slot->clock, slot->by)))
        slot = second;
    if (slot->clock == now && !gm_by_thread(slot->by ^ a->by))
        *slot = (gm_reader){now, slot->lanes | UINT32_C(1) << lane, a->by & (slot->by | ~flags)};
    else
        *slot = (gm_reader){now, UINT32_C(1) << lane, a->by};
}

static inline void note_write(const access *a, gm_shadow *place, uint32_t lane, uint32_t now)
{
    place->clock = now;
    place->by = a->by + lane;
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
    uint32_t n = bytes >> watch->shift, now = watch->order.clock[warp], unwritten = 0, inside = 0;

    for (uint32_t rest = active; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)gm_first_lane(rest), at = addr[lane] >> watch->shift, none = 0;
        if (at + n > watch->units || at + n < at)
            continue;
        inside |= UINT32_C(1) << lane;
        if (!all_before(&a, &watch->place[at], n, &none))
            compare_lane(&a, &watch->place[at], n, lane, addr[lane]);
        unwritten |= none << lane;
    }
    for (uint32_t rest = inside; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)gm_first_lane(rest);
        gm_shadow *place = &watch->place[addr[lane] >> watch->shift];
        for (uint32_t i = 0; i < n; i++)
            if (how & GM_HOW_WRITE)
                note_write(&a, &place[i], lane, now);
            else
                note_read(&a, &place[i], lane, now);
    }
    int reads = !(how & GM_HOW_WRITE) || how & GM_HOW_ATOMIC;
    return reads ? unwritten : 0;
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
