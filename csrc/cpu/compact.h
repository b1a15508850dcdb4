/* Plans that pick items out of the source and turn them round, like that of x[::2, ::2].T: no vector load holds what
 * belongs together. So a slab of the source at a time is first copied, without its gaps, into memory that the last
 * cache holds, and moved on from there. */
#pragma once
#include "tile_move.h"

/* Whether gm_move_compact is the better way to execute a plan of family GM_GENERAL. */
int gm_compact_suits(const gm_plan *plan);

/* Executes a plan that suits. */
gm_status gm_move_compact(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how);
