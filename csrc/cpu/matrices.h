/* Transpositions that stay in the caches, straight from side to side: planning blocks would cost more than they save.
 */
#pragma once
#include "cpu.h"

/* A transposition, or a copy of single items, that fits the caches next to the core. */
int gm_small_suits(const gm_plan *plan);

/* A transposition of matrices no smaller than a tile. */
int gm_matrices_suit(const gm_cpu *cpu, const gm_plan *plan);

/* In square tiles no wider than the matrix, or item by item, with no memory but the stack's. */
void gm_move_matrices(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int threads);
