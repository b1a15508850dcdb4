#include "../base/integers.h"
#include "compact.h"
#include "weave.h"
#include "../base/memory.h"
#include "isa.h"
#include "pool.h"
#include "rows.h"
#include "thin.h"
#include <stdatomic.h>
#include <stdlib.h>

enum {
    LOOSE = 8,        /* items: at steps of up to so many, a copy row by row is fast */
    SLAB = 512 << 10, /* bytes: half of a second-level cache */
    LEAST = 64 << 10, /* bytes: less is not worth two steps */
    RUN = 1 << 10,    /* bytes that a slab's runs in the destination should have */
};

/* The axes of a slab, innermost first; of those in `firm` it has at least a run each. */
typedef struct layout {
    int order[GM_MAX_NDIM];
    uint64_t firm;
} layout;

/* Innermost the axis of the source's smallest steps, which are small, but not one item; and not along the destination's
 * runs, where no step in between is needed. */
static int lay_out(layout *l, const gm_plan *plan)
{
    for (int k = 0; k < plan->naxes; k++) {
        int i = k;
        for (; i > 0 && llabs(plan->axis[l->order[i - 1]].src) > llabs(plan->axis[k].src); i--)
            l->order[i] = l->order[i - 1];
        l->order[i] = k;
    }
    int64_t step = llabs(plan->axis[l->order[0]].src);
    if (plan->src_axis >= 0 || plan->dst_axis < 0 || l->order[0] == plan->dst_axis || !step ||
        step > LOOSE * plan->item)
        return 0;
    l->firm = UINT64_C(1) << plan->dst_axis;
    return 1;
}

int gm_compact_suits(const gm_plan *plan)
{
    layout l;
    return plan->items * plan->item >= LEAST && lay_out(&l, plan);
}

/* The lengths of a slab. Returns its bytes. */
static int64_t cut_slab(const gm_plan *plan, const layout *l, int64_t *extent)
{
    int64_t bytes = plan->item;
    for (int i = 0; i < 2 * plan->naxes; i++) {
        int k = l->order[i % plan->naxes], firm = l->firm >> k & 1;
        if (firm != (i < plan->naxes))
            continue;
        extent[k] = gm_least(plan->axis[k].len, firm ? RUN / plan->item : bytes < SLAB ? SLAB / bytes : 1);
        bytes *= extent[k];
    }
    int64_t *run = &extent[plan->dst_axis], grown = gm_least(plan->axis[plan->dst_axis].len, *run * (SLAB / bytes));
    if (grown > *run) {
        bytes = bytes / *run * grown;
        *run = grown;
    }
    return bytes;
}

typedef struct compact_job {
    gm_cpu cpu; /* of one thread */
    const gm_plan *plan;
    layout layout;
    gm_tile_how how;
    int64_t extent[GM_MAX_NDIM], slabs, slab_bytes;
    char *dst, *slab;
    const char *src;
    _Atomic int64_t next;
    _Atomic int status;
} compact_job;

static gm_status move_slab(const compact_job *job, int64_t number, char *slab)
{
    const gm_plan *plan = job->plan;
    int64_t len[GM_MAX_NDIM], from[GM_MAX_NDIM], to[GM_MAX_NDIM], dense[GM_MAX_NDIM], step = plan->item;
    char *dst = job->dst;
    const char *src = job->src;
    gm_plan in, out;

    for (int i = plan->naxes - 1; i >= 0; i--) {
        const gm_axis *axis = &plan->axis[i];
        int64_t slabs = (axis->len + job->extent[i] - 1) / job->extent[i], index = number % slabs * job->extent[i];
        number /= slabs;
        len[i] = gm_least(job->extent[i], axis->len - index);
        from[i] = axis->src;
        to[i] = axis->dst;
        dst += index * axis->dst;
        src += index * axis->src;
    }
    for (int i = 0; i < plan->naxes; i++) {
        dense[job->layout.order[i]] = step;
        step *= len[job->layout.order[i]];
    }
    gm_plan_make(&in, plan->item, plan->naxes, len, from, dense);
    gm_plan_make(&out, plan->item, plan->naxes, len, dense, to);
    gm_status status = gm_move_tuned(&job->cpu, &in, slab, src);
    if (status != GM_OK)
        return status;
    if (gm_weave_suits(&job->cpu, &out))
        gm_move_weave(&job->cpu, &out, dst, slab, job->how.staged);
    else if (out.naxes == 0) /* of the last slab there may be one run */
        gm_move_rows(&job->cpu, &out, dst, slab, 0, 1);
    else
        status = gm_move_blocks(&job->cpu, &out, dst, slab, &job->how);
    return status;
}

static void body(void *ctx, int part)
{
    compact_job *job = ctx;
    char *slab = job->slab + part * job->slab_bytes;
    for (int64_t number; (number = atomic_fetch_add(&job->next, 1)) < job->slabs;) {
        gm_status status = move_slab(job, number, slab);
        if (status != GM_OK)
            atomic_store(&job->status, status);
    }
}

gm_status gm_move_compact(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how)
{
    compact_job job = {
        .cpu = {.isa = cpu->isa,
                .l1_bytes = cpu->l1_bytes,
                .l2_bytes = cpu->l2_bytes,
                .l3_bytes = cpu->l3_bytes,
                .reads_pages = cpu->reads_pages},
        .plan = plan,
        .how = {.simd = how->simd, .staged = how->staged, .threads = 1},
        .slabs = 1,
        .dst = dst + plan->dst_start,
        .src = src + plan->src_start,
    };
    atomic_init(&job.cpu.threads, 1);
    if (!lay_out(&job.layout, plan))
        return gm_move_naive(cpu, plan, dst, src);
    job.slab_bytes = (cut_slab(plan, &job.layout, job.extent) + 4095) / 4096 * 4096;
    for (int k = 0; k < plan->naxes; k++)
        job.slabs *= (plan->axis[k].len + job.extent[k] - 1) / job.extent[k];
    int threads = job.slabs < how->threads ? (int)job.slabs : how->threads;
    job.slab = gm_alloc((size_t)(threads * job.slab_bytes));
    if (!job.slab)
        return GM_NO_MEMORY;
    gm_parallel(threads, body, &job);
    gm_free(job.slab);
    return (gm_status)atomic_load(&job.status);
}
