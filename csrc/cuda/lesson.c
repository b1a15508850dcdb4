#include "lesson.h"
#include "images.h"
#include "../base/integers.h"
#include <stdarg.h>
#include <stdio.h>

#define ROW_CPU(lesson, stage)
#define ROW_CUDA(lesson, stage) [GM_CUDA_##lesson##_##stage] = gm_lesson_##lesson,

static gm_lesson_fn *const launchers[GM_STAGE_COUNT] = {
#define GM_STAGE(lesson, stage, device, kernel, idea, bytes) ROW_##device(lesson, stage)
#include "../base/stages.def"
#undef GM_STAGE
};

int64_t gm_lesson_blocks(gm_lesson_grid grid)
{
    return gm_pieces(grid.work, grid.each);
}

gm_status gm_lesson_launch(const gm_lesson_run *run, const char *suffix, gm_lesson_grid grid, void **arguments)
{
    char name[128];

    snprintf(name, sizeof name, "%s%s", run->stage->kernel, suffix);
    gm_launch launch = {.entry = gm_entry_find(name),
                        .blocks = gm_lesson_blocks(grid),
                        .threads = grid.threads,
                        .shared = grid.shared,
                        .stream = run->stream};
    return gm_gpu_launch(run->gpu, &launch, arguments, run->failure);
}

gm_status gm_lesson_launch_sized(const gm_lesson_run *run, gm_lesson_grid grid, void *parameters)
{
    char suffix[16];
    void *arguments[] = {(void *)&run->dst, (void *)&run->src, parameters};

    snprintf(suffix, sizeof suffix, "_%d", run->call->item);
    return gm_lesson_launch(run, suffix, grid, arguments);
}

gm_status gm_lesson_refuse(const gm_lesson_run *run, const char *format, ...)
{
    va_list given;
    int length =
        snprintf(run->failure->text, sizeof run->failure->text, "%s/%s: ", run->stage->lesson, run->stage->name);

    va_start(given, format);
    vsnprintf(run->failure->text + length, sizeof run->failure->text - (size_t)length, format, given);
    va_end(given);
    return run->failure->status = GM_STAGE_REFUSES;
}

gm_status gm_lesson_aligned(const gm_lesson_run *run, const char *what, const void *address, int64_t bytes)
{
    int64_t past = (int64_t)((uintptr_t)address % (uintptr_t)bytes);

    return past == 0
               ? GM_OK
               : gm_lesson_refuse(run,
                                  "an access takes %lld bytes at a multiple of %lld, and %s starts %lld bytes past "
                                  "one: pass a copy of it",
                                  (long long)bytes, (long long)bytes, what, (long long)past);
}

static gm_status check(const gm_lesson_run *run)
{
    int item = run->call->item;

    if (item < 1 || item > 16 || (item & (item - 1)))
        return gm_lesson_refuse(run, "items of %d bytes: one access takes 1, 2, 4, 8 or 16", item);
    gm_status status = gm_lesson_aligned(run, "x", run->src, item);
    return status == GM_OK ? gm_lesson_aligned(run, "out", run->dst, item) : status;
}

gm_status gm_cuda_run_stage(int device, void *stream, const gm_lesson_call *call, char *dst, const char *src,
                            gm_failure *failure)
{
    gm_visit visit;

    gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    gm_lesson_run run = {gpu, (CUstream)stream, gm_stage_get(call->stage), call, dst, src, failure};
    gm_status status = check(&run);
    if (status == GM_OK)
        status = launchers[call->stage](&run);
    gm_visit_end(&visit);
    return status;
}
