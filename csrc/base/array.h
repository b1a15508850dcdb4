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
