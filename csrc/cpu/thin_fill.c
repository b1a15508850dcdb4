#include "../base/integers.h"
#include "thin_fill.h"
#include "strided.h"
#include <string.h>

enum {
    LINE = 64,
    LEAST_RUN = 4 * LINE, /* of shorter runs the last vector would be too much */
    SMALL_TURN = 1 << 10, /* bytes: of larger matrices one after the other is faster */
};

/* Cycles for 64 bytes, measured on Zen 4; only their ratio matters. */
enum { TERM_COST = 3, DENSE_TERM_COST = 2, VECTOR_COST = 2, TURN_COST = 9 };

/* Walks the loops, the innermost one through the kernel itself where its setting up would show. `chunks` is the count
 * of the loop along the chunk axis. Nothing here may load in one piece what was just stored in two: the processor would
 * have to wait until both stores have left its queue, and they stand there behind the streaming stores of the block
 * before. */
static void run_loops(const gm_fill *fill, char *dst, const char *src, int64_t n, int64_t chunks)
{
    int64_t index[GM_MAX_NDIM];
    const gm_fill_loop *loops = fill->loop;
    int turns = fill->kind == GM_FILL_TURN; /* a shuffle has no axes a and b: they are -1 */
    const gm_axis *a = &fill->axis[turns ? fill->a : 0], *b = &fill->axis[turns ? fill->b : 0];
    gm_turn turn = {.dst_pitch = a->dst,
                    .src_pitch = b->src,
                    .na = fill->a == fill->split_at ? n : a->len,
                    .nb = fill->b == fill->split_at ? n : b->len,
                    .count = 1};
    int outer = fill->nloops;
    if (!turns || turn.na * turn.nb * fill->item <= SMALL_TURN) {
        const gm_fill_loop *last = &loops[--outer];
        turn.count = last->axis == fill->chunk ? chunks : last->axis == fill->split_at ? n : last->count;
        turn.dst_step = last->dst;
        turn.src_step = last->src;
    }

    for (int i = 0; i < outer; i++)
        index[i] = 0;
    for (;;) {
        if (turns) {
            turn.dst = dst;
            turn.src = src;
            fill->kernels->turn[fill->log_size](&turn);
        } else {
            fill->kernels->shuffle(fill->program, dst, turn.dst_step, src, turn.src_step, turn.count);
        }
        int i = outer - 1;
        for (; i >= 0; i--) {
            const gm_fill_loop *l = &loops[i];
            int64_t count = l->axis == fill->chunk ? chunks : l->axis == fill->split_at ? n : l->count;
            dst += l->dst;
            src += l->src;
            if (++index[i] < count)
                break;
            dst -= l->dst * count;
            src -= l->src * count;
            index[i] = 0;
        }
        if (i < 0)
            return;
    }
}

void gm_fill_run(const gm_fill *fill, char *dst, const char *src, int64_t n)
{
    if (fill->kind == GM_FILL_ITEMS) {
        gm_axis axis[GM_MAX_NDIM];
        memcpy(axis, fill->axis, (size_t)fill->naxes * sizeof *axis);
        axis[fill->split_at].len = n;
        gm_copy_box(dst, src, fill->item, axis, fill->naxes);
        return;
    }
    if (fill->chunk < 0) {
        run_loops(fill, dst, src, n, 1);
        return;
    }
    const gm_axis *chunk = &fill->axis[fill->chunk];
    int64_t len = fill->chunk == fill->split_at ? n : chunk->len, rest = len % fill->chunk_len;
    run_loops(fill, dst, src, n, len / fill->chunk_len);
    /* What the chunks leave over is the last chunk once more, shifted: it overlaps what is already there. */
    if (rest)
        run_loops(fill, dst + (len - fill->chunk_len) * chunk->dst, src + (len - fill->chunk_len) * chunk->src, n, 1);
}

/* The loops round the kernel: the axes that it does not walk by itself, the longest innermost, which the kernel repeats
 * without a new call. */
static void list_loops(gm_fill *fill)
{
    int longest = 0;
    fill->nloops = 0;
    for (int k = 0; k < fill->naxes; k++) {
        const gm_axis *axis = &fill->axis[k];
        if (fill->kind == GM_FILL_TURN ? k == fill->a || k == fill->b : (int)(fill->whole >> k & 1))
            continue;
        int64_t by = k == fill->chunk ? fill->chunk_len : 1;
        fill->loop[fill->nloops] = (gm_fill_loop){axis->len / by, axis->src * by, axis->dst * by, k};
        if (fill->loop[fill->nloops].count > fill->loop[longest].count)
            longest = fill->nloops;
        fill->nloops++;
    }
    if (fill->nloops == 0)
        fill->loop[fill->nloops++] = (gm_fill_loop){1, 0, 0, GM_MAX_NDIM};
    gm_fill_loop innermost = fill->loop[longest];
    for (int i = longest; i < fill->nloops - 1; i++)
        fill->loop[i] = fill->loop[i + 1];
    fill->loop[fill->nloops - 1] = innermost;
}

/* The turn kernels take a block if one axis is contiguous on each side and both are long enough for them. */
static int choose_turn(gm_fill *fill)
{
    int64_t item = fill->item;
    fill->a = fill->b = -1;
    for (fill->log_size = 0; fill->log_size < 4 && INT64_C(1) << fill->log_size != item;)
        fill->log_size++;
    for (int k = 0; k < fill->naxes; k++) {
        if (fill->axis[k].src == item)
            fill->a = k;
        if (fill->axis[k].dst == item)
            fill->b = k;
    }
    return fill->log_size < 4 && fill->a >= 0 && fill->b >= 0 && fill->a != fill->b &&
           fill->axis[fill->a].len * item >= 16 && fill->axis[fill->b].len * item >= 16;
}

/* Blocks at an edge overlap their neighbours: the share of the work that is not done twice. */
static int64_t turn_cost(const gm_fill *fill)
{
    int64_t group = 16 / fill->item, na = fill->axis[fill->a].len, nb = fill->axis[fill->b].len;
    int64_t blocks = ((na + group - 1) / group) * ((nb + group - 1) / group);
    return TURN_COST * 100 * blocks * group * group / (na * nb);
}

/* A box that is whole vectors on both sides: the destination's innermost axes, and what lies between them in the
 * source. */
static int choose_dense(gm_fill *fill, gm_shuffle *program)
{
    int64_t bytes = fill->item, period = 0;
    gm_axis box[GM_MAX_NDIM];
    int n = 0, k;

    fill->whole = 0;
    fill->chunk = -1;
    while (fill->chunk < 0) {
        for (k = 0; k < fill->naxes && (fill->axis[k].dst != bytes || fill->whole >> k & 1);)
            k++;
        if (k == fill->naxes)
            break;
        period = LINE / gm_common(LINE, bytes);
        if (fill->axis[k].len >= period) {
            fill->chunk = k;
        } else {
            fill->whole |= UINT64_C(1) << k;
            bytes *= fill->axis[k].len;
        }
    }
    for (k = 0; k < fill->naxes; k++)
        if (fill->axis[k].src == fill->item && k != fill->chunk)
            fill->whole |= UINT64_C(1) << k;
    if (fill->whole >> fill->split_at & 1) /* a call brings more or less of it than the program would walk */
        return 0;
    for (;; period *= 2) {
        n = 0;
        for (k = 0; k < fill->naxes; k++) {
            if (!(fill->whole >> k & 1) && k != fill->chunk)
                continue;
            gm_axis axis = fill->axis[k];
            if (k == fill->chunk)
                axis.len = fill->chunk_len = period;
            int at = n++;
            for (; at > 0 && box[at - 1].dst < axis.dst; at--)
                box[at] = box[at - 1];
            box[at] = axis;
        }
        if (gm_shuffle_make_dense(program, fill->item, box, n))
            return 1;
        if (fill->chunk < 0 || period * 2 > fill->axis[fill->chunk].len || period >= 2 * LINE)
            return 0;
    }
}

/* Everything inside the split axis, if that is one run on either side. */
static int choose_run(gm_fill *fill, gm_shuffle *program)
{
    gm_axis box[GM_MAX_NDIM];
    int64_t bytes = fill->item;
    int n = 0;

    fill->whole = 0;
    fill->chunk = -1;
    for (int k = 0; k < fill->naxes; k++) {
        if (k == fill->split_at)
            continue;
        int at = n++;
        for (; at > 0 && box[at - 1].dst < fill->axis[k].dst; at--)
            box[at] = box[at - 1];
        box[at] = fill->axis[k];
        bytes *= fill->axis[k].len;
        fill->whole |= UINT64_C(1) << k;
    }
    return bytes >= LEAST_RUN && gm_shuffle_make_dense(program, fill->item, box, n);
}

/* Grows the program's box from the destination's innermost axis outwards until it fills whole vectors, or nearly. */
static int choose_shuffle(gm_fill *fill, gm_shuffle *program)
{
    const gm_thin_kernels *kernels = fill->kernels;
    int64_t bytes = fill->item;
    gm_axis box[GM_MAX_NDIM];
    int n = 0;

    if (!kernels->window)
        return 0;
    if (kernels->dense && (choose_dense(fill, program) || choose_run(fill, program)))
        return 1;
    fill->whole = 0;
    fill->chunk = -1;
    for (;;) {
        int k = 0;
        while (k < fill->naxes && (fill->axis[k].dst != bytes || fill->whole >> k & 1))
            k++;
        if (k == fill->naxes)
            break;
        gm_axis axis = fill->axis[k];
        int64_t period = LINE / gm_common(LINE, bytes), vectors = bytes * period / LINE;
        if (vectors > 8) /* fewer, not quite full vectors */
            for (int64_t p = 1; p < period; p++)
                if (bytes * p * 10 >= (bytes * p + LINE - 1) / LINE * LINE * 9) {
                    period = p;
                    break;
                }
        if (axis.len >= period) {
            fill->chunk = k;
            fill->chunk_len = axis.len = period;
        } else if (k == fill->split_at) { /* see choose_dense */
            return 0;
        } else {
            fill->whole |= UINT64_C(1) << k;
        }
        memmove(box + 1, box, (size_t)n++ * sizeof *box);
        box[0] = axis;
        bytes *= axis.len;
        if (fill->chunk >= 0 || bytes * 4 >= (bytes + LINE - 1) / LINE * LINE * 3)
            break;
    }
    return n > 0 && gm_shuffle_make(program, kernels->window, kernels->pair, fill->item, box, n);
}

static int64_t shuffle_cost(const gm_shuffle *program)
{
    int64_t bytes = 0;
    for (int i = 0; i < program->vectors; i++)
        bytes += program->vector[i].bytes;
    return (program->terms * (program->dense ? DENSE_TERM_COST : TERM_COST) + program->vectors * VECTOR_COST) * 100 *
           LINE / bytes;
}

void gm_fill_choose(gm_fill *fill, const gm_thin_kernels *kernels, gm_shuffle *program)
{
    fill->kernels = kernels;
    fill->program = program;
    fill->kind = GM_FILL_ITEMS;
    fill->a = fill->b = 0;
    fill->chunk = -1;
    if (!kernels)
        return;
    int shuffles = choose_shuffle(fill, program), turns = choose_turn(fill);
    if (shuffles && (!turns || shuffle_cost(program) <= turn_cost(fill)))
        fill->kind = GM_FILL_SHUFFLE;
    else if (turns)
        fill->kind = GM_FILL_TURN;
    if (fill->kind != GM_FILL_SHUFFLE)
        fill->chunk = -1;
    if (fill->kind != GM_FILL_TURN)
        fill->a = fill->b = 0; /* loops read them whatever the kind */
    list_loops(fill);
}

int64_t gm_fill_unit(const gm_fill *fill)
{
    if (fill->kind == GM_FILL_SHUFFLE && fill->chunk == fill->split_at)
        return fill->chunk_len;
    return fill->item < LINE ? LINE / fill->item : 1;
}
