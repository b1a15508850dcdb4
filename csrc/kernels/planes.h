/* Records of few fields that become planes, one for each field, or the other way round. Plain C, for both compilers. */
#pragma once
#include "walk.h"

enum {
    GM_PLANES_FIELDS = 8, /* axes that the fields of a record, or the planes, may be */
    GM_PLANES_BATCH = 16,
    GM_PLANES_WARPS = 8, /* of a block, at the most */
    GM_PLANES_STEPS = 2, /* vectors of a plane that a lane takes at a time, at the most */
    GM_PLANES_LINE = 32  /* bytes: what planes are written in whole */
};

typedef struct gm_planes_divisor {
    unsigned int n, magic, shift;
} gm_planes_divisor;

typedef struct gm_planes {
    unsigned long long src_end;         /* no byte from here on is read */
    unsigned int records, fields, tile; /* in all; of a record; records that a block makes */
    int steps, parts_shift; /* a warp takes 32 * steps vectors of a plane at a time, 1 << parts_shift times */
    int lanes_shift,
        begin_shift; /* 1 << lanes_shift lanes begin with the same item, the next 1 << begin_shift bytes on */
    gm_planes_divisor tiles;
    int further; /* so many tiles on are what a block has brought to the second-level cache; 0: none */
    int nfield, nbatch;
    gm_walk_axis field[GM_PLANES_FIELDS], batch[GM_PLANES_BATCH]; /* innermost first */
} gm_planes;

/* Bytes of shared memory: where the planes are, so many vectors of each of them, and what is before and behind. */
#define GM_PLANES_TABLE(fields)           (((int)(fields)*8 + 15) / 16 * 16)
#define GM_PLANES_SHARED(fields, vectors) (GM_PLANES_TABLE(fields) + 16 * (fields) * ((vectors) + 3) + 16)
