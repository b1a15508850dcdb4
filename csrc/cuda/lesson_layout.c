/* Launches of the lesson `layout`: a record a thread, or as many as fill a block's shared memory. */
#include "lesson.h"
#include "../kernels/layout.h"
#include <limits.h>
#include <stdio.h>

enum { THREADS = 256 };

/* A record in one access: a record of one field is that anyway. */
static gm_status vector(const gm_lesson_run *run, gm_layout *layout, int records_out)
{
    int64_t bytes = (int64_t)run->call->item * layout->fields;
    void *arguments[] = {(void *)&run->dst, (void *)&run->src, layout};
    char suffix[32];

    if (bytes > 16 || (bytes & (bytes - 1)))
        return gm_lesson_refuse(run, "a record of %lld bytes is not one access: these take 1, 2, 4, 8 or 16",
                                (long long)bytes);
    gm_status status =
        records_out ? gm_lesson_aligned(run, "out", run->dst, bytes) : gm_lesson_aligned(run, "x", run->src, bytes);
    if (status != GM_OK)
        return status;
    snprintf(suffix, sizeof suffix, "_%dx%d", run->call->item, layout->fields);
    return gm_lesson_launch(run, suffix, (gm_lesson_grid){layout->n, THREADS, THREADS, 0}, arguments);
}

/* Blocks of 16 KB, or of one record where that is larger. */
static gm_status staged(const gm_lesson_run *run, gm_layout *layout)
{
    enum { BLOCK = 16 << 10, MOST = 1024, LINE = 128 };
    int64_t record = (int64_t)run->call->item * layout->fields, pad = run->call->item < 4 ? 4 : run->call->item;

    layout->records = 1;
    layout->log2_records = 0;
    while (layout->records < MOST && 2 * layout->records * record <= BLOCK) {
        layout->records *= 2;
        layout->log2_records++;
    }
    int64_t bytes = layout->records * record, shared = bytes + bytes / LINE * pad;
    if (shared > run->gpu->figures.shared_bytes)
        return gm_lesson_refuse(run, "a record of %lld bytes does not fit the %d bytes of a block's shared memory",
                                (long long)record, run->gpu->figures.shared_bytes);
    return gm_lesson_launch_sized(run, (gm_lesson_grid){layout->n, layout->records, THREADS, (unsigned)shared}, layout);
}

gm_status gm_lesson_layout(const gm_lesson_run *run)
{
    const gm_lesson_call *call = run->call;
    gm_stage_id stage = call->stage;
    int from_planes = stage == GM_CUDA_layout_soa_field || stage == GM_CUDA_layout_soa_fields ||
                      stage == GM_CUDA_layout_soa_staged || stage == GM_CUDA_layout_soa_vector;
    int64_t n = from_planes ? call->columns : call->rows, fields = from_planes ? call->rows : call->columns;

    if (call->n == 0)
        return GM_OK;
    if (fields > INT_MAX)
        return gm_lesson_refuse(run, "%lld fields: a record has at most %d", (long long)fields, INT_MAX);
    gm_layout layout = {n, (int)fields, (int)call->field, 1, 0};
    if (stage == GM_CUDA_layout_aos_staged || stage == GM_CUDA_layout_soa_staged)
        return staged(run, &layout);
    if (stage == GM_CUDA_layout_aos_vector || stage == GM_CUDA_layout_soa_vector)
        return vector(run, &layout, from_planes);
    return gm_lesson_launch_sized(run, (gm_lesson_grid){n, THREADS, THREADS, 0}, &layout);
}
