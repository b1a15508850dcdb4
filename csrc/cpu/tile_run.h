/* Runs a plan block by block, from its first item to its last. */
#pragma once
#include "tile_move.h"

/* As gm_move_blocks, wherever the arrays begin. */
gm_status gm_run_blocks(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how);
