#include "../base/integers.h"
#include "tile_blocks.h"
#include "../base/memory.h"
#include "tile.h"
#include <stdlib.h>

/* Axes by number, the fastest first. */
typedef struct group {
    int n, axis[GM_MAX_NDIM];
} group;

/* The axes that step, one after the other, over a whole run along those before them. */
static void find_chain(const gm_blocks *b, int in_dst, group *chain)
{
    unsigned char used[GM_MAX_NDIM] = {0};
    int64_t run = b->item;

    chain->n = 0;
    for (int i = b->naxes - 1; i >= 0; i--)
        if (!used[i] && (in_dst ? b->axis[i].dst : b->axis[i].src) == run) {
            used[i] = 1;
            chain->axis[chain->n++] = i;
            run *= b->axis[i].len;
            i = b->naxes; /* look again from the innermost */
        }
}

/* About `wanted` of an axis, in a multiple of `unit`, so that what is left over is nothing, or enough to fill a tile:
 * with `inner` items for each step of the axis, at least `tile` of them. */
static int64_t part_of(int64_t len, int64_t wanted, int64_t unit, int64_t inner, int64_t tile)
{
    int64_t parts = (len + wanted / 2) / wanted;
    int64_t even = gm_least(((len + parts - 1) / parts + unit - 1) / unit * unit, len);
    for (int64_t i = 0; i < 8; i++) {
        int64_t extent = even + (i & 1 ? -(i + 1) / 2 : i / 2) * unit;
        if (extent > 0 && extent < len && (len % extent == 0 || len % extent * inner >= tile))
            return extent;
    }
    return even;
}

/* Extends the block until its runs along a chain have about `run` bytes. Cuts an axis into even parts, of whole tiles
 * where it is the tile's own. */
static void grow(gm_blocks *b, const group *chain, int64_t run)
{
    int64_t bytes = b->item;
    for (int k = 0; k < chain->n; k++) {
        gm_block_axis *axis = &b->axis[chain->axis[k]];
        int64_t wanted = bytes < run ? (run + bytes / 2) / bytes : 1, extent = axis->len;
        if (axis->len > wanted + wanted / 2) {
            extent =
                part_of(axis->len, wanted, k == 0 ? b->options.rows_step : 1, bytes / b->item, b->options.rows_step);
        }
        if (axis->extent < extent)
            axis->extent = extent;
        bytes *= axis->extent;
        if (axis->extent < axis->len)
            return;
    }
}

/* Ends the source's chain, once its runs are long enough, before an axis along which the destination goes on after a
 * few blocks: it would go on in other columns of the same block. */
static void part_chains(const gm_blocks *b, group *src, const group *dst)
{
    enum { ENOUGH = 256, FEW = 16 }; /* bytes, blocks */
    int64_t bytes = b->item;
    for (int k = 0; k < src->n; k++) {
        const gm_block_axis *axis = &b->axis[src->axis[k]];
        for (int i = 1; i < dst->n && bytes >= ENOUGH; i++)
            if (src->axis[k] == dst->axis[i] && axis->dst < FEW * b->options.dst_run) {
                src->n = k;
                return;
            }
        bytes *= axis->len;
    }
}

static int64_t bytes_of(const gm_blocks *b)
{
    int64_t bytes = b->item;
    for (int i = 0; i < b->naxes; i++)
        bytes *= b->axis[i].extent;
    return bytes;
}

/* Which axes of the block are rows, which columns: the chains' beginnings. An axis of both goes to the shorter group.
 */
static void choose_groups(gm_blocks *b, const group *dst, const group *src, group *rows, group *cols)
{
    enum { ENOUGH = 256, STAND_IN = 64 }; /* items */
    int64_t enough = b->options.panel ? INT64_MAX : ENOUGH;
    const group *chain[2] = {dst, src};
    group *to[2] = {rows, cols};
    int64_t items[2] = {1, 1};
    unsigned char used[GM_MAX_NDIM] = {0};
    int open[2] = {1, 1};

    rows->n = cols->n = 0;
    while (open[0] || open[1]) {
        int g = !open[0] || (open[1] && items[1] < items[0]);
        int i = to[g]->n < chain[g]->n ? chain[g]->axis[to[g]->n] : -1;
        open[g] = i >= 0 && !used[i] && b->axis[i].extent > 1 && items[g] < enough;
        if (!open[g])
            continue;
        used[i] = 1;
        to[g]->axis[to[g]->n++] = i;
        items[g] *= b->axis[i].extent;
        open[g] = b->axis[i].extent == b->axis[i].len;
    }
    for (int g = 0; g < 2; g++) {
        int best = -1;
        for (int i = b->naxes - 1; i >= 0 && to[g]->n == 0; i--)
            if (!used[i] && (best < 0 || (g == 0 ? b->axis[i].dst < b->axis[best].dst
                                                 : llabs(b->axis[i].src) < llabs(b->axis[best].src))))
                best = i;
        if (best < 0)
            continue;
        used[best] = 1;
        to[g]->axis[to[g]->n++] = best;
        if (b->axis[best].extent == 1)
            b->axis[best].extent = gm_least(b->axis[best].len, STAND_IN);
    }
    b->src_runs = cols->n == 0 || b->axis[cols->axis[0]].src == b->item;
    b->dst_runs = rows->n == 0 || b->axis[rows->axis[0]].dst == b->item;
}

/* The order of the loops over blocks: the destination's, but for the axis that is walked, which comes innermost. */
static void choose_walk(gm_blocks *b, const group *chain, group *rows, group *cols)
{
    int k = 0;
    while (k < chain->n && b->axis[chain->axis[k]].steps == 1)
        k++;
    if (k == chain->n)
        return;
    int from = chain->axis[k];
    gm_block_axis axis = b->axis[from];
    for (int i = from; i + 1 < b->naxes; i++)
        b->axis[i] = b->axis[i + 1];
    b->axis[b->naxes - 1] = axis;
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < (g ? cols : rows)->n; i++) {
            int *a = &(g ? cols : rows)->axis[i];
            *a = *a == from ? b->naxes - 1 : *a > from ? *a - 1 : *a;
        }
    if (b->options.walk_dst)
        b->walk = b->naxes - 1;
}

static int64_t extent_of(const gm_blocks *b, int i, int which)
{
    const gm_block_axis *axis = &b->axis[i];
    for (int s = 0; s < GM_SPLITS; s++)
        if (b->split[s] == i && which >> s & 1)
            return axis->len - (axis->steps - 1) * axis->extent;
    return axis->extent;
}

/* Some of a block's loops, the fastest first. */
typedef struct loops {
    int n;
    int64_t count, extent[GM_MAX_NDIM], src[GM_MAX_NDIM], out[GM_MAX_NDIM];
} loops;

static void add_loop(loops *l, int64_t extent, int64_t src, int64_t out)
{
    l->extent[l->n] = extent;
    l->src[l->n] = src;
    l->out[l->n++] = out;
    l->count *= extent;
}

/* The offsets of all combinations of the loops' indices. */
static void fill(int64_t *table, const loops *l, const int64_t *step)
{
    int64_t count = 1;
    table[0] = 0;
    for (int k = 0; k < l->n; count *= l->extent[k++])
        for (int64_t e = 1; e < l->extent[k]; e++)
            for (int64_t i = 0; i < count; i++)
                table[e * count + i] = table[i] + e * step[k];
}

/* Where each axis steps in a staged block's image: with the destination as far as that is contiguous, then from run to
 * run. Leaves those in `runs`. */
static void lay_out_image(gm_blocks *b, const group *rows, int which, int64_t *out, loops *runs)
{
    gm_block_shape *shape = &b->shape[which];
    int order[GM_MAX_NDIM], n = 0, scattered[GM_MAX_NDIM];
    int64_t run = b->item, in_rows[GM_MAX_NDIM] = {0};

    for (int k = 0; k < rows->n; k++) {
        out[rows->axis[k]] = run;
        run *= extent_of(b, rows->axis[k], which);
        in_rows[rows->axis[k]] = 1;
    }
    for (int i = 0; i < b->naxes; i++)
        if (!in_rows[i] && extent_of(b, i, which) > 1) {
            int j = n++;
            for (; j > 0 && b->axis[order[j - 1]].dst > b->axis[i].dst; j--)
                order[j] = order[j - 1];
            order[j] = i;
        }
    for (int k = 0; k < n; k++) {
        int i = order[k];
        if (b->axis[i].dst == run) {
            out[i] = run;
            run *= extent_of(b, i, which);
        } else {
            scattered[runs->n] = i;
            add_loop(runs, extent_of(b, i, which), 0, b->axis[i].dst);
        }
    }
    shape->runs = runs->count;
    shape->run_bytes = run;
    if (b->options.panel && which == 0) {
        int64_t count = 1;
        for (int k = 0; k < rows->n; k++)
            count *= extent_of(b, rows->axis[k], which);
        b->fused = run != count * b->item;
        run = count * b->item;
    }
    if (which == 0) {
        /* An odd number of lines from run to run: a tile's stores fall into different sets of the cache. */
        b->pitch = GM_STAGE_HEAD + ((run + 63) & -64);
        b->pitch += b->pitch & 64 ? 0 : 64;
        b->stage_bytes = b->pitch * runs->count;
    }
    for (int64_t k = 0, step = b->pitch; k < runs->n; step *= runs->extent[k++])
        out[scattered[k]] = step;
}

/* The tables of one shape, from `table` on. Returns their length in entries; with NULL it does no more. */
static int64_t make_shape(gm_blocks *b, const group *rows, const group *cols, int which, int64_t *table)
{
    gm_block_shape *shape = &b->shape[which];
    loops row = {.count = 1}, col = {.count = 1}, mat = {.count = 1}, runs = {.count = 1};
    int64_t out[GM_MAX_NDIM], step = b->options.rows_step;
    unsigned char in_group[GM_MAX_NDIM] = {0};

    lay_out_image(b, rows, which, out, &runs);
    if (!b->options.staged || b->options.panel)
        for (int i = 0; i < b->naxes; i++)
            out[i] = b->axis[i].dst;
    for (int g = 0; g < 2; g++)
        for (int k = 0; k < (g ? cols : rows)->n; k++) {
            int i = (g ? cols : rows)->axis[k];
            in_group[i] = 1;
            add_loop(g ? &col : &row, extent_of(b, i, which), b->axis[i].src, out[i]);
        }
    for (int i = b->naxes - 1; i >= 0; i--)
        if (!in_group[i] && extent_of(b, i, which) > 1)
            add_loop(&mat, extent_of(b, i, which), b->axis[i].src, out[i]);

    int64_t per_matrix = (row.count + step - 1) / step;
    shape->rows = row.count;
    shape->cols = col.count;
    shape->strips = per_matrix * mat.count;
    b->row_step = rows->n ? out[rows->axis[0]] : b->item;

    int64_t run = row.count * b->item, run_lines = run % 64 == 0 ? run / 64 : run / 64 / GM_LINES * GM_LINES;
    shape->run_lines = run_lines = b->options.panel ? run_lines : 0;
    int64_t entries = row.count + 2 * mat.count + shape->strips * (step + 1) + 2 * col.count + runs.count +
                      run_lines * (col.count + step);
    if (!table)
        return entries;
    int64_t *row_src = table, *mat_src = row_src + row.count, *mat_out = mat_src + mat.count;
    shape->row_src = mat_out + mat.count;
    shape->strip_out = shape->row_src + shape->strips * step;
    shape->col_src = shape->strip_out + shape->strips;
    shape->col_out = shape->col_src + col.count;
    shape->run_dst = shape->col_out + col.count;

    fill(row_src, &row, row.src);
    fill(mat_src, &mat, mat.src);
    fill(mat_out, &mat, mat.out);
    fill(shape->col_src, &col, col.src);
    fill(shape->col_out, &col, col.out);
    fill(shape->run_dst, &runs, runs.out);
    shape->line_dst = run_lines ? shape->run_dst + runs.count : NULL;
    shape->line_image = run_lines ? shape->line_dst + run_lines * col.count : NULL;
    for (int64_t i = 0; i < run_lines * col.count; i++)
        shape->line_dst[i] = shape->col_out[i / run_lines] + i % run_lines * 64;
    for (int64_t i = 0; i < run_lines * step; i++)
        shape->line_image[i] = i / run_lines * b->pitch + i % run_lines * 64;
    for (int64_t m = 0, s = 0; m < mat.count; m++)
        for (int64_t p = 0; p < per_matrix; p++, s++) {
            /* The last strip reaches back over its neighbour rather than past the last row. */
            int64_t first = p * step + step <= row.count ? p * step : row.count > step ? row.count - step : 0;
            for (int64_t r = 0; r < step; r++)
                shape->row_src[s * step + r] = mat_src[m] + row_src[gm_least(first + r, row.count - 1)];
            shape->strip_out[s] = mat_out[m] + first * b->row_step;
        }
    return entries;
}

gm_status gm_blocks_make(gm_blocks *b, const gm_plan *plan, const gm_block_options *options)
{
    enum { LEAST_BLOCK = 64 << 10, MOST_RUN = 64 << 10 }; /* bytes */
    group src, dst, rows, cols;

    b->options = *options;
    b->item = plan->item;
    b->naxes = plan->naxes;
    b->fused = 0;
    for (int i = 0; i < b->naxes; i++)
        b->axis[i] =
            (gm_block_axis){.len = plan->axis[i].len, .src = plan->axis[i].src, .dst = plan->axis[i].dst, .extent = 1};
    find_chain(b, 0, &src);
    find_chain(b, 1, &dst);
    if (options->apart)
        part_chains(b, &src, &dst);
    grow(b, &dst, options->dst_run);
    grow(b, &src, options->src_run);
    /* Chains that share their axes make a small block of long runs: lengthen them until it is worth its loops. */
    for (int64_t run = 2 * options->dst_run; !options->panel && run <= MOST_RUN && bytes_of(b) < LEAST_BLOCK;
         run *= 2) {
        grow(b, &dst, run);
        grow(b, &src, run);
    }
    choose_groups(b, &dst, &src, &rows, &cols);
    b->options.staged &= b->dst_runs;

    b->count = 1;
    for (int i = 0; i < b->naxes; i++) {
        gm_block_axis *axis = &b->axis[i];
        axis->steps = (axis->len + axis->extent - 1) / axis->extent;
        b->count *= axis->steps;
    }
    b->bytes = bytes_of(b);
    b->walk = -1;
    choose_walk(b, b->options.walk_dst ? &dst : &src, &rows, &cols);

    int splits = 0;
    for (int s = 0; s < GM_SPLITS; s++)
        b->split[s] = -1;
    for (int i = 0; i < b->naxes; i++)
        if (b->axis[i].len % b->axis[i].extent)
            b->split[splits++] = i;
    int shapes = b->shapes = 1 << splits;

    int64_t entries = 0;
    for (int which = 0; which < shapes; which++)
        entries += make_shape(b, &rows, &cols, which, NULL);
    b->memory = gm_alloc((size_t)entries * sizeof *b->memory);
    if (!b->memory)
        return GM_NO_MEMORY;
    entries = 0;
    for (int which = 0; which < shapes; which++)
        entries += make_shape(b, &rows, &cols, which, b->memory + entries);
    b->panels = 1;
    for (int which = 0; which < shapes; which++) {
        const gm_block_shape *shape = &b->shape[which];
        b->panels &= b->src_runs && b->dst_runs && shape->rows >= b->options.rows_step &&
                     shape->cols >= b->options.rows_step &&
                     shape->strips == (shape->rows + b->options.rows_step - 1) / b->options.rows_step;
    }
    if (b->shape[0].run_bytes < GM_STAGE_HEAD || b->fused)
        b->walk =
            -1; /* a block must end each line that it begins, or begins in the middle; and a run in the next block */
    return GM_OK;
}

void gm_blocks_free(gm_blocks *b)
{
    gm_free(b->memory);
}

int gm_lines_are_shared(const gm_plan *plan, int in_dst, const char *start)
{
    uintptr_t bits = (uintptr_t)start;
    int64_t run = plan->item;
    for (int i = plan->naxes - 1; i >= 0; i--) {
        int64_t step = in_dst ? plan->axis[i].dst : plan->axis[i].src;
        if (step == run && run < 64) {
            run *= plan->axis[i].len;
            i = plan->naxes; /* look again from the innermost */
        }
    }
    for (int i = 0; i < plan->naxes; i++) {
        int64_t step = in_dst ? plan->axis[i].dst : plan->axis[i].src;
        if (step >= run || step < 0)
            bits |= (uintptr_t)step;
    }
    return (bits & 63) != 0;
}
