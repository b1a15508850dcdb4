/* Launches of the lesson `walk2d`: an item a thread, in the order of the walk. */
#include "lesson.h"
#include "walk.h"
#include "../kernels/walk2d.h"

gm_status gm_lesson_walk2d(const gm_lesson_run *run)
{
    enum { THREADS = 256 };
    const gm_lesson_call *call = run->call;
    gm_walk2d walk = {.items = call->n, .rows = call->rows, .columns = call->columns};

    if (call->n == 0)
        return GM_OK;
    gm_divide_by(call->stage == GM_CUDA_walk2d_columns ? call->rows : call->columns, &walk.magic, &walk.shift);
    return gm_lesson_launch_sized(run, (gm_lesson_grid){walk.items, THREADS, THREADS, 0}, &walk);
}
