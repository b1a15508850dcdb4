/* What one warp instruction costs the memory system: pure functions of (32 addresses, active lanes, width, kind).
 *
 * The rules were measured on an H200 (sm_90) one instruction at a time with Nsight Compute; tests/data/truth holds the
 * rows, and every one of them comes out exactly. Words as Nsight Compute's: a request is one warp instruction with an
 * active lane; a sector is 32 bytes and a line 128 bytes of memory; a wavefront is one pass over the 32 banks of shared
 * memory, each 4 bytes wide.
 *
 * Addresses must be multiples of the width: whoever executes has refused others. Nothing here reads memory but the
 * array of addresses; the values of inactive lanes are not looked at. */
#pragma once
#include <stdint.h>

enum {
    GM_LANES = 32,
    GM_SECTOR_BYTES = 32,
    GM_LINE_BYTES = 128,
};

typedef enum gm_access {
    GM_ACCESS_LOAD,  /* ld, ld.global.nc, the global side of cp.async.ca: hints change nothing */
    GM_ACCESS_STORE, /* st */
    GM_ACCESS_ATOM,  /* atom, red: lanes on one address are served one after another */
    GM_ACCESS_CAS,   /* atom.cas: like atom in global memory, twice that in shared memory */
    GM_ACCESS_INC,   /* red.shared.add of the constant 1 (machine code: ATOMS.POPC.INC): counts like a store */
} gm_access;

/* One request to global (or local) memory. All are 0 without an active lane. */
typedef struct gm_global_count {
    uint32_t requests; /* 1 */
    uint32_t sectors;
    uint32_t ideal; /* what the lanes' bytes fill when packed, each lane counted, but never more than `sectors` */
    uint32_t lines; /* distinct 128-byte lines: tags that are looked up */
} gm_global_count;

/* One request to shared memory. All are 0 without an active lane. */
typedef struct gm_shared_count {
    uint32_t requests; /* 1 */
    uint32_t wavefronts;
    uint32_t ideal;     /* the groups of lanes that are served: 1, 2 or 4 by the width, fewer where they merge */
    uint32_t conflicts; /* wavefronts - ideal, but for cas */
} gm_shared_count;

/* `bytes` is the width of one lane's access, vectors whole: 1, 2, 4, 8, 16 or 32. */
gm_global_count gm_count_global(gm_access access, const uint64_t addr[GM_LANES], uint32_t active, uint32_t bytes);

/* Shared addresses: any base that is a multiple of 128 gives the same counts. 1, 2, 4, 8 or 16 bytes. */
gm_shared_count gm_count_shared(gm_access access, const uint32_t addr[GM_LANES], uint32_t active, uint32_t bytes);

/* ldmatrix and stmatrix: lanes 8 m ... 8 m + 7 hold the addresses of the 16-byte rows of matrix m. 1, 2 or 4 matrices;
 * these instructions are executed by all lanes. */
gm_shared_count gm_count_matrix(const uint32_t row[GM_LANES], uint32_t matrices);

/* The global side of cp.async.cg, 16 bytes a lane: it goes past the first-level cache straight to its place in shared
 * memory, so that `sectors` depends on the destinations too. (cp.async.ca counts as a load.) */
gm_global_count gm_count_copy(const uint64_t src[GM_LANES], const uint32_t dst[GM_LANES], uint32_t active);

/* The shared side of cp.async.ca. It reads the first-level cache, whose lines lie in the same banks, and writes shared
 * memory: lanes that want one column on either side are served one after the other, those of one address too. Exact
 * where in each group one of the sides has no such lanes; where both have, it is the least that the hardware takes,
 * whose order is not known. `reads` are the lanes that do not just write zeros. */
gm_shared_count gm_count_copy_shared(const uint64_t src[GM_LANES], uint32_t reads, const uint32_t dst[GM_LANES],
                                     uint32_t writes, uint32_t bytes);

/* The same, and in which wavefront of the instruction (from 0) each active lane is served: `served` has 32 items, or is
 * NULL. Of cas, which takes two for each, the first. Units of one column are served in the order of their first lanes:
 * the hardware's own order is not known, and changes no count. */
gm_shared_count gm_place_shared(gm_access access, const uint32_t addr[GM_LANES], uint32_t active, uint32_t bytes,
                                uint8_t *served);
gm_shared_count gm_place_matrix(const uint32_t row[GM_LANES], uint32_t matrices, uint8_t *served);
gm_shared_count gm_place_copy_shared(const uint32_t dst[GM_LANES], uint32_t active, uint32_t bytes, uint8_t *served);

/* The same counts from "lane i accesses first + i * step", all 32 lanes active: for executors that know so already.
 * gm_count_shared_steps is for widths of at least 4. */
gm_global_count gm_count_global_steps(gm_access access, uint64_t first, int64_t step, uint32_t bytes);
gm_shared_count gm_count_shared_steps(gm_access access, int32_t step, uint32_t bytes);
