/* Bytes of two to four planes that become records, or the other way round. Plain C, for both compilers. */
#pragma once
#include "walk.h"

enum {
    GM_WEAVE_AXES = 16,
    GM_WEAVE_MOST = 4,  /* planes */
    GM_WEAVE_UNIT = 16, /* items of each plane that one thread takes: a vector */
    GM_WEAVE_WARPS = 8  /* of a block */
};

typedef struct gm_weave {
    unsigned int units; /* in all */
    int naxes;
    long long plane;                  /* bytes from one plane to the next */
    gm_walk_axis axis[GM_WEAVE_AXES]; /* of the units, innermost first */
} gm_weave;

/* Vectors of shared memory for a warp's records, with those that are left free (weave.cu). */
#define GM_WEAVE_STAGED(fields) (32 * (fields) + ((fields) == 3 ? 0 : 4 * (fields)))
