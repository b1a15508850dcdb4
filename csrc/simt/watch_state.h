/* Inside the watch of shared memory: what is known of each place, and of what each warp has seen of the others. */
#pragma once
#include "watch.h"
#include <stddef.h>

enum {
    GM_WATCH_WARPS = 32,            /* of a block, at most */
    GM_WATCH_SITES = (1 << 19) - 1, /* later ones are not named */
};

/* Who accessed a place: thread (or warp), how, and by which instruction, in one word. */
enum {
    GM_BY_THREAD_BITS = 10,
    GM_BY_ATOMIC = 1 << 10,
    GM_BY_VOLATILE = 1 << 11,
    GM_BY_COPY = 1 << 12, /* by a cp.async that its thread has not waited for (wrote[] says GM_PENDING too) */
    GM_BY_SITE_SHIFT = 13
};

/* What is known of the places (`grain` bytes each), a word a place in each array: so that a warp's neighbouring places
 * are looked at as neighbouring words. Clocks before the block's first one mean that nothing has happened yet.
 *
 * A reader is the lanes of one warp that read at one time of its clock; `by` names the warp's first thread. Two readers
 * of different warps are enough to tell a writer that somebody else has read; the first is never the earlier one. */
typedef struct gm_reader {
    uint32_t *clock, *lanes, *by;
} gm_reader;

typedef struct gm_shadow {
    uint32_t *wrote, *by; /* the last write: its clock, with GM_PENDING where it gave no value; and who */
    gm_reader reader[2];
    uint32_t *all; /* of the arrays, one behind the other */
} gm_shadow;

enum { GM_SHADOW_ARRAYS = 8 };
#define GM_PENDING (UINT32_C(1) << 31) /* a copy that is on its way (GM_BY_COPY), or what was stored was no value */

/* cp.async's of one warp, of lanes with one count of committed groups. */
typedef struct gm_pending {
    uint32_t addr[GM_LANES];
    uint32_t active, bytes, group, site;
} gm_pending;

typedef struct gm_pendings {
    gm_pending *list;
    uint32_t count, capacity;
    uint32_t committed[GM_LANES], done[GM_LANES]; /* groups of each lane */
} gm_pendings;

/* One direction of time between threads. A warp's clock ticks whenever it lets others see what it did; an access at
 * clock c of warp x is before what warp w does now if c < seen[w][x]. seen[w][w] is the last time that all lanes of w
 * met; where only some of them did, an access of lane m is before what lane l does if c < lanes[w][l][m]. */
typedef struct gm_order {
    uint32_t clock[GM_WATCH_WARPS];
    uint32_t seen[GM_WATCH_WARPS][GM_WATCH_WARPS];
    uint32_t least[GM_WATCH_WARPS];              /* of seen[w]: what happened before that is before w, whoever did it */
    uint32_t (*lanes[GM_WATCH_WARPS])[GM_LANES]; /* [l][m]; NULL until some lanes meet alone */
    uint32_t apart;                              /* warps (bits) where lanes[] has to be looked at */
} gm_order;

/* What lanes of a warp have handed to one another: clocks of the accesses before. */
typedef struct gm_handed {
    uint32_t fenced[GM_LANES]; /* before each lane's last fence */
    uint32_t over[GM_LANES];   /* before the last fence of each lane that has written strongly since */
    uint32_t asked;            /* lanes that have read strongly since their last fence */
    uint32_t any;              /* something was handed over */
} gm_handed;

/* What one side has released under a key. */
typedef struct gm_released {
    uint64_t key;
    uint32_t seen[GM_WATCH_WARPS];
    uint32_t block; /* of the watch's count of blocks: older ones are free */
} gm_released;

enum { GM_RELEASED = 64 };

/* A read of places that hold no value; whether it matters is seen when the value is used. */
typedef struct gm_kept {
    uint32_t number, site, warp, bytes, lanes; /* those not reported yet */
    uint32_t addr[GM_LANES];
    int said;
} gm_kept;

enum { GM_KEPT = 256 };

struct gm_watch {
    gm_watch_setup setup;
    uint32_t warps, units, shift; /* places, and log2 of their bytes */
    uint32_t first;               /* the clock before this block: what happened then is before everybody */
    uint32_t blocks;
    uint32_t block[3];
    uint64_t number;
    gm_shadow place;
    gm_order order;
    gm_released released[GM_RELEASED];
    gm_handed handed[GM_WATCH_WARPS];
    gm_pendings pending[GM_WATCH_WARPS];
    uint32_t kept_count;
    gm_kept kept[GM_KEPT]; /* the last ones, by number */
};

static inline uint32_t gm_by(uint32_t thread, unsigned how, uint32_t site)
{
    uint32_t known = site < GM_WATCH_SITES ? site : GM_WATCH_SITES;
    return thread | (how & GM_HOW_ATOMIC ? GM_BY_ATOMIC : 0u) | (how & GM_HOW_VOLATILE ? GM_BY_VOLATILE : 0u) |
           known << GM_BY_SITE_SHIFT;
}

static inline uint32_t gm_by_thread(uint32_t by)
{
    return by & ((1u << GM_BY_THREAD_BITS) - 1);
}

/* Whether what thread `other` did at `clock` comes before what lane `lane` of `warp` does now. */
int gm_lane_order(const gm_order *order, uint32_t warp, uint32_t lane, uint32_t other, uint32_t clock);

static inline int gm_before(const gm_order *order, uint32_t warp, uint32_t lane, uint32_t other, uint32_t clock)
{
    uint32_t of = other / GM_LANES;
    if (clock < order->seen[warp][of])
        return 1;
    return of == warp &&
           (other % GM_LANES == lane || (order->apart >> warp & 1 && gm_lane_order(order, warp, lane, other, clock)));
}

/* gm_watch_shared, with flags (GM_BY_*) for what a write leaves behind. */
uint32_t gm_watch_note(gm_watch *watch, uint32_t site, unsigned how, uint32_t flags, uint32_t warp,
                       const uint32_t addr[GM_LANES], uint32_t active, uint32_t bytes);

/* Adds a finding of one lane. `other_thread` is UINT32_MAX where there is none. */
void gm_watch_report(gm_watch *watch, gm_finding_kind kind, uint32_t site, unsigned how, uint32_t bytes,
                     uint32_t thread, uint32_t address, uint32_t other_site, uint32_t other_thread, int first);
