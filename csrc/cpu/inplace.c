/* Swaps two axes of equal length inside one array.
 * Tiles on either side of the diagonal change places, so every byte is read once and written once, as in a copy. Within
 * the caches both go through scratch; past them they are exchanged block by block, one of them waiting in scratch.
 * Matrices smaller than a tile are taken many at a time, larger ones of which the second cache holds several one by
 * one, if they are many: transposed into scratch and copied back.
 *
 * Every thread begins with rows of tiles far from the others' (shares.h). Two threads on neighbouring ones moved 14
 * GB/s of 8-byte items where their cores have no cache in common, so 52; where they have one, 42 and 45. Panels that
 * stream out past the caches, as out of place, moved 32 and 33.
 * Tried and lost: fetches for writing, and a tournament of blocks in which no two threads ever meet in a page (both as
 * fast as without); longer rows of bytes. */
#include "../base/integers.h"
#include "cpu.h"
#include "isa.h"
#include "pool.h"
#include "shares.h"
#include "strided.h"
#include "thin_fill.h"
#include "tile.h"
#include "../base/memory.h"
#include <stdatomic.h>
#include <string.h>

enum { LINE = 64, SMALL_MATRIX = 4 << 10, BATCH = 4 << 10, SHARE = 256 << 10 }; /* bytes */
enum { AHEAD = 16 << 10 }; /* of small matrices: so far before they are read they are asked for */

typedef struct swap_job swap_job;

struct swap_job {
    char *data;
    const gm_thin_kernels *kernels;
    int64_t item, n, row, column; /* column: the smaller step where one is an item */
    int nouter;
    gm_axis outer[GM_MAX_NDIM]; /* len and src only */
    int log_size;               /* of the item, for the kernels of tiles; -1 where they do not apply */
    gm_pairs_fn *pairs;         /* where they can be exchanged */
    int64_t tile, pitch, tiles; /* items of a tile's side, bytes between its rows in scratch, tiles along an axis */
    gm_fill fill, rest;         /* small matrices: the batch axis is the split; `rest`: of what is no whole batch */
    gm_matrix_fn *whole;        /* larger ones that are transposed into scratch each */
    int64_t vector;             /* items of one of its */
    int64_t batch, batch_step;
    void (*swap)(const swap_job *job, int64_t unit, char *scratch);
    int64_t units, grain; /* how many of them a thread takes at once */
    char *scratch;
    int64_t scratch_bytes;
    gm_share *shares;
    int parts;
};

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
    return gm_least(job->n - i * job->tile, job->tile);
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

/* One row of tiles from the diagonal on, with their mirror images. */
static void swap_tiles(const swap_job *job, int64_t unit, char *scratch)
{
    int64_t i = unit % job->tiles, rows = side(job, i), down = job->tile * job->row, across = job->tile * job->column;
    char *upper = matrix(job, unit / job->tiles) + i * (down + across), *lower = upper,
         *other = scratch + job->tile * job->pitch;

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

enum { LEAST_ROW = 256 }; /* bytes, of a tile that is exchanged */

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

static void exchange_row(const swap_job *job, int64_t unit, char *scratch)
{
    int64_t first = unit % job->tiles * job->tile;
    char *corner = matrix(job, unit / job->tiles) + first * (job->row + job->item);
    exchange_tiles(job, corner, job->n - first, job->tile, scratch);
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

static void swap_one_whole(const swap_job *job, int64_t unit, char *scratch)
{
    swap_whole(job, matrix(job, unit), scratch, unit + 1 < job->units ? matrix(job, unit + 1) : NULL);
}

static void swap_one_batch(const swap_job *job, int64_t unit, char *scratch)
{
    int64_t len = job->outer[job->nouter - 1].len, pieces = gm_pieces(len, job->batch);
    int64_t first = unit % pieces * job->batch;
    swap_batch(job, matrix(job, unit / pieces * len + first), gm_least(len - first, job->batch), scratch);
}

static void body(void *ctx, int part)
{
    const swap_job *job = ctx;
    char *scratch = job->scratch + part * job->scratch_bytes;

    for (int64_t piece; (piece = gm_share_take(job->shares, job->parts, part)) >= 0;) {
        int64_t first = piece * job->grain, end = gm_least(first + job->grain, job->units);
        for (int64_t unit = first; unit < end; unit++)
            job->swap(job, unit, scratch);
    }
}

/* Tiles, with their mirror images, before a unit. */
static int64_t work_before(const swap_job *job, int64_t unit)
{
    int64_t n = job->tiles, i = unit % n;
    return unit / n * (n * (n + 1) / 2) + i * n - i * (i - 1) / 2;
}

/* Equal work for every thread. */
static void share_out(const swap_job *job)
{
    int64_t all = work_before(job, job->units), pieces = gm_pieces(job->units, job->grain), piece = 0;
    for (int p = 0; p < job->parts; p++) {
        int64_t first = piece;
        while (piece < pieces && work_before(job, piece * job->grain) * job->parts < all * (p + 1))
            piece++;
        gm_share_set(&job->shares[p], first, piece);
    }
}

/* The matrices of the innermost other axis, as many as fit a batch, through one kernel. */
static void plan_batches(swap_job *job, gm_shuffle *program)
{
    const gm_axis *inner = &job->outer[job->nouter - 1];
    int64_t row_bytes = job->n * job->item, matrix_bytes = job->n * row_bytes;
    int64_t period = LINE / gm_common(LINE, matrix_bytes); /* of these kernels take whole lines */

    job->swap = swap_one_batch;
    job->tiles = 1;
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
    job->units = gm_pieces(inner->len, job->batch);
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
    job->swap = swap_one_whole;
    job->whole = cpu->isa->tile->matrix[size];
    job->vector = cpu->isa->tile->vector / job->item;
    job->units = others;
    job->tiles = 1;
    job->scratch_bytes = matrix_bytes;
    return 1;
}

static void plan_tiles(swap_job *job)
{
    job->tile = job->item <= 2 ? 128 : job->item <= 4 ? 64 : 32;
    while (job->tile > 1 && job->tile * job->tile * job->item > 64 << 10)
        job->tile /= 2;
    job->swap = swap_tiles;
    job->log_size = -1;
    if (job->kernels && job->column == job->item)
        for (int k = 0; k < GM_TILE_SIZES; k++)
            if (INT64_C(1) << k == job->item)
                job->log_size = k;
}

static void count_tiles(swap_job *job)
{
    job->pitch = gm_pieces(job->tile * job->item, LINE) * LINE + LINE;
    job->tiles = gm_pieces(job->n, job->tile);
    job->units = job->tiles;
    for (int k = 0; k < job->nouter; k++)
        job->units *= job->outer[k].len;
    job->scratch_bytes = 2 * job->tile * job->pitch;
}

/* Whether a tile's rows fall into so few sets of the first cache that they evict one another before they are written.
 */
static int rows_collide(const swap_job *job)
{
    return job->item >= 4 && job->row % 2048 == 0;
}

/* Tiles that are exchanged: long rows are read faster, but few tiles leave too much to the corners. */
static void plan_pairs(swap_job *job, const gm_cpu *cpu)
{
    enum { LONGEST_ROW = 1 << 10, MANY = 32 };
    int64_t bytes = LONGEST_ROW;

    while (bytes > LEAST_ROW && bytes * MANY > job->n * job->item)
        bytes /= 2;
    if (job->log_size < 0 || job->n * job->item < 2 * bytes)
        return;
    job->swap = exchange_row;
    job->pairs = cpu->isa->tile->pairs[job->log_size];
    job->tile = bytes / job->item;
}

gm_status gm_cpu_swap_axes(const gm_cpu *cpu, const gm_array *array, int a, int b)
{
    swap_job job = {.data = array->data, .kernels = cpu->isa->thin, .item = array->itemsize, .n = array->shape[a]};
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

    job.parts = (int)gm_most(gm_least(atomic_load(&cpu->threads), total / GM_TILE_PART), 1);
    gm_shuffle *program = gm_alloc(sizeof *program);
    if (!program)
        return GM_NO_MEMORY;
    if (job.n * job.n * job.item < SMALL_MATRIX)
        plan_batches(&job, program);
    else if (!plan_whole(&job, cpu, job.parts)) {
        plan_tiles(&job);
        if (gm_goes_past(total, cpu->l3_bytes / 4) || rows_collide(&job))
            plan_pairs(&job, cpu);
        count_tiles(&job);
    }
    job.scratch_bytes = (job.scratch_bytes + 4095) / 4096 * 4096 + LINE;
    job.scratch = gm_alloc((size_t)job.parts * (sizeof *job.shares + (size_t)job.scratch_bytes));
    if (!job.scratch) {
        gm_free(program);
        return GM_NO_MEMORY;
    }
    job.shares = (gm_share *)(job.scratch + job.parts * job.scratch_bytes);
    job.grain = gm_least(1 + (int64_t)SHARE * job.units / total, gm_pieces(job.units, job.parts));
    share_out(&job);
    gm_parallel(job.parts, body, &job);
    gm_free(job.scratch);
    gm_free(program);
    return GM_OK;
}
