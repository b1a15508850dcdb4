/* Launches of the lesson `banks`: a tile a block. */
#include "lesson.h"
#include "../kernels/banks.h"

/* Bytes of an access, where they are not those of an item. */
static int access_of(gm_stage_id stage)
{
    return stage == GM_CUDA_banks_access4    ? 4
           : stage == GM_CUDA_banks_access8  ? 8
           : stage == GM_CUDA_banks_access16 ? 16
                                             : 0;
}

static gm_status wide(const gm_lesson_run *run, int access, unsigned stride)
{
    int64_t bytes = run->call->n * run->call->item;
    gm_banks banks = {bytes / access, stride, (unsigned)(bytes % access)};
    void *arguments[] = {(void *)&run->dst, (void *)&run->src, &banks};

    if (run->call->item > access)
        return gm_lesson_refuse(run, "items of %d bytes do not fit accesses of %d", run->call->item, access);
    gm_status status = gm_lesson_aligned(run, "x", run->src, access);
    if (status == GM_OK)
        status = gm_lesson_aligned(run, "out", run->dst, access);
    /* Where there is only a tail, it wants a block too. */
    gm_lesson_grid grid = {banks.n ? banks.n : 1, GM_BANKS_TILE, GM_BANKS_THREADS, 0};
    return status == GM_OK ? gm_lesson_launch(run, "", grid, arguments) : status;
}

gm_status gm_lesson_banks(const gm_lesson_run *run)
{
    const gm_lesson_call *call = run->call;
    int access = access_of(call->stage);

    if (call->n == 0)
        return GM_OK;
    if (call->stride < 0 || call->stride >= GM_BANKS_TILE)
        return gm_lesson_refuse(run, "a stride of %lld: within a tile it is 0 to %d items", (long long)call->stride,
                                GM_BANKS_TILE - 1);
    if (access)
        return wide(run, access, (unsigned)call->stride);
    gm_banks banks = {call->n, (unsigned)call->stride, 0};
    return gm_lesson_launch_sized(run, (gm_lesson_grid){banks.n, GM_BANKS_TILE, GM_BANKS_THREADS, 0}, &banks);
}
