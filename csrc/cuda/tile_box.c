/* The choice of a box: a few candidates for its length on either side, the best by a small model of the memory.
 *
 * The model: a run of r bytes costs r and a constant for what it shares with its neighbours or wastes; a tile costs its
 * bytes and a constant for its start and its end; tiles at the end of an axis do less work for the same start. Its
 * constants were fitted to sweeps over some seventy shapes on an H200, where runs of 256 bytes on both sides in tiles
 * of 8 to 12 KB came out best (16 to 32 KB of single bytes, of which a tile has more work), and longer runs of the
 * destination where runs start inside a vector. */
#include "../base/integers.h"
#include "tile_box.h"
#include <stdlib.h>

enum { MOST_PERIOD = 4096, MOST_RUNS = 1024 };

/* The largest power of two that divides `n`, `grain` at the most. */
static int64_t grain_of(int64_t n, int64_t grain)
{
    int64_t lowest = n & -n;
    return lowest < grain ? lowest : grain;
}

int64_t gm_box_tiles(const gm_box_axis *axis)
{
    return gm_pieces(axis->len, axis->take);
}

/* How much of the work of all tiles is work. */
static double use_of(const gm_box_axis *axis)
{
    return 0.5 + 0.5 * (double)axis->len / (double)(gm_box_tiles(axis) * axis->take);
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
        if (box->axis[i].src != 0 && llabs(box->axis[i].src) <= GM_VECTOR &&
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

/* Takes axes of a chain until the run has about `wanted` bytes; the last in equal steps of a multiple of `grain` bytes,
 * a power of two. Returns the run. */
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
        if (axis->take < axis->len && run * axis->len > wanted + wanted / 2) {
            int64_t step = gm_most(1, (wanted + run / 2) / run), multiple = grain / grain_of(run, grain);
            int64_t tiles = gm_most(1, (axis->len + step / 2) / step);
            step = gm_pieces(gm_pieces(axis->len, tiles), multiple) * multiple;
            if (step < axis->len) {
                axis->take = step;
                *stepped = chain[k];
                return run * step;
            }
        }
        axis->take = axis->len;
        run *= axis->len;
    }
    return run;
}

/* What the destination's side of a candidate is worth. */
static double dst_worth(const gm_box *box, double run)
{
    double worth = run / (run + (box->dst_aligned ? 16 : 48)), whole = run;

    if (box->along >= 0) {
        const gm_box_axis *axis = &box->axis[box->along];
        worth *= use_of(axis);
        whole *= (double)axis->len / (double)axis->take;
    }
    if (!box->dst_aligned) {
        /* More rows are read than written, and both ends of what is stepped along are stored unit by unit. */
        if (box->along >= 0)
            worth *= 1 - 0.5 * GM_VECTOR / run;
        worth *= whole / (whole + 32.0 * GM_VECTOR / box->unit);
    }
    return worth;
}

/* A candidate's worth without that of the destination's side; 0 if it is impossible. */
static double src_worth(const gm_box *box, int64_t dst_run, int64_t src_first, int64_t src_run)
{
    double tile_cost = box->unit == 1 ? 1200 : 768, few_blocks = box->unit == 1 ? 60 : 120;
    int64_t units = 1, period = box->ndst > 1 ? dst_run / box->unit : 0;

    for (int k = 0; k < box->ndst; k++)
        units *= box->axis[box->dst_chain[k]].take;
    for (int k = 0; k < box->nsrc; k++) {
        int i = box->src_chain[k], shared = 0;
        for (int j = 0; j < box->ndst; j++)
            shared |= box->dst_chain[j] == i;
        units *= shared ? 1 : box->axis[i].take;
    }
    if (box->ndst > 1 && box->along >= 0)
        period /= box->axis[box->along].take;
    int64_t bytes = units * box->unit, image = units * src_first;
    image += image / src_run * (box->src_aligned ? 8 : 40);
    if (image > box->most_image || bytes / dst_run > MOST_RUNS || period > MOST_PERIOD)
        return 0;
    double worth = (double)src_run / (double)(src_run + (!box->src_aligned && box->dst_aligned ? 48 : 24)) *
                   (double)bytes / ((double)bytes + tile_cost + 4.0 * (double)period) * box->bytes /
                   (box->bytes + few_blocks * (double)bytes);
    if (box->across >= 0)
        worth *= use_of(&box->axis[box->across]);
    return worth * (image > 40 * 1024 ? 0.85 : image > 24 * 1024 ? 0.9 : image > 14 * 1024 ? 0.93 : 1);
}

/* Takes what makes runs of about so many bytes on either side. */
static int64_t take_dst(gm_box *box, int64_t wanted)
{
    for (int k = 0; k < box->n; k++)
        box->axis[k].take = 1;
    box->along = -1;
    return take(box, box->dst_chain, box->ndst_chain, box->unit, wanted,
                wanted >= 1024  ? 64
                : wanted >= 128 ? 32
                                : GM_VECTOR,
                &box->ndst, &box->along);
}

static int64_t take_src(gm_box *box, int64_t first, int64_t wanted)
{
    return take(box, box->src_chain, box->nsrc_chain, first, wanted, box->src_aligned ? 32 : 1, &box->nsrc,
                &box->across);
}

/* The best of the candidates; 0 if there is none. */
static int choose(gm_box *box)
{
    static const int dst_wanted[] = {32, 64, 128, 256, 512, 2048, 8192, 16384},
                     src_wanted[] = {32, 128, 256, 512, 2048};
    enum { NDST = sizeof dst_wanted / sizeof *dst_wanted, NSRC = sizeof src_wanted / sizeof *src_wanted };
    int64_t first = llabs(box->axis[box->src_chain[0]].src), taken[GM_BOX_AXES];
    double best = 0;
    int dst = 0, src = 0;

    for (int i = 0; i < NDST; i++) {
        int64_t dst_run = take_dst(box, dst_wanted[i]);
        double half = dst_worth(box, (double)dst_run);
        for (int k = 0; k < box->nsrc_chain; k++)
            taken[k] = box->axis[box->src_chain[k]].take;
        for (int j = 0; j < NSRC && half > best; j++) {
            for (int k = 0; k < box->nsrc_chain; k++)
                box->axis[box->src_chain[k]].take = taken[k];
            int64_t src_run = take_src(box, first, src_wanted[j]);
            double worth = half * src_worth(box, dst_run, first, src_run);
            if (worth > best) {
                best = worth;
                dst = dst_wanted[i];
                src = src_wanted[j];
            }
        }
    }
    if (best > 0) {
        take_dst(box, dst);
        take_src(box, first, src);
    }
    return best > 0;
}

/* Which axes make the runs. The source's is read as one row up to the first axis of the destination's, if that is not
 * too soon: the pitch of that axis in shared memory is free then, to have its items on different banks. */
static void mark(gm_box *box)
{
    enum { SHORTEST_ROW = 64 };
    int64_t run = llabs(box->axis[box->src_chain[0]].src);

    for (int i = 0; i < box->n; i++)
        box->axis[i].in_dst = box->axis[i].in_run = 0;
    for (int k = 0; k < box->ndst; k++)
        box->axis[box->dst_chain[k]].in_dst = 1;
    for (int k = 0, rows = 0; k < box->nsrc; k++) {
        gm_box_axis *axis = &box->axis[box->src_chain[k]];
        rows = rows || (k > 0 && box->src_chain[k] == box->dst_chain[0] && run >= SHORTEST_ROW &&
                        axis->src / box->unit % 2 == 0);
        axis->in_run = !rows;
        run *= axis->take;
    }
}

/* What is certain of alignment once the box is known; until then read_plan has guessed. */
static void settle_alignment(gm_box *box, const char *dst, const char *src)
{
    int vector = GM_VECTOR / box->unit;
    uint64_t src_bits = (uintptr_t)src, dst_bits = 0;
    int64_t units = 1;

    for (int k = 0; k < box->ndst; k++)
        units *= box->axis[box->dst_chain[k]].take;
    for (int i = 0; i < box->n; i++)
        if (!box->axis[i].in_dst)
            dst_bits |= (uint64_t)box->axis[i].dst;
    box->dst_uniform = dst_bits % GM_VECTOR == 0;
    box->dst_aligned = (dst_bits | (uintptr_t)dst) % GM_VECTOR == 0;
    box->ahead = 0;
    if (!box->dst_aligned) {
        /* A run that starts inside a vector needs what comes before it. */
        int64_t period = units / box->axis[box->along].take;
        box->ahead = gm_pieces(vector, period);
    }
    for (int i = 0; i < box->n; i++) {
        const gm_box_axis *axis = &box->axis[i];
        if (!axis->in_run)
            src_bits |= (uint64_t)axis->src;
        else if (axis->src < 0)
            src_bits |= 1;
        else if (axis->take < axis->len || i == box->along)
            src_bits |= (uint64_t)(axis->take < axis->len ? axis->take * axis->src : 0) |
                        (uint64_t)(i == box->along ? box->ahead * axis->src : 0);
    }
    box->src_aligned = src_bits % GM_VECTOR == 0;
}

static void read_plan(gm_box *box, const gm_plan *plan, int unit, const char *dst, const char *src)
{
    uint64_t src_bits = (uintptr_t)src, dst_bits = (uintptr_t)dst;

    box->n = 0;
    box->unit = unit;
    box->bytes = (double)plan->items * (double)plan->item;
    if (plan->item > unit)
        box->axis[box->n++] = (gm_box_axis){.len = plan->item / unit, .src = unit, .dst = unit};
    for (int i = plan->naxes - 1; i >= 0; i--) {
        const gm_axis *from = &plan->axis[i];
        box->axis[box->n++] = (gm_box_axis){.len = from->len, .src = from->src, .dst = from->dst};
        src_bits |= llabs(from->src) >= GM_VECTOR ? (uint64_t)from->src : 0;
        dst_bits |= from->dst >= GM_VECTOR ? (uint64_t)from->dst : 0;
    }
    box->src_aligned = src_bits % GM_VECTOR == 0;
    box->dst_aligned = dst_bits % GM_VECTOR == 0;
}

int gm_box_choose(gm_box *box, const gm_plan *plan, int unit, const char *dst, const char *src, int64_t most_image)
{
    if (plan->naxes + 1 > GM_BOX_AXES)
        return 0;
    box->most_image = most_image;
    read_plan(box, plan, unit, dst, src);
    if (!find_chains(box) || !choose(box) || box->ndst > GM_TILE_CHAIN || box->nsrc > GM_TILE_CHAIN)
        return 0;
    if (box->along < 0) /* one step takes all of it */
        box->along = box->dst_chain[box->ndst - 1];
    mark(box);
    settle_alignment(box, dst, src);
    return 1;
}
