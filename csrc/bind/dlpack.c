#include "dlpack.h"

int gm_dlpack_speaks(PyObject *object)
{
    (void)object;
    return 0;
}

int gm_dlpack_import(gm_state *state, PyObject *object, gm_dlpack_tensor *tensor)
{
    (void)state, (void)object, (void)tensor;
    return -1;
}

void gm_dlpack_release(gm_dlpack_tensor *tensor)
{
    (void)tensor;
}

int gm_dlpack_empty(gm_state *state, const gm_dlpack_tensor *like, int ndim, const int64_t *shape, DLDataType dtype,
                    gm_dlpack_tensor *result)
{
    (void)state, (void)like, (void)ndim, (void)shape, (void)dtype, (void)result;
    return -1;
}

PyObject *gm_dlpack_finish(gm_state *state, const gm_dlpack_tensor *like, gm_dlpack_tensor *result)
{
    (void)state, (void)like, (void)result;
    return NULL;
}

void gm_dlpack_discard(gm_dlpack_tensor *result)
{
    (void)result;
}

PyObject *gm_dlpack_dtype_name(DLDataType dtype)
{
    return PyUnicode_FromFormat("%d-bit", dtype.bits);
}
