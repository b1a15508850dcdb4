/* Matrices as the kernels of the lesson `transpose` take them. Plain C, for both compilers. */
#pragma once

enum {
    GM_TRANSPOSE_TILE = 32,     /* rows and columns of a tile, where a thread moves items */
    GM_TRANSPOSE_THREADS = 256, /* 8 rows of 32 */
    GM_TRANSPOSE_WIDE = 512,    /* vectorised */
    GM_TRANSPOSE_BOX = 128      /* bulk: bytes of a row of the tile, which the engine's swizzle is made for */
};

/* vectorised: what a tile of items of so many bytes has. */
#define GM_TRANSPOSE_ROWS(size)    ((size) <= 4 ? 128 : (size) == 8 ? 64 : 32)
#define GM_TRANSPOSE_COLUMNS(size) ((size) == 1 ? 256 : (size) == 2 ? 128 : (size) == 4 ? 64 : (size) == 8 ? 32 : 16)
/* bulk: rows of a tile. */
#define GM_TRANSPOSE_BOX_ROWS(size) ((size) == 1 ? 128 : 64)

typedef struct gm_transpose {
    long long rows, columns;       /* of the source, in items */
    long long in_pitch, out_pitch; /* bytes from one row to the next */
    long long in_batch, out_batch; /* from one matrix to the next */
    unsigned int row_tiles, column_tiles;
} gm_transpose;

/* What the driver makes of a matrix for the copy engine: the kernel only hands it on. */
typedef struct gm_tensor_map {
    unsigned long long opaque[16];
} __attribute__((aligned(64))) gm_tensor_map;
