/* Chooses the box of axes that a tile kernel moves at a time. */
#pragma once
#include "../base/plan.h"
#include "../kernels/tile.h"

typedef struct gm_tile_launch {
    gm_tile tile;
    int chain, ragged; /* which kernel: move_chain instead of move_tile, and its form for ragged runs */
    unsigned blocks, threads, shared;
} gm_tile_launch;

/* Whether tiles suit the plan in units of `unit` bytes, which divides its item; fills in `launch` if so. */
int gm_tile_make(gm_tile_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src,
                 int most_shared);

/* Chooses which units of their vectors a warp's lanes take first: 1 << shift lanes the same, the next `step` later. The
 * places in shared memory are those of `vector` units of each of the 32 lanes. */
void gm_lanes_turn(int (*place)[16], int vector, int *shift, int *step);

/* The same for a tile; the rest of it is known. */
void gm_tile_turn(gm_tile *tile, int unit);
