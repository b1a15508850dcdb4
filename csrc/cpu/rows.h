/* Plans whose items are long runs: a copy of each, in the destination's order. */
#pragma once
#include "cpu.h"

/* Any plan but GM_EMPTY; `streaming` goes past the caches. */
void gm_move_rows(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streaming, int threads);
