/* From a row of the stage table to the function that runs it on the CPU. */
#include "cpu.h"
#include <stddef.h>

typedef void any_fn(void);

static any_fn *const table[GM_STAGE_COUNT] = {
#define GM_STAGE(lesson, stage, device, kernel, idea, bytes) [GM_##device##_##lesson##_##stage] = (any_fn *)kernel,
#include "../base/stages.def"
#undef GM_STAGE
};

gm_move_fn *gm_cpu_move_stage(gm_stage_id id)
{
    return (gm_move_fn *)table[id];
}

gm_sum_fn *gm_cpu_sum_stage(gm_stage_id id)
{
    return (gm_sum_fn *)table[id];
}
