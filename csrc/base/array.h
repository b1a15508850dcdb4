/* An array as both back ends see it: where the items lie. It owns nothing. */
#pragma once
#include <stdint.h>

enum { GM_MAX_NDIM = 64 };

typedef enum gm_device_kind { GM_CPU, GM_CUDA } gm_device_kind;

typedef struct gm_array {
    char *data; /* the item at index 0, 0, ...; may be NULL when there are no items */
    int64_t itemsize;
    int ndim;
    int64_t shape[GM_MAX_NDIM];
    int64_t strides[GM_MAX_NDIM]; /* bytes; any sign; meaningless for an axis of length 1 */
    gm_device_kind device;
    int device_id;
    void *stream; /* the CUDA stream on which the data is ready; NULL on the CPU */
} gm_array;

/* Only as much of shape and strides as is set: of the whole, 1 KB is not. */
static inline void gm_array_copy(gm_array *to, const gm_array *from)
{
    to->data = from->data;
    to->itemsize = from->itemsize;
    to->ndim = from->ndim;
    to->device = from->device;
    to->device_id = from->device_id;
    to->stream = from->stream;
    for (int i = 0; i < from->ndim; i++) {
        to->shape[i] = from->shape[i];
        to->strides[i] = from->strides[i];
    }
}
