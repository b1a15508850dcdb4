/* Cuts a sum into pieces: see sum_job.h. Looks at shape, strides and types alone, so that the order in which floats are
 * added does not depend on the machine. */
#include "sum_job.h"
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 64,
    FEW = 8,          /* rows that a kernel takes at once */
    SHORT = 512,      /* bytes of a row below which it pays to have many at once */
    SLAB = 256 << 10, /* bytes that are worth a trip to another thread */
    SLABS = 64,       /* that a lone group is cut into, where it has as many pieces */
    NARROW = 256,     /* accumulators; fewer columns than that are joined */
    JOIN = 128,       /* rows to a wide one, at most */
    JOINED = 512,     /* bytes of a wide one, at most: eight of them are a page */
    ROWS = 1024,      /* sums of rows that are finished at a time: their accumulators stay in L1 */
    TILE = 4096,      /* items gathered at a time */
    TILE_COLS = 512,
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t blocks_of(int64_t n, int64_t block)
{
    return (n + block - 1) / block;
}

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

/* Across: a kept axis, or a summed one where there is none or where short rows make up too few of them. */
static void choose_rows(gm_sum_job *job)
{
    int k = best_rows(job->kept, job->kept_axes), s = best_rows(job->summed, job->summed_axes);
    int is_short = job->along.len * job->size < SHORT;

    if (k >= 0 && (s < 0 || !is_short || job->kept[k].len >= least(FEW, job->summed[s].len))) {
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
        job->col_gap = most(gap, 1);
        job->row_gap = gap_of(job, summed[s].src, cols);
        if (gap && job->row_gap && job->row_gap * job->parts < NARROW)
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
        return;
    }
    job->form = job->row_gap == 1 ? GM_SUM_RUN : GM_SUM_PACK_RUN;
    choose_rows(job);
}

/* How much a piece covers. */
static void choose_blocks(gm_sum_job *job)
{
    int64_t most_results = GM_SUM_COLS / job->parts, across = job->across.len, along = job->along.len;

    switch (job->form) {
    case GM_SUM_RUN:
        job->along_block = least(along, SLAB / job->size);
        job->across_block = most(1, least(ROWS, SLAB / (job->along_block * job->size)));
        break;
    case GM_SUM_COLUMNS:
        most_results = (most_results - 1) / job->col_gap + 1;
        job->along_block = GM_SUM_ROWS;
        /* Strips of even width that begin on a line if the row does. */
        job->across_block =
            least(most_results, blocks_of(blocks_of(across, blocks_of(across, most_results)), LINE) * LINE);
        break;
    case GM_SUM_FOLD:
        job->join = JOIN;
        while (job->join > 1 && job->join * job->row_gap * job->size > JOINED)
            job->join /= 2;
        job->along_block = GM_SUM_ROWS * job->join;
        job->across_block = across;
        break;
    case GM_SUM_PACK_RUN:
        job->along_block = least(along, TILE);
        job->across_block = least(most_results, TILE / job->along_block);
        break;
    case GM_SUM_PACK_COLUMNS:
        job->across_block = least(across, TILE_COLS);
        job->along_block = least(GM_SUM_ROWS, TILE / job->across_block);
        break;
    }
    job->across_block = least(job->across_block, across);
    job->along_block = least(job->along_block, along);
    job->across_blocks = blocks_of(across, job->across_block);
    job->along_blocks = blocks_of(along, job->along_block);
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

    int64_t group_bytes = job->bytes / job->groups;
    job->slabs = 1;
    if (job->groups < SLABS)
        job->slabs = most(1, least(least(job->pieces, SLABS / job->groups), group_bytes / SLAB));
    job->slab = blocks_of(job->pieces, job->slabs);
    job->slabs = blocks_of(job->pieces, job->slab);
    job->unit = job->slabs > 1 ? 1 : most(1, SLAB / most(1, group_bytes));
    job->units = job->slabs > 1 ? job->groups * job->slabs : blocks_of(job->groups, job->unit);

    /* A stack of sums, on top of it a piece that may be wider, and what the piece's form needs. */
    int64_t cols = ((job->across_block - 1) * job->col_gap + 1) * job->parts;
    int levels = 1;
    while (job->slab >> levels)
        levels++;
    job->width = job->collapse ? job->parts : cols;
    job->tile = 0;
    if (job->form == GM_SUM_FOLD)
        job->tile = 2 * job->join * job->row_gap * job->parts;
    else if (job->form == GM_SUM_PACK_RUN || job->form == GM_SUM_PACK_COLUMNS)
        job->tile = blocks_of(job->across_block * job->along_block * job->size, sizeof(gm_acc));
    job->work = levels * job->width + most(job->width, cols) + job->tile;
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
