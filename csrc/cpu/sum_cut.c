/* Cuts a sum into pieces: see sum_job.h. Looks at shape, strides and types alone, so that the order in which floats are
 * added does not depend on the machine. */
#include "../base/integers.h"
#include "sum_job.h"
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 64,
    FEW = 8,          /* rows that a kernel takes at once */
    SHORT = 512,      /* bytes of a row below which it pays to have many at once */
    SLAB = 256 << 10, /* bytes that are worth a trip to another thread */
    SLABS = 64,       /* that a lone group is cut into, where it has as many pieces */
    WIDE_LEAST = 512, /* bytes of the wide row that narrow ones are joined to: the more, the longer the matrix, */
    WIDE_MOST = 8192, /* as long as WIDE_ROWS of them are left, which make pieces for many threads */
    WIDE_ROWS = 4096,
    STRIP = 32 << 10,        /* bytes of a row that are taken at a time */
    NARROW_STRIP = 16 << 10, /* of accumulators, where rows are so few that these must not leave L1 */
    FEW_ROWS = 32,
    PAST_STRIP = 128 << 10, /* of results, where so many are likely to go straight past the caches */
    PAST_RESULTS = 1 << 20,
    WORTH_SLAB = 64, /* bytes to read for each byte of sums that a slab leaves */
    ROWS = 1024,     /* sums of rows that are finished at a time: their accumulators stay in L1 */
    TILE = 4096,     /* items gathered at a time */
    TILE_COLS = 512,
};

static gm_axis take(gm_axis *axis, int *n, int i)
{
    gm_axis taken = axis[i];
    memmove(axis + i, axis + i + 1, (size_t)(--*n - i) * sizeof *axis);
    return taken;
}

/* How far apart items lie; those of a broadcast axis are nowhere near a contiguous run. */
static int64_t distance(const gm_axis *axis)
{
    return axis->src ? llabs(axis->src) : INT64_MAX;
}

/* The axis of the smallest step, or -1. */
static int closest(const gm_axis *axis, int n)
{
    int best = n - 1;
    for (int i = 0; i < n; i++)
        if (distance(&axis[i]) < distance(&axis[best]))
            best = i;
    return best;
}

/* The axis of the smallest step among those of some length, or else the longest; -1 if there is none. */
static int best_rows(const gm_axis *axis, int n)
{
    int best = n - 1;
    for (int i = 0; i < n; i++) {
        int long_enough = axis[i].len >= FEW, best_is = axis[best].len >= FEW;
        if (long_enough && best_is ? distance(&axis[i]) < distance(&axis[best]) : axis[i].len > axis[best].len)
            best = i;
    }
    return best;
}

/* Items from one to the next where the gap between them is less than a line, else 0. */
static int64_t gap_of(const gm_sum_job *job, int64_t step, int64_t items)
{
    int64_t gap = step / job->size;
    return step % job->size == 0 && gap >= items && (gap - items) * job->size < LINE ? gap : 0;
}

/* Rows to a wide one, a power of two; 1 where they are wide enough or do not follow one another. */
static int64_t join_of(const gm_sum_job *job)
{
    int64_t row = job->row_gap * job->size, join = 1;
    int64_t wide = gm_most(WIDE_LEAST, gm_least(WIDE_MOST, job->along.len * row / WIDE_ROWS));
    while (row && 2 * join * row <= wide)
        join *= 2;
    return join;
}

/* Across: a kept axis, or a summed one where there is none or where short rows make up too few of them. */
static void choose_rows(gm_sum_job *job)
{
    int k = best_rows(job->kept, job->kept_axes), s = best_rows(job->summed, job->summed_axes);
    int is_short = job->along.len * job->size < SHORT;

    if (k >= 0 && (s < 0 || !is_short || job->kept[k].len >= gm_least(FEW, job->summed[s].len))) {
        job->across = take(job->kept, &job->kept_axes, k);
    } else if (s >= 0) {
        job->across = take(job->summed, &job->summed_axes, s);
        job->collapse = 1;
    }
}

static void choose_form(gm_sum_job *job)
{
    gm_axis *kept = job->kept, *summed = job->summed;
    int k = closest(kept, job->kept_axes), s = closest(summed, job->summed_axes);

    job->across = (gm_axis){1, 0, 0};
    if (k >= 0 && distance(&kept[k]) < distance(&summed[s])) {
        int64_t gap = gap_of(job, llabs(kept[k].src), 1), few = kept[k].len < FEW;
        int64_t cols = (kept[k].len - 1) * gap + 1;
        job->form = gap ? GM_SUM_COLUMNS : few ? GM_SUM_PACK_RUN : GM_SUM_PACK_COLUMNS;
        job->across = take(kept, &job->kept_axes, k);
        job->col_gap = gm_most(gap, 1);
        job->row_gap = gap_of(job, summed[s].src, cols);
        job->along = summed[s];
        job->join = gap ? join_of(job) : 1;
        if (job->join > 1)
            job->form = GM_SUM_FOLD;
        else
            s = best_rows(summed, job->summed_axes);
        job->along = take(summed, &job->summed_axes, s);
        return;
    }

    job->along = take(summed, &job->summed_axes, s);
    job->col_gap = 1;
    job->row_gap = gap_of(job, job->along.src, 1);
    if (job->row_gap > 1 && job->along.len * job->along.src >= SHORT) {
        job->form = GM_SUM_FOLD;
        job->join = join_of(job);
        return;
    }
    job->form = job->row_gap == 1 ? GM_SUM_RUN : GM_SUM_PACK_RUN;
    choose_rows(job);
}

/* How much a piece covers. */
static void choose_blocks(gm_sum_job *job)
{
    int64_t across = job->across.len, along = job->along.len;
    int narrow = job->size < 8 && strchr("biu", gm_dtype_get(job->from)->kind) && along <= GM_SUM_FEW;
    int halves = job->from == GM_float16 && job->to == GM_float16 && along <= GM_SUM_FEW_HALVES;
    int64_t accs = (narrow || halves) && across >= PAST_RESULTS ? PAST_STRIP : NARROW_STRIP;
    int64_t strip = along < FEW_ROWS ? accs / (int64_t)sizeof(gm_acc) / job->parts : STRIP / job->size;

    switch (job->form) {
    case GM_SUM_RUN:
        job->along_block = gm_least(along, GM_SUM_ROW_BYTES / job->size);
        job->across_block = gm_most(1, gm_least(ROWS, SLAB / (job->along_block * job->size)));
        break;
    case GM_SUM_COLUMNS:
        strip = (strip - 1) / job->col_gap + 1;
        job->along_block = GM_SUM_ROWS;
        /* Strips of even width that begin on a line if the row does. */
        job->across_block = gm_least(strip, gm_pieces(gm_pieces(across, gm_pieces(across, strip)), LINE) * LINE);
        break;
    case GM_SUM_FOLD:
        job->along_block = GM_SUM_ROWS * job->join;
        job->across_block = across;
        break;
    case GM_SUM_PACK_RUN:
        job->along_block = gm_least(along, TILE);
        job->across_block = TILE / job->along_block;
        break;
    case GM_SUM_PACK_COLUMNS:
        job->across_block = gm_least(across, TILE_COLS);
        job->along_block = gm_least(GM_SUM_ROWS, TILE / job->across_block);
        break;
    }
    job->across_block = gm_least(job->across_block, across);
    job->along_block = gm_least(job->along_block, along);
    job->across_blocks = gm_pieces(across, job->across_block);
    job->along_blocks = gm_pieces(along, job->along_block);
}

/* What a thread takes at once, and how much it needs to work in. */
static void choose_units(gm_sum_job *job)
{
    job->groups = job->collapse ? 1 : job->across_blocks;
    job->pieces = job->along_blocks * (job->collapse ? job->across_blocks : 1);
    for (int i = 0; i < job->kept_axes; i++)
        job->groups *= job->kept[i].len;
    for (int i = 0; i < job->summed_axes; i++)
        job->pieces *= job->summed[i].len;

    int64_t cols = ((job->across_block - 1) * job->col_gap + 1) * job->parts;
    job->width = job->collapse ? job->parts : cols;
    int64_t group_bytes = job->bytes / job->groups,
            slab_bytes = gm_most(SLAB, WORTH_SLAB * job->width * (int64_t)sizeof(gm_acc));
    job->slabs = 1;
    if (job->groups < SLABS)
        job->slabs = gm_most(1, gm_least(gm_least(job->pieces, SLABS / job->groups), group_bytes / slab_bytes));
    job->slab = gm_pieces(job->pieces, job->slabs);
    job->slabs = gm_pieces(job->pieces, job->slab);
    job->unit = job->slabs > 1 ? 1 : gm_most(1, SLAB / gm_most(1, group_bytes));
    job->units = job->slabs > 1 ? job->groups * job->slabs : gm_pieces(job->groups, job->unit);

    /* A stack of sums, on top of it a piece that may be wider, and what the piece's form needs. */
    int levels = 1;
    while (job->slab >> levels)
        levels++;
    job->tile = 0;
    if (job->form == GM_SUM_FOLD)
        job->tile = 2 * job->join * job->row_gap * job->parts;
    else if (job->form == GM_SUM_PACK_RUN || job->form == GM_SUM_PACK_COLUMNS)
        job->tile = gm_pieces(job->across_block * job->along_block * job->size, sizeof(gm_acc));
    job->work = levels * job->width + gm_most(job->width, cols) + job->tile;
}

void gm_sum_cut(gm_sum_job *job, const gm_plan *plan, char *dst, gm_dtype to, const char *src, gm_dtype from)
{
    gm_sum_axes axes;

    gm_sum_axes_of(&axes, plan);
    job->from = from;
    job->to = to;
    job->size = plan->itemsize;
    job->parts = gm_sum_parts(from);
    job->src = src + plan->src_start;
    job->dst = dst + plan->dst_start;
    job->bytes = plan->items * plan->item;
    job->collapse = 0;
    job->kept_axes = axes.kept;
    job->summed_axes = axes.summed;
    memcpy(job->kept, axes.axis, (size_t)axes.kept * sizeof *axes.axis);
    memcpy(job->summed, axes.axis + axes.kept, (size_t)axes.summed * sizeof *axes.axis);
    if (axes.summed == 0)
        job->summed[job->summed_axes++] = (gm_axis){1, job->size, 0};

    choose_form(job);
    if (job->across.src < 0) {
        job->src += job->across.src * (job->across.len - 1);
        job->dst += job->across.dst * (job->across.len - 1);
        job->across.src = -job->across.src;
        job->across.dst = -job->across.dst;
    }
    choose_blocks(job);
    choose_units(job);
}
