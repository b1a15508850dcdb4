/* The last few launches of each thread, kept: to choose a kernel takes some microseconds, which is much for a small
 * array that is worked on again and again. */
#pragma once
#include "gpu.h"
#include "../base/array.h"
#include "../kernels/batch.h"
#include "../kernels/fit.h"
#include "../kernels/matrix.h"
#include "../kernels/planes.h"
#include "../kernels/rows.h"
#include "../kernels/stride.h"
#include "../kernels/strip.h"
#include "../kernels/swap.h"
#include "../kernels/tile.h"
#include "../kernels/weave.h"

/* What a launch depends on, beside the device: so many words. Of an address kernels look at no more than its place in a
 * line of memory. */
enum { GM_WORK_LINE = 128, GM_WORK_WORDS = 4 + 3 * GM_MAX_NDIM };

typedef enum gm_work_kind { GM_WORK_MOVE, GM_WORK_SWAP } gm_work_kind;

typedef struct gm_work {
    gm_work_kind kind;
    int n;
    int64_t word[GM_WORK_WORDS];
} gm_work;

void gm_work_begin(gm_work *work, gm_work_kind kind);
void gm_work_add(gm_work *work, const void *words, int n);

typedef struct gm_prepared {
    const gm_gpu *gpu;
    gm_work work;
    const char *src; /* which this launch was made for */
    int entry;
    int64_t blocks;
    unsigned threads, shared;
    int ends;         /* so many addresses at the parameter's start are places in the source */
    int in_place;     /* the kernel takes one address */
    int asynchronous; /* as in gm_launch */
    union {
        unsigned long long end[2];
        long long vectors;
        gm_stride stride;
        gm_rows rows;
        gm_weave weave;
        gm_batch batch;
        gm_fit fit;
        gm_planes planes;
        gm_strip strip;
        gm_matrix matrix;
        gm_tile tile;
        gm_walk walk;
        gm_swap swap;
        gm_swap_packed packed;
    } parameter;
} gm_prepared;

/* The launch that was made for such work, now for the source at `src`; NULL if it is not kept. */
gm_prepared *gm_prepared_find(const gm_gpu *gpu, const gm_work *work, const char *src);

/* The same to be filled in, by one of those below, in the place of the oldest. */
gm_prepared *gm_prepared_new(const gm_gpu *gpu, const gm_work *work, const char *src);
void gm_prepared_set(gm_prepared *made, int entry, int64_t blocks, unsigned threads, unsigned shared);

/* Inside a visit. */
gm_status gm_prepared_launch(gm_gpu *gpu, CUstream stream, gm_prepared *made, char *dst, const char *src,
                             gm_failure *failure);
