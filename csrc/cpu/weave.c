#include "weave.h"
#include "../base/integers.h"
#include "isa.h"
#include "pool.h"
#include "strided.h"
#include "thin.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 64,
    LEAST = 256 << 10,   /* bytes: less is not worth the tables */
    CHUNK = 2 << 20,     /* bytes of a stream, at most: where they begin, nothing has been fetched yet */
    PART = 128 << 10,    /* and at least */
    SHORT_ROW = 4 << 10, /* bytes: the ends of shorter rows, which move item by item, would weigh too much */
};

typedef struct weave_job {
    const gm_weave_shape *shape;
    const gm_thin_kernels *kernels;
    int unweaves, streams;
    int64_t item, k, lanes, n; /* lanes: items of a vector; n: of a row */
    int64_t pitch;             /* bytes from row to row; positions of the stream are k items apart */
    const char *low, *high;    /* the source is not read outside of these */
    char *dst;
    const char *src;
    int nouter;
    gm_axis outer[GM_MAX_NDIM];
    int64_t chunk, chunks, count; /* tiles of a chunk, chunks of a stream, chunks in all */
    _Atomic int64_t next;
} weave_job;

static int64_t line_of(const char *at)
{
    return (int64_t)((uintptr_t)at & (LINE - 1));
}

/* x with x * a = 1 modulo m; 0 modulo 1. a and m have no common divisor. */
static int inverse(int a, int m)
{
    int x = 0;
    while (x < m && x * a % m != 1 % m)
        x++;
    return x;
}

/* lane_at[q]: the lane whose item goes to lane q. As bytes, which are numbered from `first` on. */
static void pick(uint8_t *picks, const uint8_t *lane_at, int item, int first)
{
    for (int b = 0, q = 0; b < LINE; q++)
        for (int i = 0; i < item; i++)
            picks[b++] = (uint8_t)(lane_at[q] * item + i + first);
}

/* Vector g * m + i of the stream holds the items numbered (g * m + i) * L + q, of row (i * L + q) mod k: every row with
 * the remainder q mod c, once for each g. Taking lane q / c * c + (q + g) % c into lane q spreads the remainders, and
 * then lane q, turned on by q mod c along g and by q / c / (L / c) modulo m along i, has row
 * g + c * (i * (L / c) mod m) in vector g * m + i. */
static void make_shape(gm_weave_shape *shape)
{
    int item = (int)shape->item, k = (int)shape->k, L = LINE / item, c = shape->kernel->c, m = shape->kernel->m;
    int backwards = inverse(L / c, m), along_g[LINE], along_i[LINE];
    uint8_t order[LINE], spread[LINE];

    memset(shape->turns, 0, sizeof shape->turns);
    for (int q = 0; q < L; q++) {
        uint64_t bytes = (item == 8 ? 255 : (UINT64_C(1) << item) - 1) << q * item, *turn = shape->turns;
        along_g[q] = q % c;
        along_i[q] = q / c * backwards % m;
        for (int by = 1; by < c; by *= 2)
            *turn++ |= (shape->unweaves ? along_g[q] : c - along_g[q]) & by ? bytes : 0;
        for (int by = 1; by < m; by *= 2)
            *turn++ |= (shape->unweaves || !along_i[q] ? along_i[q] : m - along_i[q]) & by ? bytes : 0;
    }
    for (int v = 0; v < k; v++) {
        int g = v / m, i = v % m, row = shape->row[v] = g + c * (i * (L / c) % m);
        for (int q = 0; q < L; q++) {
            int from_g = (g - along_g[q]) & (c - 1), from_i = i - along_i[q] + (i < along_i[q] ? m : 0);
            int position = (int)((unsigned)((from_g * m + from_i) * L + (q & -c) + g - row) / (unsigned)k);
            order[shape->unweaves ? position : q] = (uint8_t)(shape->unweaves ? q : position);
            spread[q] = (uint8_t)((q & -c) + ((shape->unweaves ? q + g : q - g) & (c - 1)));
        }
        /* Before a row's vector stands its own of the last tile, before the stream's the last one of that tile. */
        pick(shape->before[v], shape->unweaves ? spread : order, item, 0);
        pick(shape->after[v] + LINE, shape->unweaves ? order : spread, item, LINE);
        pick(shape->unweaves ? shape->after[v] : shape->after[(v + 1) % k], shape->unweaves ? order : spread, item, 0);
    }
}

static const gm_weave_kernel *find_kernel(const gm_cpu *cpu, int64_t item, int64_t k)
{
    const gm_weave_kernel *kernel = cpu->isa->thin ? cpu->isa->thin->weaves : NULL;
    if (!kernel || item > 8 || (item & (item - 1)))
        return NULL;
    int64_t c = gm_least(k & -k, LINE / item);
    while (kernel->c && (kernel->c != c || kernel->c * kernel->m != k))
        kernel++;
    return kernel->c ? kernel : NULL;
}

int gm_weave_shape_make(gm_weave_shape *shape, const gm_cpu *cpu, int64_t item, int64_t k, int unweaves)
{
    shape->kernel = find_kernel(cpu, item, k);
    shape->unweaves = unweaves;
    shape->item = item;
    shape->k = k;
    if (shape->kernel)
        make_shape(shape);
    return shape->kernel != NULL;
}

void gm_weave_place(gm_weave *w, const gm_weave_shape *shape, const char *dst, const char *src, int64_t pitch,
                    int streams)
{
    const char *stream = shape->unweaves ? src : dst, *rows = shape->unweaves ? dst : src;

    w->streams = streams;
    w->aligned = line_of(rows) == 0 && pitch % LINE == 0;
    w->carry = w->carried[0];
    memcpy(w->turns, shape->turns, sizeof w->turns);
    for (int v = 0; v < shape->k; v++) {
        const char *row = rows + shape->row[v] * pitch;
        int64_t from = line_of(shape->unweaves ? stream : row), to = line_of(shape->unweaves ? row : stream);
        w->row[v] = row - line_of(row) - (rows - line_of(rows));
        for (int b = 0; b < LINE; b++)
            w->before[v][b] = (uint8_t)(shape->before[v][b] + from);
        memcpy(w->after[v], shape->after[v] + LINE - to, LINE);
    }
}

/* Positions from .. to - 1 of a row, or of all rows, item by item. */
static void move_loose(const weave_job *job, char *dst, const char *src, int64_t from, int64_t to, int64_t rows)
{
    int64_t apart = job->k * job->item;
    if (to <= from)
        return;
    if (job->unweaves) {
        gm_axis axis[] = {{to - from, apart, job->item}};
        gm_copy_box(dst + from * job->item, src + from * apart, job->item, axis, 1);
    } else {
        gm_axis axis[] = {{to - from, job->item, apart}, {rows, job->pitch, job->item}};
        gm_copy_box(dst + from * apart, src + from * job->item, job->item, axis, 2);
    }
}

/* What lines of tiles first .. last - 1 do not cover: each line lies `misaligned` bytes in front of its tile. Rounded
 * outwards to whole items. */
static void move_ends(const weave_job *job, char *dst, const char *src, int64_t first, int64_t last)
{
    int64_t L = job->lanes;
    if (!job->unweaves) {
        int64_t size = job->k * job->item, misaligned = line_of(dst);
        move_loose(job, dst, src, 0, (first * L * size - misaligned + size - 1) / size, job->k);
        move_loose(job, dst, src, (last * L * size - misaligned) / size, job->n, job->k);
        return;
    }
    for (int64_t r = 0; r < job->k; r++) {
        char *row = dst + r * job->pitch;
        int64_t misaligned = line_of(row), size = job->item;
        move_loose(job, row, src + r * size, 0, (first * L * size - misaligned + size - 1) / size, 1);
        move_loose(job, row, src + r * size, (last * L * size - misaligned) / size, job->n, 1);
    }
}

/* The tiles whose lines may be moved whole: all but those at the source's ends. */
static void safe_tiles(const weave_job *job, const char *src, int64_t *first, int64_t *last)
{
    int64_t reach = job->unweaves ? 0 : (job->k - 1) * job->pitch, tiles = job->n / job->lanes;
    const char *lowest = src + (reach < 0 ? reach : 0), *highest = src + (reach > 0 ? reach : 0);
    int64_t end = tiles * LINE * (job->unweaves ? job->k : 1);
    *first = lowest - job->low >= LINE ? 1 : 2;
    *last = job->high - highest - end >= LINE ? tiles : tiles - 1;
}

static void body(void *ctx, int part)
{
    weave_job *job = ctx;
    gm_weave weave;
    int64_t made_for = -1;
    int64_t dst_tile = LINE * (job->unweaves ? 1 : job->k), src_tile = LINE * (job->unweaves ? job->k : 1);
    gm_weave_fn *run = job->unweaves ? job->shape->kernel->unweave : job->shape->kernel->weave;

    (void)part;
    for (int64_t next; (next = atomic_fetch_add(&job->next, 1)) < job->count;) {
        int64_t chunk = next % job->chunks, rest = next / job->chunks, first, last;
        char *dst = job->dst;
        const char *src = job->src;
        for (int k = job->nouter - 1; k >= 0; k--) {
            int64_t i = rest % job->outer[k].len;
            rest /= job->outer[k].len;
            dst += i * job->outer[k].dst;
            src += i * job->outer[k].src;
        }
        if (made_for != line_of(dst) * LINE + line_of(src)) {
            gm_weave_place(&weave, job->shape, dst, src, job->pitch, job->streams);
            made_for = line_of(dst) * LINE + line_of(src);
        }
        safe_tiles(job, src, &first, &last);
        if (chunk == 0)
            move_ends(job, dst, src, first, last);
        int64_t from = chunk == 0 ? first : chunk * job->chunk,
                to = chunk == job->chunks - 1 ? last : (chunk + 1) * job->chunk;
        run(&weave, dst - line_of(dst) + (from - 1) * dst_tile, src - line_of(src) + (from - 1) * src_tile,
            to - from + 1);
    }
    job->kernels->fence();
}

/* What `plan` is if it is a weave: everything but how it is shared out. 0 if it is none. */
static int recognise(weave_job *job, const gm_cpu *cpu, const gm_plan *plan)
{
    *job = (weave_job){.kernels = cpu->isa->thin, .item = plan->item};
    if (plan->src_axis < 0 || plan->dst_axis < 0)
        return 0;
    const gm_axis *s = &plan->axis[plan->src_axis], *d = &plan->axis[plan->dst_axis];
    job->unweaves = s->len <= GM_WEAVE_MOST;
    if (job->unweaves ? d->src != s->len * plan->item : s->dst != d->len * plan->item)
        return 0;
    job->k = job->unweaves ? s->len : d->len;
    job->n = job->unweaves ? d->len : s->len;
    job->pitch = job->unweaves ? s->dst : d->src;
    job->lanes = LINE / plan->item;
    return job->k <= GM_WEAVE_MOST && job->n * plan->item >= SHORT_ROW && find_kernel(cpu, plan->item, job->k);
}

int gm_weave_suits(const gm_cpu *cpu, const gm_plan *plan)
{
    weave_job job;
    return plan->items * plan->item >= LEAST && recognise(&job, cpu, plan);
}

void gm_move_weave(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streams)
{
    gm_weave_shape shape;
    weave_job job;
    if (!recognise(&job, cpu, plan) || !gm_weave_shape_make(&shape, cpu, job.item, job.k, job.unweaves))
        return;
    job.shape = &shape;
    job.dst = dst + plan->dst_start;
    job.src = src + plan->src_start;
    job.low = job.src;
    job.high = job.src + plan->item;
    job.count = 1;
    for (int i = 0; i < plan->naxes; i++) {
        const gm_axis *axis = &plan->axis[i];
        int64_t reach = axis->src * (axis->len - 1);
        job.low += reach < 0 ? reach : 0;
        job.high += reach > 0 ? reach : 0;
        if (i != plan->src_axis && i != plan->dst_axis) {
            job.outer[job.nouter++] = *axis;
            job.count *= axis->len;
        }
    }
    int64_t total = plan->items * plan->item, tiles = job.n / job.lanes, threads = atomic_load(&cpu->threads);
    int64_t chunk = total / (threads * 4);
    chunk = chunk < PART ? PART : chunk > CHUNK ? CHUNK : chunk;
    threads = total / PART < threads ? total / PART : threads;
    job.streams = streams;
    job.chunk = chunk / (LINE * job.k);
    job.chunks = tiles / job.chunk > 1 ? tiles / job.chunk : 1;
    job.count *= job.chunks;
    gm_parallel((int)threads, body, &job);
}
