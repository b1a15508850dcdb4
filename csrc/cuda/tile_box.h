/* The box of a plan's axes that a tile kernel moves at a time: which axes, how much of each. */
#pragma once
#include "../base/plan.h"
#include "../kernels/tile.h"

enum { GM_BOX_AXES = GM_TILE_AXES, GM_VECTOR = 16 };

typedef struct gm_box_axis {
    int64_t len, src, dst;
    int64_t take;  /* indices in a tile */
    int64_t image; /* bytes from one index to the next in shared memory */
    int in_dst;    /* part of the destination's run */
    int in_run;    /* part of the run that a row is read as */
} gm_box_axis;

typedef struct gm_box {
    gm_box_axis axis[GM_BOX_AXES]; /* by ascending dst step */
    int n, unit;
    int64_t most_image;                     /* bytes of shared memory */
    double bytes;                           /* all that moves */
    int dst_chain[GM_BOX_AXES], ndst_chain; /* axes that follow one another without a gap */
    int src_chain[GM_BOX_AXES], nsrc_chain;
    int ndst, nsrc;    /* how many of each chain the tile takes */
    int along, across; /* the axes that are stepped along; across -1: all of the source's are taken whole */
    int src_aligned;   /* every row starts on a vector's boundary */
    int dst_aligned;   /* so does every run that is written */
    int dst_uniform;   /* or all at the same place in one */
    int64_t ahead;     /* indices along that are read before a tile's first */
} gm_box;

/* How many tiles there are along an axis. */
int64_t gm_box_tiles(const gm_box_axis *axis);

/* Whether there is a box for the plan in units of `unit` bytes; chooses it. */
int gm_box_choose(gm_box *box, const gm_plan *plan, int unit, const char *dst, const char *src, int64_t most_image);
