/* The box of axes for a tile: a few candidates for its length on either side, the best by a small model of the memory.
 *
 * The model: a run of r bytes costs r and a constant for what it shares with its neighbours or wastes; a tile costs its
 * bytes and a constant for its start and its end; tiles at the end of an axis do less work for the same start. */
#include "tile.h"
#include "walk.h"
#include <stdlib.h>
#include <string.h>

enum {
    MOST_AXES = GM_TILE_AXES,
    VECTOR = 16,
    MOST_IMAGE = 64 * 1024, /* three blocks of them fit a multiprocessor */
    MOST_PERIOD = 4096,
    MOST_RUNS = 1024,
    RUN_ENTRY = 16, /* sizeof(gm_tile_run) of the kernels */
};

typedef struct gm_box_axis {
    int64_t len, src, dst;
    int64_t take;       /* indices in a tile */
    int64_t image;      /* bytes from one index to the next in shared memory */
    int in_dst, in_src; /* part of the destination's run, of the source's */
    int in_run;         /* part of the run that a row is read as */
} gm_box_axis;

typedef struct gm_box {
    gm_box_axis axis[MOST_AXES]; /* by ascending dst step */
    int n, unit;
    double bytes;                         /* all that moves */
    int dst_chain[MOST_AXES], ndst_chain; /* axes that follow one another without a gap */
    int src_chain[MOST_AXES], nsrc_chain;
    int ndst, nsrc;    /* how many of each chain the tile takes */
    int along, across; /* the axes that are stepped along: -1 where all is taken whole */
    int src_aligned;   /* every row starts on a vector's boundary */
    int dst_aligned;   /* so does every run that is written */
    int dst_uniform;   /* or all at the same place in one */
} gm_box;

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int find_chains(gm_box *box)
{
    int n = 0, first = -1;

    for (int i = 0; i < box->n && (n == 0 ? box->axis[0].dst == box->unit
                                          : box->axis[i].dst == box->axis[i - 1].dst * box->axis[i - 1].len);
         i++)
        box->dst_chain[n++] = i;
    box->ndst_chain = n;

    /* A source that skips some bytes is read with them, as long as a sector holds several of its items. */
    for (int i = 0; i < box->n; i++)
        if (box->axis[i].src != 0 && llabs(box->axis[i].src) <= VECTOR &&
            (first < 0 || llabs(box->axis[i].src) < llabs(box->axis[first].src)))
            first = i;
    for (n = 0; first >= 0;) {
        int64_t next = llabs(box->axis[first].src) * box->axis[first].len;
        box->src_chain[n++] = first;
        first = -1;
        for (int i = 0; i < box->n; i++)
            if (llabs(box->axis[i].src) == next)
                first = i;
    }
    box->nsrc_chain = n;
    return box->ndst_chain > 0 && box->nsrc_chain > 0;
}

/* Takes axes of a chain until the run has `wanted` bytes; the last in equal steps of a multiple of `grain` bytes. */
static int64_t take(gm_box *box, const int *chain, int n, int64_t first, int64_t wanted, int64_t grain, int *taken,
                    int *stepped)
{
    int64_t run = first;

    *stepped = -1;
    *taken = 0;
    for (int k = 0; k < n && 4 * run < 3 * wanted; k++) {
        gm_box_axis *axis = &box->axis[chain[k]];
        *taken = k + 1;
        if (chain[k] == box->along) /* the destination's chain steps here */
            return run * axis->take;
        if (axis->take < axis->len) {
            if (run * axis->len > wanted + wanted / 2) {
                int64_t step = most(1, (wanted + run / 2) / run), multiple = grain / gcd(run, grain);
                int64_t tiles = most(1, (axis->len + step / 2) / step);
                step = (axis->len + tiles - 1) / tiles;
                step = round_up(most(step, 1), multiple);
                if (step < axis->len) {
                    axis->take = step;
                    *stepped = chain[k];
                    return run * step;
                }
            }
            axis->take = axis->len;
        }
        run *= axis->len;
    }
    return run;
}

static int64_t tiles_of(const gm_box_axis *axis)
{
    return (axis->len + axis->take - 1) / axis->take;
}

/* How much of the work of all tiles is work. */
static double use_of(const gm_box_axis *axis)
{
    return (double)axis->len / (double)(tiles_of(axis) * axis->take);
}

/* One candidate: dst runs of about `dst_wanted` bytes, src runs of about `src_wanted`. Its worth, 0 if impossible. */
static double try_box(gm_box *box, int64_t dst_wanted, int64_t src_wanted)
{
    enum { TILE_COST = 768, FEW_BLOCKS = 60 };
    int64_t bytes = box->unit, pitch;
    double worth;

    for (int i = 0; i < box->n; i++)
        box->axis[i].take = 1;
    box->along = -1;
    int64_t grain = dst_wanted >= 1024 ? 64 : dst_wanted >= 128 ? 32 : VECTOR, src_grain = box->src_aligned ? 32 : 1;
    int64_t dst_run = take(box, box->dst_chain, box->ndst_chain, box->unit, dst_wanted, grain, &box->ndst, &box->along);
    int64_t src_first = llabs(box->axis[box->src_chain[0]].src);
    int64_t src_run =
        take(box, box->src_chain, box->nsrc_chain, src_first, src_wanted, src_grain, &box->nsrc, &box->across);
    for (int i = 0; i < box->n; i++)
        bytes *= box->axis[i].take;
    pitch = bytes / box->unit * src_first;
    pitch += pitch / src_run * (box->src_aligned ? 8 : 40);
    if (pitch > MOST_IMAGE || bytes / dst_run > MOST_RUNS ||
        (box->ndst > 1 && dst_run / box->unit / (box->along < 0 ? 1 : box->axis[box->along].take) > MOST_PERIOD))
        return 0;
    double dst_cost = box->dst_aligned ? 16 : 48, src_cost = !box->src_aligned && box->dst_aligned ? 48 : 24;
    worth = (double)dst_run / (double)(dst_run + dst_cost) * (double)src_run / (double)(src_run + src_cost) *
            (double)bytes / (double)(bytes + TILE_COST);
    worth *= box->bytes / (box->bytes + FEW_BLOCKS * (double)bytes);
    if (box->along >= 0) {
        worth *= 0.5 + 0.5 * use_of(&box->axis[box->along]);
    }
    if (!box->dst_aligned) {
        /* More rows are read than written, and both ends of what is stepped along are stored unit by unit. */
        double whole = (double)dst_run;
        if (box->along >= 0) {
            whole *= (double)box->axis[box->along].len / (double)box->axis[box->along].take;
            worth *= 1 - 0.5 * VECTOR / (double)dst_run;
        }
        worth *= whole / (whole + 128.0 * VECTOR / 4 / box->unit);
    }
    if (box->across >= 0)
        worth *= 0.5 + 0.5 * use_of(&box->axis[box->across]);
    if (pitch > 24 * 1024)
        worth *= pitch > 40 * 1024 ? 0.9 : 0.97;
    if (box->ndst > 1) {
        int64_t period = dst_run / box->unit / (box->along < 0 ? 1 : box->axis[box->along].take);
        worth *= (double)bytes / (double)(bytes + 4 * period);
    }
    return worth;
}

/* The best of the candidates; 0 if there is none. */
static int choose_box(gm_box *box)
{
    static const int wanted[] = {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    enum { N = sizeof wanted / sizeof *wanted };
    double best = 0;
    int dst = 0, src = 0;

    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double worth = try_box(box, wanted[i], wanted[j]);
            if (worth > best) {
                best = worth;
                dst = wanted[i];
                src = wanted[j];
            }
        }
    if (best > 0)
        try_box(box, dst, src);
    return best > 0;
}

/* What is certain of alignment once the box is known; until then read_plan has guessed. */
static void settle_alignment(gm_box *box, const char *dst, const char *src, int64_t *ahead)
{
    int vector = VECTOR / box->unit;
    uint64_t src_bits = (uintptr_t)src, dst_bits = 0;
    int64_t units = 1;

    for (int k = 0; k < box->ndst; k++)
        units *= box->axis[box->dst_chain[k]].take;
    for (int i = 0; i < box->n; i++)
        if (!box->axis[i].in_dst)
            dst_bits |= (uint64_t)box->axis[i].dst;
    box->dst_uniform = dst_bits % VECTOR == 0;
    box->dst_aligned = (dst_bits | (uintptr_t)dst) % VECTOR == 0;
    *ahead = 0;
    if (!box->dst_aligned) {
        /* A run that starts inside a vector needs what comes before it. */
        int64_t period = units / box->axis[box->along].take;
        *ahead = (vector + period - 1) / period;
    }
    for (int i = 0; i < box->n; i++) {
        const gm_box_axis *axis = &box->axis[i];
        if (!axis->in_run)
            src_bits |= (uint64_t)axis->src;
        else if (axis->src < 0)
            src_bits |= 1;
        else if (axis->take < axis->len || i == box->along)
            src_bits |= (uint64_t)(axis->take < axis->len ? axis->take * axis->src : 0) |
                        (uint64_t)(i == box->along ? *ahead * axis->src : 0);
    }
    box->src_aligned = src_bits % VECTOR == 0;
}

static gm_tile_divisor divisor(int64_t n)
{
    gm_walk_axis made;
    gm_walk_divisor(&made, n);
    return (gm_tile_divisor){made.len, made.magic, made.shift};
}

static gm_tile_axis tile_axis(int64_t len, int64_t src, int64_t dst, int64_t image)
{
    gm_tile_divisor by = divisor(len);
    return (gm_tile_axis){by.n, by.magic, by.shift, (int)image, src, dst};
}

/* Which axes make the runs. The source's is read as one row up to the first axis of the destination's, if that is not
 * too soon: the pitch of that axis in shared memory is free then, to have its items on different banks. */
static void mark(gm_box *box)
{
    enum { SHORTEST_ROW = 64 };
    int64_t run = llabs(box->axis[box->src_chain[0]].src);

    for (int i = 0; i < box->n; i++)
        box->axis[i].in_dst = box->axis[i].in_src = box->axis[i].in_run = 0;
    for (int k = 0; k < box->ndst; k++)
        box->axis[box->dst_chain[k]].in_dst = 1;
    for (int k = 0, rows = 0; k < box->nsrc; k++) {
        gm_box_axis *axis = &box->axis[box->src_chain[k]];
        rows = rows || (k > 0 && box->src_chain[k] == box->dst_chain[0] && run >= SHORTEST_ROW &&
                        axis->src / box->unit % 2 == 0);
        axis->in_src = 1;
        axis->in_run = !rows;
        run *= axis->take;
    }
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
static int64_t lay_out(gm_box *box, gm_tile *tile, int64_t ahead, int vector, int64_t period)
{
    int64_t low = 0, high = 0, extent;
    int shift = 0, row[MOST_AXES], nrows = row_axes(box, row);

    while (1 << shift < vector)
        shift++;
    tile->skew_shift = 31;
    tile->group_shift = -1;
    for (int i = 0; i < box->n; i++) {
        gm_box_axis *axis = &box->axis[i];
        int64_t taken = axis->take + (i == box->along ? ahead : 0);
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
        extent = (round_up(box->axis[box->along].take + ahead, INT64_C(1) << shift) >> shift) *
                 ((box->axis[box->along].src << shift) + VECTOR);
    }
    tile->image_start = (int)round_up(-low, VECTOR); /* relative to the image, for now */
    for (int k = 0; k < nrows; k++) {
        gm_box_axis *axis = &box->axis[row[k]];
        int64_t taken = axis->take + (row[k] == box->along ? ahead : 0), skewed = 0;
        int64_t residue = ((axis->src % VECTOR) + VECTOR) % VECTOR;
        int64_t slack = residue ? 2 * VECTOR - 2 : box->src_aligned ? 0 : VECTOR - 1;
        int64_t pitch = round_up(extent + slack - residue, VECTOR) + residue;
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
    int64_t beyond = (vector + period - 1) / period * box->axis[box->along].image;
    if (beyond < 0)
        tile->image_start += (int)round_up(-beyond, VECTOR);
    return tile->image_start + extent + 4 * VECTOR + most(beyond, 0);
}

static void set_rows(gm_box *box, gm_tile *tile, int64_t ahead)
{
    int row[MOST_AXES], nrows = row_axes(box, row);

    tile->run_high = box->unit;
    tile->rows_fixed = 1;
    tile->rows_along = tile->rows_across = -1;
    for (int i = 0; i < box->n; i++) {
        const gm_box_axis *axis = &box->axis[i];
        int64_t steps = axis->take - 1 + (i == box->along ? ahead : 0);
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
            int64_t first = i == box->along ? ahead : 0, last = first + axis->take - 1;
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
        bytes += (axis->take - 1 + (tile->run_clipped == 2 ? ahead : 0)) * llabs(axis->src);
    }
    tile->row_vectors = divisor((bytes + (box->src_aligned ? 0 : VECTOR - 1) + VECTOR - 1) / VECTOR);
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

/* The grid: tiles along the destination first, since writes want neighbours; then across, then the axes outside. */
static int64_t set_grid(gm_box *box, gm_tile *tile)
{
    int64_t blocks = 1;
    int order[MOST_AXES], n = 0;

    if (tiles_of(&box->axis[box->along]) > 1)
        order[n++] = box->along;
    if (box->across >= 0)
        order[n++] = box->across;
    for (int i = 0; i < box->n; i++)
        if (i != box->along && i != box->across && box->axis[i].take < box->axis[i].len)
            order[n++] = i;
    tile->along_grid = tile->across_grid = -1;
    for (int k = 0; k < n; k++) {
        const gm_box_axis *axis = &box->axis[order[k]];
        int64_t tiles = tiles_of(axis);
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

static void set_along(gm_box *box, gm_tile *tile, int64_t ahead)
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
    tile->ahead = (int)ahead;
    tile->period = divisor(period);
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
    int each = box->dst_uniform || tile->nruns_axes != 1 ? 1 : (int)most(1, vector >> tile->lanes_shift);
    int whole_vectors = units / vector, share = among / each;
    int vectors = (int)most(1, whole_vectors < share ? whole_vectors : share);
    tile->steady = tile->steady_step = 0;
    if (tile->run_vectors > vectors) {
        /* A thread's next vector is whole periods further where that many threads are there. */
        int whole = period / (int)gcd(period, vector);
        if (whole <= share && whole_vectors > share)
            vectors = share / whole * whole;
        tile->steady = vectors * vector % period == 0 &&
                       (tile->skew_shift == 31 || period > 1 || vectors * vector % (1 << tile->skew_shift) == 0);
        tile->steady_step = tile->steady ? vectors * vector / period * tile->along_image : 0;
        if (tile->steady && period == 1 && tile->skew_shift < 31)
            tile->steady_step += vectors * vector >> tile->skew_shift << 4;
    }
    tile->teams = among / vectors / each * each;
    tile->vector_threads = divisor(vectors);
    return !box->dst_uniform && tile->nruns_axes > 0 &&
           (tile->nruns_axes > 1 || ((int64_t)tile->teams << tile->lanes_shift) * tile->runs[0].dst % VECTOR != 0);
}

static void read_plan(gm_box *box, gm_tile *tile, const gm_plan *plan, int unit, const char *dst, const char *src)
{
    int64_t src_bits = (int64_t)(uintptr_t)src, dst_bits = (int64_t)(uintptr_t)dst, low = 0, high = plan->item;

    box->n = 0;
    box->unit = unit;
    box->bytes = (double)plan->items * (double)plan->item;
    if (plan->item > unit)
        box->axis[box->n++] = (gm_box_axis){.len = plan->item / unit, .src = unit, .dst = unit};
    for (int i = plan->naxes - 1; i >= 0; i--) {
        const gm_axis *from = &plan->axis[i];
        box->axis[box->n++] = (gm_box_axis){.len = from->len, .src = from->src, .dst = from->dst};
        *(from->src > 0 ? &high : &low) += (from->len - 1) * from->src;
        if (llabs(from->src) >= VECTOR)
            src_bits |= from->src;
        if (from->dst >= VECTOR)
            dst_bits |= from->dst;
    }
    box->src_aligned = src_bits % VECTOR == 0;
    box->dst_aligned = dst_bits % VECTOR == 0;
    tile->src_begin = (uintptr_t)src + (uint64_t)low;
    tile->src_end = (uintptr_t)src + (uint64_t)high;
}

int gm_tile_make(gm_tile_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src,
                 int most_shared)
{
    gm_box box;
    gm_tile *tile = &launch->tile;
    int vector = VECTOR / unit;
    int64_t ahead;

    if (plan->naxes + 1 > MOST_AXES)
        return 0;
    memset(tile, 0, sizeof *tile);
    read_plan(&box, tile, plan, unit, dst, src);
    if (!find_chains(&box) || !choose_box(&box) || box.ndst > GM_TILE_CHAIN || box.nsrc > GM_TILE_CHAIN)
        return 0;
    if (box.along < 0) /* one step takes all of it */
        box.along = box.dst_chain[box.ndst - 1];
    mark(&box);
    settle_alignment(&box, dst, src, &ahead);

    int64_t units = 1, period, runs = 1;
    for (int k = 0; k < box.ndst; k++)
        units *= box.axis[box.dst_chain[k]].take;
    period = units / box.axis[box.along].take;
    int64_t image = lay_out(&box, tile, ahead, vector, period);

    set_rows(&box, tile, ahead);
    set_runs(&box, tile);
    set_along(&box, tile, ahead);
    int64_t blocks = set_grid(&box, tile);
    if (!blocks)
        return 0;
    for (int i = 0; i < box.n; i++)
        if (!box.axis[i].in_dst)
            runs *= box.axis[i].take;
    tile->run_vectors = (int)((units + (box.dst_aligned ? 0 : vector - 1) + vector - 1) / vector);
    launch->chain = period > 1;
    tile->table = (int)(runs * RUN_ENTRY);
    int64_t table = launch->chain ? (period + vector) * 33 / 32 + 2 : 0;
    tile->row_list = (int)round_up(tile->table + table * 4, RUN_ENTRY);
    int64_t rows = tile->rows_fixed * (tile->rows_along >= 0 ? box.axis[box.along].take + ahead : 1);
    int64_t start = round_up(tile->row_list + (tile->nrows_axes > 2 ? rows * RUN_ENTRY : 0), 128);
    tile->image_start += (int)start;
    launch->shared = (unsigned)(start + image);
    launch->blocks = (unsigned)blocks;
    launch->threads = units * runs * unit > 18 * 1024 ? 256 : 128;
    launch->ragged = set_threads(&box, tile, (int)launch->threads, (int)runs, (int)units, (int)period);
    return launch->shared <= (unsigned)most_shared;
}
