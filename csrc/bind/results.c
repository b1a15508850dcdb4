#include "results.h"
#include "../base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { LARGE = 64 << 10 }; /* bytes: below, NumPy's own memory is had sooner and lies as well */

static void *take(void *context, size_t size)
{
    (void)context;
    return gm_alloc(size);
}

static void *take_cleared(void *context, size_t count, size_t size)
{
    void *memory = size && count > (size_t)-1 / size ? NULL : take(context, count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

/* ndarray.resize(): where the memory moves, it may lie as NumPy's does. */
static void *resize(void *context, void *memory, size_t size)
{
    (void)context;
    return realloc(memory, size);
}

static void give_back(void *context, void *memory, size_t size)
{
    (void)context, (void)size;
    gm_free(memory);
}

static const PyDataMem_Handler handler = {"gpumem", 1, {NULL, take, take_cleared, resize, give_back}};

int gm_results_init(gm_state *state)
{
    state->results = PyCapsule_New((void *)&handler, "mem_handler", NULL);
    return state->results ? 0 : -1;
}

PyObject *gm_new_result(gm_state *state, PyArray_Descr *descr, int ndim, const int64_t *shape)
{
    int64_t bytes = PyDataType_ELSIZE(descr);
    for (int i = 0; i < ndim; i++)
        bytes *= shape[i];
    PyObject *usual = bytes >= LARGE ? PyDataMem_SetHandler(state->results) : NULL;
    if (!usual && PyErr_Occurred())
        return NULL;
    Py_INCREF((PyObject *)descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, (npy_intp *)shape, NULL, NULL, 0, NULL);
    if (usual) {
        PyObject *ours = PyDataMem_SetHandler(usual);
        Py_DECREF(usual);
        Py_XDECREF(ours);
        if (!ours)
            Py_CLEAR(array);
    }
    return array;
}
