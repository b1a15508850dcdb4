#include "deal.h"
#include "../base/memory.h"
#include "isa.h"
#include "pool.h"
#include "thin.h"
#include <stdatomic.h>
#include <string.h>

enum {
    STRETCH = 8 << 10,   /* bytes of the source that a round should read at once */
    LONG_RUN = 32 << 10, /* runs from here on are long stretches by themselves */
    PART =
        512 << 10, /* bytes of rounds: enough that the piles' ends do not show, and for a trip to the shared counter */
};

typedef struct deal_job {
    gm_deal_fn *run;
    void (*fence)(void);
    int64_t bytes; /* of a run */
    gm_axis pile;  /* along which the runs of a pile follow one another; of length 1 where none do */
    int naxes;     /* outermost first: how many rounds start side by side, and where */
    gm_axis axis[GM_MAX_NDIM];
    int64_t count, short_count; /* runs of a round; of one that ends at the end of the axis it was cut from */
    int cut;                    /* that axis, or -1 */
    int64_t rounds, parts;      /* of a pile's share, shares of a pile */
    int64_t total, grain;       /* shares in all, and how many of them a thread takes at once */
    int64_t *at;
    char *dst, *carry;
    const char *src;
    _Atomic int64_t next;
} deal_job;

static void deal_share(const deal_job *job, int64_t share, char *carry)
{
    int64_t first = share % job->parts * job->rounds, last = first + job->rounds, rest = share / job->parts;
    gm_deal round = {
        .dst = job->dst, .at = job->at, .src = job->src, .bytes = job->bytes, .count = job->count, .carry = carry};

    if (last > job->pile.len)
        last = job->pile.len;
    for (int k = job->naxes - 1; k >= 0; k--) {
        int64_t i = rest % job->axis[k].len;
        rest /= job->axis[k].len;
        round.dst += i * job->axis[k].dst;
        round.src += i * job->axis[k].src;
        if (k == job->cut && i == job->axis[k].len - 1)
            round.count = job->short_count;
    }
    round.dst += first * job->pile.dst;
    round.src += first * job->pile.src;
    for (int64_t i = first; i < last; i++, round.dst += job->pile.dst, round.src += job->pile.src) {
        round.first = i == first;
        round.last = i == last - 1;
        round.ask = round.src + job->pile.src;
        job->run(&round);
    }
}

static void body(void *ctx, int part)
{
    deal_job *job = ctx;
    char *carry = job->carry + part * job->count * 64;
    for (int64_t from; (from = atomic_fetch_add(&job->next, job->grain)) < job->total;)
        for (int64_t share = from; share < from + job->grain && share < job->total; share++)
            deal_share(job, share, carry);
    job->fence();
}

int gm_deal_suits(const gm_cpu *cpu, const gm_plan *plan)
{
    return cpu->isa->thin && cpu->isa->thin->deal && plan->family == GM_ROWS && plan->item < LONG_RUN;
}

gm_status gm_move_deal(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int threads)
{
    deal_job job = {
        .run = cpu->isa->thin->deal,
        .fence = cpu->isa->thin->fence,
        .bytes = plan->item,
        .pile = {1, 0, 0},
        .count = 1,
        .cut = -1,
        .dst = dst + plan->dst_start,
        .src = src + plan->src_start,
    };
    gm_axis side[GM_MAX_NDIM]; /* the axes of a round, innermost first */
    int nside = 0;

    job.naxes = plan->naxes;
    memcpy(job.axis, plan->axis, (size_t)plan->naxes * sizeof *job.axis);
    if (plan->dst_axis >= 0) {
        job.pile = job.axis[plan->dst_axis];
        job.axis[plan->dst_axis].len = 1;
    }
    /* Rounds grow along whatever goes on in the source, until they are long. */
    for (int k = 0; k < job.naxes && job.cut < 0 && job.count * job.bytes < STRETCH; k++) {
        gm_axis *axis = &job.axis[k];
        if (axis->len == 1 || axis->src != job.count * job.bytes)
            continue;
        int64_t most = STRETCH / (job.count * job.bytes), len = axis->len;
        side[nside++] = *axis;
        if (len > most) {
            job.cut = k;
            side[nside - 1].len = most;
            job.short_count = job.count * (len % most ? len % most : most);
            *axis = (gm_axis){(len + most - 1) / most, most * axis->src, most * axis->dst};
        } else {
            axis->len = 1;
        }
        job.count *= side[nside - 1].len;
        k = -1;
    }

    int64_t round_bytes = job.count * job.bytes, total = plan->items * plan->item;
    job.rounds = PART / round_bytes > 1 ? PART / round_bytes : 1;
    job.parts = (job.pile.len + job.rounds - 1) / job.rounds;
    job.total = job.parts;
    for (int k = 0; k < job.naxes; k++)
        job.total *= job.axis[k].len;
    job.grain = PART / (total / job.total) + 1;
    threads = total / PART < threads ? (int)(total / PART) + 1 : threads;

    size_t carry_bytes = (size_t)(threads * job.count) * 64;
    job.carry = gm_alloc(carry_bytes + (size_t)job.count * sizeof *job.at);
    if (!job.carry)
        return GM_NO_MEMORY;
    memset(job.carry, 0, carry_bytes);
    job.at = (int64_t *)(job.carry + carry_bytes);
    job.at[0] = 0;
    for (int64_t k = 0, n = 1; k < nside; n *= side[k++].len)
        for (int64_t i = 1; i < side[k].len; i++)
            for (int64_t r = 0; r < n; r++)
                job.at[i * n + r] = job.at[r] + i * side[k].dst;
    gm_parallel(threads, body, &job);
    gm_free(job.carry);
    return GM_OK;
}
