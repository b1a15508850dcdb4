#include "stream.h"
#include "raise.h"

/* (version, handle), of which the protocol has version 0 only. */
static int from_protocol(PyObject *object, PyObject *answer, void **stream)
{
    if (!PyTuple_Check(answer) || PyTuple_Size(answer) != 2)
        return gm_raise(GM_DLPACK_PAIR, "__cuda_stream__", answer);
    long version = PyLong_AsLong(PyTuple_GetItem(answer, 0));
    if (version == -1 && PyErr_Occurred())
        return -1;
    if (version != 0)
        return gm_raise(GM_CUDA_STREAM, object);
    *stream = gm_stream_of_handle(PyLong_AsVoidPtr(PyTuple_GetItem(answer, 1)));
    return PyErr_Occurred() ? -1 : 0;
}

int gm_stream_from(const gm_state *state, PyObject *object, void **stream)
{
    *stream = NULL;
    if (!object || object == Py_None)
        return 0;
    if (PyLong_Check(object)) {
        /* An address may have its highest bit set. */
        *stream = PyLong_AsVoidPtr(object);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            *stream = NULL;
        }
        return *stream && (intptr_t)*stream != -1 ? 0 : gm_raise(GM_CUDA_STREAM, object);
    }
    PyObject *answer = PyObject_CallMethodObjArgs(object, state->names.cuda_stream, NULL);
    if (!answer) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return gm_raise(GM_CUDA_STREAM, object);
    }
    int rc = from_protocol(object, answer, stream);
    Py_DECREF(answer);
    return rc;
}

int gm_stream_of_table(const DLPackExchangeAPI *api, int device, void **stream)
{
    void *handle = NULL;

    if (api->current_work_stream(kDLCUDA, device, &handle) != 0)
        return PyErr_Occurred() ? -1 : gm_raise(GM_DLPACK_NOTHING, "current_work_stream");
    *stream = gm_stream_of_handle(handle);
    return 0;
}

int gm_stream_order(int device, void *first, void *later)
{
    gm_failure failure;

    if (first == later)
        return 0;
    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = gm_cuda_order(device, first, later, &failure);
    PyEval_RestoreThread(saved);
    return status == GM_OK ? 0 : gm_raise(status, failure.text);
}

void gm_stream_join(int device, void *first, void *later)
{
    gm_failure ignored;

    if (first == later)
        return;
    PyThreadState *saved = PyEval_SaveThread();
    if (gm_cuda_order(device, first, later, &ignored) != GM_OK)
        gm_cuda_wait(device, first, &ignored);
    PyEval_RestoreThread(saved);
}
