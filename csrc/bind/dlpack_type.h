/* Which DLPack types and tensors gpumem takes. */
#pragma once
#include "dlpack.h"

/* 0, or -1 with a BufferError: fills in data, item size, shape and byte strides. */
int gm_dlpack_view(const DLTensor *tensor, gm_array *array);

/* Whether memory of that device is taken, and the device can be used: 0, or -1 with an exception that names it. */
int gm_dlpack_check_device(int device_type, int device_id);
/* The same device as the back ends name it. */
gm_device_kind gm_dlpack_device_kind(int device_type);

/* By (kind letter, bytes) of NumPy's type strings; 0 where there is none. */
int gm_dlpack_type_from(char kind, int64_t bytes, DLDataType *type);
const char *gm_dlpack_type_string(DLDataType type, char text[8]);

/* Takes over a managed tensor, also when it is refused: 0, or -1 with a BufferError. */
int gm_dlpack_adopt(DLManagedTensorVersioned *managed, gm_dlpack_tensor *tensor);

/* The letter of the struct module for PEP 3118, NULL where there is none. */
const char *gm_dlpack_format(DLDataType type);
