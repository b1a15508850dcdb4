#include "../base/integers.h"
#include "matrices.h"
#include "isa.h"
#include "pool.h"
#include "tile.h"
#include <stddef.h>
#include <string.h>

/* Bytes moved, up to which blocks do not pay: of square tiles, and of single items. */
enum { SMALL_TILES = 64 << 10, SMALL_ITEMS = 32 << 10 };

/* Items: smaller tiles are no better than single items. */
enum { SMALLEST_TILE = 4 };

static int64_t shorter_side(const gm_plan *plan)
{
    return gm_least(plan->axis[plan->dst_axis].len, plan->axis[plan->src_axis].len);
}

int gm_small_suits(const gm_plan *plan)
{
    int64_t bytes = plan->items * plan->item;
    if (plan->family != GM_TILE)
        return plan->family == GM_GENERAL && bytes <= SMALL_ITEMS;
    int64_t side = shorter_side(plan);
    int tiles = gm_tile_size(plan->item) >= 0 && side >= SMALLEST_TILE && side * plan->item >= 16;
    return bytes <= (tiles ? SMALL_TILES : SMALL_ITEMS);
}

int gm_matrices_suit(const gm_cpu *cpu, const gm_plan *plan)
{
    return plan->family == GM_TILE && gm_tile_size(plan->item) >= 0 &&
           shorter_side(plan) * plan->item >= cpu->isa->tile->vector;
}

/* The widest square tiles, of this instruction set or of one that it includes, that are no larger than the matrix.
 * Every row and column then lies in a whole tile. NULL where even the smallest are too large. */
static gm_matrix_fn *widest(const gm_isa *isa, int64_t item, int64_t side)
{
    int size = gm_tile_size(item);
    const gm_isa *const *p = gm_isas;

    while (*p != isa)
        p++;
    for (; *p && size >= 0; p++) {
        int64_t rows = (*p)->tile->vector / item;
        if (rows >= SMALLEST_TILE && rows <= side && (*p)->runs_here())
            return (*p)->tile->matrix[size];
    }
    return NULL;
}

/* Items along one axis. The usual sizes are constants to the compiler: single moves, not calls. */
static void move_line(int64_t item, gm_axis axis, char *dst, const char *src)
{
#define LINE(size)                                                                                                     \
    case size:                                                                                                         \
        for (int64_t i = axis.len; i > 0; i--, dst += axis.dst, src += axis.src)                                       \
            memcpy(dst, src, size);                                                                                    \
        return
    switch (item) {
        LINE(1);
        LINE(2);
        LINE(3);
        LINE(4);
        LINE(6);
        LINE(8);
        LINE(12);
        LINE(16);
        LINE(24);
        LINE(32);
    default:
        for (int64_t i = axis.len; i > 0; i--, dst += axis.dst, src += axis.src)
            memcpy(dst, src, (size_t)item);
    }
#undef LINE
}

typedef struct job {
    int64_t item;
    gm_axis rows, cols;     /* of a matrix; for tiles: contiguous in the destination, and in the source */
    gm_matrix_fn *by_tiles; /* or NULL */
    int outer, parts;
    gm_axis axis[GM_MAX_NDIM]; /* the outer ones */
    int64_t count;             /* of matrices */
    char *dst;
    const char *src;
} job;

static void move_by_lines(const job *j, char *dst, const char *src)
{
    const gm_axis *line = j->rows.len < j->cols.len ? &j->cols : &j->rows,
                  *other = line == &j->rows ? &j->cols : &j->rows;
    for (int64_t k = 0; k < other->len; k++)
        move_line(j->item, *line, dst + k * other->dst, src + k * other->src);
}

/* Columns from .. to - 1 of one matrix. */
static void move_matrix(const job *j, char *dst, const char *src, int64_t from, int64_t to)
{
    if (j->by_tiles)
        j->by_tiles(&(gm_matrix){src + from * j->cols.src, dst + from * j->cols.dst, j->rows.len, to - from,
                                 j->rows.src, j->cols.dst});
    else
        move_by_lines(j, dst, src);
}

static void move_matrices(const job *j, int64_t first, int64_t last)
{
    int64_t index[GM_MAX_NDIM], rest = first;
    char *dst = j->dst;
    const char *src = j->src;

    for (int i = j->outer - 1; i >= 0; i--) {
        index[i] = rest % j->axis[i].len;
        rest /= j->axis[i].len;
        dst += index[i] * j->axis[i].dst;
        src += index[i] * j->axis[i].src;
    }
    for (int64_t k = first; k < last; k++) {
        move_matrix(j, dst, src, 0, j->cols.len);
        for (int i = j->outer - 1; i >= 0; i--) {
            dst += j->axis[i].dst;
            src += j->axis[i].src;
            if (++index[i] < j->axis[i].len)
                break;
            dst -= j->axis[i].dst * j->axis[i].len;
            src -= j->axis[i].src * j->axis[i].len;
            index[i] = 0;
        }
    }
}

/* A share of the matrices, or of the columns where there is only one. */
static void run_part(void *ctx, int part)
{
    const job *j = ctx;
    int64_t all = j->count > 1 ? j->count : j->cols.len, from = all * part / j->parts, to = all * (part + 1) / j->parts;
    if (j->count > 1)
        move_matrices(j, from, to);
    else
        move_matrix(j, j->dst, j->src, from, to);
}

void gm_move_matrices(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int threads)
{
    int tiles = plan->family == GM_TILE;
    int row_axis = tiles ? plan->dst_axis : plan->naxes - 1, col_axis = tiles ? plan->src_axis : plan->naxes - 2;
    int64_t bytes = plan->items * plan->item, side = tiles ? shorter_side(plan) : 0;
    job j = {
        .item = plan->item,
        .rows = plan->axis[row_axis],
        .cols = col_axis >= 0 ? plan->axis[col_axis] : (gm_axis){1, 0, 0},
        .by_tiles = tiles ? widest(cpu->isa, plan->item, side) : NULL,
        .parts = (int)gm_least(bytes / GM_TILE_PART, threads),
        .count = 1,
        .dst = dst + plan->dst_start,
        .src = src + plan->src_start,
    };

    for (int i = 0; i < plan->naxes; i++)
        if (i != row_axis && i != col_axis) {
            j.count *= plan->axis[i].len;
            j.axis[j.outer++] = plan->axis[i];
        }
    /* Each thread needs as many columns as a tile has. */
    int64_t most = j.count > 1 ? j.count : j.by_tiles ? j.cols.len * j.item / cpu->isa->tile->vector : 1;
    if (j.parts > most)
        j.parts = (int)most;
    if (j.parts < 1)
        j.parts = 1;
    gm_parallel(j.parts, run_part, &j);
}
