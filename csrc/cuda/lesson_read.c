/* Launches of the lesson `read`: an item a thread. */
#include "lesson.h"
#include "../kernels/read.h"

static gm_status gather(const gm_lesson_run *run, gm_lesson_grid grid, gm_read *read)
{
    const gm_lesson_call *call = run->call;
    static const char *const suffixes[2][5] = {{"_1", "_2", "_4", "_8", "_16"},
                                               {"_int64_1", "_int64_2", "_int64_4", "_int64_8", "_int64_16"}};
    void *arguments[] = {(void *)&run->dst, (void *)&run->src, (void *)&call->index, read};

    gm_status status = gm_lesson_aligned(run, "index", call->index, call->index_item);
    if (status != GM_OK)
        return status;
    return gm_lesson_launch(run, suffixes[call->index_item == 8][__builtin_ctz((unsigned)call->item)], grid, arguments);
}

gm_status gm_lesson_read(const gm_lesson_run *run)
{
    enum { THREADS = 256 };
    gm_read read = {run->call->n, run->call->stride, run->call->items};
    gm_lesson_grid grid = {read.n, THREADS, THREADS, 0};

    if (read.n == 0)
        return GM_OK;
    if (run->call->stage == GM_CUDA_read_gather)
        return gather(run, grid, &read);
    gm_lesson_run from = *run;
    from.src += run->call->offset * run->call->item;
    return gm_lesson_launch_sized(&from, grid, &read);
}
