/* Two short axes about a long one, (7, n, 9) -> (9, n, 7): unwoven into rows of a slab that the second cache holds, and
 * woven from there. Of seven streams of nine become 63 rows, of these nine streams of seven.
 *
 * Positions of the long axis are shared out in chunks. Of the one before, a chunk unweaves its last tile again: so it
 * has all that its lines begin with, and moves whole lines only; what its own last line lacks is the next one's. */
#pragma once
#include "cpu.h"

/* Whether gm_move_middle is the better way to execute a plan. */
int gm_middle_suits(const gm_cpu *cpu, const gm_plan *plan);

/* Executes a plan that suits; `streams` past the caches. */
gm_status gm_move_middle(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streams, int threads);
