#include "weave.h"
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

/* The tables of tiles whose stream and rows begin with a line. */
typedef struct weave_shape {
    int row[GM_WEAVE_MOST]; /* of each vector */
    uint64_t turns[GM_WEAVE_STAGES];
    uint8_t before[GM_WEAVE_MOST][LINE];
    uint8_t after[GM_WEAVE_MOST][2 * LINE]; /* of the vector before, and of this one */
} weave_shape;

typedef struct weave_job {
    const weave_shape *shape;
    const gm_thin_kernels *kernels;
    const gm_weave_kernel *kernel;
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
static void make_shape(const weave_job *job, weave_shape *shape)
{
    int item = (int)job->item, k = (int)job->k, L = (int)job->lanes, c = job->kernel->c, m = job->kernel->m;
    int backwards = inverse(L / c, m), along_g[LINE], along_i[LINE];
    uint8_t order[LINE], spread[LINE];

    memset(shape->turns, 0, sizeof shape->turns);
    for (int q = 0; q < L; q++) {
        uint64_t bytes = (item == 8 ? 255 : (UINT64_C(1) << item) - 1) << q * item, *turn = shape->turns;
        along_g[q] = q % c;
        along_i[q] = q / c * backwards % m;
        for (int by = 1; by < c; by *= 2)
            *turn++ |= (job->unweaves ? along_g[q] : c - along_g[q]) & by ? bytes : 0;
        for (int by = 1; by < m; by *= 2)
            *turn++ |= (job->unweaves || !along_i[q] ? along_i[q] : m - along_i[q]) & by ? bytes : 0;
    }
    for (int v = 0; v < k; v++) {
        int g = v / m, i = v % m, row = shape->row[v] = g + c * (i * (L / c) % m);
        for (int q = 0; q < L; q++) {
            int from_g = (g - along_g[q]) & (c - 1), from_i = i - along_i[q] + (i < along_i[q] ? m : 0);
            int position = (int)((unsigned)((from_g * m + from_i) * L + (q & -c) + g - row) / (unsigned)k);
            order[job->unweaves ? position : q] = (uint8_t)(job->unweaves ? q : position);
            spread[q] = (uint8_t)((q & -c) + ((job->unweaves ? q + g : q - g) & (c - 1)));
        }
        /* Before a row's vector stands its own of the last tile, before the stream's the last one of that tile. */
        pick(shape->before[v], job->unweaves ? spread : order, item, 0);
        pick(shape->after[v] + LINE, job->unweaves ? order : spread, item, LINE);
        pick(job->unweaves ? shape->after[v] : shape->after[(v + 1) % k], job->unweaves ? order : spread, item, 0);
    }
}

/* The tables for one stream and its rows: the shape's, moved to where those lie within their lines. */
static void make_tables(const weave_job *job, gm_weave *w, const char *dst, const char *src)
{
    const weave_shape *shape = job->shape;
    const char *stream = job->unweaves ? src : dst, *rows = job->unweaves ? dst : src;

    w->streams = job->streams;
    w->carry = w->carried[0];
    memcpy(w->turns, shape->turns, sizeof w->turns);
    for (int v = 0; v < job->k; v++) {
        const char *row = rows + shape->row[v] * job->pitch;
        int64_t from = line_of(job->unweaves ? stream : row), to = line_of(job->unweaves ? row : stream);
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
    gm_weave_fn *run = job->unweaves ? job->kernel->unweave : job->kernel->weave;

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
            make_tables(job, &weave, dst, src);
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

static const gm_weave_kernel *find_kernel(const gm_weave_kernel *kernel, int64_t k, int64_t lanes)
{
    int64_t c = k & -k;
    if (c > lanes)
        c = lanes;
    while (kernel->c && (kernel->c != c || kernel->c * kernel->m != k))
        kernel++;
    return kernel->c ? kernel : NULL;
}

/* What `plan` is if it is a weave: everything but how it is shared out. 0 if it is none. */
static int recognise(weave_job *job, const gm_cpu *cpu, const gm_plan *plan)
{
    *job = (weave_job){.kernels = cpu->isa->thin, .item = plan->item};
    if (!job->kernels || !job->kernels->weaves || plan->src_axis < 0 || plan->dst_axis < 0 || plan->item > 8 ||
        (plan->item & (plan->item - 1)))
        return 0;
    const gm_axis *s = &plan->axis[plan->src_axis], *d = &plan->axis[plan->dst_axis];
    job->unweaves = s->len <= GM_WEAVE_MOST;
    if (job->unweaves ? d->src != s->len * plan->item : s->dst != d->len * plan->item)
        return 0;
    job->k = job->unweaves ? s->len : d->len;
    job->n = job->unweaves ? d->len : s->len;
    job->pitch = job->unweaves ? s->dst : d->src;
    job->lanes = LINE / plan->item;
    if (job->k > GM_WEAVE_MOST || job->n * plan->item < SHORT_ROW)
        return 0;
    job->kernel = find_kernel(job->kernels->weaves, job->k, job->lanes);
    return job->kernel != NULL;
}

int gm_weave_suits(const gm_cpu *cpu, const gm_plan *plan)
{
    weave_job job;
    return plan->items * plan->item >= LEAST && recognise(&job, cpu, plan);
}

void gm_move_weave(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streams)
{
    weave_shape shape;
    weave_job job;
    if (!recognise(&job, cpu, plan))
        return;
    make_shape(&job, &shape);
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
