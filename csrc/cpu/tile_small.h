/* Small transpositions and strided copies, whose time would otherwise go into planning blocks. */
#pragma once
#include "cpu.h"

/* A transposition, or a copy of single items, that fits the caches next to the core. */
int gm_small_suits(const gm_plan *plan);

/* In square tiles no wider than the matrix, or item by item, on this thread, with no memory but the stack's. */
void gm_move_small(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src);
