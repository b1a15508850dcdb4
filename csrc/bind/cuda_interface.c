#include "cuda_interface.h"
#include "dlpack_block.h"
#include "dlpack_type.h"
#include "operand.h"
#include "raise.h"
#include "state.h"
#include "stream.h"
#include <stdlib.h>

/* An entry of the dictionary, borrowed; NULL where it is absent or None. */
static PyObject *entry(PyObject *interface, const char *name)
{
    PyObject *value = PyDict_GetItemString(interface, name);
    return value == Py_None ? NULL : value;
}

/* "<f4" and the like: one byte order only, that of the machine. */
static int read_type(PyObject *interface, DLDataType *type)
{
    PyObject *text = entry(interface, "typestr");
    const char *string = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;

    if (string && (string[0] == '<' || string[0] == '|') && string[1] &&
        gm_dlpack_type_from(string[1], atol(string + 2), type))
        return 0;
    return PyErr_Occurred() ? -1 : gm_raise(GM_INTERFACE_TYPE, text ? text : Py_None);
}

/* A tuple of integers into values[]; how many there are, or -1 with an exception. */
static int read_integers(PyObject *tuple, const char *what, int64_t *values)
{
    if (!tuple || !PyTuple_Check(tuple) || PyTuple_Size(tuple) > GM_MAX_NDIM)
        return gm_raise(GM_INTERFACE, what);
    int count = (int)PyTuple_Size(tuple);
    for (int i = 0; i < count; i++) {
        values[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (values[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return count;
}

/* As a tensor of DLPack's, so that one place knows what is taken. Strides count items there and bytes here. */
static int read_layout(PyObject *interface, gm_dlpack_tensor *tensor)
{
    int64_t shape[GM_MAX_NDIM], strides[GM_MAX_NDIM];
    PyObject *data = entry(interface, "data"), *given = entry(interface, "strides");
    DLTensor view = {.device = {kDLCUDA, 0}, .shape = shape, .byte_offset = 0};
    gm_failure failure;

    if (read_type(interface, &view.dtype) < 0)
        return -1;
    int64_t size = view.dtype.bits / 8;
    view.ndim = read_integers(entry(interface, "shape"), "its shape is no tuple of 64 integers at the most", shape);
    if (view.ndim < 0)
        return -1;
    if (given) {
        if (read_integers(given, "its strides are no tuple", strides) != view.ndim)
            return PyErr_Occurred() ? -1 : gm_raise(GM_INTERFACE, "it has more or fewer strides than axes");
        for (int i = 0; i < view.ndim; i++) {
            if (shape[i] > 1 && strides[i] % size)
                return gm_raise(GM_INTERFACE, "a stride is no multiple of the item size");
            strides[i] /= size;
        }
        view.strides = strides;
    }
    if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2)
        return gm_raise(GM_INTERFACE, "its data is no pair of an address and a flag");
    view.data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    int readonly = PyErr_Occurred() ? -1 : PyObject_IsTrue(PyTuple_GetItem(data, 1));
    if (readonly < 0)
        return -1;
    if (view.data && gm_cuda_device_of(view.data, &view.device.device_id, &failure) != GM_OK)
        return gm_raise(failure.status, failure.text);
    tensor->dtype = view.dtype;
    tensor->readonly = readonly ? "its library says so" : NULL;
    return gm_dlpack_view(&view, &tensor->array);
}

static int read_stream(const gm_state *state, PyObject *interface, void **stream)
{
    PyObject *given = entry(interface, "stream");
    return given && !PyLong_Check(given) ? gm_raise(GM_CUDA_STREAM, given) : gm_stream_from(state, given, stream);
}

static int read_interface(gm_state *state, PyObject *interface, void *stream, gm_dlpack_tensor *tensor)
{
    if (entry(interface, "mask"))
        return gm_raise(GM_INTERFACE, "it has a mask, which would be lost");
    if (read_stream(state, interface, &tensor->home) < 0 || read_layout(interface, tensor) < 0)
        return -1;
    gm_array *array = &tensor->array;
    array->stream = stream ? stream : gm_stream_of_handle(tensor->home);
    return tensor->home ? gm_stream_order(array->device_id, tensor->home, array->stream) : 0;
}

int gm_cuda_interface_import(gm_state *state, PyObject *object, void *stream, gm_dlpack_tensor *tensor)
{
    PyObject *theirs = PyObject_GetAttr(object, state->names.cuda_interface), *ours = NULL;
    int rc = -1;

    /* Entries are borrowed, so of a dictionary that nobody else can change. */
    if (theirs && !PyDict_Check(theirs))
        gm_raise(GM_INTERFACE, "it is no dictionary");
    else if (theirs && (ours = PyDict_Copy(theirs)))
        rc = read_interface(state, ours, stream, tensor);
    Py_XDECREF(ours);
    Py_XDECREF(theirs);
    if (rc == 0)
        tensor->owner.object = Py_NewRef(object);
    return rc;
}

PyObject *gm_cuda_interface_of(gm_block *block)
{
    const DLTensor *tensor = &block->tensor;
    gm_failure failure;
    char text[8];

    if (tensor->device.device_type != kDLCUDA || !gm_dlpack_type_string(tensor->dtype, text)) {
        PyErr_SetString(PyExc_AttributeError, "__cuda_array_interface__");
        return NULL;
    }
    if (gm_block_ready(block, GM_LEGACY_STREAM, &failure) != GM_OK) {
        gm_raise(failure.status, failure.text);
        return NULL;
    }
    PyObject *shape = gm_shape_tuple(tensor->ndim, tensor->shape), *address = PyLong_FromVoidPtr(tensor->data);
    if (!shape || !address) {
        Py_XDECREF(shape);
        Py_XDECREF(address);
        return NULL;
    }
    return Py_BuildValue("{s:i,s:N,s:s,s:(NO),s:O,s:n}", "version", 3, "shape", shape, "typestr", text, "data", address,
                         Py_False, "strides", Py_None, "stream", (Py_ssize_t)(intptr_t)GM_LEGACY_STREAM);
}
