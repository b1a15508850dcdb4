/* Sums on a device. */
#include "sum.h"
#include "backend.h"
#include "gpu.h"
#include "images.h"
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* A number that no launch had before, and that no memory happens to hold: all 64 bits depend on the time of the first
 * launch and on how many there were since (Steele, Lea and Flood's SplitMix). */
static uint64_t new_tag(void)
{
    static atomic_uint_least64_t state;
    struct timespec now;
    uint64_t nothing = 0;

    if (atomic_load_explicit(&state, memory_order_relaxed) == 0) {
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t seed = ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) | 1;
        atomic_compare_exchange_strong(&state, &nothing, seed);
    }
    uint64_t z = atomic_fetch_add_explicit(&state, UINT64_C(0x9E3779B97F4A7C15), memory_order_relaxed);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static gm_status launch(gm_gpu *gpu, void *stream, gm_sum_launch *made, char *dst, const char *src, gm_failure *failure)
{
    char name[64];
    void *arguments[] = {&dst, &src, &made->sum, &made->axes};

    snprintf(name, sizeof name, "%s_%s", made->kernel, gm_dtype_get(made->type)->name);
    gm_launch launch = {.entry = gm_entry_find(name),
                        .blocks = made->blocks,
                        .threads = made->threads,
                        .shared = made->shared,
                        .stream = (CUstream)stream};
    return gm_gpu_launch(gpu, &launch, arguments, failure);
}

gm_status gm_cuda_sum(int device, void *stream, const gm_plan *plan, char *dst, gm_dtype to, const char *src,
                      gm_dtype from, gm_failure *failure)
{
    gm_visit visit;
    gm_sum_launch made;
    void *scratch = NULL;

    gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    dst += plan->dst_start;
    src += plan->src_start;
    gm_sum_make(&made, plan, dst, to, src, from, gpu->figures.processors);
    gm_status status = GM_OK;
    if (made.partials) {
        status = gm_cuda_alloc(device, stream, made.partials * 16, &scratch, failure);
        made.sum.scratch = scratch;
        made.sum.tag = new_tag();
    }
    if (status == GM_OK)
        status = launch(gpu, stream, &made, dst, src, failure);
    if (scratch)
        gm_cuda_free(device, stream, scratch);
    gm_visit_end(&visit);
    return status;
}
