/* Squares of any size and steps: pairs of tiles on either side of the diagonal change places (kernels/swap.cu). */
#include "swap.h"
#include "../base/integers.h"
#include "../base/overlap.h"
#include "images.h"
#include "walk.h"
#include <stdlib.h>

#define TILE(name, size, type, tile, threads, least)                                                                   \
    {#name "_" #size "_" #tile, GM_SWAP_KIND_##name, size, tile, threads, least, GM_SWAP_SHARED(name, size, tile)},
#define ROWS(name, size, type, tile, threads, least, blocks)                                                           \
    {#name "_" #size "_" #tile,                                                                                        \
     GM_SWAP_KIND_##name,                                                                                              \
     size,                                                                                                             \
     tile,                                                                                                             \
     threads,                                                                                                          \
     least,                                                                                                            \
     2 * GM_SWAP_ROWS_IMAGE(size, tile, (tile) * (size) + 15 + GM_SWAP_SECTOR)},
static const gm_swap_kernel kernels[] = {GM_SWAP_TILES(TILE) GM_SWAP_ROWS_TILES(ROWS)};
#undef TILE
#undef ROWS

/* The last of them that suits squares of n rows and fits the device's shared memory, or NULL. */
static const gm_swap_kernel *kernel_for(int unit, gm_swap_kind kind, int64_t n, int most_shared)
{
    const gm_swap_kernel *best = NULL;

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].unit == unit && kernels[i].kind == kind && n >= kernels[i].least &&
            kernels[i].shared <= most_shared)
            best = &kernels[i];
    return best;
}

/* The other axes, and the units of an item, as a plan whose items are squares; returns the bytes of a unit. */
static int batch_of(gm_swap *swap, const gm_array *array, int a, int b)
{
    gm_plan batch = {.items = 1};
    uint64_t bits = 16 | (uint64_t)array->itemsize | (uint64_t)(uintptr_t)array->data;

    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] != 1) /* the stride of such an axis means nothing */
            bits |= (uint64_t)array->strides[i];
    int unit = (int)(bits & (0 - bits));
    for (int i = 0; i < array->ndim; i++)
        if (i != a && i != b && array->shape[i] != 1) {
            batch.axis[batch.naxes++] = (gm_axis){array->shape[i], array->strides[i], 0};
            batch.items *= array->shape[i];
        }
    batch.item = array->itemsize;
    gm_walk_make(&swap->batch, &batch, unit);
    return unit;
}

int gm_swap_in_vectors(const gm_array *array, int row, int column)
{
    enum { VECTOR = 16 };
    int64_t itemsize = array->itemsize;
    uint64_t bits = (uint64_t)(uintptr_t)array->data | (uint64_t)(array->shape[row] * itemsize);

    if (array->strides[column] != itemsize || VECTOR % itemsize)
        return 0;
    for (int i = 0; i < array->ndim; i++)
        if (i != column && array->shape[i] != 1)
            bits |= (uint64_t)array->strides[i];
    return bits % VECTOR == 0;
}

void gm_swap_tiles_make(gm_swap_tiles *tiles, const gm_gpu *gpu, const gm_array *array, int a, int b)
{
    gm_swap *swap = &tiles->swap;
    int rows = llabs(array->strides[a]) >= llabs(array->strides[b]) ? a : b, columns = a + b - rows;
    int unit = batch_of(swap, array, a, b), most_shared = gpu->figures.shared_bytes;
    int64_t n = array->shape[a];
    uintptr_t low, high;

    gm_span(array, &low, &high);
    tiles->kernel = NULL;
    if (gm_swap_in_vectors(array, rows, columns)) {
        tiles->kernel = kernel_for(unit, GM_SWAP_KIND_swap_even, n, most_shared);
        if (!tiles->kernel)
            tiles->kernel = kernel_for(unit, GM_SWAP_KIND_swap_vectors, n, most_shared);
    } else if (array->strides[columns] == unit && array->itemsize == unit)
        tiles->kernel = kernel_for(unit, GM_SWAP_KIND_swap_rows, n, most_shared);
    if (!tiles->kernel)
        tiles->kernel = kernel_for(unit, GM_SWAP_KIND_swap_axes, n, most_shared);
    int tile = tiles->kernel->tile;
    int64_t count = gm_pieces(n, tile), side = count * tile;
    tiles->poor = side * side >= 2 * n * n || (tiles->kernel->kind == GM_SWAP_KIND_swap_axes && unit <= 2);
    swap->n = n;
    swap->row = array->strides[rows]; /* lanes run along the shorter step */
    swap->column = array->strides[columns];
    swap->pitch = GM_SWAP_ROWS_PITCH(unit, tile, swap->row);
    swap->image = GM_SWAP_ROWS_IMAGE(unit, tile, swap->pitch);
    swap->end = high;
    swap->side = count >= 96 && tiles->kernel->kind == GM_SWAP_KIND_swap_rows ? 32
                 : count >= 32                                                ? 8
                 : count >= 16                                                ? 4
                               : 1; /* of groups on the diagonal, half the blocks idle */
    int64_t groups = gm_pieces(count, swap->side);
    swap->pairs = groups * (groups + 1) / 2 * swap->side * swap->side;
}

int gm_swap_tiles_fit(const gm_swap_tiles *tiles)
{
    return tiles->swap.batch.units <= INT32_MAX / tiles->swap.pairs;
}

void gm_swap_tiles_prepare(gm_prepared *to, const gm_swap_tiles *tiles)
{
    const gm_swap_kernel *kernel = tiles->kernel;

    to->parameter.swap = tiles->swap;
    to->ends = to->in_place = 1;
    gm_prepared_set(to, gm_entry_find(kernel->name), tiles->swap.pairs * tiles->swap.batch.units,
                    (unsigned)kernel->threads,
                    (unsigned)(kernel->kind >= GM_SWAP_KIND_swap_rows ? 2 * tiles->swap.image : kernel->shared));
}
