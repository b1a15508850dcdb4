/* Swaps two axes of equal length inside one array on the device. */
#include "backend.h"
#include "gpu.h"
#include "images.h"
#include "walk.h"
#include "../kernels/swap.h"
#include <stdio.h>
#include <stdlib.h>

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

/* Whether every row is a whole number of aligned vectors. */
static int in_vectors(const gm_array *array, int row, int column)
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

static gm_status swap_squares(gm_gpu *gpu, CUstream stream, const gm_array *array, int a, int b, gm_failure *failure)
{
    enum { THREADS = 256, VECTOR = 16 };
    static const int tile_of[2][VECTOR + 1] = {{[1] = 64, [2] = 64, [4] = 64, [8] = 32, [16] = 32},
                                               {[1] = 128, [2] = 64, [4] = 64, [8] = 32, [16] = 32}};
    static const char *const names[] = {"swap_axes", "swap_vectors"};
    gm_swap swap;
    char name[32], *data = array->data;
    int unit = batch_of(&swap, array, a, b);
    int rows = llabs(array->strides[a]) >= llabs(array->strides[b]) ? a : b; /* lanes along the shorter step */
    int vectors = in_vectors(array, rows, a + b - rows), tile = tile_of[vectors][unit];
    int64_t tiles = (array->shape[a] + tile - 1) / tile;

    swap.n = array->shape[a];
    swap.row = array->strides[rows];
    swap.column = array->strides[a + b - rows];
    swap.pairs = tiles * (tiles + 1) / 2;
    if (swap.batch.units > INT32_MAX / swap.pairs) {
        snprintf(failure->text, sizeof failure->text, "%lld squares of %lld x %lld: too many for one launch",
                 (long long)swap.batch.units, swap.n, swap.n);
        return failure->status = GM_CUDA_ERROR;
    }
    snprintf(name, sizeof name, "%s_%d", names[vectors], unit);
    gm_launch launch = {.entry = gm_entry_find(name),
                        .grid = {(unsigned)(swap.pairs * swap.batch.units), 1, 1},
                        .block = {THREADS, 1, 1},
                        .stream = stream};
    void *arguments[] = {&data, &swap};
    return gm_gpu_launch(gpu, &launch, arguments, failure);
}

gm_status gm_cuda_swap_axes(int device, void *stream, const gm_array *array, int a, int b, gm_failure *failure)
{
    gm_visit visit;

    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return GM_OK;
    if (a == b || array->shape[a] == 1)
        return GM_OK;
    gm_gpu *gpu = gm_gpu_get(device, failure);
    if (!gpu || gm_visit_begin(&visit, gpu, failure) != GM_OK)
        return failure->status;
    gm_status status = swap_squares(gpu, (CUstream)stream, array, a, b, failure);
    gm_visit_end(&visit);
    return status;
}
