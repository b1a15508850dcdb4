/* Fills the image of a block: the choice of a kernel for a box of items, and its loops. */
#pragma once
#include "thin.h"

typedef enum gm_fill_kind { GM_FILL_ITEMS, GM_FILL_SHUFFLE, GM_FILL_TURN } gm_fill_kind;

typedef struct gm_fill_loop {
    int64_t count, src, dst;
    int axis; /* GM_MAX_NDIM: none */
} gm_fill_loop;

typedef struct gm_fill {
    const gm_thin_kernels *kernels;
    int64_t item;
    gm_fill_kind kind;
    int naxes, split_at;       /* the axis whose length each call brings along */
    gm_axis axis[GM_MAX_NDIM]; /* dst: steps in the image, or in the destination where there is none */
    int a, b, log_size;        /* turn: the axes that are contiguous in the source and in the destination */
    uint64_t whole;            /* shuffle: the axes that the program walks by itself */
    int chunk;                 /* and the one that it walks `chunk_len` positions of; -1 for none */
    int64_t chunk_len;
    const gm_shuffle *program;
    int nloops; /* outermost first */
    gm_fill_loop loop[GM_MAX_NDIM];
} gm_fill;

/* Chooses the kernel by item, naxes, split_at and axis, which the caller has filled in; axis[split_at].len is the least
 * that any call will bring. `program` is room for a shuffle, which must live as long as `fill` is used. */
void gm_fill_choose(gm_fill *fill, const gm_thin_kernels *kernels, gm_shuffle *program);

/* Positions of the split axis that a call should be a multiple of. */
int64_t gm_fill_unit(const gm_fill *fill);

/* Moves `n` positions of the split axis. */
void gm_fill_run(const gm_fill *fill, char *dst, const char *src, int64_t n);
