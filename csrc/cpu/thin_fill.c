#include "thin_fill.h"
#include "strided.h"
#include <string.h>

enum { LINE = 64 };

/* Cycles for 64 bytes, measured on Zen 4; only their ratio matters. */
enum { TERM_COST = 3, DENSE_TERM_COST = 2, VECTOR_COST = 2, TURN_COST = 9 };

typedef struct loop {
    int64_t count, src, dst;
} loop;

static void run_loops(const gm_fill *fill, const loop *loops, int n, char *dst, const char *src, int64_t na, int64_t nb)
{
    int64_t index[GM_MAX_NDIM] = {0};

    for (;;) {
        int i = n - 1;
        if (fill->kind == GM_FILL_TURN) {
            fill->kernels->turn[fill->log_size](dst, fill->axis[fill->a].dst, src, fill->axis[fill->b].src, na, nb);
        } else {
            fill->kernels->shuffle(fill->program, dst, loops[i].dst, src, loops[i].src, loops[i].count);
            i--;
        }
        for (; i >= 0; i--) {
            dst += loops[i].dst;
            src += loops[i].src;
            if (++index[i] < loops[i].count)
                break;
            dst -= loops[i].dst * loops[i].count;
            src -= loops[i].src * loops[i].count;
            index[i] = 0;
        }
        if (i < 0)
            return;
    }
}

void gm_fill_run(const gm_fill *fill, char *dst, const char *src, int64_t n)
{
    gm_axis axis[GM_MAX_NDIM];
    loop loops[GM_MAX_NDIM + 1];
    int count = 0, longest = 0;

    memcpy(axis, fill->axis, (size_t)fill->naxes * sizeof *axis);
    axis[fill->split_at].len = n;
    if (fill->kind == GM_FILL_ITEMS) {
        gm_copy_box(dst, src, fill->item, axis, fill->naxes);
        return;
    }
    for (int k = 0; k < fill->naxes; k++) {
        int walked = fill->kind == GM_FILL_TURN ? k == fill->a || k == fill->b : (int)(fill->whole >> k & 1);
        if (walked)
            continue;
        loops[count] = (loop){axis[k].len, axis[k].src, axis[k].dst};
        if (fill->kind == GM_FILL_SHUFFLE && k == fill->chunk)
            loops[count] =
                (loop){axis[k].len / fill->chunk_len, axis[k].src * fill->chunk_len, axis[k].dst * fill->chunk_len};
        if (loops[count].count > loops[longest].count)
            longest = count;
        count++;
    }
    if (fill->kind == GM_FILL_TURN) {
        run_loops(fill, loops, count, dst, src, axis[fill->a].len, axis[fill->b].len);
        return;
    }
    if (count == 0)
        loops[count++] = (loop){1, 0, 0};
    loop inner = loops[longest];
    loops[longest] = loops[count - 1];
    loops[count - 1] = inner;
    run_loops(fill, loops, count, dst, src, 0, 0);
    if (fill->chunk < 0 || axis[fill->chunk].len % fill->chunk_len == 0)
        return;

    /* What the chunks leave over is the last chunk once more, shifted: it overlaps what is already there. */
    const gm_axis *chunk = &axis[fill->chunk];
    int64_t back = chunk->len - fill->chunk_len;
    int rest = 0;
    for (int k = 0; k < fill->naxes; k++)
        if (!(fill->whole >> k & 1) && k != fill->chunk)
            loops[rest++] = (loop){axis[k].len, axis[k].src, axis[k].dst};
    if (rest == 0)
        loops[rest++] = (loop){1, 0, 0};
    run_loops(fill, loops, rest, dst + back * chunk->dst, src + back * chunk->src, 0, 0);
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

static int64_t common(int64_t a, int64_t b)
{
    return b ? common(b, a % b) : a;
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
        period = LINE / common(LINE, bytes);
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

/* Grows the program's box from the destination's innermost axis outwards until it fills whole vectors, or nearly. */
static int choose_shuffle(gm_fill *fill, gm_shuffle *program)
{
    const gm_thin_kernels *kernels = fill->kernels;
    int64_t bytes = fill->item;
    gm_axis box[GM_MAX_NDIM];
    int n = 0;

    if (!kernels->window)
        return 0;
    if (kernels->dense && choose_dense(fill, program))
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
        int64_t period = LINE / common(LINE, bytes), vectors = bytes * period / LINE;
        if (vectors > 8) /* fewer, not quite full vectors */
            for (int64_t p = 1; p < period; p++)
                if (bytes * p * 10 >= (bytes * p + LINE - 1) / LINE * LINE * 9) {
                    period = p;
                    break;
                }
        if (axis.len >= period) {
            fill->chunk = k;
            fill->chunk_len = axis.len = period;
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
    if (!kernels)
        return;
    int shuffles = choose_shuffle(fill, program), turns = choose_turn(fill);
    if (shuffles && (!turns || shuffle_cost(program) <= turn_cost(fill)))
        fill->kind = GM_FILL_SHUFFLE;
    else if (turns)
        fill->kind = GM_FILL_TURN;
}

int64_t gm_fill_unit(const gm_fill *fill)
{
    if (fill->kind == GM_FILL_SHUFFLE && fill->chunk == fill->split_at)
        return fill->chunk_len;
    return fill->item < LINE ? LINE / fill->item : 1;
}
