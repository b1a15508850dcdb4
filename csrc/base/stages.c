#include "stages.h"
#include <string.h>

static const gm_stage table[GM_STAGE_COUNT] = {
#define GM_STAGE(lesson, stage, device, kernel, idea, bytes) {#lesson, #stage, #kernel, idea, GM_##device, bytes},
#include "stages.def"
#undef GM_STAGE
};

const gm_stage *gm_stage_get(gm_stage_id id)
{
    return &table[id];
}

gm_stage_id gm_stage_find(const char *lesson, const char *name, gm_device_kind device)
{
    int id = 0;
    while (id < GM_STAGE_COUNT &&
           !(table[id].device == device && strcmp(table[id].lesson, lesson) == 0 && strcmp(table[id].name, name) == 0))
        id++;
    return (gm_stage_id)id;
}
