/* Many squares that tiles suit badly: piece after piece is transposed into scratch by the kernels that move, so large
 * that it is still in the cache when it is copied back. */
#include "swap.h"
#include "../base/integers.h"

/* Bytes of a piece: the cache holds that twice, and a launch is short beside it. Of the least array worth pieces. */
enum { PIECE = 24 << 20, LEAST = 1 << 20 };

int gm_swap_pieces_axis(const gm_array *array, int a, int b)
{
    int64_t square = array->shape[a] * array->shape[a] * array->itemsize, squares = 1;
    int longest = -1;

    for (int i = 0; i < array->ndim; i++)
        if (i != a && i != b) {
            squares *= array->shape[i];
            if (longest < 0 || array->shape[i] > array->shape[longest])
                longest = i;
        }
    if (squares == 1 || squares * square < LEAST || squares / array->shape[longest] * square > PIECE)
        return -1;
    return longest;
}

gm_status gm_swap_pieces(int device, void *stream, const gm_array *array, int a, int b, int axis, gm_failure *failure)
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
