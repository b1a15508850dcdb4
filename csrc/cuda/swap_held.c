/* Squares without gaps, of which a block holds one at least: it reads them whole before it writes them back transposed
 * (kernels/swap_packed.cu); those of one and two bytes are a batch of permutes of bytes (kernels/batch.cu). */
#include "swap.h"
#include "../base/integers.h"
#include "batch.h"
#include "images.h"
#include "walk.h"

enum { VECTOR = 16 };

/* Rows of whole vectors that are too many for a block to hold their squares as well as pairs of tiles do. */
static int better_in_tiles(const gm_array *array, int a, int b)
{
    static const int rows[] = {[1] = 128, [2] = 64, [4] = 128, [8] = 128, [16] = 64};
    int column = array->strides[a] == array->itemsize ? a : b;

    return array->shape[a] >= rows[array->itemsize] && gm_swap_in_vectors(array, a + b - column, column);
}

int gm_swap_held_make(gm_swap_packed *packed, const gm_gpu *gpu, const gm_array *array, int a, int b)
{
    enum { MOST = 96 * 1024, WANTED = 16 * 1024, ALIGNED = 32 };
    int64_t itemsize = array->itemsize, n = array->shape[a];
    int64_t low = gm_least(array->strides[a], array->strides[b]);
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
    packed->by_n = gm_walk_axis_of((gm_axis){.len = n});
    packed->by_square = gm_walk_axis_of((gm_axis){.len = n * n});
    packed->squares = run / bytes;
    int64_t each = gm_most(1, WANTED / bytes), whole = ALIGNED / (int64_t)gm_common((uint64_t)bytes, ALIGNED);
    if (whole > 1 && each > whole) /* so that blocks meet between sectors */
        each = each / whole * whole;
    packed->each = (unsigned)gm_least(each, packed->squares);
    packed->pieces = gm_pieces(packed->squares, packed->each);
    return packed->pieces <= INT32_MAX / packed->batch.units;
}

/* Small squares of one and two bytes, as a batch of permutes of bytes. */
static int in_batch(gm_batch_launch *made, const gm_swap_packed *packed, const gm_array *array, int processors)
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
    return gm_batch_make(made, &plan, array->data, array->data, processors);
}

/* Lanes make vectors side by side, whose items are from rows that follow one another; those that would be on one bank
 * begin with other items. */
static void choose_turn(gm_swap_packed *packed, int itemsize)
{
    static const int shift[2][3] = {{3, 2, 1}, {3, 2, 2}}, step[2][3] = {{4, 2, 1}, {2, 1, 1}};
    int twos = packed->n % 2 ? 0 : packed->n % 4 ? 1 : 2;

    packed->turn_shift = shift[itemsize - 1][twos];
    packed->turn_step = step[itemsize - 1][twos];
}

void gm_swap_held_prepare(gm_prepared *to, const gm_swap_packed *packed, const gm_array *array)
{
    int64_t bytes = (int64_t)packed->each * packed->square * array->itemsize;
    int size = (int)array->itemsize, gathered = size < 4 && (int)packed->n * size >= VECTOR;
    int word = gathered ? VECTOR : size < 4 ? 4 : size;
    gm_batch_launch made;

    if (in_batch(&made, packed, array, to->gpu->figures.processors)) {
        to->parameter.batch = made.batch;
        gm_prepared_set(to, gm_entry_find("move_batch"), made.blocks, made.threads, made.shared);
        return;
    }
    to->parameter.packed = *packed;
    to->in_place = 1;
    if (gathered)
        choose_turn(&to->parameter.packed, size);
    gm_prepared_set(to, gm_entry_sized(gathered ? "swap_gathered" : "swap_packed", size),
                    packed->pieces * packed->batch.units,
                    bytes > 24 * 1024  ? 512
                    : bytes > 4 * 1024 ? 256
                                       : 64,
                    (unsigned)GM_SWAP_PACKED_SHARED(bytes, word));
}
