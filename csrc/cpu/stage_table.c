/* From a row of the stage table to the function that runs it on the CPU. */
#include "cpu.h"
#include <stddef.h>

typedef void any_fn(void);

/* The other devices' rows stay empty. */
#define ROW_CPU(id, kernel) [id] = (any_fn *)kernel,
#define ROW_CUDA(id, kernel)

static any_fn *const table[GM_STAGE_COUNT] = {
#define GM_STAGE(lesson, stage, device, kernel, idea, bytes) ROW_##device(GM_##device##_##lesson##_##stage, kernel)
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
