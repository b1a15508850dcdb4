/* Combing: rows of items that stand apart, or run backwards, become dense rows. Whatever the step, a line of the
 * destination is put together from the few vectors that its items span; and rows are walked as the source lies in
 * memory, also where the destination's lines are so written last to first: what limits this is reading, whose
 * prefetchers want one long ascending stream, while streaming stores do not mind. */
#pragma once
#include "cpu.h"

enum {
    GM_COMB_LOOSE = 8, /* items: the widest step; of farther ones too little of what is read is wanted */
    GM_COMB_WINDOWS = GM_COMB_LOOSE,
};

/* How a vector of the destination is put together: out of the one at source byte `at[w]` it takes, for each byte, the
 * byte numbered picks[w][byte], or none (128 and more). No two windows give the same byte, and no window reaches
 * beyond the items' bytes. */
typedef struct gm_comb {
    _Alignas(64) uint8_t picks[GM_COMB_WINDOWS][64];
    uint64_t takes[GM_COMB_WINDOWS]; /* the bytes that are not none, as bits */
    int64_t at[GM_COMB_WINDOWS];
    int windows;
    int backwards;      /* the first item in the source is the last one in the destination */
    int64_t item, step; /* bytes; step: from item to item, ascending */
    int streams;        /* past the caches */
} gm_comb;

/* The line in which one row ends and the next begins: the end, where it waits for the beginning. A line written in two
 * parts would first be read, and stores are in order: the streams would wait for it. */
typedef struct gm_comb_joint {
    _Alignas(64) uint8_t line[64];
    int64_t waiting; /* bytes; 0: none */
} gm_comb_joint;

typedef struct gm_comb_row {
    char *dst;
    const char *src; /* of the item that lies first there */
    int64_t n;       /* items, at least 64 bytes of them */
    uintptr_t next; /* where the next row's source begins, to be fetched; 0: nowhere. Nothing is read beyond its end. */
    const gm_comb_joint *before; /* what the row that ends where this one begins may have left; or NULL */
    gm_comb_joint *after;        /* to leave what the next one completes; NULL: write it */
} gm_comb_row;

typedef void gm_comb_fn(const gm_comb *comb, const gm_comb_row *row);

/* Whether gm_move_comb is the better way to execute a plan. */
int gm_comb_suits(const gm_cpu *cpu, const gm_plan *plan);

/* Executes a plan that suits; `streams` past the caches. */
void gm_move_comb(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streams, int threads);
