#include "devices.h"
#include "raise.h"
#include "../cuda/backend.h"

static PyObject *figures_as_dict(const gm_cuda_figures *figures)
{
    /* Two transfers a clock, as memory has them. */
    double peak = 2.0 * figures->memory_khz * 1e3 * figures->bus_bits / 8;
    return Py_BuildValue("{s:s,s:(ii),s:i,s:i,s:i,s:L,s:d,s:(ii)}", "name", figures->name, "capability",
                         figures->capability / 10, figures->capability % 10, "multiprocessors", figures->processors,
                         "l2", figures->l2_bytes, "shared", figures->shared_bytes, "memory",
                         (long long)figures->memory_bytes, "peak", peak, "driver", figures->driver / 1000,
                         figures->driver % 1000 / 10);
}

/* A machine without a device is a normal machine: the reason is part of the answer. */
PyObject *gm_py_cuda(PyObject *module, PyObject *unused)
{
    gm_failure failure = {GM_OK, ""};
    gm_cuda_figures figures;
    (void)module, (void)unused;

    int count = gm_cuda_count(&failure);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        failure.status = gm_cuda_figures_of(i, &figures, &failure);
        PyObject *row = failure.status == GM_OK ? figures_as_dict(&figures) : NULL;
        if (!row && failure.status == GM_OK)
            Py_CLEAR(list);
        else if (!row)
            break;
        else if (PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    if (!list)
        return NULL;
    return Py_BuildValue("{s:s,s:N,s:s}", "chips", gm_cuda_chips(), "devices", list, "reason",
                         failure.status == GM_OK ? "" : failure.text);
}

/* The same number of integers in each of three sequences; how many, or -1 with an exception. */
static int rows_from(PyObject *const *sequences, int64_t (*rows)[GM_MAX_NDIM])
{
    int count = -1;
    for (int k = 0; k < 3; k++) {
        PyObject *tuple = PySequence_Tuple(sequences[k]);
        if (!tuple)
            return -1;
        int length = (int)PyTuple_Size(tuple);
        if (length > GM_MAX_NDIM || (count >= 0 && length != count))
            PyErr_SetString(PyExc_ValueError, "shape and strides of one length, at most 64, are needed");
        count = length;
        for (int i = 0; i < count && !PyErr_Occurred(); i++)
            rows[k][i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        Py_DECREF(tuple);
        if (PyErr_Occurred())
            return -1;
    }
    return count;
}

PyObject *gm_py_cuda_move(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t rows[3][GM_MAX_NDIM]; /* shape, src strides, dst strides */
    gm_failure failure;
    gm_plan plan;
    (void)module;

    if (nargs != 8) {
        PyErr_SetString(PyExc_TypeError,
                        "_cuda_move(device, stream, itemsize, shape, src_strides, dst_strides, src, dst)");
        return NULL;
    }
    int device = (int)PyLong_AsLong(args[0]);
    void *stream = PyLong_AsVoidPtr(args[1]);
    int64_t itemsize = PyLong_AsLongLong(args[2]);
    char *src = PyLong_AsVoidPtr(args[6]), *dst = PyLong_AsVoidPtr(args[7]);
    if (PyErr_Occurred())
        return NULL;
    int ndim = rows_from(args + 3, rows);
    if (ndim < 0)
        return NULL;
    gm_plan_make(&plan, itemsize, ndim, rows[0], rows[1], rows[2]);
    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = gm_cuda_move(device, stream, &plan, dst, src, GM_STAGE_COUNT, &failure);
    PyEval_RestoreThread(saved);
    if (status != GM_OK) {
        gm_raise(status, failure.text);
        return NULL;
    }
    Py_RETURN_NONE;
}
