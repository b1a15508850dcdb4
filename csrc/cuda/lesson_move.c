/* What a stage of `copy` or `transpose` makes of a plan: one dense run, or matrices. */
#include "lesson.h"
#include <stdio.h>
#include <string.h>

static gm_status refuse(const gm_lesson_call *call, const char *why, gm_failure *failure)
{
    const gm_stage *stage = gm_stage_get(call->stage);
    snprintf(failure->text, sizeof failure->text, "%s/%s: %s; the stage tuned takes any", stage->lesson, stage->name,
             why);
    return failure->status = GM_STAGE_REFUSES;
}

/* A matrix of one row where everything is one run; otherwise the axes that are contiguous on either side, and one more.
 */
static gm_status matrices_of(gm_lesson_call *call, const gm_plan *plan, gm_failure *failure)
{
    int other = -1;

    call->rows = call->batches = 1;
    if (plan->naxes == 0) {
        call->columns = call->n;
        call->src_pitch = call->n * call->item;
        call->dst_pitch = call->item;
        return GM_OK;
    }
    if (plan->src_axis < 0 || plan->dst_axis < 0 || plan->src_axis == plan->dst_axis || plan->naxes > 3)
        return refuse(call,
                      "it transposes a matrix, or a stack of them, whose rows are contiguous on both sides, and these "
                      "axes in this order are none",
                      failure);
    const gm_axis *columns = &plan->axis[plan->src_axis], *rows = &plan->axis[plan->dst_axis];
    call->item = (int)plan->item;
    call->rows = rows->len;
    call->columns = columns->len;
    call->src_pitch = rows->src;
    call->dst_pitch = columns->dst;
    for (int i = 0; i < plan->naxes; i++)
        if (i != plan->src_axis && i != plan->dst_axis)
            other = i;
    if (other >= 0) {
        call->batches = plan->axis[other].len;
        call->src_batch = plan->axis[other].src;
        call->dst_batch = plan->axis[other].dst;
    }
    return GM_OK;
}

gm_status gm_lesson_move(int device, void *stream, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                         gm_failure *failure)
{
    gm_lesson_call call = {.stage = stage, .item = (int)plan->itemsize, .type = GM_DTYPE_COUNT};
    int is_copy = strcmp(gm_stage_get(stage)->lesson, "copy") == 0;

    call.n = plan->item / plan->itemsize * plan->items;
    if (is_copy && plan->naxes)
        return refuse(&call, "it copies one run without gaps, and x and the result are not both that", failure);
    gm_status status = is_copy ? GM_OK : matrices_of(&call, plan, failure);
    if (status != GM_OK)
        return status;
    return gm_cuda_run_stage(device, stream, &call, dst + plan->dst_start, src + plan->src_start, failure);
}
