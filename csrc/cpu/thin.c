/* Executes thin plans block by block. The image that a block has in the destination is assembled in a scratch buffer
 * that stays in cache, and leaves it as whole cache lines past the caches; what is left of a line waits in front of the
 * scratch row for the next block. Totals that fit into the last cache are written in place instead.
 * Lost on Zen 4, (n, 34) and (n, 40) with one thread: runs of 256 bytes or 2 KB a block (0.4 and 0.95 of the speed),
 * smaller slices and bursts (0.9), fetching the image's lines for writing ahead of the fill (0.9), no asking ahead at
 * all (0.45). The image is what limits: what the source's stream evicts from the first cache, the fill's stores wait
 * for in order; of a few rows weaving (weave.h) needs no image and runs at 1.4 times the speed. */
#include "thin.h"
#include "isa.h"
#include "pool.h"
#include "thin_fill.h"
#include "thin_plan.h"
#include "../base/memory.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 64,
    SLICE = 8 << 10,          /* source bytes between two looks at the prefetches: fits into the first-level cache */
    BURST = 16,               /* lines streamed between two groups of prefetches */
    LONG_AXIS = 40,           /* items: measured on Zen 4 against the tiles */
    SHORT_RUN = 384,          /* bytes: with shorter runs than this blocks are not worth it */
    LEAD = 8 << 10,           /* bytes: what arrives while a block of half that size is filled and drained */
    SHARE = 512 << 10,        /* bytes of work that are worth a trip to the shared counter */
    MAX_PREFETCH_ROWS = 1024, /* a block of more rows is left to the hardware */
};

typedef struct thin_job {
    const gm_thin_kernels *kernels;
    gm_thin_plan cut;
    gm_fill fill;
    char *dst;
    const char *src;
    int64_t pitch;                      /* bytes between the rows of an image; 0 when there is no image */
    int64_t image_bytes, scratch_bytes; /* of a thread: two images and what waits between them */
    char *scratch;
    int64_t *dst_at, *src_at;                   /* where the rows of a block start in the destination and the source */
    int64_t prefetch_rows, prefetch_lines, ask; /* ask: lines of the source for each of the destination */
    int64_t lead;                               /* blocks from the one being filled to the one being asked for */
    int64_t slice;                              /* positions to fill before draining a little */
    int64_t grain;
    _Atomic int64_t next;
} thin_job;

/* Where block number `block` starts in the arrays, and how many positions it has. */
typedef struct place {
    int64_t src, dst, n, along;
    int last; /* of its sequence along the split axis */
} place;

static place locate(const thin_job *job, int64_t block)
{
    const gm_thin_plan *cut = &job->cut;
    int64_t along = block % cut->blocks, rest = block / cut->blocks;
    place at = {along * cut->step * cut->split.src, along * cut->step * cut->split.dst, cut->step, along,
                along == cut->blocks - 1};
    if (at.last)
        at.n = cut->split.len - along * cut->step;
    for (int k = cut->nouter - 1; k >= 0 && rest; k--) {
        int64_t i = rest % cut->outer[k].len;
        rest /= cut->outer[k].len;
        at.src += i * cut->outer[k].src;
        at.dst += i * cut->outer[k].dst;
    }
    return at;
}

/* The place of block number `block`, which follows the one at `at`. */
static place following(const thin_job *job, const place *at, int64_t block)
{
    const gm_thin_plan *cut = &job->cut;
    if (at->along + 2 >= cut->blocks)
        return locate(job, block);
    return (place){at->src + cut->step * cut->split.src, at->dst + cut->step * cut->split.dst, cut->step, at->along + 1,
                   0};
}

/* The lines of a block that is to come, in the order of its source rows. */
typedef struct lookout {
    const char *src; /* NULL: nothing to ask for */
    int64_t row, line;
} lookout;

static void look_out(const thin_job *job, lookout *ahead, int64_t lines)
{
    while (lines > 0 && ahead->src && ahead->row < job->prefetch_rows) {
        const char *at = ahead->src + job->src_at[ahead->row] + ahead->line * LINE;
        int64_t n = job->prefetch_lines - ahead->line < lines ? job->prefetch_lines - ahead->line : lines;
        for (int64_t i = 0; i < n; i++)
            __builtin_prefetch(at + i * LINE, 0, 2);
        lines -= n;
        ahead->line += n;
        if (ahead->line == job->prefetch_lines) {
            ahead->line = 0;
            ahead->row++;
        }
    }
}

/* An image on its way to memory. */
typedef struct drain {
    char *dst, *image; /* the first row */
    int64_t row, rows, bytes;
    uint8_t *waiting; /* for each row: bytes that stand in front of it, left over from the block before */
    char *next_image; /* where to leave the present block's rest; NULL to write it */
    int open;
    char *to, *from;           /* of the row, behind its head */
    int64_t sent, lines, tail; /* lines gone, lines in all, bytes after them; see run_loops on storing and loading */
} drain;

/* Bytes up to the destination's next line are written at once; only a sequence's first block has any. */
static void open_row(const thin_job *job, drain *d)
{
    int64_t waiting = d->waiting[d->row], n = d->bytes + waiting;
    char *from = d->image + d->row * job->pitch - waiting, *to = d->dst + job->dst_at[d->row] - waiting;
    int64_t head = -(uintptr_t)to % LINE;
    if (head > n)
        head = n;
    if (head)
        memcpy(to, from, (size_t)head);
    d->to = to + head;
    d->from = from + head;
    d->sent = 0;
    d->lines = (n - head) / LINE;
    d->tail = (n - head) % LINE;
    d->open = 1;
}

static void close_row(const thin_job *job, drain *d)
{
    const char *from = d->from + d->lines * LINE;
    d->waiting[d->row] = 0;
    if (d->tail && d->next_image) {
        memcpy(d->next_image + d->row * job->pitch - d->tail, from, (size_t)d->tail);
        d->waiting[d->row] = (uint8_t)d->tail;
    } else if (d->tail) {
        memcpy(d->to + d->lines * LINE, from, (size_t)d->tail);
    }
    d->open = 0;
    d->row++;
}

/* Streams `lines` lines, or as many as there are, and asks for as many of the lookout's in between: reads and writes of
 * memory overlap only if they are issued side by side. */
static void drain_lines(const thin_job *job, drain *d, int64_t lines, lookout *ahead)
{
    while (lines > 0 && d->row < d->rows) {
        if (!d->open)
            open_row(job, d);
        int64_t n = d->lines - d->sent < BURST ? d->lines - d->sent : BURST;
        job->kernels->stream(d->to + d->sent * LINE, d->from + d->sent * LINE, n);
        look_out(job, ahead, n * job->ask + 1);
        d->sent += n;
        lines -= n;
        if (d->sent == d->lines)
            close_row(job, d);
    }
}

/* Fills the image of one block while the image before it drains. */
static void body(void *ctx, int part)
{
    thin_job *job = ctx;
    const gm_thin_plan *cut = &job->cut;
    int64_t total = cut->outers * cut->blocks;
    int64_t slice = job->slice;
    char *images[2] = {NULL, NULL};
    uint8_t *waiting = NULL;

    if (job->pitch) {
        images[0] = job->scratch + part * job->scratch_bytes + LINE;
        images[1] = images[0] + job->image_bytes;
        waiting = (uint8_t *)images[1] + job->image_bytes;
    }
    for (int64_t begin; (begin = atomic_fetch_add(&job->next, job->grain)) < total;) {
        int64_t end = begin + job->grain < total ? begin + job->grain : total;
        place at = locate(job, begin), far = locate(job, begin + job->lead - 1);
        drain d = {.rows = 0};
        if (waiting)
            memset(waiting, 0, (size_t)cut->dst_rows);
        for (int64_t block = begin; block < end; block++) {
            char *image = images[block & 1], *out = image ? image : job->dst + at.dst;
            place next = block + 1 < end ? following(job, &at, block + 1) : at;
            lookout ahead = {.src = NULL};
            if (block + job->lead < end) {
                far = following(job, &far, block + job->lead);
                ahead.src = job->src + far.src;
            }
            int64_t share = (cut->dst_rows * (at.n * cut->dst_run / LINE + 1) * slice + at.n - 1) / at.n;
            for (int64_t i = 0; i < at.n;) {
                int64_t n = at.n - i < 2 * slice ? at.n - i : slice;
                gm_fill_run(&job->fill, out + i * cut->dst_run, job->src + at.src + i * cut->split.src, n);
                i += n;
                if (d.row < d.rows)
                    drain_lines(job, &d, i < at.n ? share : INT64_MAX, &ahead);
                else
                    look_out(job, &ahead, share * job->ask);
            }
            int goes_on = block + 1 < end && next.dst == at.dst + at.n * cut->dst_run;
            if (image)
                d = (drain){.dst = job->dst + at.dst,
                            .image = image,
                            .rows = cut->dst_rows,
                            .bytes = at.n * cut->dst_run,
                            .waiting = waiting,
                            .next_image = goes_on ? images[~block & 1] : NULL};
            at = next;
        }
        drain_lines(job, &d, INT64_MAX, &(lookout){.src = NULL});
    }
    if (job->pitch)
        job->kernels->fence();
}

/* The rows of a block: the offsets of every combination of the inner axes that `outside` chooses. */
static void list_rows(int64_t *at, const gm_axis *axis, int n, const uint8_t *chosen, int use_dst)
{
    int64_t rows = 1;
    at[0] = 0;
    for (int k = n - 1; k >= 0; k--) {
        if (!chosen[k])
            continue;
        for (int64_t i = 1; i < axis[k].len; i++)
            for (int64_t r = 0; r < rows; r++)
                at[i * rows + r] = at[r] + i * (use_dst ? axis[k].dst : axis[k].src);
        rows *= axis[k].len;
    }
}

gm_status gm_move_thin(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    thin_job job = {.kernels = cpu->isa->thin, .dst = dst + plan->dst_start, .src = src + plan->src_start};
    gm_thin_plan *cut = &job.cut;
    if (plan->items == 0)
        return GM_OK;
    if (!gm_thin_cut(cut, plan))
        return gm_move_naive(cpu, plan, dst, src);

    int64_t total = plan->items * plan->item;
    int streams = job.kernels && gm_goes_past(total, cpu->l3_bytes / 2);
    int parts = atomic_load(&cpu->threads);
    if (parts > total / (128 << 10) + 1)
        parts = (int)(total / (128 << 10) + 1);

    /* The axes of a block, and their steps in its image. */
    uint8_t dst_row[GM_MAX_NDIM] = {0}, src_row[GM_MAX_NDIM] = {0};
    int64_t last_block = cut->split.len - (cut->blocks - 1) * cut->step;
    if (streams)
        job.pitch = (((last_block * cut->dst_run + LINE - 1) / LINE + 1) | 1) * LINE;
    int64_t step = job.pitch, src_rows = 1;
    for (int k = cut->ninner - 1; k >= 0; k--) {
        gm_axis axis = cut->inner[k];
        dst_row[k] = axis.dst > cut->split.dst;
        src_row[k] = llabs(axis.src) > llabs(cut->split.src);
        src_rows *= src_row[k] ? axis.len : 1;
        if (dst_row[k] && streams) {
            axis.dst = step;
            step *= axis.len;
        }
        job.fill.axis[job.fill.naxes++] = axis;
    }
    job.fill.item = cut->item;
    job.fill.split_at = job.fill.naxes;
    job.fill.axis[job.fill.naxes] = cut->split;
    job.fill.axis[job.fill.naxes++].len = cut->step;

    /* One allocation: the program, the rows, an image for each thread. */
    size_t program_bytes = (sizeof(gm_shuffle) + LINE - 1) / LINE * LINE;
    size_t rows_bytes = ((size_t)(cut->dst_rows + src_rows) * sizeof(int64_t) + LINE - 1) / LINE * LINE;
    if (streams) {
        job.image_bytes = cut->dst_rows * job.pitch + LINE;
        job.scratch_bytes = (2 * job.image_bytes + cut->dst_rows + LINE + 4095) / 4096 * 4096;
    }
    char *memory = gm_alloc(program_bytes + rows_bytes + (size_t)(parts * job.scratch_bytes));
    if (!memory)
        return GM_NO_MEMORY;
    gm_shuffle *program = (gm_shuffle *)memory;
    job.dst_at = (int64_t *)(memory + program_bytes);
    job.src_at = job.dst_at + cut->dst_rows;
    job.scratch = memory + program_bytes + rows_bytes;
    list_rows(job.dst_at, cut->inner, cut->ninner, dst_row, 1);
    list_rows(job.src_at, cut->inner, cut->ninner, src_row, 0);
    if (src_rows <= MAX_PREFETCH_ROWS && cut->split.src != 0) {
        job.prefetch_rows = src_rows;
        job.prefetch_lines = cut->step * llabs(cut->split.src) / LINE + 1;
        for (int64_t row = 0; row < src_rows && cut->split.src < 0; row++)
            job.src_at[row] += (cut->step - 1) * cut->split.src;
    }

    gm_fill_choose(&job.fill, job.kernels, program);
    int64_t unit = gm_fill_unit(&job.fill);
    job.slice = SLICE / cut->cell / unit * unit;
    if (job.slice < unit)
        job.slice = unit;

    int64_t blocks = cut->outers * cut->blocks, block_bytes = cut->step * cut->cell;
    job.ask = job.prefetch_rows * (job.prefetch_lines - 1) * LINE / block_bytes;
    if (job.ask < 1)
        job.ask = 1;
    job.lead = block_bytes < LEAD ? LEAD / block_bytes : 1;
    job.grain = blocks / (parts * 8);
    if (job.grain * block_bytes < SHARE)
        job.grain = SHARE / block_bytes;
    if (job.grain > (blocks + parts - 1) / parts)
        job.grain = (blocks + parts - 1) / parts;
    if (job.grain < 1)
        job.grain = 1;
    gm_parallel(parts, body, &job);
    gm_free(memory);
    return GM_OK;
}

/* Where both contiguous axes are long, square tiles have long runs on either side without a third way to cut. Two lines
 * are long enough, unless both axes together are contiguous on either side. */
static int is_square(const gm_plan *plan)
{
    if (plan->src_axis < 0 || plan->dst_axis < 0)
        return 0;
    const gm_axis *src = &plan->axis[plan->src_axis], *dst = &plan->axis[plan->dst_axis];
    int64_t shorter = src->len < dst->len ? src->len : dst->len;
    int together = dst->src == src->len * plan->item && src->dst == dst->len * plan->item;
    return (shorter > LONG_AXIS && shorter * plan->item >= LINE) || (!together && shorter * plan->item >= 2 * LINE);
}

int gm_thin_suits(const gm_plan *plan)
{
    gm_thin_plan cut;
    int64_t total = plan->items * plan->item;
    if (plan->item >= LINE || total < 32 << 10 || plan->dst_axis < 0 || is_square(plan))
        return 0;
    return gm_thin_cut(&cut, plan) && cut.shortest >= SHORT_RUN;
}
