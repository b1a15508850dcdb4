/* Launches of the lesson `walk2d`: an item a thread, in the order of the walk. */
#include "lesson.h"
#include "walk.h"
#include "../kernels/walk2d.h"

gm_status gm_lesson_walk2d(const gm_lesson_run *run)
{
    enum { THREADS = 256 };
    const gm_lesson_call *call = run->call;
    gm_walk_axis line;

    if (call->n == 0)
        return GM_OK;
    gm_walk_divisor(&line, call->stage == GM_CUDA_walk2d_columns ? call->rows : call->columns);
    gm_walk2d walk = {call->n, call->rows, call->columns, line.magic, line.shift};
    return gm_lesson_launch_sized(run, (gm_lesson_grid){walk.items, THREADS, THREADS, 0}, &walk);
}
