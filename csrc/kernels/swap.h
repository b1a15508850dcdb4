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

/* Bytes between rows in shared memory: one word more than a row, or an odd number of vectors. */
#define GM_SWAP_PITCH_swap_axes(size, tile)    ((tile) * (size) + ((size) < 4 ? 4 : (size)))
#define GM_SWAP_PITCH_swap_vectors(size, tile) (((tile) * (size) / 16 | 1) * 16)
#define GM_SWAP_SHARED(name, size, tile)       (2 * (tile)*GM_SWAP_PITCH_##name(size, tile))

typedef struct gm_swap {
    long long n;           /* rows, and columns */
    long long row, column; /* bytes from one to the next */
    long long side;        /* tiles of a group's side: blocks do group after group, each near to both of its places */
    long long pairs;       /* of tiles: one on either side of the diagonal, or one on it, or none */
    gm_walk batch;         /* from a square's number to its place; src alone counts */
} gm_swap;

/* Small squares without gaps: a block has several, one behind the other. */
typedef struct gm_swap_packed {
    unsigned int n, square; /* rows; items */
    unsigned int each;      /* squares of a block */
    gm_walk_axis by_n, by_square;
    long long squares; /* one behind the other */
    long long pieces;  /* blocks for those */
    gm_walk batch;     /* where they begin */
} gm_swap_packed;

enum { GM_SWAP_LINE = 128 }; /* bytes of shared memory, behind which a word is left free */
/* Bytes of shared memory for so many, wherever in a word they begin. */
#define GM_SWAP_PACKED_SHARED(bytes, word)                                                                             \
    (((bytes) + 2 * (word) + GM_SWAP_LINE - 1) / GM_SWAP_LINE * (GM_SWAP_LINE + (word)))
