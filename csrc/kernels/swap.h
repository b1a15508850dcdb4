/* Squares that are transposed where they lie, as the kernels take them. Plain C, for both compilers. */
#pragma once
#include "walk.h"

/* The kernels of pairs of tiles: name, item size, type, rows and columns, threads of a block, and the fewest rows of a
 * square for which it is the best of those before. */
#define GM_SWAP_TILES(TILE)                                                                                            \
    TILE(swap_axes, 1, unsigned char, 64, 256, 0)                                                                      \
    TILE(swap_axes, 2, unsigned short, 64, 256, 0)                                                                     \
    TILE(swap_axes, 4, unsigned int, 64, 256, 0)                                                                       \
    TILE(swap_axes, 8, unsigned long long, 32, 256, 0)                                                                 \
    TILE(swap_axes, 16, uint4, 32, 256, 0)                                                                             \
    TILE(swap_vectors, 1, unsigned char, 128, 256, 0)                                                                  \
    TILE(swap_vectors, 2, unsigned short, 64, 256, 0)                                                                  \
    TILE(swap_vectors, 2, unsigned short, 128, 512, 4096)                                                              \
    TILE(swap_vectors, 4, unsigned int, 64, 256, 0)                                                                    \
    TILE(swap_vectors, 8, unsigned long long, 32, 256, 0)                                                              \
    TILE(swap_vectors, 16, uint4, 32, 256, 0)

/* Those whose rows come asynchronously, from anywhere in a vector or aligned; and the blocks of a multiprocessor. */
#define GM_SWAP_ROWS_TILES(TILE)                                                                                       \
    TILE(swap_rows, 1, unsigned char, 192, 384, 0, 2)                                                                  \
    TILE(swap_rows, 2, unsigned short, 128, 512, 0, 2)                                                                 \
    TILE(swap_rows, 4, unsigned int, 96, 384, 0, 2)                                                                    \
    TILE(swap_rows, 8, unsigned long long, 64, 512, 0, 2)                                                              \
    TILE(swap_even, 1, unsigned char, 256, 256, 16384, 1)

/* Bytes between rows in shared memory, congruent to `row`, such that the vectors of two do not meet; and of a tile, of
 * rows first and then of columns, behind the last of which a vector more is read. */
#define GM_SWAP_ROWS_PITCH(size, tile, row)                                                                            \
    ((tile) * (size) + 15 + (int)(((row) - (tile) * (size)-15) & (GM_SWAP_SECTOR - 1)))
#define GM_SWAP_ROWS_IMAGE(size, tile, pitch)                                                                          \
    (((tile) * ((pitch) > (tile) * (size) + 16 ? (pitch) : (tile) * (size) + 16) + GM_SWAP_SECTOR + 16 + 127) / 128 *  \
     128)

/* Bytes between rows in shared memory: one word more than a row, or an odd number of vectors. */
#define GM_SWAP_PITCH_swap_axes(size, tile)    ((tile) * (size) + ((size) < 4 ? 4 : (size)))
#define GM_SWAP_PITCH_swap_vectors(size, tile) (((tile) * (size) / 16 | 1) * 16)
#define GM_SWAP_SHARED(name, size, tile)       (2 * (tile)*GM_SWAP_PITCH_##name(size, tile))

typedef struct gm_swap {
    unsigned long long end; /* swap_rows: no byte from here on is read */
    long long n;            /* rows, and columns */
    long long row, column;  /* bytes from one to the next */
    long long side;         /* tiles of a group's side: blocks do group after group, each near to both of its places */
    long long pairs;        /* of tiles: one on either side of the diagonal, or one on it, or none */
    int pitch, image;       /* swap_rows: bytes between rows in shared memory, of a tile */
    gm_walk batch;          /* from a square's number to its place; src alone counts */
} gm_swap;

/* Small squares without gaps: a block has several, one behind the other. */
typedef struct gm_swap_packed {
    unsigned int n, square; /* rows; items */
    unsigned int each;      /* squares of a block */
    gm_walk_axis by_n, by_square;
    int turn_shift, turn_step; /* swap_gathered: a lane's first item is (lane >> shift) * step */
    long long squares;         /* one behind the other */
    long long pieces;          /* blocks for those */
    gm_walk batch;             /* where they begin */
} gm_swap_packed;

enum { GM_SWAP_SECTOR = 32 }; /* what rows are congruent modulo */
enum { GM_SWAP_LINE = 128 };  /* bytes of shared memory, behind which a word is left free */
/* Bytes of shared memory for so many, wherever in a word they begin. */
#define GM_SWAP_PACKED_SHARED(bytes, word)                                                                             \
    (((bytes) + 2 * (word) + GM_SWAP_LINE - 1) / GM_SWAP_LINE * (GM_SWAP_LINE + (word)))
