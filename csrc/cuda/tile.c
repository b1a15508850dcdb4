/* Lays a box of axes out for the tile kernels: what is read as rows, where they lie in shared memory, what is written.
 */
#include "../base/integers.h"
#include "tile.h"
#include "tile_box.h"
#include "walk.h"
#include <stdlib.h>
#include <string.h>

enum { VECTOR = GM_VECTOR, RUN_ENTRY = 16 /* sizeof(gm_tile_run) of the kernels */ };

static gm_tile_axis tile_axis(int64_t len, int64_t src, int64_t dst, int64_t image)
{
    gm_tile_axis made = {.image = (int)image, .src = src, .dst = dst};
    made.len = gm_divide_by(len, &made.magic, &made.shift);
    return made;
}

/* The axes in which the rows that are read differ: in the order of the destination, those that are clipped last. */
static int row_axes(const gm_box *box, int *row)
{
    int n = 0;

    for (int i = 0; i < box->n; i++)
        if (!box->axis[i].in_run && box->axis[i].take > 1 && i != box->along && i != box->across)
            row[n++] = i;
    if (box->across >= 0 && !box->axis[box->across].in_run)
        row[n++] = box->across;
    if (!box->axis[box->along].in_run)
        row[n++] = box->along;
    return n;
}

/* Rows lie in the image at places congruent to their addresses; returns the bytes of the whole image. */
static int64_t lay_out(gm_box *box, gm_tile *tile, int vector, int64_t period)
{
    int64_t low = 0, high = 0, extent;
    int shift = 0, row[GM_BOX_AXES], nrows = row_axes(box, row);

    while (1 << shift < vector)
        shift++;
    tile->skew_shift = 31;
    tile->group_shift = -1;
    for (int i = 0; i < box->n; i++) {
        gm_box_axis *axis = &box->axis[i];
        int64_t taken = axis->take + (i == box->along ? box->ahead : 0);
        if (!axis->in_run)
            continue;
        axis->image = axis->src;
        *(axis->src > 0 ? &high : &low) += (taken - 1) * axis->src;
    }
    extent = high - low + box->unit;
    if (box->ndst == 1 && box->src_chain[box->nsrc - 1] == box->along && box->axis[box->along].in_run &&
        box->axis[box->along].src > 0 && box->axis[box->along].src / box->unit % 2 == 0) {
        /* Lanes would read a column of an even pitch: 16 bytes are left free whenever it comes round to the first bank.
         */
        for (int64_t pitch = box->axis[box->along].src / box->unit; shift < 12 && pitch % 8; pitch *= 2)
            shift++;
        tile->group_shift = tile->skew_shift = shift;
        extent = (gm_round_up(box->axis[box->along].take + box->ahead, INT64_C(1) << shift) >> shift) *
                 ((box->axis[box->along].src << shift) + VECTOR);
    }
    tile->image_start = (int)gm_round_up(-low, VECTOR); /* relative to the image, for now */
    for (int k = 0; k < nrows; k++) {
        gm_box_axis *axis = &box->axis[row[k]];
        int64_t taken = axis->take + (row[k] == box->along ? box->ahead : 0), skewed = 0;
        int64_t residue = ((axis->src % VECTOR) + VECTOR) % VECTOR;
        int64_t slack = residue ? 2 * VECTOR - 2 : box->src_aligned ? 0 : VECTOR - 1;
        int64_t pitch = gm_round_up(extent + slack - residue, VECTOR) + residue;
        int lanes_across = !box->axis[box->src_chain[0]].in_dst;
        if (residue == 0 && pitch / VECTOR % 2 == 0 && (k > 0 || !lanes_across))
            pitch += VECTOR;
        if (k == 0 && row[k] == box->dst_chain[0] && (lanes_across ? pitch / box->unit % 2 == 0 : taken > vector)) {
            tile->skew_shift = shift;
            skewed = taken >> shift << 4;
        }
        axis->image = pitch;
        extent += (taken - 1) * pitch + skewed;
    }
    /* The last vector of a run is gathered whole, whatever is stored of it. */
    int64_t beyond = gm_pieces(vector, period) * box->axis[box->along].image;
    if (beyond < 0)
        tile->image_start += (int)gm_round_up(-beyond, VECTOR);
    return tile->image_start + extent + 4 * VECTOR + gm_most(beyond, 0);
}

static void set_rows(gm_box *box, gm_tile *tile)
{
    int row[GM_BOX_AXES], nrows = row_axes(box, row);

    tile->run_high = box->unit;
    tile->rows_fixed = 1;
    tile->rows_along = tile->rows_across = -1;
    for (int i = 0; i < box->n; i++) {
        const gm_box_axis *axis = &box->axis[i];
        int64_t steps = axis->take - 1 + (i == box->along ? box->ahead : 0);
        *(axis->src > 0 ? &tile->reach_high : &tile->reach_low) += steps * axis->src;
        if (!axis->in_run)
            continue;
        if (i == box->along && tile->group_shift >= 0) {
            int64_t group = axis->src << tile->group_shift;
            tile->run_high += (int)(group - axis->src);
            tile->rows[tile->nrows_axes++] = tile_axis(axis->take, group, 0, group + VECTOR);
        } else if (i == box->across || (i == box->along && axis->take < axis->len)) {
            tile->run_clipped = i == box->along ? 2 : 1;
            tile->run_src = (int)axis->src;
        } else {
            int64_t first = i == box->along ? box->ahead : 0, last = first + axis->take - 1;
            tile->run_low += (int)(axis->src > 0 ? first * axis->src : last * axis->src);
            tile->run_high += (int)(axis->src > 0 ? last * axis->src : first * axis->src);
        }
    }
    for (int k = 0; k < nrows; k++) {
        const gm_box_axis *axis = &box->axis[row[k]];
        if (row[k] == box->along)
            tile->rows_along = tile->nrows_axes;
        else
            tile->rows_fixed *= (int)axis->take;
        if (row[k] == box->across)
            tile->rows_across = tile->nrows_axes;
        tile->rows[tile->nrows_axes++] = tile_axis(axis->take, axis->src, 0, axis->image);
    }
    int64_t bytes = tile->run_high - tile->run_low;
    if (tile->run_clipped) {
        const gm_box_axis *axis = &box->axis[tile->run_clipped == 2 ? box->along : box->across];
        bytes += (axis->take - 1 + (tile->run_clipped == 2 ? box->ahead : 0)) * llabs(axis->src);
    }
    GM_DIVIDE_BY(&tile->row_vectors, gm_pieces(bytes + (box->src_aligned ? 0 : VECTOR - 1), VECTOR));
    /* Vectors may begin before and end behind what they are read for; the last group of rows may not be full. */
    tile->reach_high += box->unit + VECTOR + (tile->group_shift >= 0 ? tile->run_high : 0);
    tile->reach_low -= VECTOR;
}

static void set_runs(gm_box *box, gm_tile *tile)
{
    tile->runs_fixed = 1;
    for (int k = 0; k < box->nsrc; k++) {
        int i = box->src_chain[k];
        const gm_box_axis *axis = &box->axis[i];
        if (axis->in_dst || axis->take == 1)
            continue;
        tile->runs[tile->nruns_axes++] = tile_axis(axis->take, 0, axis->dst, axis->image);
        if (i == box->across)
            tile->runs_clipped = 1;
        else
            tile->runs_fixed *= (int)axis->take;
    }
}

/* Whether a long axis outside the box, such as the middle one where the two beside it change places, leads less far on
 * either side than the source does from one tile along to the next. */
static int is_near(const gm_box *box, int i)
{
    enum { LONG = 48 };
    const gm_box_axis *axis = &box->axis[i], *along = &box->axis[box->along];
    int64_t far = llabs(along->src) * along->take;
    return i != box->along && i != box->across && axis->take == 1 && axis->len >= LONG && llabs(axis->src) < far / 16 &&
           axis->dst < far / 16 && gm_box_tiles(along) > 1;
}

/* The grid: what is near on both sides; then tiles along the destination, since writes want neighbours; then across,
 * then the other axes outside. */
static int64_t set_grid(gm_box *box, gm_tile *tile)
{
    int64_t blocks = 1;
    int order[GM_BOX_AXES], n = 0;

    for (int i = 0; i < box->n; i++)
        if (is_near(box, i))
            order[n++] = i;
    if (gm_box_tiles(&box->axis[box->along]) > 1)
        order[n++] = box->along;
    if (box->across >= 0)
        order[n++] = box->across;
    for (int i = 0; i < box->n; i++)
        if (i != box->along && i != box->across && box->axis[i].take < box->axis[i].len && !is_near(box, i))
            order[n++] = i;
    tile->along_grid = tile->across_grid = -1;
    for (int k = 0; k < n; k++) {
        const gm_box_axis *axis = &box->axis[order[k]];
        int64_t tiles = gm_box_tiles(axis);
        if (order[k] == box->along)
            tile->along_grid = tile->ngrid;
        if (order[k] == box->across)
            tile->across_grid = tile->ngrid;
        if (tiles >= INT32_MAX || blocks > INT32_MAX / tiles)
            return 0;
        tile->grid[tile->ngrid++] = tile_axis(tiles, axis->take * axis->src, axis->take * axis->dst, 0);
        blocks *= tiles;
    }
    return blocks;
}

static void set_along(gm_box *box, gm_tile *tile)
{
    int last = box->along;
    int64_t period = 1;

    for (int k = 0; k < box->ndst && box->dst_chain[k] != last; k++) {
        const gm_box_axis *axis = &box->axis[box->dst_chain[k]];
        tile->period_axis[tile->chain++] = tile_axis(axis->take, 0, 0, axis->image);
        period *= axis->take;
    }
    tile->along_step = (int)box->axis[last].take;
    tile->along_len = box->axis[last].len;
    tile->along_src = box->axis[last].src;
    tile->along_image = (int)box->axis[last].image;
    tile->ahead = (int)box->ahead;
    GM_DIVIDE_BY(&tile->period, period);
    if (box->across >= 0) {
        tile->across_step = (int)box->axis[box->across].take;
        tile->across_len = box->axis[box->across].len;
    }
}

/* Who stores what: lanes side by side take neighbouring runs, which lie side by side in the image too. Of runs that do
 * not start at one place in a vector, a thread takes those that do. Whether some thread's runs are ragged still. */
static int set_threads(gm_box *box, gm_tile *tile, int threads, int runs, int units, int period)
{
    static const int shift_of[] = {[1] = 2, [2] = 2, [4] = 2, [8] = 1, [16] = 0};
    int vector = VECTOR / box->unit, first = box->src_chain[0], among;

    tile->lanes_shift = box->axis[first].in_dst ? 0 : shift_of[box->unit];
    while (tile->lanes_shift && runs < 1 << tile->lanes_shift)
        tile->lanes_shift--;
    among = threads >> tile->lanes_shift;
    int each = box->dst_uniform || tile->nruns_axes != 1 ? 1 : (int)gm_most(1, vector >> tile->lanes_shift);
    int whole_vectors = units / vector, share = among / each;
    int cycle = period / (int)gm_common((uint64_t)period, (uint64_t)vector); /* vectors that are whole periods */
    if (box->unit == 1 && each > 1 && runs > 1 && runs < vector && threads / runs >= cycle) {
        /* Fewer runs than would be dealt out so: each has a team of its own. */
        tile->lanes_shift = 0;
        share = threads / runs;
        each = 1;
        among = threads;
    }
    int vectors = (int)gm_most(1, gm_least(whole_vectors, share));
    tile->steady = tile->steady_step = 0;
    if (tile->run_vectors > vectors) {
        /* A thread's next vector is whole periods further where that many threads are there. */
        if (cycle <= share && whole_vectors > share)
            vectors = share / cycle * cycle;
        tile->steady = vectors * vector % period == 0 &&
                       (tile->skew_shift == 31 || period > 1 || vectors * vector % (1 << tile->skew_shift) == 0);
        tile->steady_step = tile->steady ? vectors * vector / period * tile->along_image : 0;
        if (tile->steady && period == 1 && tile->skew_shift < 31)
            tile->steady_step += vectors * vector >> tile->skew_shift << 4;
    }
    tile->teams = among / vectors / each * each;
    GM_DIVIDE_BY(&tile->vector_threads, vectors);
    return !box->dst_uniform && tile->nruns_axes > 0 && tile->teams << tile->lanes_shift < runs &&
           (tile->nruns_axes > 1 || ((int64_t)tile->teams << tile->lanes_shift) * tile->runs[0].dst % VECTOR != 0);
}

int gm_tile_make(gm_tile_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src,
                 int most_shared)
{
    enum { MOST_IMAGE = 64 * 1024 }; /* three blocks of them fit a multiprocessor of an H200 */
    gm_box box;
    gm_tile *tile = &launch->tile;
    gm_reach reach = gm_reach_of(plan);
    int vector = VECTOR / unit;
    int64_t units = 1, runs = 1, period, table, rows;

    if (!gm_box_choose(&box, plan, unit, dst, src, gm_least(MOST_IMAGE, most_shared / 4 * 3)))
        return 0;
    memset(tile, 0, sizeof *tile);
    tile->src_begin = (uintptr_t)src + (uint64_t)reach.low;
    tile->src_end = (uintptr_t)src + (uint64_t)reach.high;
    for (int i = 0; i < box.n; i++)
        *(box.axis[i].in_dst ? &units : &runs) *= box.axis[i].take;
    period = units / box.axis[box.along].take;
    int64_t image = lay_out(&box, tile, vector, period);
    set_rows(&box, tile);
    set_runs(&box, tile);
    set_along(&box, tile);
    int64_t blocks = set_grid(&box, tile);
    if (!blocks)
        return 0;

    tile->run_vectors = (int)gm_pieces(units + (box.dst_aligned ? 0 : vector - 1), vector);
    launch->chain = period > 1;
    tile->table = (int)(runs * RUN_ENTRY);
    table = launch->chain ? (period + vector) * 33 / 32 + 2 : 0;
    tile->row_list = (int)gm_round_up(tile->table + table * 4, RUN_ENTRY);
    rows = tile->nrows_axes > 2 ? tile->rows_fixed * (tile->rows_along >= 0 ? box.axis[box.along].take + box.ahead : 1)
                                : 0;
    int64_t start = gm_round_up(tile->row_list + rows * RUN_ENTRY, 128);
    tile->image_start += (int)start;
    launch->shared = (unsigned)(start + image);
    launch->blocks = (unsigned)blocks;
    int64_t bytes = units * runs * unit;
    launch->threads = bytes > 18 * 1024 ? 256 : bytes > 7 * 1024 ? 128 : 64;
    launch->ragged = set_threads(&box, tile, (int)launch->threads, (int)runs, (int)units, (int)period);
    gm_tile_turn(tile, unit);
    return launch->shared <= (unsigned)most_shared;
}
