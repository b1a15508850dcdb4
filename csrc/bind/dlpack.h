/* DLPack: tensors of other libraries in, results of their kind out. */
#pragma once
#include "python.h"
#include "state.h"
#include <dlpack/dlpack.h>

typedef struct gm_dlpack_tensor {
    gm_array array; /* byte strides */
    DLDataType dtype;
    int readonly;
} gm_dlpack_tensor;

/* Whether the type of `object` speaks DLPack. */
int gm_dlpack_speaks(PyObject *object);
/* 0, or -1 with an exception. On success the caller releases it: exactly one deleter call. */
int gm_dlpack_import(gm_state *state, PyObject *object, gm_dlpack_tensor *tensor);
void gm_dlpack_release(gm_dlpack_tensor *tensor);

/* Memory for a result of the library of `like`, dense in C order; finished or discarded by the caller. */
int gm_dlpack_empty(gm_state *state, const gm_dlpack_tensor *like, int ndim, const int64_t *shape, DLDataType dtype,
                    gm_dlpack_tensor *result);
/* A new reference, or NULL with an exception; `result` is gone either way. */
PyObject *gm_dlpack_finish(gm_state *state, const gm_dlpack_tensor *like, gm_dlpack_tensor *result);
void gm_dlpack_discard(gm_dlpack_tensor *result);

/* "float32", "bfloat16", ...: for error texts. A new reference. */
PyObject *gm_dlpack_dtype_name(DLDataType dtype);
