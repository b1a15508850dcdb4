/* Launches of the lessons `copy` and `cache`: one dense run of call->n items. */
#include "lesson.h"
#include "../base/integers.h"
#include "../kernels/copy.h"
#include <stdio.h>

/* A stage's accesses: how many bytes, of which 0 stands for items and their multiple for `items`; a block's threads,
 * and what each moves. */
typedef struct gm_copy_stage {
    gm_stage_id stage;
    int items, bytes; /* of an access */
    int each;         /* accesses of a block */
    unsigned threads;
} gm_copy_stage;

static const gm_copy_stage stages[] = {
    {GM_CUDA_copy_scalar, 1, 0, GM_COPY_THREADS, GM_COPY_THREADS},
    {GM_CUDA_copy_vector2, 2, 0, GM_COPY_THREADS, GM_COPY_THREADS},
    {GM_CUDA_copy_vector4, 4, 0, GM_COPY_THREADS, GM_COPY_THREADS},
    {GM_CUDA_copy_peeled, 0, 16, GM_COPY_THREADS, GM_COPY_THREADS},
    {GM_CUDA_copy_in_flight, 0, 16, GM_COPY_THREADS *GM_COPY_FLIGHT, GM_COPY_THREADS},
    {GM_CUDA_copy_bulk, 0, 16, GM_COPY_BULK / 16, 32},
};

static gm_status launch(const gm_lesson_run *run, const gm_copy_stage *stage, const char *suffix, gm_copy *copy,
                        int64_t work)
{
    void *arguments[] = {(void *)&run->dst, (void *)&run->src, copy};

    /* What is left over wants a block too. */
    gm_lesson_grid grid = {work > 0 ? work : 1, stage->each, stage->threads, 0};
    return gm_lesson_launch(run, suffix, grid, arguments);
}

/* CUDA's vector of two or four items; a type that gpumem does not compute with moves as an integer. */
static const char *vector_of(int items, int item, int floating)
{
    static const char *const names[2][2][9] = {
        {{[1] = "_uchar2", [2] = "_short2", [4] = "_int2", [8] = "_longlong2"},
         {[1] = "_uchar2", [2] = "_short2", [4] = "_float2", [8] = "_double2"}},
        {{[1] = "_uchar4", [2] = "_short4", [4] = "_int4"}, {[1] = "_uchar4", [2] = "_short4", [4] = "_float4"}}};
    return item > 8 ? NULL : names[items == 4][floating][item];
}

static gm_status by_vectors(const gm_lesson_run *run, const gm_copy_stage *stage)
{
    const gm_lesson_call *call = run->call;
    int access = stage->items * call->item, known = (int)call->type >= 0 && call->type < GM_DTYPE_COUNT;
    int floating = known && gm_dtype_get(call->type)->kind == 'f';

    if (access > 16)
        return gm_lesson_refuse(run, "%d items of %d bytes are %d bytes, and the widest access takes 16", stage->items,
                                call->item, access);
    gm_status status = gm_lesson_aligned(run, "x", run->src, access);
    if (status == GM_OK)
        status = gm_lesson_aligned(run, "out", run->dst, access);
    if (status != GM_OK)
        return status;
    gm_copy copy = {0, call->n / stage->items, call->n % stage->items};
    return launch(run, stage, vector_of(stage->items, call->item, floating), &copy, copy.count + copy.tail);
}

/* Whole vectors of the destination, from its first on. */
static gm_status by_bytes(const gm_lesson_run *run, const gm_copy_stage *stage)
{
    int64_t bytes = run->call->n * run->call->item, head = (int64_t)(-(uintptr_t)run->dst % 16);
    int shift = (int)(((uintptr_t)run->src - (uintptr_t)run->dst) % 16);

    if (stage->stage == GM_CUDA_copy_bulk && run->gpu->figures.capability < 90)
        return gm_lesson_refuse(run, "bulk copies are there from compute capability 9.0 on: %s has %d.%d",
                                run->gpu->figures.name, run->gpu->figures.capability / 10,
                                run->gpu->figures.capability % 10);
    if (stage->stage == GM_CUDA_copy_bulk && shift)
        return gm_lesson_refuse(
            run,
            "the copy engine moves 16 bytes from a multiple of 16 to another, and x starts %d bytes "
            "further past one than out does",
            shift);
    head = gm_least(head, bytes);
    gm_copy copy = {head, (bytes - head) / 16, 0};
    /* Where the source is shifted, the vector after the last one would be read, which need not be there. */
    if (shift && copy.count > 0)
        copy.count--;
    copy.tail = bytes - head - copy.count * 16;
    return launch(run, stage, "", &copy, copy.count);
}

gm_status gm_lesson_copy(const gm_lesson_run *run)
{
    char suffix[8];

    if (run->call->n == 0)
        return GM_OK;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        const gm_copy_stage *stage = &stages[i];
        if (stage->stage != run->call->stage)
            continue;
        if (stage->items > 1)
            return by_vectors(run, stage);
        if (stage->items == 0)
            return by_bytes(run, stage);
        gm_copy copy = {0, run->call->n, 0};
        snprintf(suffix, sizeof suffix, "_%d", run->call->item);
        return launch(run, stage, suffix, &copy, copy.count);
    }
    return gm_lesson_refuse(run, "is gpumem.copy's own choice: call that");
}

gm_status gm_lesson_cache(const gm_lesson_run *run)
{
    long long n = run->call->n;
    return n == 0 ? GM_OK : gm_lesson_launch_sized(run, (gm_lesson_grid){n, 256, 256, 0}, &n);
}
