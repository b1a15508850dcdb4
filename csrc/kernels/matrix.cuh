/* Where a tile, its rows and its columns lie. */
#pragma once
#include "matrix.h"
#include "walk.cuh"

/* Where index `n` of a chain of axes lies on both sides. */
__device__ __forceinline__ gm_place gm_matrix_place(const gm_walk_axis *axis, int naxes, unsigned int n)
{
    gm_place at = {0, 0};

#pragma unroll 1
    for (int k = 0; k < naxes; k++) {
        unsigned int next = 0, index = n;
        if (k + 1 < naxes) { /* the last one is never divided by: there may be indices beyond its end */
            next = gm_divide(n, axis[k].magic, axis[k].shift);
            index = n - next * axis[k].len;
        }
        at.src += index * axis[k].src;
        at.dst += index * axis[k].dst;
        n = next;
    }
    return at;
}

typedef struct gm_matrix_tile_place {
    gm_place at;              /* of its matrix */
    unsigned int row, column; /* its first */
} gm_matrix_tile_place;

/* Block after block goes down the source's columns: neighbours write the same parts of the destination. (A list of axes
 * in any order, looked up one by one, made all of matrix.cu's tiles 1 % slower.) */
__device__ __forceinline__ gm_matrix_tile_place gm_matrix_tile_of(const gm_matrix &p, unsigned int block, int rows,
                                                                  int columns)
{
    unsigned int rest = gm_divide(block, p.row_tiles.magic, p.row_tiles.shift);
    gm_place before = {0, 0};
    gm_matrix_tile_place tile;

    tile.row = (block - rest * p.row_tiles.n) * rows;
#pragma unroll 1
    for (int k = 0; k < p.between; k++) {
        unsigned int next = gm_divide(rest, p.batch[k].magic, p.batch[k].shift), index = rest - next * p.batch[k].len;
        before.src += index * p.batch[k].src;
        before.dst += index * p.batch[k].dst;
        rest = next;
    }
    unsigned int number = gm_divide(rest, p.column_tiles.magic, p.column_tiles.shift);
    tile.column = (rest - number * p.column_tiles.n) * columns;
    tile.at = gm_matrix_place(p.batch + p.between, p.nbatch - p.between, number);
    tile.at.src += before.src;
    tile.at.dst += before.dst;
    return tile;
}
