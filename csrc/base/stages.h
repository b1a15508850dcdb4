/* The stage table as data, from stages.def. */
#pragma once
#include "array.h"

typedef enum gm_stage_id {
#define GM_STAGE(lesson, stage, device, kernel, idea, bytes) GM_##device##_##lesson##_##stage,
#include "stages.def"
#undef GM_STAGE
    GM_STAGE_COUNT
} gm_stage_id;

typedef struct gm_stage {
    const char *lesson, *name, *kernel, *idea;
    gm_device_kind device;
    int bytes; /* times each item of the input must cross the memory bus */
} gm_stage;

const gm_stage *gm_stage_get(gm_stage_id id);

/* The row of that lesson, name and device; GM_STAGE_COUNT where there is none. */
gm_stage_id gm_stage_find(const char *lesson, const char *name, gm_device_kind device);
