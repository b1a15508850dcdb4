/* Shuffle programs: a small box of items, permuted by byte shuffles on whole vectors. A program is made once a plan and
 * then run at many places. Each destination vector is the union of a few terms, each of which picks bytes out of one
 * or two windows on the source. */
#pragma once
#include "../base/plan.h"

enum { GM_SHUFFLE_MAX_TERMS = 512, GM_SHUFFLE_MAX_VECTORS = 128, GM_SHUFFLE_MAX_DENSE = 16 };

typedef struct gm_shuffle_term {
    int64_t at[2];        /* where the windows start; the same twice when there is one */
    uint64_t mask;        /* the bytes of the vector that this term fills */
    const uint8_t *picks; /* for each byte of the vector: which byte of the windows (the second follows the first);
                             255 for bytes that are not this term's */
} gm_shuffle_term;

typedef struct gm_shuffle_vector {
    int64_t dst;
    int bytes; /* the window's width, or fewer at the end of a run */
    int first, terms;
} gm_shuffle_vector;

typedef struct gm_shuffle {
    uint64_t readable; /* the bytes of a window that lie inside the box: not all when the box is very small; of a
                          dense program's last window, and so of its last vector */
    int64_t src_bytes; /* from the first to the last byte of the source that one run touches */
    int vectors, terms;
    int runs;  /* of the destination; the vectors come in their order */
    int dense; /* where not 0: this many windows, at window_at, hold exactly the bytes of as many vectors; then
                  term t of a vector draws from windows 2t and 2t + 1, and may put anything where its mask and
                  those of later terms are 0 */
    int64_t window_at[GM_SHUFFLE_MAX_DENSE];
    gm_shuffle_vector vector[GM_SHUFFLE_MAX_VECTORS];
    gm_shuffle_term term[GM_SHUFFLE_MAX_TERMS];
    uint8_t picks[GM_SHUFFLE_MAX_TERMS * 64];
} gm_shuffle;

/* Makes the program for a box of items, axes as in a plan (outermost first, any source steps; the destination steps of
 * the innermost axes contiguous, so that runs are found). 0 if it would need too many terms, or more of the source in
 * one window than the box has while loads cannot be masked (window < 64). */
int gm_shuffle_make(gm_shuffle *program, int window, int pair, int64_t item, const gm_axis *axis, int naxes);

/* The same for a box whose source and destination are both whole vectors of 64 bytes, or one run, few enough to be held
 * in registers all at once: every window is loaded once, not once for every vector that draws from it. 0 if the box is
 * none. */
int gm_shuffle_make_dense(gm_shuffle *program, int64_t item, const gm_axis *axis, int naxes);

/* How many of the last of `count` places must not be written beyond their vectors' ends. The others may, where the next
 * place overwrites that: kernels go through vectors backwards, and for each of them forwards through places. */
static inline int64_t gm_shuffle_exact(const gm_shuffle *program, int window, int64_t dst_step, int64_t count)
{
    const gm_shuffle_vector *last = &program->vector[program->vectors - 1];
    if (program->runs > 1 || last->dst + last->bytes != dst_step)
        return count;
    return program->vectors > 1 ? 1 : (window - 1) / last->bytes;
}
