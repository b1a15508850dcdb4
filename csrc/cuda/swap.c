/* Swaps two axes of equal length inside one array on the device: pairs of tiles change places (kernels/swap.cu). Small
 * squares without gaps are turned by a block each (kernels/swap_packed.cu; of one and two bytes as a batch of
 * permutes); others go through scratch, so many at a time that they are still in the cache when they are copied back.
 */
#include "../base/integers.h"
#include "backend.h"
#include "batch.h"
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

/* The kernels of pairs of tiles. */
#define GM_TILE(name, size, type, tile, threads, least)                                                                \
    {#name "_" #size "_" #tile, GM_SWAP_KIND_##name, size, tile, threads, least, GM_SWAP_SHARED(name, size, tile)},
enum { GM_SWAP_KIND_swap_axes, GM_SWAP_KIND_swap_vectors };
typedef struct gm_swap_kernel {
    const char *name;
    int vectors, unit, tile, threads, least, shared;
} gm_swap_kernel;
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

/* How the kernels take an array: `rows` and `columns` are the axes a and b, lanes along the shorter step. */
typedef struct gm_way {
    gm_swap swap;
    int unit, rows, columns, vectors;
    const gm_swap_kernel *kernel;
    int64_t tiles;
} gm_way;

static gm_way way_of(const gm_gpu *gpu, const gm_array *array, int a, int b)
{
    gm_way way;

    way.unit = batch_of(&way.swap, array, a, b);
    way.rows = llabs(array->strides[a]) >= llabs(array->strides[b]) ? a : b;
    way.columns = a + b - way.rows;
    way.vectors = in_vectors(array, way.rows, way.columns);
    way.kernel = kernel_for(way.unit, way.vectors, array->shape[a], gpu->figures.shared_bytes);
    way.tiles = gm_pieces(array->shape[a], way.kernel->tile);
    return way;
}

/* Rows of whole vectors that are too many for a block to hold their squares as well as pairs of tiles do. */
static int better_in_tiles(const gm_array *array, int a, int b)
{
    static const int rows[] = {[1] = 128, [2] = 64, [4] = 128, [8] = 128, [16] = 64};
    int column = array->strides[a] == array->itemsize ? a : b;

    return array->shape[a] >= rows[array->itemsize] && in_vectors(array, a + b - column, column);
}

/* Squares without gaps, small enough for a block to hold one at least; 0 where there are others. */
static int in_packs(gm_swap_packed *packed, const gm_gpu *gpu, const gm_array *array, int a, int b)
{
    enum { VECTOR = 16, MOST = 96 * 1024, WANTED = 16 * 1024, ALIGNED = 32 };
    int64_t itemsize = array->itemsize, n = array->shape[a];
    int64_t low = array->strides[a] < array->strides[b] ? array->strides[a] : array->strides[b];
    gm_plan batch = {.items = 1};
    unsigned taken = 0;

    if (n > MOST || itemsize > VECTOR)
        return 0;
    int64_t bytes = n * n * itemsize, run = bytes;
    if (itemsize & (itemsize - 1) || (uintptr_t)array->data % (size_t)itemsize || bytes > MOST ||
        GM_SWAP_PACKED_SHARED(bytes, VECTOR) > gpu->figures.shared_bytes || low != itemsize ||
        array->strides[a] + array->strides[b] != low + n * itemsize || array->ndim > 32 || better_in_tiles(array, a, b))
        return 0;
    for (int i = 0; i < array->ndim; i++)
        if (i == a || i == b || array->shape[i] == 1)
            taken |= 1u << i;
    for (int i = 0; i < array->ndim; i++)
        if (!(taken >> i & 1) && array->strides[i] == run) {
            run *= array->shape[i];
            taken |= 1u << i;
            i = -1; /* an axis before it may go on where this one ends */
        }
    for (int i = 0; i < array->ndim; i++)
        if (!(taken >> i & 1)) {
            if (array->strides[i] % itemsize)
                return 0;
            batch.axis[batch.naxes++] = (gm_axis){array->shape[i], array->strides[i], 0};
            batch.items *= array->shape[i];
        }
    gm_walk_make(&packed->batch, &batch, 0);
    packed->n = (unsigned)n;
    packed->square = (unsigned)(n * n);
    gm_walk_divisor(&packed->by_n, n);
    gm_walk_divisor(&packed->by_square, n * n);
    packed->squares = run / bytes;
    int64_t each = gm_most(1, WANTED / bytes), whole = ALIGNED / (bytes & -bytes);
    if (whole > 1 && each > whole) /* so that blocks meet between sectors */
        each = each / whole * whole;
    packed->each = (unsigned)(each < packed->squares ? each : packed->squares);
    packed->pieces = gm_pieces(packed->squares, packed->each);
    return packed->pieces <= INT32_MAX / packed->batch.units;
}

static gm_status swap_packed(gm_gpu *gpu, CUstream stream, const gm_swap_packed *packed, const gm_array *array,
                             gm_failure *failure)
{
    int64_t bytes = (int64_t)packed->each * packed->square * array->itemsize;
    int word = array->itemsize < 4 ? 4 : (int)array->itemsize;
    char name[32], *data = array->data;

    snprintf(name, sizeof name, "swap_packed_%d", (int)array->itemsize);
    gm_launch launch = {.entry = gm_entry_find(name),
                        .grid = {(unsigned)(packed->pieces * packed->batch.units), 1, 1},
                        .block = {bytes > 24 * 1024  ? 512
                                  : bytes > 4 * 1024 ? 256
                                                     : 64,
                                  1, 1},
                        .shared = (unsigned)GM_SWAP_PACKED_SHARED(bytes, word),
                        .stream = stream};
    void *arguments[] = {&data, (void *)packed};
    return gm_gpu_launch(gpu, &launch, arguments, failure);
}

/* Bytes of a piece: the cache holds that twice, and a launch is short beside it. Of the least array worth pieces. */
enum { PIECE = 24 << 20, LEAST = 1 << 20 };

/* The longest of the other axes, if there are so many squares that it pays to take them in pieces: where tiles would be
 * mostly empty, or their accesses too many. Else -1. */
static int axis_of_pieces(const gm_array *array, int a, int b, const gm_way *way)
{
    int64_t n = array->shape[a], side = way->tiles * way->kernel->tile, square = n * n * array->itemsize;
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
    gm_swap swap = way->swap;
    char *data = array->data;

    swap.n = array->shape[way->rows];
    swap.row = array->strides[way->rows];
    swap.column = array->strides[way->columns];
    swap.side = way->tiles >= 32 ? 8 : way->tiles >= 16 ? 4 : 1; /* of groups on the diagonal, half the blocks idle */
    int64_t groups = gm_pieces(way->tiles, swap.side);
    swap.pairs = groups * (groups + 1) / 2 * swap.side * swap.side;
    if (swap.batch.units > INT32_MAX / swap.pairs) {
        snprintf(failure->text, sizeof failure->text, "%lld squares of %lld x %lld: too many for one launch",
                 (long long)swap.batch.units, swap.n, swap.n);
        return failure->status = GM_CUDA_ERROR;
    }
    gm_launch launch = {.entry = gm_entry_find(way->kernel->name),
                        .grid = {(unsigned)(swap.pairs * swap.batch.units), 1, 1},
                        .block = {(unsigned)way->kernel->threads, 1, 1},
                        .shared = (unsigned)way->kernel->shared,
                        .stream = stream};
    void *arguments[] = {&data, &swap};
    return gm_gpu_launch(gpu, &launch, arguments, failure);
}

/* Small squares of one and two bytes without gaps, as a batch of permutes of bytes: a block reads a piece whole before
 * it writes it. */
static int in_batch(gm_batch_launch *made, const gm_gpu *gpu, const gm_swap_packed *packed, const gm_array *array)
{
    int64_t size = array->itemsize, n = packed->n;
    gm_plan plan = {.item = 1, .items = packed->squares * packed->square * size};

    if (size > 2 || packed->batch.units != 1 || packed->squares < 2)
        return 0;
    plan.axis[plan.naxes++] = (gm_axis){packed->squares, packed->square * size, packed->square * size};
    plan.axis[plan.naxes++] = (gm_axis){n, size, n * size};
    plan.axis[plan.naxes++] = (gm_axis){n, n * size, size};
    if (size > 1)
        plan.axis[plan.naxes++] = (gm_axis){size, 1, 1};
    return gm_batch_make(made, &plan, array->data, array->data, gpu->figures.processors);
}

static gm_status swap_held(gm_gpu *gpu, CUstream stream, const gm_swap_packed *packed, const gm_array *array,
                           gm_failure *failure)
{
    gm_batch_launch made;
    char *data = array->data;

    if (!in_batch(&made, gpu, packed, array))
        return swap_packed(gpu, stream, packed, array, failure);
    gm_launch launch = {.entry = gm_entry_find("move_batch"),
                        .grid = {made.blocks, 1, 1},
                        .block = {made.threads, 1, 1},
                        .shared = made.shared,
                        .stream = stream};
    void *arguments[] = {&data, &data, &made.batch};
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
    gm_swap_packed packed;
    gm_way way;
    int held = in_packs(&packed, gpu, array, a, b);
    if (!held) {
        way = way_of(gpu, array, a, b);
        int axis = axis_of_pieces(array, a, b, &way);
        if (axis >= 0)
            return swap_pieces(device, stream, array, a, b, axis, failure);
    }
    if (gm_visit_begin(&visit, gpu, failure) != GM_OK)
        return failure->status;
    gm_status status = held ? swap_held(gpu, (CUstream)stream, &packed, array, failure)
                            : swap_squares(gpu, (CUstream)stream, array, &way, failure);
    gm_visit_end(&visit);
    return status;
}
