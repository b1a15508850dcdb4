#include "middle.h"
#include "../base/integers.h"
#include "../base/memory.h"
#include "isa.h"
#include "pool.h"
#include "strided.h"
#include "thin.h"
#include "weave.h"
#include <stdatomic.h>

enum {
    LINE = 64,
    SLAB = 256 << 10, /* bytes: leaves room for the source's and the tables' lines in the second cache */
    MOST_SLAB = 512 << 10,
    LEAST_TILES = 8,      /* of a chunk: each unweaves two that it does not move */
    LEAST_ROW = 16 << 10, /* bytes: the ends of shorter ones, which move item by item, would weigh too much */
    SHARES = 8,     /* of a thread: what follows is fetched beyond a chunk, so neighbours had better be one's own */
    VERY_SHORT = 4, /* items: where both axes are, byte shuffles take one step and are faster */
    /* Tiles at the long axis's start, which move item by item, as a chunk reads from two tiles before its own, and a
     * line's beginning before those; at its end one, as kernels read one line too many. */
    FIRST = 3,
};

typedef struct middle_job {
    const gm_weave_shape *in, *out;
    void (*fence)(void);
    int streams;
    int64_t item, lanes;          /* items of a line */
    gm_axis along, inner, outer;  /* contiguous: neither side, the source, the destination */
    int64_t tiles, chunk, chunks; /* tiles before the last ones, of a chunk, chunks of the long axis */
    int64_t pitch;                /* bytes from row to row of a slab */
    int nrest;
    gm_axis rest[GM_MAX_NDIM];
    int64_t count, grain, slab_bytes; /* chunks in all, and how many of them a thread takes at once; of its slab */
    char *dst, *slab;
    const char *src;
    _Atomic int64_t next;
} middle_job;

static int64_t line_of(const char *at)
{
    return (int64_t)((uintptr_t)at & (LINE - 1));
}

/* The rows of a slab stand by the source's axis, then by the destination's. */
static void move_chunk(const middle_job *job, char *dst, const char *src, int64_t first, int64_t last, char *slab)
{
    const int64_t step = job->outer.len * job->pitch, in = job->inner.len * LINE, out = job->outer.len * LINE;
    gm_weave weave;

    for (int64_t d = 0; d < job->outer.len; d++) {
        const char *from = src + d * job->outer.src;
        char *to = slab + d * job->pitch;
        gm_weave_place(&weave, job->in, to, from, step, 0);
        job->in->kernel->unweave(&weave, to - LINE, from - line_of(from) + (first - 2) * in, last - first + 2);
    }
    for (int64_t s = 0; s < job->inner.len; s++) {
        const char *from = slab + s * step;
        char *to = dst + s * job->inner.dst;
        gm_weave_place(&weave, job->out, to, from, job->pitch, job->streams);
        job->out->kernel->weave(&weave, to - line_of(to) + (first - 1) * out, from, last - first + 1);
    }
}

/* What lines of tiles FIRST .. tiles - 1 do not cover, rounded outwards to whole items. */
static void move_ends(const middle_job *job, char *dst, const char *src)
{
    for (int64_t s = 0; s < job->inner.len; s++) {
        int64_t size = job->outer.len * job->item, before = line_of(dst + s * job->inner.dst);
        int64_t end[2][2] = {{0, FIRST * job->lanes},
                             {job->tiles * job->lanes - (before + size - 1) / size, job->along.len}};
        for (int i = 0; i < 2; i++) {
            gm_axis axis[] = {{end[i][1] - end[i][0], job->along.src, job->along.dst}, job->outer};
            gm_copy_box(dst + s * job->inner.dst + end[i][0] * job->along.dst,
                        src + s * job->inner.src + end[i][0] * job->along.src, job->item, axis, 2);
        }
    }
}

static void take(const middle_job *job, int64_t number, char *slab)
{
    int64_t chunk = number % job->chunks, rest = number / job->chunks, first = FIRST + chunk * job->chunk;
    char *dst = job->dst;
    const char *src = job->src;
    for (int k = job->nrest - 1; k >= 0; k--) {
        int64_t i = rest % job->rest[k].len;
        rest /= job->rest[k].len;
        dst += i * job->rest[k].dst;
        src += i * job->rest[k].src;
    }
    if (chunk == 0)
        move_ends(job, dst, src);
    move_chunk(job, dst, src, first, gm_least(first + job->chunk, job->tiles), slab);
}

static void body(void *ctx, int part)
{
    middle_job *job = ctx;
    char *slab = job->slab + part * job->slab_bytes;
    for (int64_t from; (from = atomic_fetch_add(&job->next, job->grain)) < job->count;)
        for (int64_t number = from; number < gm_least(from + job->grain, job->count); number++)
            take(job, number, slab);
    job->fence();
}

static int64_t chunk_of(const middle_job *job, int64_t slab)
{
    return slab / (job->inner.len * job->outer.len * LINE);
}

/* What `plan` is if it suits: everything but how it is shared out. */
static int recognise(middle_job *job, const gm_cpu *cpu, const gm_plan *plan)
{
    int s = plan->src_axis, d = plan->dst_axis;

    *job = (middle_job){.item = plan->item, .count = 1};
    if (!cpu->isa->thin || !cpu->isa->thin->weaves || s < 0 || d < 0 || s == d || plan->item > 8 ||
        (plan->item & (plan->item - 1)))
        return 0;
    job->inner = plan->axis[s];
    job->outer = plan->axis[d];
    job->lanes = LINE / plan->item;
    for (int k = 0; k < plan->naxes; k++) {
        const gm_axis *axis = &plan->axis[k];
        if (axis->src == job->inner.len * plan->item && axis->dst == job->outer.len * plan->item) {
            job->along = *axis;
        } else if (k != s && k != d) {
            job->rest[job->nrest++] = *axis;
            job->count *= axis->len;
        }
    }
    job->tiles = job->along.len / job->lanes - 1;
    return job->inner.len <= GM_WEAVE_MOST && job->outer.len <= GM_WEAVE_MOST &&
           (job->inner.len > VERY_SHORT || job->outer.len > VERY_SHORT) && job->along.len * plan->item >= LEAST_ROW &&
           chunk_of(job, MOST_SLAB) >= LEAST_TILES;
}

int gm_middle_suits(const gm_cpu *cpu, const gm_plan *plan)
{
    middle_job job;
    return recognise(&job, cpu, plan);
}

gm_status gm_move_middle(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streams, int threads)
{
    gm_weave_shape in, out;
    middle_job job;
    if (!recognise(&job, cpu, plan) || !gm_weave_shape_make(&in, cpu, job.item, job.inner.len, 1) ||
        !gm_weave_shape_make(&out, cpu, job.item, job.outer.len, 0))
        return gm_move_naive(cpu, plan, dst, src);
    job.in = &in;
    job.out = &out;
    job.fence = cpu->isa->thin->fence;
    job.streams = streams;
    job.dst = dst + plan->dst_start;
    job.src = src + plan->src_start;
    job.chunk = gm_most(chunk_of(&job, SLAB), LEAST_TILES);
    job.chunks = gm_pieces(job.tiles - FIRST, job.chunk);
    job.chunk = gm_pieces(job.tiles - FIRST, job.chunks);
    job.count *= job.chunks;
    /* The tile before a chunk's, its own, one line that is read but not used; an odd number of lines, so that rows lie
     * in different sets of the caches. */
    job.pitch = ((job.chunk + 2) | 1) * LINE;
    job.slab_bytes = job.inner.len * job.outer.len * job.pitch;
    threads = (int)gm_least(threads, job.count);
    job.grain = gm_most(job.count / (threads * SHARES), 1);
    job.slab = gm_alloc((size_t)(threads * job.slab_bytes));
    if (!job.slab)
        return GM_NO_MEMORY;
    gm_parallel(threads, body, &job);
    gm_free(job.slab);
    return GM_OK;
}
