/* The ways to swap two axes of equal length inside one array on a device, a file each; swap.c chooses. The array has
 * items, and these axes more than one index. */
#pragma once
#include "backend.h"
#include "gpu.h"
#include "prepared.h"
#include "../kernels/swap.h"

/* Squares that a block holds (swap_held.c): whether these are such, and how blocks share them out. */
int gm_swap_held_make(gm_swap_packed *packed, const gm_gpu *gpu, const gm_array *array, int a, int b);
void gm_swap_held_prepare(gm_prepared *to, const gm_swap_packed *packed, const gm_array *array);

/* Pairs of tiles (swap_tiles.c): the kernel for them, which takes any squares. */
typedef enum gm_swap_kind {
    GM_SWAP_KIND_swap_axes,
    GM_SWAP_KIND_swap_vectors,
    GM_SWAP_KIND_swap_rows,
    GM_SWAP_KIND_swap_even
} gm_swap_kind;

typedef struct gm_swap_kernel {
    const char *name;
    gm_swap_kind kind;
    int unit, tile, threads, least, shared; /* bytes, for any pitch */
} gm_swap_kernel;

typedef struct gm_swap_tiles {
    gm_swap swap;
    const gm_swap_kernel *kernel;
    int poor; /* tiles would be mostly empty, or their accesses too many */
} gm_swap_tiles;

void gm_swap_tiles_make(gm_swap_tiles *tiles, const gm_gpu *gpu, const gm_array *array, int a, int b);
/* Whether a launch has enough blocks for them. */
int gm_swap_tiles_fit(const gm_swap_tiles *tiles);
void gm_swap_tiles_prepare(gm_prepared *to, const gm_swap_tiles *tiles);

/* Whether every row is a whole number of aligned vectors. */
int gm_swap_in_vectors(const gm_array *array, int row, int column);

/* Pieces through scratch (swap_pieces.c): the axis that they are cut along; -1 if there are too few squares for it to
 * pay, or no piece is small enough. */
int gm_swap_pieces_axis(const gm_array *array, int a, int b);
gm_status gm_swap_pieces(int device, void *stream, const gm_array *array, int a, int b, int axis, gm_failure *failure);
