/* Thin and strided movement: plans in which one short axis keeps a plain two-dimensional tile from working well, such
 * as (n, k) <-> (k, n) with a small k, and plans whose source is not contiguous along any axis. */
#pragma once
#include "comb.h"
#include "cpu.h"
#include "deal.h"
#include "shuffle.h"
#include "weave.h"

/* Whether gm_move_thin is the better way to execute a plan of family GM_TILE or GM_GENERAL. */
int gm_thin_suits(const gm_plan *plan);

/* Executes a plan that suits. */
gm_move_fn gm_move_thin;

/* dst[a * dst_pitch + b * size] = src[b * src_pitch + a * size] for a < na, b < nb, at `count` places. na and nb are at
 * least 16 / size. */
typedef struct gm_turn {
    char *dst;
    const char *src;
    int64_t dst_pitch, src_pitch, na, nb;
    int64_t count, dst_step, src_step;
} gm_turn;

typedef struct gm_thin_kernels {
    int window; /* bytes that a shuffle draws from one load; 0: no shuffles here */
    int pair;   /* loads that one term of a shuffle merges: 1 or 2 */
    int dense;  /* whether `shuffle` takes dense programs */

    /* Runs a program `count` times, `dst_step` and `src_step` bytes apart. */
    void (*shuffle)(const gm_shuffle *program, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                    int64_t count);

    void (*turn[4])(const gm_turn *turn); /* items of 1 2 4 8 bytes by the logarithm of their size */

    const gm_weave_kernel *weaves; /* ended by c == 0; NULL: none here */
    gm_deal_fn *deal;              /* NULL: none here */

    gm_comb_fn *comb; /* NULL: none here */
    int comb_vector;  /* bytes that a comb puts together at a time */

    /* Copies whole cache lines past the caches: dst is aligned to a line, src need not be. */
    void (*stream)(char *dst, const char *src, int64_t lines);
    void (*fence)(void); /* after the last stream of a thread */
} gm_thin_kernels;
