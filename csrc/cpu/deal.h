/* Dealing: runs of at least a cache line are read in the source's order and laid, like cards, each onto its own pile in
 * the destination, where the next run that lands there goes on. Reading in long stretches is what memory rewards;
 * where streaming stores go hardly matters, as long as each is a whole line. */
#pragma once
#include "cpu.h"

/* One round: `count` runs that stand side by side in the source, one for each pile. */
typedef struct gm_deal {
    char *dst;
    const int64_t *at; /* bytes from dst to where the run lands */
    const char *src;
    int64_t bytes, count; /* of a run, at least 64; runs */
    char *carry;          /* a line for each pile: what the round before left of its last one */
    int first, last;      /* whether the piles begin, or end, with this round */
    const char *ask;      /* the source of a later round, to be fetched */
} gm_deal;

typedef void gm_deal_fn(const gm_deal *round);

/* Whether gm_move_deal is the better way to execute a plan past the caches. */
int gm_deal_suits(const gm_cpu *cpu, const gm_plan *plan);

/* Executes a plan that suits. */
gm_status gm_move_deal(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int threads);
