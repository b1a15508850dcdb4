/* The stages of the ladder on a device: each lesson has a launcher that knows its kernels' grids and parameters. */
#pragma once
#include "backend.h"
#include "gpu.h"

typedef struct gm_lesson_run {
    gm_gpu *gpu;
    CUstream stream;
    const gm_stage *stage; /* whose `kernel` is the name, but for a suffix */
    const gm_lesson_call *call;
    char *dst;
    const char *src;
    gm_failure *failure;
} gm_lesson_run;

/* Inside a visit; there is at least one item to write or to read. */
typedef gm_status gm_lesson_fn(const gm_lesson_run *run);
gm_lesson_fn gm_lesson_read, gm_lesson_walk2d, gm_lesson_layout, gm_lesson_banks, gm_lesson_reduce;
gm_lesson_fn gm_lesson_copy, gm_lesson_cache, gm_lesson_transpose;

/* Movement by a stage of `copy` or `transpose`: dst[plan] = src[plan]. */
gm_status gm_lesson_move(int device, void *stream, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                         gm_failure *failure);

/* Launches the stage's kernel `<kernel><suffix>` on as many blocks as `work` takes in pieces of `each`. `arguments` are
 * as the driver takes them. */
typedef struct gm_lesson_grid {
    int64_t work, each;
    unsigned threads, shared;
} gm_lesson_grid;
gm_status gm_lesson_launch(const gm_lesson_run *run, const char *suffix, gm_lesson_grid grid, void **arguments);
/* The same with the item size as suffix and the arguments (dst, src, parameters) that most kernels have. */
gm_status gm_lesson_launch_sized(const gm_lesson_run *run, gm_lesson_grid grid, void *parameters);

int64_t gm_lesson_blocks(gm_lesson_grid grid);

/* GM_STAGE_REFUSES, with the reason after the stage's name. */
__attribute__((format(printf, 2, 3))) gm_status gm_lesson_refuse(const gm_lesson_run *run, const char *format, ...);
/* Refuses an address that is no multiple of the bytes that one access takes there. */
gm_status gm_lesson_aligned(const gm_lesson_run *run, const char *what, const void *address, int64_t bytes);
