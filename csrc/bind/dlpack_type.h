/* Which DLPack types and tensors gpumem takes. */
#pragma once
#include "dlpack.h"

/* 0, or -1 with a BufferError: fills in data, item size, shape and byte strides. */
int gm_dlpack_view(const DLTensor *tensor, gm_array *array);

/* 0, or -1 with a BufferError that names the device. */
int gm_dlpack_check_device(int device_type);

/* Takes over a managed tensor, also when it is refused: 0, or -1 with a BufferError. */
int gm_dlpack_adopt(DLManagedTensorVersioned *managed, gm_dlpack_tensor *tensor);

/* The letter of the struct module for PEP 3118, NULL where there is none. */
const char *gm_dlpack_format(DLDataType type);
