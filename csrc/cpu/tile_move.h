/* The blocked engine: any plan, block by block. */
#pragma once
#include "cpu.h"

typedef struct gm_tile_how {
    int simd;    /* square tiles in registers where the items allow it, else item by item */
    int staged;  /* through scratch, streaming out */
    int threads; /* at most */
} gm_tile_how;

/* plan->naxes > 0 */
gm_status gm_move_blocks(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how);
