/* Finds the matrices in a plan, and the tile that suits them. */
#include "../base/integers.h"
#include "matrix.h"
#include "walk.h"
#include <stdlib.h>
#include <string.h>

enum { VECTOR = 16 };

#define TILE(kernel, even, whole, shared, way, unit, rows, columns, threads)                                           \
    {#kernel "_" #unit "_" #rows "x" #columns "_" #threads, even, whole, unit, rows, columns, threads, shared, way},
#define ANY(unit, type, rows, columns, threads) ASYNC(unit, type, rows, columns, threads, matrix, GM_MATRIX_HELD)
#define EVEN(unit, type, rows, columns, threads)                                                                       \
    TILE(move_even, 1, 0, GM_EVEN_SHARED(unit, rows, columns), GM_MATRIX_HELD, unit, rows, columns, threads)
#define WHOLE(unit, type, rows, columns, threads)                                                                      \
    TILE(move_even, 1, 1, GM_EVEN_SHARED(unit, rows, columns), GM_MATRIX_HELD, unit, rows, columns, threads)
#define ASYNC(unit, type, rows, columns, threads, name, way)                                                           \
    TILE(move_##name, 0, 0, GM_MATRIX_SHARED(unit, rows, columns, way), way, unit, rows, columns, threads)
const gm_matrix_tile gm_matrix_tiles[] = {GM_MATRIX_TILES(ANY) GM_EVEN_TILES(EVEN) GM_WHOLE_TILES(WHOLE)
                                              GM_MATRIX_ASYNC_TILES(ASYNC)};
#undef TILE
#undef ANY
#undef EVEN
#undef WHOLE
#undef ASYNC
const int gm_matrix_tile_count = sizeof gm_matrix_tiles / sizeof *gm_matrix_tiles;

static int64_t step_of(const gm_axis *axis, int of_rows)
{
    return of_rows ? axis->dst : axis->src;
}

/* Whether tiles of whole vectors are full of so many columns: 256 bytes are what they have of a row. */
static int fills_tiles(int64_t columns, int unit)
{
    enum { ROW = 256, PERCENT = 95 };
    int64_t bytes = columns * unit;
    return bytes * 100 >= gm_pieces(bytes, ROW) * ROW * PERCENT;
}

/* Appends the axis whose step is the whole of the chain; 0 if there is none, or the chain has enough. */
static int extend(gm_side *side, int of_rows, int few, const gm_plan *plan, int unit, unsigned char *taken)
{
    if (few && !of_rows && side->n && fills_tiles(side->len, unit))
        return 0;
    for (int i = plan->naxes - 1; i >= 0 && side->n < GM_MATRIX_AXES; i--)
        if (!taken[i] && step_of(&plan->axis[i], of_rows) == side->len * unit &&
            plan->axis[i].len < (INT64_C(1) << 30) / side->len) {
            side->axis[side->n++] = i;
            side->len *= plan->axis[i].len;
            taken[i] = 1;
            return 1;
        }
    return 0;
}

/* How sides share the axes that both could have: the shorter one first; columns of no more axes than fill tiles, so
 * that blocks go on along the destination instead of the source; rows as long as they can be. */
typedef enum gm_sides { BALANCED, FEW_COLUMNS, LONG_ROWS } gm_sides;

static int find_sides(gm_matrix_shape *shape, const gm_plan *plan, int unit, gm_sides way)
{
    gm_side *rows = &shape->rows, *columns = &shape->columns;
    int more = 1, few = way == FEW_COLUMNS;

    memset(shape, 0, sizeof *shape);
    rows->len = columns->len = 1;
    if (!extend(rows, 1, few, plan, unit, shape->taken) || !extend(columns, 0, few, plan, unit, shape->taken))
        return 0;
    while (more) {
        int shorter = way == LONG_ROWS || rows->len < columns->len;
        more = extend(shorter ? rows : columns, shorter, few, plan, unit, shape->taken) ||
               extend(shorter ? columns : rows, !shorter, few, plan, unit, shape->taken);
    }
    return 1;
}

/* The bits of all steps that lead from one row, or column, to another. */
static uint64_t bits_of(const gm_side *side, int of_rows, const gm_plan *plan)
{
    uint64_t bits = 0;

    for (int i = 0; i < plan->naxes; i++) {
        int inside = 0;
        for (int k = 0; k < side->n; k++)
            inside |= side->axis[k] == i;
        if (!inside)
            bits |= (uint64_t)step_of(&plan->axis[i], of_rows);
    }
    return bits;
}

/* Columns too short to be written well become a tile's several, where all of them start at a vector. */
static void stack(gm_matrix_shape *shape, const gm_plan *plan, int unit, uint64_t dst_bits)
{
    enum { SHORT = 256 };
    gm_side *rows = &shape->rows;
    int best = -1;

    if (rows->len * unit >= SHORT || dst_bits % VECTOR || rows->len * unit % VECTOR || rows->n == GM_MATRIX_AXES)
        return;
    for (int i = 0; i < plan->naxes; i++)
        if (!shape->taken[i] && plan->axis[i].len < (INT64_C(1) << 30) / rows->len &&
            (best < 0 || llabs(plan->axis[i].src) < llabs(plan->axis[best].src)))
            best = i;
    if (best < 0)
        return;
    rows->axis[rows->n++] = best;
    rows->len *= plan->axis[best].len;
    shape->taken[best] = shape->stacked = 1;
}

static int read_sides(gm_matrix_shape *shape, const gm_plan *plan, int unit, const char *dst, const char *src,
                      gm_sides way)
{
    if (plan->item != unit || !find_sides(shape, plan, unit, way))
        return 0;
    uint64_t src_bits = bits_of(&shape->columns, 0, plan), dst_bits = bits_of(&shape->rows, 1, plan) | (uintptr_t)dst;
    stack(shape, plan, unit, dst_bits);
    /* Columns in whole vectors need no look at where they begin and end. */
    int plain = dst_bits % GM_MATRIX_LINE == 0 && shape->rows.len * unit % VECTOR == 0;
    shape->ahead = plain || shape->stacked ? 0 : GM_MATRIX_LINE / unit;
    shape->src_aligned = (src_bits | (uintptr_t)src) % GM_MATRIX_LINE == 0;
    shape->even =
        src_bits % VECTOR == 0 && (unit >= 4 || (uintptr_t)src % 4 == 0) ? (int)((uintptr_t)src % VECTOR) : -1;
    shape->whole =
        !shape->stacked && shape->even == 0 &&
        (dst_bits | (uint64_t)(shape->rows.len * unit) | (uint64_t)(shape->columns.len * unit)) % VECTOR == 0;
    shape->packed = shape->rows.n == 1 && plan->axis[shape->rows.axis[0]].src == shape->columns.len * unit;
    shape->alone = !shape->stacked;
    for (int i = 0; i < plan->naxes; i++)
        shape->alone &= shape->taken[i];
    shape->axes = plan->naxes;
    shape->bytes = (double)plan->items * unit;
    return 1;
}

int gm_matrix_read(gm_matrix_shape *shape, const gm_plan *plan, int unit, const char *dst, const char *src)
{
    gm_matrix_shape few;

    if (!read_sides(shape, plan, unit, dst, src, BALANCED))
        return 0;
    if (shape->whole && shape->columns.n > 1 && read_sides(&few, plan, unit, dst, src, FEW_COLUMNS) && few.whole &&
        fills_tiles(few.columns.len, unit))
        *shape = few;
    return 1;
}

/* Bytes of a run that the tiles of an axis take on average. */
static double run_of(int64_t len, int64_t before, int tile, int unit)
{
    return (double)(len * unit) / (double)gm_pieces(len + before, tile);
}

/* Whether the tile reads its rows as one run. */
static int is_packed(const gm_matrix_shape *shape, const gm_matrix_tile *tile)
{
    return shape->packed && shape->columns.len <= tile->columns && GM_MATRIX_NARROW(tile->unit, tile->columns);
}

/* What a tile costs, in parts of what must move: sectors that two tiles share, rows that two tiles read, the start and
 * the end of a run, threads without work, and the last tiles of all, for which not all multiprocessors are needed.
 * The constants were fitted to some hundred shapes on an H200. */
static double cost_of(const gm_matrix_tile *tile, const gm_matrix_shape *shape)
{
    enum { SHARED_SECTOR = 36, ENDS = 12, FLIGHT = 330 };
    static const double row_ends[VECTOR + 1] = {[1] = 32, [2] = 16, [4] = 12, [8] = 2, [16] = 2};
    static const double idle[VECTOR + 1] = {[1] = 0.1, [2] = 0.1, [4] = 0.25, [8] = 0.1, [16] = 0.1};
    int unit = tile->unit;
    double row = run_of(shape->columns.len, 0, tile->columns, unit),
           column = run_of(shape->rows.len, shape->ahead, tile->rows, unit),
           full = (double)tile->rows * unit * tile->columns * unit,
           read = (1 + (shape->src_aligned || is_packed(shape, tile) ? 0 : SHARED_SECTOR / row)) *
                  (1 + shape->ahead * unit / column);
    return read + row_ends[unit] / row + ENDS / column + idle[unit] * (full / (row * column) - 1) +
           FLIGHT * full / unit / shape->bytes;
}

/* Tiles for few columns of a certain number are for packed matrices. */
static int is_too_narrow(const gm_matrix_shape *shape, const gm_matrix_tile *tile)
{
    return GM_MATRIX_NARROW(tile->unit, tile->columns) && tile->columns % 32 && !is_packed(shape, tile);
}

static const gm_matrix_tile *choose(const gm_matrix_shape *shape, int unit)
{
    const gm_matrix_tile *best = NULL;
    double least = 0;

    for (int i = 0; i < gm_matrix_tile_count; i++)
        if (gm_matrix_tiles[i].unit == unit && gm_matrix_tiles[i].way == GM_MATRIX_HELD && !gm_matrix_tiles[i].even &&
            !is_too_narrow(shape, &gm_matrix_tiles[i])) {
            double cost = cost_of(&gm_matrix_tiles[i], shape);
            if (!best || cost < least) {
                least = cost;
                best = &gm_matrix_tiles[i];
            }
        }
    return best;
}

/* The tile whose rows come asynchronously, where there is one, rows begin at any place in a vector, and as many blocks
 * fit a multiprocessor as those of the H200 that it was measured on. */
static const gm_matrix_tile *asynchronous(const gm_matrix_tile *tile, const gm_matrix_shape *shape, int most_shared)
{
    enum { BLOCKS = 4 };
    int way = shape->rows.n == 1 ? GM_MATRIX_STEADY : GM_MATRIX_LISTED;

    for (int i = 0; i < gm_matrix_tile_count; i++) {
        const gm_matrix_tile *other = &gm_matrix_tiles[i];
        if (other->way == way && other->unit == tile->unit && other->rows == tile->rows &&
            other->columns == tile->columns && other->threads == tile->threads && !tile->even && shape->even < 0 &&
            BLOCKS * (int)other->shared <= most_shared)
            return other;
    }
    return tile;
}

/* The part of the tiles' threads that have work. */
static double used_of(const gm_matrix_tile *tile, const gm_matrix_shape *shape)
{
    int unit = tile->unit;
    return run_of(shape->columns.len, 0, tile->columns, unit) / (tile->columns * unit) *
           run_of(shape->rows.len, shape->ahead, tile->rows, unit) / (tile->rows * unit);
}

/* A tile that takes a side whole where others would cut it, each column or row in fewer parts, if it is not too empty.
 */
static const gm_matrix_tile *choose_whole(const gm_matrix_shape *shape, int unit)
{
    static const struct {
        int unit, rows, columns; /* the tile */
        int of_rows, more, most; /* the side: longer than `more` */
    } wholes[] = {{2, 128, 64, 0, 32, 64},
                  {2, 128, 128, 0, 64, 127},
                  {4, 128, 64, 1, 64, 127},
                  {8, 64, 32, 1, 32, 63},
                  {8, 32, 64, 0, 32, 63}};
    enum { ENOUGH = 2048 };
    static const double least = 0.7;

    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        int64_t side = wholes[i].of_rows ? shape->rows.len : shape->columns.len;
        if (wholes[i].unit != unit || side <= wholes[i].more || side > wholes[i].most)
            continue;
        for (int k = 0; k < gm_matrix_tile_count; k++) {
            const gm_matrix_tile *tile = &gm_matrix_tiles[k];
            if (tile->even && tile->unit == unit && tile->rows == wholes[i].rows &&
                tile->columns == wholes[i].columns && used_of(tile, shape) >= least &&
                shape->bytes >= (double)ENOUGH * unit * tile->rows * tile->columns)
                return tile;
        }
    }
    return NULL;
}

/* The tile for whole vectors, or NULL. The best one wants matrices that fill it and are enough for the whole device:
 * for items of two and four bytes the second in the table, if a side has several axes; what is smaller gets the last
 * one, if it is not too small for that either. */
static const gm_matrix_tile *choose_even(const gm_matrix_shape *shape, int unit)
{
    enum { MANY_AXES = 12, SHORT = 128 };
    static const double full = 0.85, half = 0.4, most = 0.7, enough[2] = {2048, 400};
    const int sides[VECTOR + 1] = {[2] = 1 + shape->alone, [8] = 1, [16] = 1}; /* in tiles, at the least */
    int second = (unit == 2 || unit == 4) && (shape->rows.n > 1 || shape->columns.n > 1), number = 0;
    const gm_matrix_tile *best = NULL, *last = NULL;

    if (!shape->whole || (unit >= 8 && shape->axes > MANY_AXES))
        return NULL;
    const gm_matrix_tile *whole = choose_whole(shape, unit);
    if (whole)
        return whole;
    for (int i = 0; i < gm_matrix_tile_count; i++) {
        const gm_matrix_tile *tile = &gm_matrix_tiles[i];
        if (!tile->even || tile->whole || tile->unit != unit)
            continue;
        int wanted = number++ == 1 && second;
        if (tile->columns * unit < SHORT && shape->columns.len > tile->columns)
            continue; /* rows of half a line, for matrices that have no longer ones */
        if (shape->rows.len < sides[unit] * tile->rows || shape->columns.len < sides[unit] * tile->columns)
            continue;
        if (!last || used_of(tile, shape) >= used_of(last, shape))
            last = tile;
        if ((!best || wanted) && used_of(tile, shape) >= full &&
            shape->bytes >= enough[unit <= 2] * unit * tile->rows * tile->columns)
            best = tile;
    }
    if (best || !last)
        return best;
    int few = unit == 2 && (shape->rows.len < 2 * last->rows || shape->columns.len < 2 * last->columns);
    return used_of(last, shape) >= (few ? most : half) ? last : NULL;
}

/* Whether the matrix kernels are better than those for boxes: for long columns, and rows that fill the tile. For items
 * of one and two bytes the rows must be long too, and the matrix alone or either side of it a single axis, or the
 * destination such that the box kernels' vectors would start inside its own; or the rows are packed. */
static int suits(const gm_matrix_shape *shape, const gm_matrix_tile *tile)
{
    enum { SHORTEST_COLUMN = 256, SHORTEST_ROW = 24, LONG_ROW = 128, LONG = 1024 };
    static const double fill[2][VECTOR + 1] = {{[1] = 0.7, [2] = 0.7, [4] = 0.55, [8] = 0.55, [16] = 0.55},
                                               {[1] = 0.8, [2] = 0.9, [4] = 0.67, [8] = 0.62}};
    const gm_side *rows = &shape->rows, *columns = &shape->columns;
    int unit = tile->unit, packed = is_packed(shape, tile);

    if (rows->len * unit < SHORTEST_COLUMN || columns->len * unit < SHORTEST_ROW ||
        used_of(tile, shape) < fill[packed][unit])
        return 0;
    if (unit >= 4 || (packed && (unit == 2 || shape->ahead)))
        return 1;
    if (columns->len * unit < LONG_ROW)
        return 0;
    if (shape->ahead || !shape->src_aligned)
        return 1;
    return unit == 2 ? shape->alone || (rows->n == 1 && columns->n == 1)
                     : shape->alone && rows->len >= LONG && columns->len >= LONG;
}

int gm_matrix_lay_out(gm_matrix_launch *launch, const gm_matrix_tile *tile, const gm_matrix_shape *shape,
                      const gm_plan *plan, const char *src)
{
    gm_matrix *matrix = &launch->matrix;
    const gm_side *rows = &shape->rows, *columns = &shape->columns;
    int64_t matrices = 1;

    matrix->src_end = (uintptr_t)src + (uint64_t)gm_reach_of(plan).high;
    matrix->rows = (unsigned)rows->len;
    matrix->columns = (unsigned)columns->len;
    matrix->line = shape->ahead ? GM_MATRIX_LINE : 1;
    matrix->stacked = shape->stacked;
    matrix->further = 0;
    matrix->packed = is_packed(shape, tile);
    matrix->even = matrix->packed || tile->way != GM_MATRIX_HELD ? -1 : shape->even;
    if (tile->way == GM_MATRIX_STEADY) {
        int64_t least = GM_MATRIX_PITCH(tile->unit, tile->columns) * VECTOR;
        matrix->pitch = (int)(least + ((plan->axis[rows->axis[0]].src - least) & (GM_MATRIX_STEADY - 1)));
    }
    int64_t ahead = tile->even ? 0 : shape->ahead, row_tiles = gm_pieces(rows->len + gm_most(ahead - 1, 0), tile->rows),
            column_tiles = gm_pieces(columns->len, tile->columns);
    GM_DIVIDE_BY(&matrix->row_tiles, row_tiles);
    GM_DIVIDE_BY(&matrix->column_tiles, column_tiles);
    matrix->nrow = rows->n;
    matrix->ncolumn = columns->n;
    for (int k = 0; k < rows->n; k++)
        matrix->row[k] = gm_walk_axis_of(plan->axis[rows->axis[k]]);
    for (int k = 0; k < columns->n; k++)
        matrix->column[k] = gm_walk_axis_of(plan->axis[columns->axis[k]]);
    /* Writes want neighbours: what lies between two columns of the last axis comes before the next tile of columns. */
    int64_t last = columns->n > 1 && !shape->stacked ? plan->axis[columns->axis[columns->n - 1]].dst : 0;
    matrix->nbatch = matrix->between = 0;
    for (int i = plan->naxes - 1; i >= 0; i--)
        if (!shape->taken[i]) {
            if (matrix->nbatch == GM_MATRIX_BATCH || plan->axis[i].len > INT32_MAX / matrices)
                return 0;
            matrices *= plan->axis[i].len;
            matrix->between += plan->axis[i].dst < last;
            matrix->batch[matrix->nbatch++] = gm_walk_axis_of(plan->axis[i]);
        }
    if (matrices * row_tiles > INT32_MAX / column_tiles)
        return 0;
    launch->tile = tile;
    launch->blocks = (unsigned)(matrices * row_tiles * column_tiles);
    launch->threads = (unsigned)tile->threads;
    launch->shared = tile->shared;
    return 1;
}

int gm_matrix_make(gm_matrix_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src,
                   int most_shared)
{
    enum { SHORT_COLUMN = 256 }; /* bytes */
    static const double cut = 0.85;
    gm_matrix_shape shape, long_rows;

    if (!gm_matrix_read(&shape, plan, unit, dst, src))
        return 0;
    const gm_matrix_tile *tile = choose_even(&shape, unit), *other;
    /* A short column that could go on is cut less if columns of the source end earlier instead. */
    if (plan->axis[shape.rows.axis[0]].len * unit < SHORT_COLUMN && shape.rows.n - shape.stacked == 1 &&
        (!tile || used_of(tile, &shape) < cut) && read_sides(&long_rows, plan, unit, dst, src, LONG_ROWS) &&
        long_rows.rows.n > 1 && long_rows.columns.n == 1 && !long_rows.stacked &&
        (other = choose_even(&long_rows, unit))) {
        shape = long_rows;
        tile = other;
    }
    if (!tile && !suits(&shape, tile = choose(&shape, unit)))
        return 0;
    return gm_matrix_lay_out(launch, asynchronous(tile, &shape, most_shared), &shape, plan, src);
}
