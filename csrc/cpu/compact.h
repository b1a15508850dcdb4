/* Movement in two steps, a slab at a time, through memory that the second cache holds: of plans that pick items out of
 * the source and turn them round, like that of x[::2, ::2].T. No vector load holds what belongs together. So the slab
 * is first copied without its gaps. */
#pragma once
#include "tile_move.h"

/* Whether gm_move_compact is the better way to execute a plan. */
int gm_compact_suits(const gm_plan *plan);

/* Executes a plan that suits. */
gm_status gm_move_compact(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how);
