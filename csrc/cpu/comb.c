#include "comb.h"
#include "../base/integers.h"
#include "isa.h"
#include "pool.h"
#include "thin.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 64,
    LONG_SPAN = 8 << 10, /* bytes of the source: shorter rows far apart want a fetch farther ahead than the next row */
    SEGMENT = 256 << 10, /* bytes of a row that are worth a trip to the shared counter */
    PART = 512 << 10,    /* bytes of the destination that are worth another thread */
};

typedef struct comb_job {
    gm_comb_fn *run;
    void (*fence)(void);
    gm_comb comb;
    gm_axis row;
    int64_t segment, segments; /* items of a part of a row, parts of a row */
    int nouter;
    gm_axis outer[GM_MAX_NDIM];
    int64_t count, grain; /* segments in all, and how many of them a thread takes at once */
    char *dst;
    const char *src;
    _Atomic int64_t next;
} comb_job;

int gm_comb_suits(const gm_cpu *cpu, const gm_plan *plan)
{
    if (!cpu->isa->thin || !cpu->isa->thin->comb || plan->family != GM_GENERAL || plan->dst_axis < 0 ||
        plan->item > 16 || (plan->item & (plan->item - 1)))
        return 0;
    const gm_axis *row = &plan->axis[plan->dst_axis];
    int64_t step = llabs(row->src), span = step * row->len, apart = 0;
    for (int k = 0; k < plan->naxes; k++)
        if (k != plan->dst_axis)
            apart = apart ? gm_least(apart, llabs(plan->axis[k].src)) : llabs(plan->axis[k].src);
    int goes_on = apart <= span + LINE || span >= LONG_SPAN;
    return step >= plan->item && step <= GM_COMB_LOOSE * plan->item && row->len * plan->item >= LINE && goes_on;
}

static void make_comb(gm_comb *comb, int64_t item, int64_t step, int vector, int streams)
{
    int64_t n = vector / item, span = (n - 1) * llabs(step) + item;

    *comb = (gm_comb){.item = item, .step = llabs(step), .backwards = step < 0, .streams = streams};
    comb->windows = (int)gm_pieces(span, vector);
    memset(comb->picks, 0x80, sizeof comb->picks);
    for (int w = 0; w < comb->windows; w++)
        comb->at[w] = gm_least(w * (int64_t)vector, span - vector);
    for (int64_t b = 0; b < vector; b++) {
        int64_t i = comb->backwards ? n - 1 - b / item : b / item, byte = i * comb->step + b % item;
        int64_t w = byte / vector;
        comb->picks[w][b] = (uint8_t)(byte - comb->at[w]);
        comb->takes[w] |= UINT64_C(1) << b;
    }
}

/* Segment number `number`; those of a row are counted in the source's order. */
static gm_comb_row locate(const comb_job *job, int64_t number)
{
    int64_t from = number % job->segments * job->segment, rest = number / job->segments;
    int64_t n = gm_least(job->segment, job->row.len - from);
    int64_t dst = (job->comb.backwards ? job->row.len - from - n : from) * job->comb.item, src = from * job->comb.step;
    for (int k = job->nouter - 1; k >= 0 && rest; k--) {
        int64_t i = rest % job->outer[k].len;
        rest /= job->outer[k].len;
        dst += i * job->outer[k].dst;
        src += i * job->outer[k].src;
    }
    return (gm_comb_row){.dst = job->dst + dst, .src = job->src + src, .n = n};
}

static void body(void *ctx, int part)
{
    comb_job *job = ctx;
    (void)part;
    for (int64_t from; (from = atomic_fetch_add(&job->next, job->grain)) < job->count;) {
        int64_t last = gm_least(from + job->grain, job->count);
        gm_comb_joint joint[2];
        gm_comb_row row = locate(job, from), next = {0};
        for (int64_t k = from; k < last; k++, row = next) {
            if (k + 1 < job->count)
                next = locate(job, k + 1);
            row.next = k + 1 < job->count ? (uintptr_t)next.src : 0;
            if (job->comb.streams && k + 1 < last && next.dst == row.dst + row.n * job->comb.item)
                next.before = row.after = &joint[k & 1];
            job->run(&job->comb, &row);
        }
    }
    job->fence();
}

void gm_move_comb(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streams, int threads)
{
    comb_job job = {
        .run = cpu->isa->thin->comb,
        .fence = cpu->isa->thin->fence,
        .row = plan->axis[plan->dst_axis],
        .count = 1,
        .dst = dst + plan->dst_start,
        .src = src + plan->src_start,
    };
    int64_t item = plan->item, total = plan->items * item;

    make_comb(&job.comb, item, job.row.src, cpu->isa->thin->comb_vector, streams);
    if (job.comb.backwards)
        job.src += (job.row.len - 1) * job.row.src;
    for (int k = 0; k < plan->naxes; k++) {
        if (k == plan->dst_axis)
            continue;
        job.outer[job.nouter++] = plan->axis[k];
        job.count *= plan->axis[k].len;
    }
    job.segments = gm_pieces(job.row.len * item, SEGMENT);
    job.segment = gm_pieces(job.row.len, job.segments); /* evenly: none is too short for a comb */
    job.count *= job.segments;
    job.grain = PART / (job.segment * item);
    threads = (int)gm_least(threads, gm_pieces(total, PART));
    if (threads == 1 || job.grain < 1)
        job.grain = threads == 1 ? job.count : 1;
    gm_parallel(threads, body, &job);
}
