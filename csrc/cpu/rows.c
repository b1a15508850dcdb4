#include "rows.h"
#include "isa.h"
#include "pool.h"
#include "tile.h"
#include <stdatomic.h>
#include <string.h>

enum { PART = 512 << 10, CHUNK = 1 << 20 }; /* bytes */

typedef struct job {
    const gm_tile_kernels *kernels;
    const gm_plan *plan;
    char *dst;
    const char *src;
    int streaming;
    int64_t bytes, chunk;
    _Atomic int64_t next;
} job;

/* Bytes from .. to - 1 of all rows laid end to end: a row may be cut, so that a few long ones keep every thread busy.
 */
static void copy_range(const job *j, int64_t from, int64_t to)
{
    const gm_plan *plan = j->plan;
    int64_t index[GM_MAX_NDIM], row = from / plan->item, at = from % plan->item;
    char *dst = j->dst;
    const char *src = j->src;

    for (int i = plan->naxes - 1; i >= 0; i--) {
        index[i] = row % plan->axis[i].len;
        row /= plan->axis[i].len;
        dst += index[i] * plan->axis[i].dst;
        src += index[i] * plan->axis[i].src;
    }
    while (from < to) {
        int64_t n = plan->item - at < to - from ? plan->item - at : to - from;
        char *to_here = dst + at;
        const char *from_here = src + at;
        from += n;
        at = 0;
        for (int i = plan->naxes - 1; i >= 0; i--) {
            const gm_axis *axis = &plan->axis[i];
            dst += axis->dst;
            src += axis->src;
            if (++index[i] < axis->len)
                break;
            dst -= axis->dst * axis->len;
            src -= axis->src * axis->len;
            index[i] = 0;
        }
        if (j->streaming)
            j->kernels->stream(to_here, from_here, n, from < to ? src : NULL);
        else
            memcpy(to_here, from_here, (size_t)n);
    }
}

static void run_part(void *ctx, int part)
{
    job *j = ctx;
    (void)part;
    for (int64_t from; (from = atomic_fetch_add(&j->next, j->chunk)) < j->bytes;)
        copy_range(j, from, from + j->chunk < j->bytes ? from + j->chunk : j->bytes);
    if (j->streaming)
        j->kernels->fence();
}

void gm_move_rows(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streaming, int threads)
{
    job j = {
        .kernels = cpu->isa->tile,
        .plan = plan,
        .dst = dst + plan->dst_start,
        .src = src + plan->src_start,
        .streaming = streaming,
        .bytes = plan->items * plan->item,
    };
    int64_t parts = j.bytes / PART < threads ? j.bytes / PART : threads;
    j.chunk = parts <= 1 ? j.bytes : CHUNK;
    gm_parallel(parts < 1 ? 1 : (int)parts, run_part, &j);
}
