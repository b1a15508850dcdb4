/* Finds matrices of short columns, and cuts tiles to them. */
#include "fit.h"
#include "../base/integers.h"
#include "walk.h"
#include <stdlib.h>
#include <string.h>

enum { VECTOR = 16, SECTOR = 32 };

/* A plan as matrices, and which of its axes are spoken for. */
typedef enum gm_fit_role { FREE, ALONG, ACROSS } gm_fit_role;

typedef struct gm_fit_shape {
    const gm_plan *plan;
    int unit;
    const gm_axis *rows;    /* along a column, whose items follow one another in the destination */
    const gm_axis *columns; /* the first of those along a row of the source */
    const gm_axis *above;   /* where columns go on behind the rows, or NULL */
    int64_t tall, wide;     /* vectors of a column without what is above; columns that follow one another */
    unsigned char role[GM_MAX_NDIM];
} gm_fit_shape;

/* The free axis with that step in the source; -1 without one. */
static int find(const gm_fit_shape *shape, int64_t src)
{
    for (int i = shape->plan->naxes - 1; i >= 0; i--)
        if (shape->role[i] == FREE && shape->plan->axis[i].src == src)
            return i;
    return -1;
}

static int append(gm_fit *fit, gm_fit_shape *shape, int i)
{
    const gm_axis *axis = &shape->plan->axis[i];
    if (fit->ncolumn == GM_FIT_COLUMN_AXES || axis->len > INT32_MAX / (int64_t)fit->columns)
        return 0;
    fit->column[fit->ncolumn++] = gm_walk_axis_of(*axis);
    fit->columns *= (unsigned)axis->len;
    shape->role[i] = ACROSS;
    return 1;
}

/* Columns of 4-byte items that do not follow one another: the axis along which they go on, if the rows of the source
 * are better taken whole than in parts of 256 bytes; otherwise -1. */
static int find_above(const gm_plan *plan, int unit, int64_t column_bytes, int64_t row_bytes)
{
    enum { PART = 256, MOST = 512 };

    if (unit != 4 || 2 * column_bytes > PART || row_bytes <= PART || row_bytes > MOST || row_bytes % VECTOR)
        return -1;
    for (int i = plan->naxes - 2; i >= 0; i--)
        if (plan->axis[i].dst == column_bytes && llabs(plan->axis[i].src) <= INT32_MAX)
            return i;
    return -1;
}

/* Finds the matrices, whose columns become `fit`'s. */
static int read_plan(gm_fit_shape *shape, gm_fit *fit, const gm_plan *plan, int unit)
{
    const gm_axis *rows = &plan->axis[plan->naxes - 1];
    int above = -1, items = VECTOR / unit;

    if (plan->item != unit || unit > 8 || plan->naxes < 2 || rows->dst != unit || rows->len % items ||
        rows->len > INT32_MAX / unit || llabs(rows->src) > INT32_MAX / items)
        return 0;
    *shape = (gm_fit_shape){.plan = plan, .unit = unit, .rows = rows, .tall = rows->len / items};
    int next = find(shape, unit);
    if (next < 0)
        return 0;
    shape->columns = &plan->axis[next];
    if (shape->columns->dst != rows->len * unit &&
        (above = find_above(plan, unit, rows->len * unit, shape->columns->len * unit)) < 0)
        return 0;
    shape->role[plan->naxes - 1] = ALONG;
    if (above >= 0) {
        shape->above = &plan->axis[above];
        shape->role[above] = ALONG;
    }
    memset(fit, 0, sizeof *fit);
    for (fit->columns = 1; next >= 0 && append(fit, shape, next);)
        next = find(shape, (int64_t)fit->columns * unit);
    shape->wide = fit->columns;
    return 1;
}

/* Whether every step but those along rows of the source and columns of the destination leads to whole vectors. */
static int is_aligned(const gm_fit_shape *shape, const char *dst, const char *src)
{
    uint64_t bits = (uintptr_t)dst | (uintptr_t)src | (uint64_t)(shape->wide * shape->unit);

    for (int i = 0; i < shape->plan->naxes; i++) {
        const gm_axis *axis = &shape->plan->axis[i];
        bits |= shape->role[i] == ACROSS ? 0 : (uint64_t)axis->src;
        bits |= axis == shape->rows ? 0 : (uint64_t)axis->dst;
    }
    return bits % VECTOR == 0;
}

/* A length in equal parts of no more than `most`, multiples of `grain`. */
static int64_t part_of(int64_t len, int64_t most, int64_t grain)
{
    int64_t parts = gm_pieces(len, gm_most(most / grain * grain, grain));
    return gm_least((int64_t)gm_round_up((uint64_t)gm_pieces(len, parts), (uint64_t)grain), len);
}

/* How high and how wide a tile is, in vectors and columns. */
typedef struct gm_fit_size {
    int64_t tall, wide;
    int large;
} gm_fit_size;

/* Columns as high as the tile are best; else all columns, if they are few; else some 256 bytes either way. Those that
 * go on above have that with whole rows. wide == 0: the tiles of other kernels are as good or better. */
static gm_fit_size size_of(const gm_fit_shape *shape)
{
    enum { HELD = GM_FIT_HELD * GM_FIT_THREADS, FEW = 64, LINES = 16, WIDE = 128, STEEP = 8 };
    static const int tallest[VECTOR] = {[1] = 8, [2] = 12, [4] = 16, [8] = 8},
                     thinnest[VECTOR] = {[1] = 64, [2] = 32, [4] = 16, [8] = 16},
                     few[VECTOR] = {[1] = FEW, [2] = FEW, [4] = FEW, [8] = 16},
                     shortest[VECTOR] = {[2] = 4096, [4] = 1024};
    const int unit = shape->unit;
    const int64_t tall = shape->tall, columns = shape->wide, bytes = columns * unit, grain = SECTOR / unit;

    if (shape->above)
        return (gm_fit_size){tall * gm_least(LINES / tall, shape->above->len), shape->columns->len, 1};
    if (tall <= tallest[unit]) {
        int64_t all = tall * columns;
        int halves = shape->rows->src == bytes && all > HELD && all <= 2 * HELD && tall % 2 == 0 &&
                     bytes <= GM_FIT_THREADS * VECTOR;
        return halves ? (gm_fit_size){tall / 2, columns, 0}
                      : (gm_fit_size){tall, part_of(columns, HELD / tall, grain), 0};
    }
    if (columns <= few[unit] && bytes % thinnest[unit] == 0 && tall >= LINES)
        return (gm_fit_size){gm_least(HELD / columns / LINES * LINES, tall), columns, 0};
    if (shortest[unit] && tall * VECTOR >= shortest[unit] && bytes >= shortest[unit] && tall * VECTOR <= STEEP * bytes)
        return (gm_fit_size){LINES, part_of(columns, WIDE, grain), 1};
    return (gm_fit_size){0, 0, 0};
}

/* Columns higher than the tile: a part is of as many rows as a vector has items. */
static void cut_columns(gm_fit *fit, const gm_fit_shape *shape, const gm_fit_size *size)
{
    int items = VECTOR / shape->unit;

    fit->parts = (unsigned)size->tall;
    fit->parts_in_all = (unsigned)shape->tall;
    GM_DIVIDE_BY(&fit->row, items);
    fit->part_tall = 1;
    fit->part_src = (int)shape->rows->src * items;
    fit->part_pitch = (unsigned)items * fit->pitch;
}

/* Columns that go on along another axis, an index of which is a part. */
static void pile_up(gm_fit *fit, const gm_fit_shape *shape, const gm_fit_size *size)
{
    fit->parts = (unsigned)(size->tall / shape->tall);
    fit->parts_in_all = (unsigned)shape->above->len;
    fit->part_src = (int)shape->above->src;
    fit->part_pitch = (unsigned)shape->rows->len * fit->pitch;
}

/* Where whole matrices follow one another and two fit the block's vectors, a tile has several: each is a part. */
static int join_matrices(gm_fit *fit, gm_fit_shape *shape, const gm_fit_size *size, int64_t vectors)
{
    int64_t piece = shape->wide, bytes = piece * shape->unit, matrix = bytes * shape->rows->len;

    if (size->wide != piece || shape->rows->src != bytes || 2 * shape->tall * piece > vectors)
        return 1;
    int next = find(shape, matrix);
    if (next < 0)
        return 1;
    fit->parts = (unsigned)gm_least(vectors / (shape->tall * piece), shape->plan->axis[next].len);
    fit->piece = (unsigned)piece;
    fit->part_src = (int)matrix;
    fit->part_pitch = fit->pitch;
    fit->tile *= fit->parts;
    fit->pitch *= fit->parts;
    return append(fit, shape, next);
}

/* Where blocks go: along the destination, so that what lies between two columns of the last axis comes before the next
 * tile. Returns their number, or 0. */
static int64_t set_grid(gm_fit *fit, const gm_fit_shape *shape)
{
    const gm_plan *plan = shape->plan;
    int64_t blocks = gm_pieces(fit->columns, fit->tile), last = fit->column[fit->ncolumn - 1].dst;
    int64_t tile_src = fit->piece ? (int64_t)fit->parts * fit->part_src : fit->pitch;
    gm_walk_axis tiles = gm_walk_axis_of((gm_axis){blocks, tile_src, 0});

    fit->part_grid = fit->column_grid = -1;
    if (fit->parts < fit->parts_in_all && !fit->piece) {
        gm_axis parts = {gm_pieces(fit->parts_in_all, fit->parts), (int64_t)fit->parts * fit->part_src,
                         (int64_t)fit->parts * fit->part_tall * VECTOR};
        fit->part_grid = fit->ngrid;
        fit->grid[fit->ngrid++] = gm_walk_axis_of(parts);
        blocks *= parts.len;
    }
    for (int i = plan->naxes - 1; i >= -1; i--) {
        if (fit->column_grid < 0 && (i < 0 || (shape->role[i] == FREE && plan->axis[i].dst > last))) {
            fit->column_grid = fit->ngrid;
            fit->grid[fit->ngrid++] = tiles;
        }
        if (i < 0 || shape->role[i] != FREE)
            continue;
        if (fit->ngrid >= GM_FIT_AXES - 1 || plan->axis[i].len > INT32_MAX / blocks)
            return 0;
        fit->grid[fit->ngrid++] = gm_walk_axis_of(plan->axis[i]);
        blocks *= plan->axis[i].len;
    }
    return blocks <= INT32_MAX ? blocks : 0;
}

int gm_fit_make(gm_fit_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src)
{
    gm_fit *fit = &launch->fit;
    gm_fit_shape shape;

    if (!read_plan(&shape, fit, plan, unit) || !is_aligned(&shape, dst, src))
        return 0;
    gm_fit_size size = size_of(&shape);
    if (!size.wide)
        return 0;
    launch->large = size.large;
    launch->threads = size.large ? GM_FIT_LARGE_THREADS : GM_FIT_THREADS;
    unsigned vectors = GM_FIT_HELD * launch->threads, words = unit < 4 ? 4 / (unsigned)unit : 1; /* columns of a word */
    fit->tile = (unsigned)size.wide;
    fit->pitch = fit->tile * (unsigned)unit;
    fit->parts = fit->parts_in_all = 1;
    GM_DIVIDE_BY(&fit->row, shape.rows->len);
    fit->part_tall = (unsigned)shape.tall;
    GM_DIVIDE_BY(&fit->vectors, fit->pitch / VECTOR);
    if (size.tall < shape.tall)
        cut_columns(fit, &shape, &size);
    else if (shape.above)
        pile_up(fit, &shape, &size);
    else if (!join_matrices(fit, &shape, &size, vectors))
        return 0;
    if (fit->tile % words || fit->vectors.n > launch->threads)
        return 0;
    fit->row_src = (int)shape.rows->src;
    fit->rows_at_a_time = launch->threads / fit->vectors.n;
    GM_DIVIDE_BY(&fit->tall, size.tall);
    GM_DIVIDE_BY(&fit->words, fit->tile / words);
    launch->blocks = (unsigned)set_grid(fit, &shape);
    launch->shared = vectors * VECTOR + fit->tile * 8;
    return launch->blocks > 0;
}

int gm_fit_suits(const gm_fit_launch *launch)
{
    static const unsigned fewest[2] = {1024, 3000};
    return launch->blocks >= fewest[launch->large];
}
