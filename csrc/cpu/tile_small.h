/* Small transpositions, whose time would otherwise go into planning blocks. */
#pragma once
#include "cpu.h"

/* A transposition that fits the first-level cache with room to spare. */
int gm_small_suits(const gm_plan *plan);

/* In square tiles no wider than the matrix, on this thread, with no memory but the stack's. */
void gm_move_small(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src);
