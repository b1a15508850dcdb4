/* The micro-kernels that move a block: rows of the source become columns of an image of the destination, and a finished
 * image streams out past the caches. Every instruction set has a table of them. */
#pragma once
#include <stdint.h>

/* Item (i, j) of rows x cols goes from src + i * row_src + j items to dst + j * col_dst + i items. */
typedef struct gm_matrix {
    const char *src;
    char *dst;
    int64_t rows, cols, row_src, col_dst;
} gm_matrix;

/* For matrices no smaller than vector / item each way. */
typedef void gm_matrix_fn(const gm_matrix *matrix);

/* A finished block in scratch: `runs` stretches of run_bytes, each contiguous in the destination. Run k lies at
 * stage + k * pitch + GM_STAGE_HEAD. The bytes in front of it are room for what the block before it left over: the
 * first bytes of a cache line that only this block completes. */
enum { GM_STAGE_HEAD = 64 };

typedef struct gm_flush {
    char *dst;              /* of the block */
    const int64_t *run_dst; /* bytes from dst to each run */
    const char *stage;
    char *
        next_stage; /* of the block that goes on where each run ends, or NULL: then the last, partial line is written */
    int64_t runs, run_bytes, pitch, step; /* step: bytes to write after each tile */
    int continues;                        /* the block before left its last, partial lines in the heads */
    int64_t run, done;                    /* the cursor: runs finished, bytes written of the present one */
} gm_flush;

/* Rows of the source that will be wanted next, fetched a few lines at a time. */
typedef struct gm_ahead {
    const char *src; /* NULL: nothing to fetch */
    const int64_t *row_src;
    int64_t rows, bytes; /* bytes: of a row */
    int64_t row, line;   /* the cursor */
} gm_ahead;

/* `rows` source rows against `cols` columns. Item (i, j) goes from src + row_src[i] + col_src[j] to
 * out + col_out[j] + i * row_step. Square tiles take col_src[j] and i * row_step for j and i items. */
typedef struct gm_strip {
    const char *src;
    char *out;
    const int64_t *row_src, *col_src, *col_out; /* row_src: a whole tile's, however few the rows */
    int64_t rows, cols, item, row_step;
    gm_ahead ahead;
} gm_strip;

/* Lines of a panel's runs. Shorter ones are written more slowly; longer ones of small items need so many rows that
 * their image fills the first cache. */
enum { GM_LINES = 4 };

/* Columns of a panel that are being built, or have been and now stream out. */
typedef struct gm_image {
    const char *image;
    char *dst;
    int lie; /* how the runs lie in lines */
    /* Where their lines are in the panel's tables: lines `line` to lines - 1 of these. */
    const int64_t *line_dst, *line_image;
    int64_t line, lines, run_lines; /* run_lines: of each run */
    /* Else: columns `col` to cols - 1. */
    int64_t col, cols, pitch, run_bytes;
    const int64_t *col_dst;
    char *carry;
    int continues, goes_on;
} gm_image;

/* image[turn] streams out while the other one is built. */
typedef struct gm_left {
    gm_image image[2];
    int turn;
} gm_left;

/* A panel to come, or NULL. Its rows are at least a tile's. */
typedef struct gm_rows {
    const char *src;
    const int64_t *row_src;
    int64_t rows, cols;
} gm_rows;

/* A block each of whose columns is one run of the destination. It is built and streamed out a tile's width at a time,
 * so that the image never leaves the first cache. */
typedef struct gm_panel {
    const char *src;
    char *dst;
    const int64_t *row_src; /* whole tiles' */
    const int64_t *col_dst;
    int64_t rows, cols;
    char *image; /* room for two tiles' widths of runs, `pitch` apart, GM_STAGE_HEAD in front of each */
    int64_t pitch;
    /* The first run_lines whole lines of each run: from dst to each line of each column, from an image to each of its.
     */
    const int64_t *line_dst, *line_image;
    int64_t run_lines;
    char *carry;            /* a line for each column: what this block, or the one before, leaves of its run */
    char *before;           /* room for a line for each row of whole tiles, so that each is read only once; or NULL */
    int continues, goes_on; /* whether the block before left, and the next one completes, those lines */
    gm_left *left;          /* by the block before; nothing is left when there is no next one */
    gm_rows next;           /* of the next block, if there is one */
    int64_t lead;           /* columns fetched ahead, whole tiles: of this block, then of the next one */
} gm_panel;

typedef void gm_panel_fn(const gm_panel *panel);

/* Square tiles of a row of them, against their mirror images beyond the diagonal. */
typedef struct gm_pairs {
    char *upper, *lower; /* the first pair; the next ones lie beside the one and below the other */
    int64_t row;         /* bytes from row to row */
    int64_t side;        /* items; whole lines */
    int64_t along;       /* items of a row in all tiles: the last one may have fewer columns, its image fewer rows */
    char *scratch;       /* room for a tile */
    int64_t pitch;       /* bytes between its rows */
} gm_pairs;

typedef void gm_pairs_fn(const gm_pairs *pairs);

/* Moves a strip and advances `flush`, which may be NULL, by its step after every tile. */
typedef void gm_strip_fn(const gm_strip *strip, gm_flush *flush);

enum {
    GM_TILE_SIZES = 5,        /* square tiles: items of 1, 2, 4, 8, 16 bytes */
    GM_ITEM_ROWS = 8,         /* rows of a strip for other items, and for axes that are contiguous on neither side */
    GM_TILE_PART = 272 << 10, /* bytes: less is not worth another thread; twice as much is no power of two */
};

/* Which of the tables' entries moves such items in square tiles, or -1. */
static inline int gm_tile_size(int64_t item)
{
    for (int i = 0; i < GM_TILE_SIZES; i++)
        if (item == (int64_t)1 << i)
            return i;
    return -1;
}

typedef struct gm_tile_kernels {
    int vector;                          /* bytes */
    gm_matrix_fn *matrix[GM_TILE_SIZES]; /* by log2 of the item */
    gm_strip_fn *strip[GM_TILE_SIZES];   /* vector / item rows */
    gm_panel_fn *panel[GM_TILE_SIZES];
    gm_panel_fn *dense[GM_TILE_SIZES]; /* of rows that lie evenly, from lines to lines, in scratch; NULL: none here */
    gm_pairs_fn *pairs[GM_TILE_SIZES];
    gm_strip_fn *items;                 /* items of any size, at any steps; GM_ITEM_ROWS rows */
    void (*flush_all)(gm_flush *flush); /* the rest of a block */
    /* A copy past the caches; `next`: the run to be copied after this one, to be fetched, or NULL. */
    void (*stream)(char *dst, const char *src, int64_t n, const char *next);
    void (*fence)(void);                          /* orders those stores before all that follow */
    uint64_t (*read)(const char *src, int64_t n); /* the sum of the 8-byte words, as fast as memory can be read */
} gm_tile_kernels;
