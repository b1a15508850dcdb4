#include "tile_small.h"
#include "isa.h"
#include "tile.h"
#include <stddef.h>
#include <string.h>

/* Bytes moved, up to which blocks do not pay: of square tiles, and of single items. */
enum { SMALL_TILES = 64 << 10, SMALL_ITEMS = 32 << 10 };

/* Items: smaller tiles are no better than single items. */
enum { SMALLEST_TILE = 4 };

enum { CHUNK = 64 }; /* columns that share their tables; rows of the largest tile */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int log2_of(int64_t item)
{
    int size = 0;
    while (size < GM_TILE_SIZES && item != (int64_t)1 << size)
        size++;
    return size;
}

static int64_t shorter_side(const gm_plan *plan)
{
    return least(plan->axis[plan->dst_axis].len, plan->axis[plan->src_axis].len);
}

int gm_small_suits(const gm_plan *plan)
{
    int64_t bytes = plan->items * plan->item;
    if (plan->family != GM_TILE)
        return plan->family == GM_GENERAL && bytes <= SMALL_ITEMS;
    int64_t side = shorter_side(plan);
    int tiles = log2_of(plan->item) < GM_TILE_SIZES && side >= SMALLEST_TILE && side * plan->item >= 16;
    return bytes <= (tiles ? SMALL_TILES : SMALL_ITEMS);
}

/* The widest square tiles, of this instruction set or of one that it includes, that are no larger than the matrix.
 * Every row and column then lies in a whole tile: the last ones reach back over their neighbours. NULL where even the
 * smallest are too large. */
static gm_strip_fn *widest(const gm_isa *isa, int64_t item, int64_t side, int64_t *rows)
{
    int size = log2_of(item);
    const gm_isa *const *p = gm_isas;

    while (*p != isa)
        p++;
    for (; *p && size < GM_TILE_SIZES; p++) {
        *rows = (*p)->tile->vector / item;
        if (*rows >= SMALLEST_TILE && *rows <= side && (*p)->runs_here())
            return (*p)->tile->strip[size];
    }
    return NULL;
}

typedef struct matrix {
    int64_t item;
    int row_axis, col_axis; /* of the plan */
    gm_axis rows, cols;     /* for tiles: contiguous in the destination; in the source */
    gm_strip_fn *strip;
    int64_t height, width; /* of what a strip moves */
    int64_t row_src[CHUNK], col_src[CHUNK], col_out[CHUNK];
} matrix;

static void prepare(matrix *m, const gm_cpu *cpu, const gm_plan *plan)
{
    int tiles = plan->family == GM_TILE;

    m->item = plan->item;
    m->row_axis = tiles ? plan->dst_axis : plan->naxes - 1;
    m->col_axis = tiles ? plan->src_axis : plan->naxes - 2;
    m->rows = plan->axis[m->row_axis];
    m->cols = m->col_axis >= 0 ? plan->axis[m->col_axis] : (gm_axis){1, 0, 0};
    m->strip = tiles ? widest(cpu->isa, m->item, shorter_side(plan), &m->height) : NULL;
    if (!m->strip)
        return;
    m->width = least(m->cols.len, CHUNK);
    for (int64_t i = 0; i < m->height; i++)
        m->row_src[i] = i * m->rows.src;
    for (int64_t j = 0; j < m->width; j++) {
        m->col_src[j] = j * m->cols.src;
        m->col_out[j] = j * m->cols.dst;
    }
}

static void move_by_tiles(const matrix *m, char *dst, const char *src)
{
    gm_strip strip = {.row_src = m->row_src,
                      .col_src = m->col_src,
                      .col_out = m->col_out,
                      .rows = m->height,
                      .cols = m->width,
                      .item = m->item,
                      .row_step = m->rows.dst};

    for (int64_t c = 0; c < m->cols.len; c += m->width) {
        int64_t col = least(c, m->cols.len - m->width);
        for (int64_t r = 0; r < m->rows.len; r += m->height) {
            int64_t row = least(r, m->rows.len - m->height);
            strip.src = src + row * m->rows.src + col * m->cols.src;
            strip.out = dst + row * m->rows.dst + col * m->cols.dst;
            m->strip(&strip, NULL);
        }
    }
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

static void move_by_lines(const matrix *m, char *dst, const char *src)
{
    const gm_axis *line = m->rows.len < m->cols.len ? &m->cols : &m->rows,
                  *other = line == &m->rows ? &m->cols : &m->rows;
    for (int64_t k = 0; k < other->len; k++)
        move_line(m->item, *line, dst + k * other->dst, src + k * other->src);
}

void gm_move_small(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    int64_t index[GM_MAX_NDIM];
    gm_axis outer[GM_MAX_NDIM];
    matrix m;
    int n = 0;

    prepare(&m, cpu, plan);
    for (int i = 0; i < plan->naxes; i++)
        if (i != m.row_axis && i != m.col_axis) {
            index[n] = 0;
            outer[n++] = plan->axis[i];
        }
    dst += plan->dst_start;
    src += plan->src_start;
    for (int i = 0; i >= 0;) {
        (m.strip ? move_by_tiles : move_by_lines)(&m, dst, src);
        for (i = n - 1; i >= 0; i--) {
            dst += outer[i].dst;
            src += outer[i].src;
            if (++index[i] < outer[i].len)
                break;
            dst -= outer[i].dst * outer[i].len;
            src -= outer[i].src * outer[i].len;
            index[i] = 0;
        }
    }
}
