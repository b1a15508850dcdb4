/* Which kernel a sum gets, and how it is cut into blocks. */
#include "../base/integers.h"
#include "sum.h"
#include "walk.h"
#include <stdlib.h>
#include <string.h>

enum {
    VECTOR = 16,
    WARP = 32,
    LANES_VECTORS = 4 * WARP, /* of the longest line that is a warp's */
    BLOCKS = 7,               /* that a multiprocessor is given, before what is summed is left in one piece */
    BLOCKS_DOWN = 4,          /* that it holds at once */
    FLAT_BLOCKS = 2,          /* and of so many threads, for one sum: each has a part to join */
    FLAT_THREADS = 512,
    RUN_EACH = 8, /* vectors of a line to a thread */
    RUN_LEAST = 64,
    CHUNK = 131072, /* bytes: blocks of one wave after the other read what lies together */
    CHUNKS = 4096,  /* slices of a few long lines */
    CHUNK_THREADS = 512,
    BUNCH = 256, /* chunks that leave one part: 2^28 floats 247.5 us on an H200, 250-253 with 1024-4096 chunks alone */
    CHUNK_LEAST = 16384,  /* of one line of many */
    ONCE_FROM = 24 << 20, /* bytes: a little more than the second-level cache is read past it */
    ONCE_BELOW = 192 << 20,
    PACKED = 2048, /* bytes of a line */
    ABOVE = 16,    /* threads above one another, at the most, where there are columns enough */
    SHORT = 2048,  /* bytes of a result that are not worth a block */
    FOLDED = 64,   /* columns of a matrix that is folded, at the most */
    FOLD_ACROSS = 64
};

enum { KEPT, SUMMED };

/* The axes of a sum in items as they lie in memory, and what is asked of them again and again. */
typedef struct gm_sum_view {
    int n[2];                     /* axes that are KEPT, SUMMED */
    gm_axis axis[2][GM_SUM_AXES]; /* outermost first */
    int64_t size;                 /* of an item */
    int64_t results, items;       /* items of each */
    uintptr_t start;
} gm_sum_view;

static int64_t power_from(int64_t n)
{
    int64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

static int is_complex(gm_dtype dtype)
{
    return gm_dtype_get(dtype)->kind == 'c';
}

static gm_dtype part_of(gm_dtype dtype)
{
    return dtype == GM_complex64 ? GM_float32 : dtype == GM_complex128 ? GM_float64 : dtype;
}

/* What the kernels of a type store without asking. */
static gm_dtype usual_of(gm_dtype from)
{
    char kind = gm_dtype_get(from)->kind;
    return kind == 'f' ? from : kind == 'u' ? GM_uint64 : GM_int64;
}

/* An axis inside all others that are kept; one with the last of them if it goes on where that steps. */
static void keep(gm_sum_view *view, gm_axis axis)
{
    gm_axis *last = view->n[KEPT] > 0 ? &view->axis[KEPT][view->n[KEPT] - 1] : NULL;
    if (last && last->src == axis.src * axis.len && last->dst == axis.dst * axis.len)
        *last = (gm_axis){last->len * axis.len, axis.src, axis.dst};
    else
        view->axis[KEPT][view->n[KEPT]++] = axis;
}

static void read_plan(gm_sum_view *view, const gm_plan *plan, gm_dtype to, gm_dtype from, const char *src)
{
    view->n[KEPT] = view->n[SUMMED] = 0;
    for (int i = 0; i < plan->naxes; i++) {
        int side = plan->axis[i].dst == 0 ? SUMMED : KEPT;
        view->axis[side][view->n[side]++] = plan->axis[i];
    }
    /* A planned copy moves runs; a sum must see the items in them, and the parts of those. */
    view->size = plan->itemsize;
    if (plan->item > plan->itemsize)
        keep(view, (gm_axis){plan->item / plan->itemsize, plan->itemsize, plan->itemsize});
    if (is_complex(from)) {
        view->size /= 2;
        keep(view, (gm_axis){2, view->size, gm_dtype_get(part_of(to))->bits / 8});
    }

    view->results = view->items = 1;
    for (int i = 0; i < view->n[KEPT]; i++)
        view->results *= view->axis[KEPT][i].len;
    for (int i = 0; i < view->n[SUMMED]; i++)
        view->items *= view->axis[SUMMED][i].len;
    view->start = (uintptr_t)src;
}

/* Whether items start at multiples of `bytes` whatever their index, but for those along one axis. */
static int steps_by(const gm_sum_view *view, int64_t bytes, const gm_axis *but)
{
    uint64_t bits = view->start;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < view->n[side]; i++)
            bits |= &view->axis[side][i] == but ? 0 : (uint64_t)view->axis[side][i].src;
    return bits % (uint64_t)bytes == 0;
}

/* The axis whose items follow one another, or NULL. */
static const gm_axis *contiguous(const gm_sum_view *view, int side)
{
    for (int i = view->n[side] - 1; i >= 0; i--)
        if (view->axis[side][i].src == view->size)
            return &view->axis[side][i];
    return NULL;
}

/* Tells the kernels of all axes but two; returns the product of the lengths of the summed ones. */
static int64_t hand_over(gm_sum_launch *made, const gm_sum_view *view, const gm_axis *but, const gm_axis *nor)
{
    gm_sum_axes *axes = &made->axes;
    int64_t product[2] = {1, 1};
    int n[2] = {0, 0};
    gm_walk_axis *next = axes->axis;

    for (int side = 0; side < 2; side++)
        for (int i = view->n[side] - 1; i >= 0; i--) {
            const gm_axis *axis = &view->axis[side][i];
            if (axis == but || axis == nor)
                continue;
            *next++ = gm_walk_axis_of(*axis);
            n[side]++;
            product[side] *= axis->len;
        }
    axes->kept = n[KEPT];
    axes->summed = n[SUMMED];
    axes->wide = product[KEPT] > INT32_MAX || product[SUMMED] > INT32_MAX;
    return product[SUMMED];
}

/* Cuts the lines, and what is inside them, into slices that make about `wanted` blocks with the groups. Lines: at least
 * so many to a slice; inside: so many slices at the most. */
static void cut(gm_sum_launch *made, int64_t groups, int64_t wanted, int64_t least_lines, int64_t most_inner)
{
    gm_sum *sum = &made->sum;
    int64_t need = gm_most(1, wanted / groups);
    int64_t outer = gm_most(1, gm_least(need, sum->lines / least_lines));

    sum->lines_each = gm_pieces(sum->lines, outer);
    outer = gm_pieces(sum->lines, sum->lines_each);
    sum->groups = (unsigned)groups;
    sum->inner_slices = (unsigned)gm_most(1, gm_least(need / outer, most_inner));
    sum->slices = (unsigned)outer * sum->inner_slices;
    made->blocks = groups * sum->slices;
}

/* ---- families ---- */

static void make_flat(gm_sum_launch *made, const gm_sum_view *view, int processors)
{
    gm_sum *sum = &made->sum;
    int64_t vectors = gm_pieces(sum->bytes, VECTOR);
    int large = vectors > (int64_t)processors * FLAT_BLOCKS * FLAT_THREADS * GM_SUM_IN_FLIGHT;

    if (sum->bytes >= ONCE_BELOW) {
        sum->chunk = gm_most(CHUNK, gm_pieces(gm_pieces(sum->bytes, BUNCH * BUNCH), CHUNK) * CHUNK);
        sum->slices = (unsigned)gm_pieces((int64_t)(view->start % VECTOR) + sum->bytes, sum->chunk);
        sum->bunch = BUNCH;
    } else
        sum->slices =
            (unsigned)gm_least(gm_most(1, vectors / ((large ? FLAT_THREADS : GM_SUM_THREADS) * GM_SUM_IN_FLIGHT)),
                               processors * FLAT_BLOCKS * (large ? 1 : FLAT_THREADS / GM_SUM_THREADS));

    made->kernel = sum->bytes >= ONCE_FROM && sum->bytes < ONCE_BELOW ? "sum_flat_once" : "sum_flat";
    made->threads = sum->chunk ? CHUNK_THREADS : large ? FLAT_THREADS : GM_SUM_THREADS;
    made->shared = made->threads / WARP * (unsigned)sizeof(double);
    sum->groups = 1;
    made->blocks = sum->slices;
    made->partials = made->blocks + (sum->bunch ? gm_pieces(made->blocks, BUNCH) : 0);
}

static int make_packed(gm_sum_launch *made, const gm_sum_view *view)
{
    gm_sum *sum = &made->sum;
    int64_t lanes = power_from(gm_pieces(sum->bytes, 64));

    if (view->n[KEPT] != 1 || view->axis[KEPT][0].src != sum->bytes || sum->bytes > PACKED)
        return 0;
    sum->share = (int)(GM_SUM_PACKED / sum->bytes);
    if (sum->share > GM_SUM_THREADS / lanes)
        sum->share -= sum->share % (int)(GM_SUM_THREADS / lanes);
    made->kernel = "sum_packed";
    made->threads = GM_SUM_THREADS;
    made->shared = GM_SUM_PACKED + 2 * VECTOR;
    made->blocks = gm_pieces(sum->columns, sum->share);
    sum->team_shift = __builtin_ctzll((unsigned long long)lanes);
    sum->result_step = view->axis[KEPT][0].dst;
    return 1;
}

static int make_lanes(gm_sum_launch *made, int even)
{
    gm_sum *sum = &made->sum;
    int deep = sum->inner > WARP;
    int64_t lanes = power_from(deep ? gm_pieces(sum->inner, GM_SUM_IN_FLIGHT) : sum->inner);
    static const char *const names[2][2] = {{"sum_lanes_1", "sum_lanes_4"}, {"sum_lanes_even_1", "sum_lanes_even_4"}};
    int64_t lines = GM_SUM_THREADS / lanes * (deep ? 1 : GM_SUM_IN_FLIGHT);

    made->kernel = names[even][deep];
    made->threads = GM_SUM_THREADS;
    made->shared = 0;
    made->blocks = gm_pieces(sum->columns, lines);
    sum->team_shift = __builtin_ctzll((unsigned long long)lanes);
    sum->slices = 1;
    return made->blocks <= INT32_MAX; /* one line may stand for any number, by steps of 0 */
}

static void make_run(gm_sum_launch *made, const gm_sum_view *view)
{
    gm_sum *sum = &made->sum;
    int64_t lanes = power_from(gm_pieces(sum->inner, sum->lines > 1 ? GM_SUM_IN_FLIGHT : RUN_EACH));
    int64_t threads = sum->lines > 1 ? GM_SUM_THREADS : gm_most(RUN_LEAST, gm_least(GM_SUM_THREADS, lanes));
    lanes = sum->lines > 1 ? gm_least(threads, lanes) : threads;

    made->kernel = "sum_run";
    made->threads = (unsigned)threads;
    made->shared = made->threads / WARP * (unsigned)sizeof(double);
    sum->team_shift = __builtin_ctzll((unsigned long long)lanes);
    cut(made, view->results, CHUNKS, threads / lanes, sum->bytes / CHUNK_LEAST);
    sum->chunk = gm_pieces(gm_pieces(sum->bytes + VECTOR, sum->inner_slices), VECTOR) * VECTOR;
    made->partials = made->blocks;
}

/* Along a contiguous summed axis. */
static int make_along(gm_sum_launch *made, const gm_sum_view *view, int processors)
{
    const gm_axis *along = contiguous(view, SUMMED);
    gm_sum *sum = &made->sum;

    if (!along)
        return 0;
    sum->bytes = along->len * view->size;
    sum->lines = hand_over(made, view, along, NULL);
    if (view->results == 1 && sum->lines == 1) {
        make_flat(made, view, processors);
        return 1;
    }
    int even = sum->bytes % VECTOR == 0 && steps_by(view, VECTOR, along);
    sum->inner = even ? sum->bytes / VECTOR : (sum->bytes + VECTOR - 2) / VECTOR + 1; /* from its last byte on */
    sum->columns = view->results;
    if (sum->lines == 1 && !even && make_packed(made, view))
        return 1;
    if (sum->lines == 1 && sum->inner <= LANES_VECTORS)
        return make_lanes(made, even);
    if (view->results > INT32_MAX || (view->results > 1 && sum->lines * sum->bytes < SHORT))
        return 0;
    make_run(made, view);
    return 1;
}

/* Rows of few columns, one behind the other, that no vector fits: several are one long row. */
static int fold(gm_sum_launch *made, const gm_sum_view *view, const gm_axis *columns, const gm_axis *rows, int width)
{
    gm_sum *sum = &made->sum;
    int64_t load = width * view->size, joined = width / gm_common(columns->len, width);

    if (columns->len > FOLDED || view->results > columns->len || sum->lines > 1 ||
        sum->step != columns->len * view->size || rows->len < 16 * joined * FOLD_ACROSS)
        return 0;
    joined *= gm_most(1, FOLD_ACROSS / (joined * columns->len / width));
    sum->folded = (int)columns->len;
    sum->head = (int)((load - (int64_t)(view->start % (uintptr_t)load)) % load / view->size);
    sum->columns = joined * columns->len;
    sum->step = sum->columns * view->size;
    sum->inner = (rows->len * columns->len - sum->head) / sum->columns;
    sum->rest = (int)((rows->len * columns->len - sum->head) % sum->columns);
    return 1;
}

/* Across a contiguous axis that is kept. */
static int make_down(gm_sum_launch *made, const gm_sum_view *view, const char *dst, int processors)
{
    const gm_axis *columns = contiguous(view, KEPT);
    const gm_axis *rows = view->n[SUMMED] ? &view->axis[SUMMED][view->n[SUMMED] - 1] : NULL;
    gm_sum *sum = &made->sum;

    if (!columns)
        return 0;
    int width = view->size > 4 ? 2 : GM_SUM_WIDTH;
    int64_t result = gm_dtype_get((gm_dtype)sum->to)->bits / 8;
    uint64_t places = (uint64_t)(uintptr_t)dst;
    for (int i = 0; i < view->n[KEPT]; i++)
        places |= &view->axis[KEPT][i] == columns ? 0 : (uint64_t)view->axis[KEPT][i].dst;
    int64_t outer = view->results / columns->len;
    sum->lines = hand_over(made, view, columns, rows);
    sum->inner = rows ? rows->len : 1;
    sum->step = rows ? rows->src : 0;
    sum->columns = columns->len;
    sum->result_step = columns->dst;
    if (columns->len % width || !steps_by(view, width * view->size, columns))
        if (!rows || !fold(made, view, columns, rows, width))
            width = 1;

    int64_t units = sum->columns / width, above = 1, depth = GM_SUM_ROWS(width * view->size);
    while (above < ABOVE && above * 2 * depth <= sum->inner &&
           outer * gm_pieces(units * above, GM_SUM_THREADS) < (int64_t)processors * BLOCKS)
        above *= 2;
    int64_t tiles = sum->folded ? 1 : gm_pieces(units, GM_SUM_THREADS / above), across = gm_pieces(units, tiles);
    int64_t along = gm_most(1, gm_least(GM_SUM_THREADS / across, sum->inner));
    if (outer * tiles > INT32_MAX)
        return 0;

    made->kernel = width == 1 ? "sum_down_one" : "sum_down";
    made->threads = (unsigned)(gm_pieces(across * along, WARP) * WARP);
    made->shared = (unsigned)(gm_most(across * along * width, made->threads) * (int64_t)sizeof(double));
    sum->across = (int)across;
    sum->along = (int)along;
    sum->tiles = (unsigned)tiles;
    sum->dense = sum->usual && sum->result_step == result && !(places % (uint64_t)gm_least(VECTOR, result * width));
    cut(made, outer * tiles, (int64_t)processors * BLOCKS_DOWN, 1, sum->inner / (along * depth));
    made->partials = made->blocks * (sum->folded ? sum->folded : across * width);
    return 1;
}

static int64_t smallest_step(const gm_sum_view *view, int side)
{
    int64_t step = INT64_MAX;
    for (int i = 0; i < view->n[side]; i++)
        if (view->axis[side][i].src)
            step = gm_least(step, llabs(view->axis[side][i].src));
    return step;
}

static void make_general(gm_sum_launch *made, const gm_sum_view *view, int processors)
{
    gm_sum *sum = &made->sum;
    int64_t across, along;

    hand_over(made, view, NULL, NULL);
    sum->along_first = smallest_step(view, SUMMED) < smallest_step(view, KEPT);
    if (sum->along_first) {
        along = gm_least(GM_SUM_THREADS, power_from(view->items));
        across = gm_least(GM_SUM_THREADS / along, view->results);
    } else {
        across = gm_least(GM_SUM_THREADS, view->results);
        along = gm_most(1, gm_least(GM_SUM_THREADS / across, view->items));
    }
    while (gm_pieces(view->results, across) > INT32_MAX && across < GM_SUM_THREADS) {
        along = gm_most(1, along / 2);
        across *= 2;
    }
    made->kernel = "sum_general";
    made->threads = (unsigned)(gm_pieces(across * along, WARP) * WARP);
    made->shared = made->threads * (unsigned)sizeof(double);
    sum->across = (int)across;
    sum->along = (int)along;
    sum->lines = 1;
    sum->inner = view->items;
    sum->columns = view->results;
    sum->bytewise = !steps_by(view, view->size, NULL);
    cut(made, gm_pieces(view->results, across), (int64_t)processors * BLOCKS, 1,
        sum->inner / (along * GM_SUM_IN_FLIGHT));
    made->partials = made->blocks * across;
}

void gm_sum_make(gm_sum_launch *made, const gm_plan *plan, const char *dst, gm_dtype to, const char *src, gm_dtype from,
                 int processors)
{
    gm_reach reach = gm_reach_of(plan);
    gm_sum_view view;

    read_plan(&view, plan, to, from, src);
    memset(&made->sum, 0, sizeof made->sum);
    made->type = part_of(from) == GM_uint64 ? GM_int64 : part_of(from);
    made->sum.to = is_complex(from) ? part_of(to) : to;
    made->sum.usual = made->sum.to == (int)usual_of(part_of(from));
    made->sum.is_unsigned = gm_dtype_get(from)->kind == 'u';
    made->sum.src_begin = (uintptr_t)src + (uint64_t)reach.low;
    made->sum.src_end = (uintptr_t)src + (uint64_t)reach.high;
    made->sum.tiles = made->sum.inner_slices = 1;
    made->partials = 0;
    if (!steps_by(&view, view.size, NULL) ||
        (!make_along(made, &view, processors) && !make_down(made, &view, dst, processors)))
        make_general(made, &view, processors);
    if (made->sum.slices == 1) /* each is a result */
        made->partials = 0;
}
