/* A plan as the kernels take it: by value, in units that one load or store moves. Plain C, for both compilers. */
#pragma once

enum { GM_WALK_AXES = 65 }; /* a plan's, and one more for the units of an item */

typedef struct gm_walk_axis {
    long long src, dst;        /* bytes from one index to the next */
    unsigned int len;          /* where units > 2^31: the low half; see `high` */
    unsigned int magic, shift; /* n / len == (umulhi(n, magic) + n) >> shift for n < 2^31 */
    unsigned int high;
} gm_walk_axis;

typedef struct gm_walk {
    long long units; /* the product of all lengths */
    int naxes;
    int wide;                        /* 64-bit division is needed: units >= 2^31 */
    gm_walk_axis axis[GM_WALK_AXES]; /* innermost first */
} gm_walk;
