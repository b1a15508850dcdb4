/* Swaps two axes of equal length inside one array on the device: small squares without gaps are turned by a block each;
 * others go through scratch where there are many and tiles suit them badly; otherwise pairs of tiles change places. */
#include "swap.h"

gm_status gm_cuda_swap_axes(int device, void *stream, const gm_array *array, int a, int b, gm_failure *failure)
{
    gm_swap_packed packed;
    gm_swap_tiles tiles;
    gm_visit visit;

    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return GM_OK;
    if (a == b || array->shape[a] == 1)
        return GM_OK;
    gm_gpu *gpu = gm_gpu_get(device, failure);
    if (!gpu)
        return failure->status;
    int held = gm_swap_held_make(&packed, gpu, array, a, b);
    if (!held) {
        gm_swap_tiles_make(&tiles, gpu, array, a, b);
        int axis = tiles.poor ? gm_swap_pieces_axis(array, a, b) : -1;
        if (axis >= 0)
            return gm_swap_pieces(device, stream, array, a, b, axis, failure);
    }
    if (gm_visit_begin(&visit, gpu, failure) != GM_OK)
        return failure->status;
    gm_status status = held ? gm_swap_held(gpu, (CUstream)stream, &packed, array, failure)
                            : gm_swap_tiles_launch(gpu, (CUstream)stream, &tiles, array->data, failure);
    gm_visit_end(&visit);
    return status;
}
