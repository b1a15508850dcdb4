/* A plan as a batch of matrices: the source is contiguous along a row, the destination along a column.
 * Plain C, for both compilers. */
#pragma once
#include "walk.h"

/* The tiles that there are: item size, type, rows and columns in items, threads of a block. */
#define GM_MATRIX_TILES(TILE)                                                                                          \
    TILE(1, unsigned char, 128, 256, 320)                                                                              \
    TILE(1, unsigned char, 128, 128, 320)                                                                              \
    TILE(1, unsigned char, 256, 64, 288)                                                                               \
    TILE(1, unsigned char, 512, 32, 288)                                                                               \
    TILE(2, unsigned short, 128, 128, 384)                                                                             \
    TILE(2, unsigned short, 128, 64, 256)                                                                              \
    TILE(2, unsigned short, 256, 32, 288)                                                                              \
    TILE(4, unsigned int, 64, 128, 384)                                                                                \
    TILE(4, unsigned int, 64, 64, 320)                                                                                 \
    TILE(4, unsigned int, 128, 64, 384)                                                                                \
    TILE(4, unsigned int, 128, 40, 320)                                                                                \
    TILE(4, unsigned int, 128, 32, 256)                                                                                \
    TILE(4, unsigned int, 128, 24, 192)                                                                                \
    TILE(4, unsigned int, 256, 16, 256)                                                                                \
    TILE(4, unsigned int, 64, 32, 160)                                                                                 \
    TILE(8, unsigned long long, 64, 64, 512)                                                                           \
    TILE(8, unsigned long long, 64, 32, 288)                                                                           \
    TILE(8, unsigned long long, 64, 24, 192)                                                                           \
    TILE(8, unsigned long long, 128, 16, 256)                                                                          \
    TILE(16, uint4, 64, 32, 512)                                                                                       \
    TILE(16, uint4, 32, 16, 160)

/* Tiles whose rows come to shared memory asynchronously, by one of the ways below. */
#define GM_MATRIX_ASYNC_TILES(TILE)                                                                                    \
    TILE(1, unsigned char, 128, 256, 320, listed, GM_MATRIX_LISTED)                                                    \
    TILE(1, unsigned char, 128, 256, 320, steady, GM_MATRIX_STEADY)                                                    \
    TILE(2, unsigned short, 128, 128, 384, steady, GM_MATRIX_STEADY)

/* Tiles for matrices whose rows and columns are whole vectors on both sides (even.cu): of each item size the best for
 * one matrix, the best for rows and columns of several axes where that is another, and the one for what is too small.
 */
#define GM_EVEN_TILES(TILE)                                                                                            \
    TILE(1, unsigned char, 128, 256, 512)                                                                              \
    TILE(1, unsigned char, 128, 128, 256)                                                                              \
    TILE(1, unsigned char, 256, 64, 256)                                                                               \
    TILE(2, unsigned short, 128, 128, 512)                                                                             \
    TILE(2, unsigned short, 64, 256, 512)                                                                              \
    TILE(2, unsigned short, 64, 64, 256)                                                                               \
    TILE(4, unsigned int, 64, 64, 512)                                                                                 \
    TILE(4, unsigned int, 128, 64, 512)                                                                                \
    TILE(4, unsigned int, 64, 64, 256)                                                                                 \
    TILE(8, unsigned long long, 32, 32, 256)                                                                           \
    TILE(16, uint4, 32, 32, 512)                                                                                       \
    TILE(16, uint4, 32, 16, 256)

/* And those that take a side whole which the others would cut: as long as their longer side, or somewhat shorter. */
#define GM_WHOLE_TILES(TILE)                                                                                           \
    TILE(2, unsigned short, 128, 64, 256)                                                                              \
    TILE(8, unsigned long long, 64, 32, 256)                                                                           \
    TILE(8, unsigned long long, 32, 64, 256)
#define GM_EVEN_SHARED(unit, rows, columns) ((rows) * (columns) * (unit) + (columns)*8)

/* Tiles for matrices of few columns, which may be packed. */
#define GM_MATRIX_NARROW(unit, columns) ((columns) < 64 && (columns) * (unit) <= 192)

/* Bytes of shared memory: the image of a tile, and where its rows, its columns and their vectors lie. */
#define GM_MATRIX_READ(unit, rows)         ((rows) + GM_MATRIX_LINE / (unit))
#define GM_MATRIX_PITCH(unit, columns)     ((columns) * (unit) / 16 + 1)
#define GM_MATRIX_COLUMN_PITCH(unit, rows) ((GM_MATRIX_READ(unit, rows) * (unit) / 16) | 1)
#define GM_MATRIX_LARGER(a, b)             ((a) > (b) ? (a) : (b))
#define GM_MATRIX_PLACE(unit, columns, way)                                                                            \
    (GM_MATRIX_PITCH(unit, columns) + ((way) == GM_MATRIX_STEADY ? GM_MATRIX_STEADY / 16 : (way)))
#define GM_MATRIX_IMAGE(unit, rows, columns, way)                                                                      \
    GM_MATRIX_LARGER(GM_MATRIX_PLACE(unit, columns, way) * GM_MATRIX_READ(unit, rows) + 2 * ((way) > 0),               \
                     GM_MATRIX_COLUMN_PITCH(unit, rows) * (columns))
#define GM_MATRIX_SHARED(unit, rows, columns, way)                                                                     \
    (GM_MATRIX_IMAGE(unit, rows, columns, way) * 16 + (GM_MATRIX_READ(unit, rows) * 12 + (columns)*8 + 31) / 16 * 16)

/* How rows come to shared memory: held in registers on the way, one place after another; asynchronously, each with a
 * place of its own that is congruent to its address modulo a sector; or so at a steady pitch, which is congruent too.
 */
enum { GM_MATRIX_HELD, GM_MATRIX_LISTED, GM_MATRIX_STEADY = 32 };

enum {
    GM_MATRIX_AXES = 8,
    GM_MATRIX_BATCH = 16,
    GM_MATRIX_LINE = 32 /* bytes: what the destination is written in whole */
};

typedef struct gm_matrix_divisor {
    unsigned int n, magic, shift;
} gm_matrix_divisor;

typedef struct gm_matrix {
    unsigned long long src_end; /* no byte from here on is read */
    unsigned int rows, columns; /* of one matrix */
    gm_matrix_divisor row_tiles, column_tiles;
    int between; /* so many axes of the batch come before the next tile of columns, the others after the last one */
    int line;    /* GM_MATRIX_LINE where columns start inside a line somewhere, otherwise 1 */
    int stacked; /* the last axis of the rows does not follow the others in the destination */
    int packed;  /* each row begins where the one before ends, and a tile has all columns */
    int even;    /* bytes from a vector's start to the first item, where they are the same in all rows; or -1 */
    int pitch;   /* GM_MATRIX_STEADY: bytes from a row's place to the next one's */
    int further; /* so many tiles on are what a block has brought to the second-level cache; 0: none */
    int nrow, ncolumn, nbatch;
    gm_walk_axis row[GM_MATRIX_AXES], column[GM_MATRIX_AXES], batch[GM_MATRIX_BATCH]; /* innermost first */
} gm_matrix;
