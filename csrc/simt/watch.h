/* Watches the order of accesses: who wrote a place last, who read it since, and what has ordered them. From that come
 * findings about races, memory that nobody wrote, and asynchronous copies that were not waited for.
 *
 * The executor says what happens (an access, a barrier, a wait) where a run asks for it (GM_WATCH_SHARED,
 * GM_WATCH_GLOBAL); nothing here is called otherwise. Addresses out of bounds or misaligned are not given: the executor
 * has its own findings for those.
 *
 * Ordering is exact for barriers, warp barriers, and pairs of release and acquire, whatever order the executor happens
 * to take: each warp has a clock and knows how much of the others' it has seen. That warps or lanes ran one after
 * another in the executor orders nothing. Which of several racing accesses is named may depend on the executor's order
 * of warps; that a place is raced for does not. */
#pragma once
#include "count.h"
#include "findings.h"

enum {
    GM_HOW_READ = 0,
    GM_HOW_WRITE = 1,
    GM_HOW_ATOMIC = 2,   /* atom and red (with WRITE), ld and st that are relaxed, acquire or release: these do not race
                            with   one another */
    GM_HOW_VOLATILE = 4, /* nor do these, between warps; within a warp __syncwarp is still needed */
    GM_HOW_UPDATES = 16, /* atom and red: reads what it writes */
    GM_HOW_ORDERS = 8,   /* acquire or release: what is written before one is before what is read behind the other */
};

/* --- shared memory: one gm_watch a host thread, for one block after another ------------------------------------- */

typedef struct gm_watch gm_watch;

typedef struct gm_watch_setup {
    const gm_place *site;  /* the kernel's memory instructions; outlives the watch */
    gm_findings *findings; /* of this host thread; outlives the watch */
    uint32_t block[3];     /* threads: a block's shape */
    uint32_t shared_bytes; /* static and dynamic */
    uint32_t grain;        /* the narrowest access to shared memory that the kernel has, at most 4: 1, 2 or 4 bytes */
} gm_watch_setup;

gm_watch *gm_watch_new(const gm_watch_setup *setup); /* NULL: no memory */
void gm_watch_free(gm_watch *watch);

/* A new block begins: its shared memory is unwritten, all of its threads are in order. */
void gm_watch_block(gm_watch *watch, const uint32_t block[3], uint64_t number);

/* A warp's access: offsets in shared memory. A read gives back the lanes that got bytes which nobody has written: they
 * are no finding yet, since the value may be thrown away (gm_watch_unwritten makes it one). For ldmatrix and stmatrix
 * the lanes that name rows, 16 bytes each. */
uint32_t gm_watch_shared(gm_watch *watch, uint32_t site, unsigned how, uint32_t warp, const uint32_t addr[GM_LANES],
                         uint32_t active, uint32_t bytes);
void gm_watch_unwritten(gm_watch *watch, uint32_t site, uint32_t warp, const uint32_t addr[GM_LANES], uint32_t lanes,
                        uint32_t bytes);
/* The same for values that are followed: such a read is kept under a number, which makes it a finding later. 0: no more
 * is known of it (the reads of a block are kept for a while only). Then what of an access has no value, and what has
 * none any more since no value was stored there. */
uint32_t gm_watch_keep(gm_watch *watch, uint32_t site, uint32_t warp, const uint32_t addr[GM_LANES], uint32_t lanes,
                       uint32_t bytes);
int gm_watch_used(gm_watch *watch, uint32_t number, uint32_t lanes);
uint32_t gm_watch_never(const gm_watch *watch, const uint32_t addr[GM_LANES], uint32_t lanes, uint32_t bytes);
void gm_watch_unknown(gm_watch *watch, const uint32_t addr[GM_LANES], uint32_t lanes, uint32_t bytes);

/* cp.async: its write happens at some time until the waiting thread's wait. */
void gm_watch_copy(gm_watch *watch, uint32_t site, uint32_t warp, const uint32_t addr[GM_LANES], uint32_t active,
                   uint32_t bytes);
void gm_watch_copy_commit(gm_watch *watch, uint32_t warp, uint32_t active);
/* wait_group: at most `left` of a thread's committed groups may be on their way; wait_all: all = 1. */
void gm_watch_copy_wait(gm_watch *watch, uint32_t warp, uint32_t active, uint32_t left, int all);

/* Bytes that arrived by a bulk copy, whoever waited for it. */
void gm_watch_arrived(gm_watch *watch, uint32_t offset, uint32_t bytes);

/* bar.warp.sync of `lanes`; `alive` are the warp's lanes that have not exited. */
void gm_watch_warp_barrier(gm_watch *watch, uint32_t warp, uint32_t lanes, uint32_t alive);

/* All of these warps (bit i: warp i) have met at a barrier of the block. */
void gm_watch_barrier(gm_watch *watch, uint32_t warps);

/* What orders one way: arriving (barrier.arrive, mbarrier.arrive, a release) and later seeing it (barrier.sync of
 * others' arrivals, a successful mbarrier wait, an acquire). `key` is any number for the thing that both name. */
void gm_watch_release(gm_watch *watch, uint64_t key, uint32_t warp);
void gm_watch_acquire(gm_watch *watch, uint64_t key, uint32_t warp);

/* Between the lanes of a warp neither orders anything; nor does a fence that all of them execute. A lane hands over
 * what it did before its fence by a strong (atomic or volatile) write behind it, and a lane takes over by a strong read
 * before its own fence: which write a read sees is not looked at. A fence of lanes is a release and an acquire, too. */
void gm_watch_fence(gm_watch *watch, uint32_t warp, uint32_t lanes);
void gm_watch_strong(gm_watch *watch, uint32_t warp, uint32_t lanes, unsigned how);
/* Lanes that arrive at a barrier in memory hand over; lanes that saw its phase end take over. */
void gm_watch_hand_over(gm_watch *watch, uint32_t warp, uint32_t lanes);
void gm_watch_take_over(gm_watch *watch, uint32_t warp, uint32_t lanes);

/* --- global memory: one gm_watch_global a run ------------------------------------------------------------------- */

typedef struct gm_watch_global gm_watch_global;

typedef struct gm_watch_range {
    uint64_t address, size;
} gm_watch_range;

typedef struct gm_watch_global_setup {
    const gm_place *site;
    size_t sites;
    const gm_watch_range *buffer; /* sorted by address, disjoint */
    size_t buffers;
    uint32_t grid[3], block[3];
    uint64_t blocks; /* of the grid */
    uint32_t grain;  /* the narrowest access to global memory, at most 4 */
    int races;       /* between blocks: the run has one host thread then */
    int read_only;   /* ld.global.nc against stores: any number of host threads */
    uint64_t memory; /* bytes that may be taken; places beyond are not watched (gm_watch_global_report says so) */
} gm_watch_global_setup;

gm_watch_global *gm_watch_global_new(const gm_watch_global_setup *setup); /* NULL: no memory */
void gm_watch_global_free(gm_watch_global *watch);

/* A warp's access. `nc` says ld.global.nc. Races go to `findings` at once. */
void gm_watch_global_access(gm_watch_global *watch, gm_findings *findings, uint32_t site, unsigned how, int nc,
                            const uint32_t block[3], uint64_t number, uint32_t warp, const uint64_t addr[GM_LANES],
                            uint32_t active, uint32_t bytes);

/* What orders blocks: a release is a fence, or an access with release semantics; an acquire is an atomic access, or one
 * with acquire semantics, and a fence. An acquire sees every release before it, whatever the address: so no race is
 * made up for kernels that synchronise their blocks, and some may be missed. */
void gm_watch_global_release(gm_watch_global *watch, uint64_t number);
void gm_watch_global_acquire(gm_watch_global *watch, uint64_t number);

/* At the end of the run: what was read through the read-only path and written. A row a pair of instructions; its lanes
 * are places of `bytes` bytes. Returns 0 if the memory did not suffice to watch everything. */
int gm_watch_global_report(gm_watch_global *watch, gm_findings *findings);
