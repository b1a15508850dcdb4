/* Swaps two axes of equal length inside one array: item by item. */
#include "cpu.h"
#include <string.h>

static void exchange(char *a, char *b, int64_t size)
{
    char kept[64];
    for (int64_t part; size > 0; size -= part, a += part, b += part) {
        part = size < (int64_t)sizeof kept ? size : (int64_t)sizeof kept;
        memcpy(kept, a, (size_t)part);
        memcpy(a, b, (size_t)part);
        memcpy(b, kept, (size_t)part);
    }
}

static void swap_square(const gm_array *array, char *data, int a, int b)
{
    for (int64_t i = 0; i < array->shape[a]; i++)
        for (int64_t j = i + 1; j < array->shape[b]; j++)
            exchange(data + i * array->strides[a] + j * array->strides[b],
                     data + j * array->strides[a] + i * array->strides[b], array->itemsize);
}

gm_status gm_cpu_swap_axes(const gm_cpu *cpu, const gm_array *array, int a, int b)
{
    int64_t index[GM_MAX_NDIM] = {0};
    char *data = array->data;
    (void)cpu;

    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return GM_OK;
    for (;;) {
        swap_square(array, data, a, b);
        int i = array->ndim - 1;
        for (; i >= 0; i--) {
            if (i == a || i == b)
                continue;
            data += array->strides[i];
            if (++index[i] < array->shape[i])
                break;
            data -= array->strides[i] * array->shape[i];
            index[i] = 0;
        }
        if (i < 0)
            return GM_OK;
    }
}
