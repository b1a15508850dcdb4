/* Squares of any size and steps: pairs of tiles on either side of the diagonal change places (kernels/swap.cu). */
#include "swap.h"
#include "../base/integers.h"
#include "images.h"
#include "walk.h"
#include <stdlib.h>

#define GM_TILE(name, size, type, tile, threads, least)                                                                \
    {#name "_" #size "_" #tile, GM_SWAP_KIND_##name, size, tile, threads, least, GM_SWAP_SHARED(name, size, tile)},
enum { GM_SWAP_KIND_swap_axes, GM_SWAP_KIND_swap_vectors };
static const gm_swap_kernel kernels[] = {GM_SWAP_TILES(GM_TILE)};
#undef GM_TILE

/* The last of them that suits squares of n rows and fits the device's shared memory; the first of a kind fits all. */
static const gm_swap_kernel *kernel_for(int unit, int vectors, int64_t n, int most_shared)
{
    const gm_swap_kernel *best = NULL;

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].unit == unit && kernels[i].vectors == vectors && n >= kernels[i].least &&
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
    int unit = batch_of(swap, array, a, b), vectors = gm_swap_in_vectors(array, rows, columns);
    int64_t n = array->shape[a];

    tiles->kernel = kernel_for(unit, vectors, n, gpu->figures.shared_bytes);
    int64_t count = gm_pieces(n, tiles->kernel->tile), side = count * tiles->kernel->tile;
    tiles->poor = side * side >= 2 * n * n || (!vectors && unit <= 2);
    swap->n = n;
    swap->row = array->strides[rows]; /* lanes run along the shorter step */
    swap->column = array->strides[columns];
    swap->side = count >= 32 ? 8 : count >= 16 ? 4 : 1; /* of groups on the diagonal, half the blocks idle */
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
    to->in_place = 1;
    gm_prepared_set(to, gm_entry_find(kernel->name), tiles->swap.pairs * tiles->swap.batch.units,
                    (unsigned)kernel->threads, (unsigned)kernel->shared);
}
