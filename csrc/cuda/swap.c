/* Swaps two axes of equal length inside one array on the device: pairs of tiles change places (kernels/swap.cu). Small
 * squares go through scratch instead, so many at a time that they are still in the cache when they are copied back. */
#include "../base/integers.h"
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

/* How the kernels take an array: `rows` and `columns` are the axes a and b, lanes along the shorter step. */
typedef struct gm_way {
    gm_swap swap;
    int unit, rows, columns, vectors, tile;
    int64_t tiles;
} gm_way;

static gm_way way_of(const gm_array *array, int a, int b)
{
    static const int tile_of[2][17] = {{[1] = 64, [2] = 64, [4] = 64, [8] = 32, [16] = 32},
                                       {[1] = 128, [2] = 64, [4] = 64, [8] = 32, [16] = 32}};
    gm_way way;

    way.unit = batch_of(&way.swap, array, a, b);
    way.rows = llabs(array->strides[a]) >= llabs(array->strides[b]) ? a : b;
    way.columns = a + b - way.rows;
    way.vectors = in_vectors(array, way.rows, way.columns);
    way.tile = tile_of[way.vectors][way.unit];
    way.tiles = gm_pieces(array->shape[a], way.tile);
    return way;
}

/* Bytes of a piece: the cache holds that twice, and a launch is short beside it. Of the least array worth pieces. */
enum { PIECE = 24 << 20, LEAST = 1 << 20 };

/* The longest of the other axes, if there are so many squares that it pays to take them in pieces: where tiles would be
 * mostly empty, or their accesses too many. Else -1. */
static int axis_of_pieces(const gm_array *array, int a, int b, const gm_way *way)
{
    int64_t n = array->shape[a], side = way->tiles * way->tile, square = n * n * array->itemsize;
    int axis = -1;

    for (int i = 0; i < array->ndim; i++)
        if (i != a && i != b && (axis < 0 || array->shape[i] > array->shape[axis]))
            axis = i;
    int64_t squares = way->swap.batch.units / (array->itemsize / way->unit);
    if (axis < 0 || array->shape[axis] == 1 || squares * square < LEAST)
        return -1;
    int64_t rest = squares / array->shape[axis];
    int poor = side * side >= 2 * n * n || (!way->vectors && way->unit <= 2);
    return poor && square * rest <= PIECE ? axis : -1;
}

/* Pieces along an axis: each is transposed into scratch by the kernels that move, and copied back from the cache. */
static gm_status swap_pieces(int device, void *stream, const gm_array *array, int a, int b, int axis,
                             gm_failure *failure)
{
    int64_t swapped[GM_MAX_NDIM], dense[GM_MAX_NDIM], shape[GM_MAX_NDIM], bytes = array->itemsize;
    void *scratch = NULL;

    for (int i = 0; i < array->ndim; i++) {
        shape[i] = array->shape[i];
        swapped[i] = array->strides[i == a ? b : i == b ? a : i];
        if (i != axis)
            bytes *= shape[i];
    }
    int64_t most = gm_least(shape[axis], PIECE / bytes);
    gm_status status = gm_cuda_alloc(device, stream, most * bytes, &scratch, failure);
    for (int64_t first = 0; status == GM_OK && first < array->shape[axis]; first += most) {
        char *data = (char *)array->data + first * array->strides[axis];
        gm_plan there, back;
        shape[axis] = gm_least(most, array->shape[axis] - first);
        for (int64_t i = array->ndim - 1, step = array->itemsize; i >= 0; step *= shape[i--])
            dense[i] = step;
        gm_plan_make(&there, array->itemsize, array->ndim, shape, swapped, dense);
        gm_plan_make(&back, array->itemsize, array->ndim, shape, dense, array->strides);
        status = gm_cuda_move(device, stream, &there, scratch, data, GM_STAGE_COUNT, failure);
        if (status == GM_OK)
            status = gm_cuda_move(device, stream, &back, data, scratch, GM_STAGE_COUNT, failure);
    }
    if (scratch)
        gm_cuda_free(device, stream, scratch);
    return status;
}

static gm_status swap_squares(gm_gpu *gpu, CUstream stream, const gm_array *array, const gm_way *way,
                              gm_failure *failure)
{
    enum { THREADS = 256 };
    static const char *const names[] = {"swap_axes", "swap_vectors"};
    gm_swap swap = way->swap;
    char name[32], *data = array->data;

    swap.n = array->shape[way->rows];
    swap.row = array->strides[way->rows];
    swap.column = array->strides[way->columns];
    swap.pairs = way->tiles * (way->tiles + 1) / 2;
    if (swap.batch.units > INT32_MAX / swap.pairs) {
        snprintf(failure->text, sizeof failure->text, "%lld squares of %lld x %lld: too many for one launch",
                 (long long)swap.batch.units, swap.n, swap.n);
        return failure->status = GM_CUDA_ERROR;
    }
    snprintf(name, sizeof name, "%s_%d", names[way->vectors], way->unit);
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
    if (!gpu)
        return failure->status;
    gm_way way = way_of(array, a, b);
    int axis = axis_of_pieces(array, a, b, &way);
    if (axis >= 0)
        return swap_pieces(device, stream, array, a, b, axis, failure);
    if (gm_visit_begin(&visit, gpu, failure) != GM_OK)
        return failure->status;
    gm_status status = swap_squares(gpu, (CUstream)stream, array, &way, failure);
    gm_visit_end(&visit);
    return status;
}
