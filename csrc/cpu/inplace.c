/* Swaps two axes of equal length inside one array.
 * Tiles on either side of the diagonal change places, so every byte is read once and written once, as in a copy. Past
 * the caches they are exchanged block by block, one of them waiting in scratch, where there are kernels for it; else
 * one is read into scratch, row by row, the other written in its stead, transposed, and the first written from scratch,
 * in panels of cpu/tile.h that write whole lines. Within the caches both tiles go through scratch.
 * Matrices smaller than a tile are taken many at a time, larger ones of which the second cache holds several one by
 * one, if they are many: transposed into scratch and copied back. */
#include "../base/integers.h"
#include "cpu.h"
#include "isa.h"
#include "pool.h"
#include "strided.h"
#include "thin_fill.h"
#include "tile.h"
#include "../base/memory.h"
#include <stdatomic.h>
#include <string.h>

enum { LINE = 64, SMALL_MATRIX = 4 << 10, BATCH = 4 << 10, SHARE = 256 << 10 }; /* bytes */
enum { AHEAD = 16 << 10 };               /* of small matrices: so far before they are read they are asked for */
enum { ROW = 2 << 10, LEAST_ROW = 256 }; /* of a tile past the caches */

typedef struct swap_job {
    char *data;
    const gm_thin_kernels *kernels;
    int64_t item, n, row, column; /* column: the smaller step where one is an item */
    int nouter;
    gm_axis outer[GM_MAX_NDIM]; /* len and src only */
    int log_size;               /* of the item, for the kernels of tiles; -1 where they do not apply */
    gm_panel_fn *panel;         /* NULL: tiles are written by ordinary stores */
    gm_pairs_fn *pairs;         /* where they can be exchanged, or NULL */
    int64_t vector, run;        /* items of a kernel's vector, and of a panel's runs */
    int64_t image_pitch;
    void (*fence)(void);            /* after a thread's last panel */
    int64_t *row_step;              /* of the array, from its first row to each of a tile */
    int64_t *line_dst, *line_image; /* as in gm_panel */
    int64_t tile, pitch, tiles;     /* items of a tile's side, bytes between its rows in scratch, tiles along an axis */
    gm_fill fill, rest;             /* small matrices: the batch axis is the split; `rest`: of what is no whole batch */
    gm_matrix_fn *whole;            /* larger ones that are transposed into scratch each, or NULL */
    int64_t batch, batch_step;
    char *scratch;
    int64_t scratch_bytes, units, grain;
    _Atomic int64_t next;
} swap_job;

static char *matrix(const swap_job *job, int64_t index)
{
    char *data = job->data;
    for (int k = job->nouter - 1; k >= 0; k--) {
        data += index % job->outer[k].len * job->outer[k].src;
        index /= job->outer[k].len;
    }
    return data;
}

static int64_t side(const swap_job *job, int64_t i)
{
    return job->n - i * job->tile < job->tile ? job->n - i * job->tile : job->tile;
}

/* Reads a tile into scratch, and asks for the rows of the tile that comes next. */
static void load(const swap_job *job, char *scratch, const char *tile, int64_t rows, int64_t columns,
                 const char *coming)
{
    if (job->column != job->item) {
        gm_axis axis[] = {{rows, job->row, job->pitch}, {columns, job->column, job->item}};
        gm_copy_box(scratch, tile, job->item, axis, 2);
        return;
    }
    int64_t bytes = columns * job->item;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t at = 0; coming && at < bytes; at += LINE)
            __builtin_prefetch(coming + i * job->row + at, 0, 2);
        memcpy(scratch + i * job->pitch, tile + i * job->row, (size_t)bytes);
    }
}

/* Writes the tile of `rows` x `columns` whose transpose stands in scratch. */
static void store(const swap_job *job, char *tile, const char *scratch, int64_t rows, int64_t columns)
{
    if (job->log_size >= 0 && job->log_size < 4 && rows * job->item >= 16 && columns * job->item >= 16) {
        job->kernels->turn[job->log_size](&(gm_turn){tile, scratch, job->row, job->pitch, rows, columns, .count = 1});
        return;
    }
    gm_axis axis[] = {{rows, job->item, job->row}, {columns, job->pitch, job->column}};
    gm_copy_box(tile, scratch, job->item, axis, 2);
}

/* What a thread works with: what panels need of scratch. */
typedef struct bench {
    char *image, *carry, *before;
    gm_left left;
} bench;

/* A tile that is to be read while others are written: its first item, and how many there are in a row. */
typedef struct next_tile {
    const char *tile, *mirror;
    int64_t columns;
} next_tile;

/* Writes the transpose of `rows` x `columns` items past the caches: panels of as many rows as make a run. Meanwhile the
 * rows of the panel that follows are fetched; or, where `next` is a tile, its rows, which then take the place of those
 * written. */
static void turn(const swap_job *job, bench *at, char *dst, char *src, int64_t pitch, int64_t rows, int64_t columns,
                 next_tile next)
{
    enum { MOST = 64 * GM_LINES };
    int64_t row_src[2 * MOST], n = job->vector;

    for (int64_t first = 0, now; first < rows; first += now) {
        int64_t rest = rows - first;
        now = rest <= job->run ? rest : rest - job->run < n ? job->run - n : job->run;
        for (int64_t i = 0; i < now; i += n) /* the last tiles reach back over their neighbours */
            for (int64_t r = 0; r < n; r++)
                row_src[i + r] = ((i + n <= now ? i : now - n) + r) * pitch;
        gm_panel panel = {
            .src = src + first * pitch,
            .dst = dst + first * job->item,
            .row_src = row_src,
            .col_dst = job->row_step,
            .rows = now,
            .cols = columns,
            .image = at->image,
            .pitch = job->image_pitch,
            .line_dst = job->line_dst,
            .line_image = job->line_image,
            .line_run = job->run * job->item,
            .carry = at->carry,
            .before = at->before,
            .continues = first > 0,
            .goes_on = now < rest,
            .left = &at->left,
            .lead = columns,
        };
        if (next.tile)
            panel.next = (gm_rows){next.tile + first * job->row, job->row_step, now, next.columns};
        else if (now < rest)
            panel.next = (gm_rows){panel.src + now * pitch, row_src, rest - now < now ? rest - now : now, columns};
        job->panel(&panel);
        if (next.tile)
            load(job, src + first * pitch, next.tile + first * job->row, now, next.columns,
                 now == rest ? next.mirror : NULL);
    }
}

/* Of a panel, in whole tiles. */
static int64_t most_rows(const swap_job *job)
{
    return job->run + job->vector;
}

/* One unit of work: the tiles of row `i` from the diagonal on, with their mirror images. */
static void swap_tiles(const swap_job *job, char *data, int64_t i, char *scratch)
{
    int64_t down = job->tile * job->row, across = job->tile * job->column, rows = side(job, i);
    char *upper = data + i * (down + across), *lower = upper, *other = scratch + job->tile * job->pitch;

    load(job, scratch, upper, rows, rows, NULL);
    store(job, upper, scratch, rows, rows);
    for (int64_t j = i + 1; j < job->tiles; j++) {
        int64_t columns = side(job, j);
        int more = j + 2 < job->tiles;
        upper += across;
        lower += down;
        load(job, scratch, upper, rows, columns, more ? upper + across : NULL);
        load(job, other, lower, columns, rows, more ? lower + down : NULL);
        store(job, upper, other, rows, columns);
        store(job, lower, scratch, columns, rows);
    }
}

/* The same past the caches. While a tile is written from scratch, the next one of the row is read into its place. */
static void stream_tiles(const swap_job *job, char *data, int64_t i, char *scratch)
{
    int64_t down = job->tile * job->row, across = job->tile * job->item, rows = side(job, i);
    char *upper = data + i * (down + across), *lower = upper;
    bench at = {.image = scratch + job->tile * job->pitch};

    at.carry = at.image + 2 * job->vector * job->image_pitch;
    at.before = at.carry + job->tile * LINE;
    load(job, scratch, upper, rows, rows, NULL);
    for (int64_t j = i; j < job->tiles; j++, upper += across, lower += down) {
        next_tile next = {NULL, NULL, 0};
        if (j + 1 < job->tiles)
            next = (next_tile){upper + across, lower + down, side(job, j + 1)};
        if (j > i)
            turn(job, &at, upper, lower, job->row, side(job, j), rows, (next_tile){NULL, NULL, 0});
        turn(job, &at, lower, scratch, job->pitch, rows, side(job, j), next);
    }
}

/* The same by exchange (square_kernels.inc.h): the tiles to the right of a corner of the diagonal against those below
 * it. What the corner itself holds goes by smaller tiles. */
static void exchange_tiles(const swap_job *job, char *corner, int64_t along, int64_t tile, char *scratch)
{
    int64_t n = gm_least(tile, along), smaller = tile / 4;

    if (smaller * job->item >= LEAST_ROW / 2) {
        for (int64_t i = 0; i < n; i += smaller)
            exchange_tiles(job, corner + i * (job->row + job->item), n - i, smaller, scratch);
    } else {
        load(job, scratch, corner, n, n, NULL);
        store(job, corner, scratch, n, n);
    }
    if (tile < along)
        job->pairs(&(gm_pairs){.upper = corner + tile * job->item,
                               .lower = corner + tile * job->row,
                               .row = job->row,
                               .side = tile,
                               .along = along - tile,
                               .scratch = scratch,
                               .pitch = job->pitch});
}

/* Asks for as many bytes of what comes next as have just been moved. */
static void ask(const char *next, int64_t from, int64_t to)
{
    for (int64_t at = from & -LINE; next && at < to; at += LINE)
        __builtin_prefetch(next + at, 0, 2);
}

/* A matrix through scratch, some columns at a time, and back. Its lines are still in the cache when they are written,
 * and those of the next one come in meanwhile: one half with either way. */
static void swap_whole(const swap_job *job, char *data, char *scratch, const char *next)
{
    enum { PIECE = 1 << 10 };
    const int64_t n = job->n, row = job->row, bytes = n * row, wide = job->vector;
    for (int64_t j = 0; j < n; j += wide) {
        int64_t col = gm_least(j, n - wide);
        job->whole(&(gm_matrix){data + col * job->item, scratch + col * row, n, wide, row, row});
        ask(next, j * row / 2, gm_least(j + wide, n) * row / 2);
    }
    for (int64_t at = 0, now; at < bytes; at += now) {
        now = gm_least(PIECE, bytes - at);
        memcpy(data + at, scratch + at, (size_t)now);
        ask(next, (bytes + at) / 2, (bytes + at + now) / 2);
    }
}

/* Few enough at a time that memory is busy with those that are asked for while the others are turned. */
static void swap_batch(const swap_job *job, char *data, int64_t n, char *scratch)
{
    enum { PIECE = 512 };
    int64_t matrix_bytes = job->n * job->n * job->item, row_bytes = job->n * job->item, bytes = n * matrix_bytes;
    gm_axis axis[] = {
        {n, matrix_bytes, job->batch_step}, {job->n, row_bytes, job->row}, {job->n, job->item, job->column}};

    gm_fill_run(n < job->batch ? &job->rest : &job->fill, scratch, data, n);
    if (job->column == job->item && job->row == row_bytes && job->batch_step == matrix_bytes)
        for (int64_t at = 0, now; at < bytes; at += now) {
            now = gm_least(PIECE, bytes - at);
            memcpy(data + at, scratch + at, (size_t)now);
            ask(data + AHEAD, at, at + now);
        }
    else if (job->column == job->item)
        gm_copy_box(data, scratch, row_bytes, axis, 2);
    else
        gm_copy_box(data, scratch, job->item, axis, 3);
}

static void body(void *ctx, int part)
{
    swap_job *job = ctx;
    char *scratch = job->scratch + part * job->scratch_bytes;

    for (int64_t begin; (begin = atomic_fetch_add(&job->next, job->grain)) < job->units;) {
        int64_t end = begin + job->grain < job->units ? begin + job->grain : job->units;
        for (int64_t unit = begin; unit < end; unit++) {
            if (job->whole) {
                swap_whole(job, matrix(job, unit), scratch, unit + 1 < job->units ? matrix(job, unit + 1) : NULL);
                continue;
            }
            if (!job->batch) {
                char *data = matrix(job, unit / job->tiles);
                int64_t i = unit % job->tiles, first = i * job->tile;
                if (job->pairs)
                    exchange_tiles(job, data + first * (job->row + job->item), job->n - first, job->tile, scratch);
                else
                    (job->panel ? stream_tiles : swap_tiles)(job, data, i, scratch);
                continue;
            }
            const gm_axis *axis = &job->outer[job->nouter - 1];
            int64_t pieces = (axis->len + job->batch - 1) / job->batch, first = unit % pieces * job->batch;
            int64_t n = axis->len - first < job->batch ? axis->len - first : job->batch;
            swap_batch(job, matrix(job, unit / pieces * axis->len + first), n, scratch);
        }
    }
    job->fence();
}

/* The matrices of the innermost other axis, as many as fit a batch, through one kernel. */
static void plan_batches(swap_job *job, gm_shuffle *program)
{
    const gm_axis *inner = &job->outer[job->nouter - 1];
    int64_t row_bytes = job->n * job->item, matrix_bytes = job->n * row_bytes;
    int64_t period = LINE / gm_common(LINE, matrix_bytes); /* of these kernels take whole lines */

    job->batch = gm_least(BATCH / matrix_bytes, inner->len);
    if (job->batch > period)
        job->batch -= job->batch % period;
    job->batch_step = inner->src;
    job->rest = (gm_fill){.item = job->item, .naxes = 3, .split_at = 0};
    job->rest.axis[0] = (gm_axis){job->batch, inner->src, matrix_bytes};
    job->rest.axis[1] = (gm_axis){job->n, job->column, row_bytes};
    job->rest.axis[2] = (gm_axis){job->n, job->row, job->item};
    job->fill = job->rest;
    gm_fill_choose(&job->fill, job->kernels, program);
    gm_fill_choose(&job->rest, NULL, NULL);
    job->units = (inner->len + job->batch - 1) / job->batch;
    for (int k = 0; k < job->nouter - 1; k++)
        job->units *= job->outer[k].len;
    job->scratch_bytes = job->batch * matrix_bytes;
}

/* Whether matrices are so many, dense, and of such a size that each goes through scratch as a whole. */
static int plan_whole(swap_job *job, const gm_cpu *cpu, int threads)
{
    int64_t matrix_bytes = job->n * job->n * job->item, others = 1;
    int size = gm_tile_size(job->item);
    for (int k = 0; k < job->nouter; k++)
        others *= job->outer[k].len;
    if (size < 0 || job->column != job->item || job->row != job->n * job->item || job->row < cpu->isa->tile->vector ||
        matrix_bytes > cpu->l2_bytes / 8 || others < 4 * threads)
        return 0;
    job->whole = cpu->isa->tile->matrix[size];
    job->vector = cpu->isa->tile->vector / job->item;
    job->units = others;
    job->scratch_bytes = matrix_bytes;
    return 1;
}

static void plan_tiles(swap_job *job)
{
    job->tile = job->item <= 2 ? 128 : job->item <= 4 ? 64 : 32;
    while (job->tile > 1 && job->tile * job->tile * job->item > 64 << 10)
        job->tile /= 2;
    job->log_size = -1;
    if (job->kernels && job->column == job->item)
        for (int k = 0; k < GM_TILE_SIZES; k++)
            if (INT64_C(1) << k == job->item)
                job->log_size = k;
}

static void count_tiles(swap_job *job)
{
    job->pitch = (job->tile * job->item + LINE - 1) / LINE * LINE + LINE;
    job->tiles = (job->n + job->tile - 1) / job->tile;
    job->units = job->tiles;
    for (int k = 0; k < job->nouter; k++)
        job->units *= job->outer[k].len;
    job->scratch_bytes = 2 * job->tile * job->pitch;
    if (job->panel)
        job->scratch_bytes =
            job->tile * (job->pitch + LINE) + 2 * job->vector * job->image_pitch + most_rows(job) * LINE;
}

/* Tiles that are exchanged: long rows are read faster, but few tiles leave too much to the corners. 0 if there are no
 * such kernels, or the matrix is too small. */
static int plan_pairs(swap_job *job, const gm_cpu *cpu)
{
    enum { LONGEST_ROW = 1 << 10, MANY = 32 };
    gm_pairs_fn *pairs = job->log_size < 0 ? NULL : cpu->isa->tile->pairs[job->log_size];
    int64_t bytes = LONGEST_ROW;

    while (bytes > LEAST_ROW && bytes * MANY > job->n * job->item)
        bytes /= 2;
    if (!pairs || job->n * job->item < 2 * bytes)
        return 0;
    job->pairs = pairs;
    job->tile = bytes / job->item;
    return 1;
}

/* Tiles past the caches: of rows that are long enough to be read at memory's speed, no more than the second cache
 * holds, and enough of them for every thread. */
static void plan_panels(swap_job *job, const gm_cpu *cpu, int threads)
{
    const gm_tile_kernels *kernels = cpu->isa->tile;
    int shifted = (((uintptr_t)job->data | (uintptr_t)job->row) & (LINE - 1)) != 0;

    if (job->log_size < 0)
        return;
    int64_t others = 1;
    for (int k = 0; k < job->nouter; k++) {
        others *= job->outer[k].len;
        shifted |= (job->outer[k].src & (LINE - 1)) != 0;
    }
    job->vector = kernels->vector / job->item;
    /* Scratch is dense: its rows do not collide. */
    int64_t lines = shifted || (job->item > 1 && job->item < 16) ? GM_LINES
                    : job->item == 1                             ? GM_LINES / 2
                                                                 : 2 * GM_LINES;
    job->run = LINE * lines / job->item;
    int64_t line = LINE / job->item, tile = gm_least(job->n, ROW / job->item), n = job->n;
    while (tile * tile * job->item > cpu->l2_bytes || (n / tile * others < 2 * threads && tile * job->item > LEAST_ROW))
        tile /= 2;
    if (tile < n) {
        tile -= tile % line;
        while (tile > line && n % tile && n % tile < job->vector) /* no tile may be smaller than a kernel's */
            tile -= line;
    }
    if (tile < job->vector || (n % tile && n % tile < job->vector))
        return;
    job->tile = tile;
    job->panel = kernels->panel[job->log_size];
    job->image_pitch = LINE * (lines + 1);
}

gm_status gm_cpu_swap_axes(const gm_cpu *cpu, const gm_array *array, int a, int b)
{
    swap_job job = {.data = array->data,
                    .kernels = cpu->isa->thin,
                    .fence = cpu->isa->tile->fence,
                    .item = array->itemsize,
                    .n = array->shape[a]};
    int64_t total = array->itemsize;

    for (int k = 0; k < array->ndim; k++) {
        total *= array->shape[k];
        if (k != a && k != b && array->shape[k] != 1)
            job.outer[job.nouter++] = (gm_axis){array->shape[k], array->strides[k], 0};
    }
    if (total == 0 || job.n < 2)
        return GM_OK;
    int swapped = array->strides[a] == job.item;
    job.row = array->strides[swapped ? b : a];
    job.column = array->strides[swapped ? a : b];
    if (job.nouter == 0)
        job.outer[job.nouter++] = (gm_axis){1, 0, 0};

    int parts = atomic_load(&cpu->threads);
    if (parts > total / (128 << 10) + 1)
        parts = (int)(total / (128 << 10) + 1);
    gm_shuffle *program = gm_alloc(sizeof *program);
    if (!program)
        return GM_NO_MEMORY;
    if (job.n * job.n * job.item < SMALL_MATRIX)
        plan_batches(&job, program);
    else if (!plan_whole(&job, cpu, parts)) {
        plan_tiles(&job);
        /* Ordinary stores are for one thread: where two have no cache in common they moved 8 to 14 GB/s, a quarter of
         * what panels do past the caches; where they have one, 45. */
        if (2 * total > cpu->l3_bytes / 2 && !(parts == 1 && plan_pairs(&job, cpu)))
            plan_panels(&job, cpu, parts);
        count_tiles(&job);
    }
    job.scratch_bytes = (job.scratch_bytes + 4095) / 4096 * 4096 + LINE;
    int64_t run_lines = job.panel ? job.run * job.item / LINE : 0;
    int64_t entries = job.tile + run_lines * (job.tile + job.vector);
    job.scratch = gm_alloc((size_t)(parts * job.scratch_bytes + entries * (int64_t)sizeof *job.row_step));
    if (!job.scratch) {
        gm_free(program);
        return GM_NO_MEMORY;
    }
    job.row_step = (int64_t *)(job.scratch + parts * job.scratch_bytes);
    for (int64_t i = 0; i < job.tile; i++)
        job.row_step[i] = i * job.row;
    job.line_dst = job.row_step + job.tile;
    job.line_image = job.line_dst + run_lines * job.tile;
    for (int64_t i = 0; i < run_lines * job.tile; i++)
        job.line_dst[i] = i / run_lines * job.row + i % run_lines * LINE;
    for (int64_t i = 0; i < run_lines * job.vector; i++)
        job.line_image[i] = i / run_lines * job.image_pitch + i % run_lines * LINE;
    job.grain = 1 + (int64_t)SHARE * job.units / total;
    if (job.grain > (job.units + parts - 1) / parts)
        job.grain = (job.units + parts - 1) / parts;
    gm_parallel(parts, body, &job);
    gm_free(job.scratch);
    gm_free(program);
    return GM_OK;
}
