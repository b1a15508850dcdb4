/* Swaps two axes of equal length inside one array on the device: small squares without gaps are turned by a block each;
 * others go through scratch where there are many and tiles suit them badly; otherwise pairs of tiles change places. */
#include "swap.h"
#include <stdio.h>

static gm_work work_of(const gm_array *array, int a, int b)
{
    const int64_t words[] = {array->itemsize, a, b, (uintptr_t)array->data % GM_WORK_LINE};
    gm_work work;

    gm_work_begin(&work, GM_WORK_SWAP);
    gm_work_add(&work, words, 4);
    gm_work_add(&work, array->shape, array->ndim);
    gm_work_add(&work, array->strides, array->ndim);
    return work;
}

/* Inside a visit. */
static gm_status swap(gm_gpu *gpu, void *stream, const gm_array *array, int a, int b, gm_failure *failure)
{
    gm_swap_packed packed;
    gm_swap_tiles tiles;

    gm_work work = work_of(array, a, b);
    gm_prepared *made = gm_prepared_find(gpu, &work, array->data);
    if (!made && gm_swap_held_make(&packed, gpu, array, a, b)) {
        made = gm_prepared_new(gpu, &work, array->data);
        gm_swap_held_prepare(made, &packed, array);
    } else if (!made) {
        gm_swap_tiles_make(&tiles, gpu, array, a, b);
        int axis = tiles.poor ? gm_swap_pieces_axis(array, a, b) : -1;
        if (axis >= 0)
            return gm_swap_pieces(gpu->ordinal, stream, array, a, b, axis, failure);
        if (!gm_swap_tiles_fit(&tiles)) {
            snprintf(failure->text, sizeof failure->text, "%lld squares of %lld x %lld: too many for one launch",
                     tiles.swap.batch.units, tiles.swap.n, tiles.swap.n);
            return failure->status = GM_CUDA_ERROR;
        }
        made = gm_prepared_new(gpu, &work, array->data);
        gm_swap_tiles_prepare(made, &tiles);
    }
    return gm_prepared_launch(gpu, (CUstream)stream, made, array->data, array->data, failure);
}

gm_status gm_cuda_swap_axes(int device, void *stream, const gm_array *array, int a, int b, gm_failure *failure)
{
    gm_visit visit;

    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return GM_OK;
    if (a == b || array->shape[a] == 1)
        return GM_OK;
    gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    gm_status status = swap(gpu, stream, array, a, b, failure);
    gm_visit_end(&visit);
    return status;
}
