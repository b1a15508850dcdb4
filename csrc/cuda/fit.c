/* Finds matrices of short columns, and cuts tiles to them. */
#include "fit.h"
#include "../base/integers.h"
#include "walk.h"
#include <stdlib.h>
#include <string.h>

enum { VECTOR = 16, SECTOR = 32 };

static gm_matrix_divisor divisor(int64_t n)
{
    gm_walk_axis made;
    gm_walk_divisor(&made, n);
    return (gm_matrix_divisor){made.len, made.magic, made.shift};
}

static gm_walk_axis walk_axis(int64_t len, int64_t src, int64_t dst)
{
    gm_walk_axis made;
    gm_walk_divisor(&made, len);
    made.src = src;
    made.dst = dst;
    return made;
}

/* The axis with that step in the source that is not taken yet; -1 without one. */
static int find(const gm_plan *plan, const unsigned char *taken, int64_t src)
{
    for (int i = plan->naxes - 1; i >= 0; i--)
        if (!taken[i] && plan->axis[i].src == src)
            return i;
    return -1;
}

static int append(gm_fit *fit, unsigned char *taken, const gm_plan *plan, int i)
{
    const gm_axis *axis = &plan->axis[i];
    if (fit->ncolumn == GM_FIT_COLUMN_AXES || axis->len > INT32_MAX / (int64_t)fit->columns)
        return 0;
    fit->column[fit->ncolumn++] = walk_axis(axis->len, axis->src, axis->dst);
    fit->columns *= (unsigned)axis->len;
    taken[i] = 1;
    return 1;
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

/* The tile for columns of `tall` vectors, of which as many as `columns` follow one another in the source. `adjacent`:
 * rows do so too. Columns as high as the tile are best; else all columns, if they are few; else some 256 bytes either
 * way. wide == 0: the tiles of other kernels are as good or better. */
static gm_fit_size size_of(int64_t tall, int64_t columns, int unit, int adjacent)
{
    enum { HELD = GM_FIT_HELD * GM_FIT_THREADS, FEW = 64, LINES = 16, WIDE = 128, STEEP = 8 };
    static const int tallest[VECTOR] = {[1] = 8, [2] = 12, [4] = 16, [8] = 8},
                     thinnest[VECTOR] = {[1] = 64, [2] = 32, [4] = 16, [8] = 16},
                     few[VECTOR] = {[1] = FEW, [2] = FEW, [4] = FEW, [8] = 16},
                     shortest[VECTOR] = {[2] = 4096, [4] = 1024};
    int64_t bytes = columns * unit, grain = SECTOR / unit, all = tall * columns;

    if (tall <= tallest[unit]) {
        int halves = adjacent && all > HELD && all <= 2 * HELD && tall % 2 == 0 && bytes <= GM_FIT_THREADS * VECTOR;
        return halves ? (gm_fit_size){tall / 2, columns, 0}
                      : (gm_fit_size){tall, part_of(columns, HELD / tall, grain), 0};
    }
    if (columns <= few[unit] && bytes % thinnest[unit] == 0 && tall >= LINES)
        return (gm_fit_size){gm_least(HELD / columns / LINES * LINES, tall), columns, 0};
    if (shortest[unit] && tall * VECTOR >= shortest[unit] && bytes >= shortest[unit] && tall * VECTOR <= STEEP * bytes)
        return (gm_fit_size){LINES, part_of(columns, WIDE, grain), 1};
    return (gm_fit_size){0, 0, 0};
}

/* The tile that has whole rows of those columns, and of the axis above so much that columns have 256 bytes. */
static gm_fit_size whole_rows(int64_t tall, const gm_axis *columns, const gm_axis *above)
{
    enum { LINES = 16 };
    return (gm_fit_size){tall * gm_least(LINES / tall, above->len), columns->len, 1};
}

/* Columns of 4-byte items that do not follow one another: the axis along which a column of this many bytes goes on, if
 * the rows of the source are better taken whole than in parts of 256 bytes; otherwise -1. */
static int find_above(const gm_plan *plan, int unit, int64_t tall, const gm_axis *columns)
{
    enum { PART = 256, MOST = 512 };
    int64_t bytes = columns->len * unit;

    if (unit != 4 || 2 * tall > PART || bytes <= PART || bytes > MOST || bytes % VECTOR)
        return -1;
    for (int i = plan->naxes - 2; i >= 0; i--)
        if (plan->axis[i].dst == tall && llabs(plan->axis[i].src) <= INT32_MAX)
            return i;
    return -1;
}

/* Where blocks go: along the destination, so that what lies between two columns of the last axis comes before the next
 * tile. Returns their number, or 0; sets the bits of the steps. */
static int64_t set_grid(gm_fit *fit, const gm_plan *plan, unsigned char *taken, int64_t tile_src, uint64_t *bits)
{
    int64_t blocks = gm_pieces(fit->columns, fit->tile), last = fit->column[fit->ncolumn - 1].dst;
    gm_walk_axis tiles = walk_axis(blocks, tile_src, 0);

    fit->part_grid = fit->column_grid = -1;
    if (fit->parts < fit->parts_in_all && !fit->piece) {
        int64_t parts = gm_pieces(fit->parts_in_all, fit->parts);
        fit->part_grid = fit->ngrid;
        fit->grid[fit->ngrid++] =
            walk_axis(parts, (int64_t)fit->parts * fit->part_src, (int64_t)fit->parts * fit->part_tall * VECTOR);
        blocks *= parts;
    }
    for (int i = plan->naxes - 1; i >= -1; i--) {
        if (fit->column_grid < 0 && (i < 0 || (!taken[i] && plan->axis[i].dst > last))) {
            fit->column_grid = fit->ngrid;
            fit->grid[fit->ngrid++] = tiles;
        }
        if (i < 0 || taken[i])
            continue;
        const gm_axis *axis = &plan->axis[i];
        if (fit->ngrid >= GM_FIT_AXES - 1 || axis->len > INT32_MAX / blocks)
            return 0;
        *bits |= (uint64_t)axis->src;
        fit->grid[fit->ngrid++] = walk_axis(axis->len, axis->src, axis->dst);
        blocks *= axis->len;
    }
    return blocks <= INT32_MAX ? blocks : 0;
}

int gm_fit_make(gm_fit_launch *launch, const gm_plan *plan, int unit, const char *dst, const char *src)
{
    gm_fit *fit = &launch->fit;
    unsigned char taken[GM_MAX_NDIM] = {0};
    const gm_axis *row = &plan->axis[plan->naxes - 1];
    uint64_t bits = (uintptr_t)dst | (uintptr_t)src | (uint64_t)row->src;
    int first, next, above = -1, words = unit < 4 ? 4 / unit : 1,
                     items = VECTOR / unit; /* columns of a word, items of a vector */

    if (plan->item != unit || unit > 8 || plan->naxes < 2 || row->dst != unit || row->len % items ||
        row->len > INT32_MAX / unit || llabs(row->src) > INT32_MAX / items || (first = find(plan, taken, unit)) < 0)
        return 0;
    if (plan->axis[first].dst != row->len * unit &&
        (above = find_above(plan, unit, row->len * unit, &plan->axis[first])) < 0)
        return 0;
    memset(fit, 0, sizeof *fit);
    taken[plan->naxes - 1] = 1;
    if (above >= 0)
        taken[above] = 1;
    fit->columns = 1;
    for (next = first; next >= 0 && append(fit, taken, plan, next);)
        next = find(plan, taken, (int64_t)fit->columns * unit);
    int64_t tall = row->len / items, piece = fit->columns, matrix = piece * row->len * unit, tile_src;
    gm_fit_size size = above < 0 ? size_of(tall, piece, unit, row->src == piece * unit)
                                 : whole_rows(tall, &plan->axis[first], &plan->axis[above]);
    if (!size.wide || piece * unit % VECTOR)
        return 0;
    int vectors = GM_FIT_HELD * (size.large ? GM_FIT_LARGE_THREADS : GM_FIT_THREADS);
    launch->large = size.large;
    launch->threads = (unsigned)vectors / GM_FIT_HELD;
    fit->tile = (unsigned)size.wide;
    fit->parts = fit->parts_in_all = 1;
    fit->row = divisor(row->len);
    fit->part_tall = (unsigned)tall;
    fit->vectors = divisor(size.wide * unit / VECTOR);
    tile_src = size.wide * unit;
    if (size.tall < tall) { /* parts of as many rows as a vector has items */
        fit->parts = (unsigned)size.tall;
        fit->parts_in_all = (unsigned)tall;
        fit->row = divisor(items);
        fit->part_tall = 1;
        fit->part_src = (int)row->src * items;
        fit->part_pitch = (unsigned)(items * tile_src);
    } else if (above >= 0) { /* parts of the axis above */
        fit->parts = (unsigned)(size.tall / tall);
        fit->parts_in_all = (unsigned)plan->axis[above].len;
        fit->part_src = (int)plan->axis[above].src;
        fit->part_pitch = (unsigned)(row->len * tile_src);
        bits |= (uint64_t)plan->axis[above].src;
    } else if (size.wide == piece && row->src == piece * unit && 2 * tall * piece <= vectors &&
               (next = find(plan, taken, matrix)) >= 0) { /* whole matrices follow one another: a tile has several */
        if (!append(fit, taken, plan, next))
            return 0;
        fit->parts = (unsigned)gm_least(vectors / (tall * piece), plan->axis[next].len);
        fit->tile = fit->parts * (unsigned)piece;
        fit->piece = (unsigned)piece;
        fit->part_src = (int)matrix;
        fit->part_pitch = (unsigned)(piece * unit);
        tile_src = fit->parts * matrix;
    }
    if (fit->tile % words || fit->vectors.n > launch->threads)
        return 0;
    fit->row_src = (int)row->src;
    fit->pitch = fit->tile * (unsigned)unit;
    fit->rows_at_a_time = launch->threads / fit->vectors.n;
    fit->tall = divisor(size.tall);
    fit->words = divisor(fit->tile / words);
    for (int i = 0; i < plan->naxes - 1; i++)
        bits |= (uint64_t)plan->axis[i].dst;
    launch->blocks = (unsigned)set_grid(fit, plan, taken, tile_src, &bits);
    launch->shared = (unsigned)vectors * VECTOR + fit->tile * 8;
    return launch->blocks && bits % VECTOR == 0;
}

int gm_fit_suits(const gm_fit_launch *launch)
{
    static const unsigned fewest[2] = {1024, 3000};
    return launch->blocks >= fewest[launch->large];
}
