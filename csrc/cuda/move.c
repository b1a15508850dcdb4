/* Movement on a device: which kernels a plan gets. */
#include "backend.h"
#include "gpu.h"
#include "images.h"
#include "walk.h"
#include <stdio.h>

/* One kernel for each width of access: name_1 ... name_16. */
static int sized(const char *name, int size)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%d", name, size);
    return gm_entry_find(full);
}

static gm_status move_general(gm_gpu *gpu, CUstream stream, const gm_plan *plan, char *dst, const char *src,
                              gm_failure *failure)
{
    enum { THREADS = 256, MOST_BLOCKS = INT32_MAX };
    gm_walk walk;
    int unit = gm_walk_unit(plan, dst, src);

    gm_walk_make(&walk, plan, unit);
    int64_t blocks = (walk.units + THREADS - 1) / THREADS;
    gm_launch launch = {.entry = sized("move_general", unit),
                        .grid = {(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1},
                        .block = {THREADS, 1, 1},
                        .stream = stream};
    void *arguments[] = {&dst, &src, &walk};
    return gm_gpu_launch(gpu, &launch, arguments, failure);
}

gm_status gm_cuda_move(int device, void *stream, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                       gm_failure *failure)
{
    gm_visit visit;

    (void)stage;
    if (plan->family == GM_EMPTY)
        return GM_OK;
    gm_gpu *gpu = gm_gpu_get(device, failure);
    if (!gpu || gm_visit_begin(&visit, gpu, failure) != GM_OK)
        return failure->status;
    gm_status status =
        move_general(gpu, (CUstream)stream, plan, dst + plan->dst_start, src + plan->src_start, failure);
    gm_visit_end(&visit);
    return status;
}
