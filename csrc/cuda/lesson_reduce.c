/* Launches of the lesson `reduce`: a kernel makes one number of each block's items, and is launched again on these
 * until one is left. */
#include "lesson.h"
#include "../base/integers.h"
#include "../kernels/reduce.h"

/* What is added, and what it adds up to. */
typedef struct gm_sum_type {
    gm_dtype from, to;
    const char *suffix;
    int item;
} gm_sum_type;

static const gm_sum_type types[] = {{GM_float32, GM_float32, "_float32", 4},
                                    {GM_float64, GM_float64, "_float64", 8},
                                    {GM_int32, GM_int64, "_int32", 4},
                                    {GM_int64, GM_int64, "_int64", 8}};

static const gm_sum_type *type_of(gm_dtype from)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].from == from)
            return &types[i];
    return NULL;
}

/* A launch on n items at `src`. */
typedef struct gm_sum_step {
    gm_lesson_grid grid;
    gm_reduce reduce;
} gm_sum_step;

static gm_sum_step step_of(gm_stage_id stage, const char *src, int64_t n, int item)
{
    enum { VECTOR = 16 };
    int64_t head = (int64_t)(-(uintptr_t)src % VECTOR) / item, each = GM_REDUCE_THREADS, work = n;

    head = gm_least(head, n);
    gm_reduce reduce = {n, head, (n - head) / (VECTOR / item)};
    if (stage == GM_CUDA_reduce_first_add || stage == GM_CUDA_reduce_shuffle)
        each *= 2;
    if (stage == GM_CUDA_reduce_vectorised) {
        each *= GM_REDUCE_VECTORS;
        work = reduce.vectors;
    }
    /* A sum of nothing is a number too. */
    return (gm_sum_step){{work > 0 ? work : 1, each, GM_REDUCE_THREADS, 0}, reduce};
}

static gm_status add_up(const gm_lesson_run *run, const gm_sum_type *type, char *scratch, int64_t first)
{
    char *parts[2] = {scratch, scratch + first};
    const char *src = run->src;
    int64_t n = run->call->n, blocks;
    gm_status status;

    for (int round = 0;; round++) {
        gm_sum_step step = step_of(run->call->stage, src, n, type->item);
        blocks = gm_lesson_blocks(step.grid);
        char *dst = blocks == 1 ? run->dst : parts[round % 2];
        void *arguments[] = {&dst, &src, &step.reduce};
        status = gm_lesson_launch(run, type->suffix, step.grid, arguments);
        if (status != GM_OK || blocks == 1)
            return status;
        type = type_of(type->to);
        src = dst;
        n = blocks;
    }
}

/* All of it by the kernels that gpumem.sum has, for any type. */
static gm_status sum(const gm_lesson_run *run)
{
    const gm_lesson_call *call = run->call;
    const int64_t step = call->item, none = 0;
    gm_plan plan;

    if (call->n == 0)
        return gm_cuda_zero(run->gpu->ordinal, run->stream, run->dst, gm_dtype_get(call->to)->bits / 8, run->failure);
    gm_plan_make(&plan, call->item, 1, &call->n, &step, &none);
    return gm_cuda_sum(run->gpu->ordinal, run->stream, &plan, run->dst, call->to, run->src, call->type, run->failure);
}

gm_status gm_lesson_reduce(const gm_lesson_run *run)
{
    const gm_lesson_call *call = run->call;

    if (call->stage == GM_CUDA_reduce_tuned)
        return sum(run);
    const gm_sum_type *type = type_of(call->type);
    void *scratch = NULL;

    if (!type)
        return gm_lesson_refuse(run, "x has dtype %s: its kernels add float32, float64, int32 and int64",
                                gm_dtype_get(call->type)->name);
    gm_status status = gm_lesson_aligned(run, "out", run->dst, type_of(type->to)->item);
    if (status != GM_OK)
        return status;
    int64_t blocks = gm_lesson_blocks(step_of(call->stage, run->src, call->n, type->item).grid);
    int64_t first = gm_pieces(blocks * type_of(type->to)->item, 16) * 16;
    /* The numbers of the second round are at most as many as those of the first. */
    if (blocks > 1)
        status = gm_cuda_alloc(run->gpu->ordinal, run->stream, 2 * first, &scratch, run->failure);
    if (status == GM_OK)
        status = add_up(run, type, scratch, first);
    gm_cuda_free(run->gpu->ordinal, run->stream, scratch);
    return status;
}
