#include "devices.h"
#include "inspect.h"
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

PyObject *gm_py_cuda_move(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
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
    char *src = PyLong_AsVoidPtr(args[6]), *dst = PyLong_AsVoidPtr(args[7]);
    if (PyErr_Occurred() || gm_plan_from(args + 2, &plan) < 0)
        return NULL;
    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = gm_cuda_move(device, stream, &plan, dst, src, GM_STAGE_COUNT, &failure);
    PyEval_RestoreThread(saved);
    if (status != GM_OK) {
        gm_raise(status, failure.text);
        return NULL;
    }
    Py_RETURN_NONE;
}
