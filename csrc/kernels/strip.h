/* A matrix in strips of its columns, as the kernel that walks along them takes it. Plain C, for both compilers. */
#pragma once
#include "walk.h"

/* The kernels that there are: item size, type, rows of a strip, threads of a block. */
#define GM_STRIPS(STRIP)                                                                                               \
    STRIP(2, unsigned short, 128, 384)                                                                                 \
    STRIP(4, unsigned int, 128, 384)                                                                                   \
    STRIP(8, unsigned long long, 128, 384)

enum {
    GM_STRIP_LINE = 128,  /* bytes of a row that a step takes */
    GM_STRIP_RING = 4,    /* lines of a row in shared memory: two that a step needs, two on their way */
    GM_STRIP_SECTOR = 32, /* bytes: what the destination is written in whole */
    GM_STRIP_BATCH = 16
};

/* Bytes of shared memory: the rows of a strip, and those that complete their first sector in the destination. */
#define GM_STRIP_SHARED(unit, rows) (((rows) + GM_STRIP_SECTOR / (unit)) * GM_STRIP_LINE * GM_STRIP_RING)

typedef struct gm_strip_divisor {
    unsigned int n, magic, shift;
} gm_strip_divisor;

typedef struct gm_strip {
    unsigned long long src_end;     /* no byte from here on is read */
    long long src_pitch, dst_pitch; /* bytes from row to row of the source, from column to column of the destination */
    unsigned int rows, columns;     /* of one matrix */
    int steps;                      /* of a strip */
    gm_strip_divisor row_tiles, strips;
    int even; /* the pitch of the source is an even number of items */
    int nbatch;
    gm_walk_axis batch[GM_STRIP_BATCH]; /* innermost first */
} gm_strip;
