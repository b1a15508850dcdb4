#include "dlpack_array.h"
#include "cuda_interface.h"
#include "dlpack_type.h"
#include "args.h"
#include "operand.h"
#include "place.h"
#include "raise.h"
#include "stream.h"
#include <stddef.h>
#include <string.h>

_Static_assert(sizeof(long) == 8, "the buffer format of 64-bit integers is l");

typedef struct {
    PyObject base;
    gm_block *block;
} array_object;

static const char versioned_name[] = "dltensor_versioned", legacy_name[] = "dltensor";

static gm_block *block_of(PyObject *self)
{
    return ((array_object *)self)->block;
}

PyObject *gm_array_of(gm_state *state, gm_block *block)
{
    array_object *self = PyObject_New(array_object, state->array_type);
    if (!self) {
        gm_block_release(block);
        return NULL;
    }
    self->block = block;
    return (PyObject *)self;
}

gm_block *gm_array_block(const gm_state *state, PyObject *object)
{
    return Py_TYPE(object) == state->array_type ? block_of(object) : NULL;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    gm_block_release(block_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

/* A capsule that nobody consumed: its name tells. */
static void drop_versioned(PyObject *capsule)
{
    DLManagedTensorVersioned *managed;
    if (PyCapsule_IsValid(capsule, versioned_name) && (managed = PyCapsule_GetPointer(capsule, versioned_name)))
        managed->deleter(managed);
}

static void drop_legacy(PyObject *capsule)
{
    DLManagedTensor *managed;
    if (PyCapsule_IsValid(capsule, legacy_name) && (managed = PyCapsule_GetPointer(capsule, legacy_name)))
        managed->deleter(managed);
}

static PyObject *versioned_capsule(gm_block *block, uint64_t flags)
{
    DLManagedTensorVersioned *managed = gm_block_export(block, flags);
    if (!managed) {
        gm_raise(GM_NO_MEMORY, "a DLPack export");
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(managed, versioned_name, drop_versioned);
    if (!capsule)
        managed->deleter(managed);
    return capsule;
}

static PyObject *legacy_capsule(gm_block *block)
{
    DLManagedTensor *managed = gm_block_export_legacy(block);
    if (!managed) {
        gm_raise(GM_NO_MEMORY, "a DLPack export");
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(managed, legacy_name, drop_legacy);
    if (!capsule)
        managed->deleter(managed);
    return capsule;
}

/* A tuple of two integers such as a version or a device. */
static int pair_from(PyObject *object, const char *what, long pair[2])
{
    if (!PyTuple_Check(object) || PyTuple_Size(object) != 2)
        return gm_raise(GM_DLPACK_PAIR, what, object);
    for (int i = 0; i < 2; i++) {
        pair[i] = PyLong_AsLong(PyTuple_GetItem(object, i));
        if (pair[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static int given(PyObject *value)
{
    return value && value != Py_None;
}

/* The array as the back ends see it, as far as its place goes. */
static gm_array place_of(PyObject *self)
{
    DLDevice device = block_of(self)->tensor.device;
    return (gm_array){.device = gm_dlpack_device_kind((int)device.device_type), .device_id = device.device_id};
}

/* The stream that the consumer will read on. *stream is NULL in host memory, and for -1, which asks for no order. */
static int consumer_from(const gm_state *state, const gm_block *block, PyObject *object, void **stream)
{
    *stream = NULL;
    if (!block->stream)
        return given(object) ? gm_raise(GM_STREAM, object) : 0;
    if (!given(object)) {
        *stream = GM_LEGACY_STREAM;
        return 0;
    }
    if (PyLong_Check(object) && PyLong_AsLongLong(object) == -1 && !PyErr_Occurred())
        return 0;
    PyErr_Clear();
    return gm_stream_from(state, object, stream);
}

static int check_to_device(const gm_block *block, PyObject *self, PyObject *object)
{
    DLDevice own = block->tensor.device;
    long asked[2] = {own.device_type, own.device_id};

    if (given(object) && pair_from(object, "dl_device", asked) < 0)
        return -1;
    if (asked[0] == (long)own.device_type && asked[1] == own.device_id)
        return 0;
    gm_array place = place_of(self);
    PyObject *name = gm_place_name(&place);
    if (name)
        gm_raise(GM_DLPACK_TO_DEVICE, object, name, (int)own.device_type, (int)own.device_id);
    Py_XDECREF(name);
    return -1;
}

/* What is exported: the block itself, once the stream waits for its items, or a copy. A new reference. */
static gm_block *exported(gm_block *block, int copy, void *stream)
{
    gm_failure failure = {GM_OK, ""};
    gm_block *made = block;

    PyThreadState *thread = PyEval_SaveThread();
    if (copy)
        made = gm_block_copy(block, stream ? stream : block->stream, &failure);
    else if (stream && gm_block_ready(block, stream, &failure) != GM_OK)
        made = NULL;
    PyEval_RestoreThread(thread);
    if (!made)
        gm_raise(failure.status, failure.text);
    else if (!copy)
        gm_block_retain(made);
    return made;
}

static PyObject *dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const gm_parameters parameters = {.function = "__dlpack__",
                                             .names = {"stream", "max_version", "dl_device", "copy", NULL}};
    const gm_state *state = PyType_GetModuleState(Py_TYPE(self));
    gm_block *block = block_of(self);
    PyObject *values[4];
    long version[2] = {0, 0};
    void *stream;

    if (gm_parse(&parameters, args, nargs, kwnames, values) < 0 ||
        consumer_from(state, block, values[0], &stream) < 0 ||
        (given(values[1]) && pair_from(values[1], "max_version", version) < 0) ||
        check_to_device(block, self, values[2]) < 0)
        return NULL;
    int copy = given(values[3]) ? PyObject_IsTrue(values[3]) : 0;
    if (copy < 0 || !(block = exported(block, copy, stream)))
        return NULL;
    PyObject *capsule =
        version[0] >= 1 ? versioned_capsule(block, copy ? DLPACK_FLAG_BITMASK_IS_COPIED : 0) : legacy_capsule(block);
    gm_block_release(block);
    return capsule;
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
    DLDevice device = block_of(self)->tensor.device;
    (void)unused;
    return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}

static PyObject *get_device(PyObject *self, void *closure)
{
    (void)closure;
    gm_array place = place_of(self);
    return place.device == GM_CUDA ? PyUnicode_FromFormat("cuda:%d", place.device_id) : PyUnicode_FromString("cpu");
}

static PyObject *get_cuda_interface(PyObject *self, void *closure)
{
    (void)closure;
    return gm_cuda_interface_of(block_of(self));
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    return gm_shape_tuple(block_of(self)->tensor.ndim, block_of(self)->tensor.shape);
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return gm_dlpack_dtype_name(block_of(self)->tensor.dtype);
}

static PyObject *get_ndim(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(block_of(self)->tensor.ndim);
}

static PyObject *get_itemsize(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(block_of(self)->tensor.dtype.bits / 8);
}

static PyObject *get_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong(block_of(self)->bytes);
}

static PyObject *repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL), *dtype = get_dtype(self, NULL);
    gm_array place = place_of(self);
    PyObject *text = NULL;
    if (shape && dtype)
        text = place.device == GM_CPU ? PyUnicode_FromFormat("gpumem.Array(shape=%R, dtype=%R)", shape, dtype)
                                      : PyUnicode_FromFormat("gpumem.Array(shape=%R, dtype=%R, device='cuda:%d')",
                                                             shape, dtype, place.device_id);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return text;
}

/* PEP 3118. Types that it has no letter for (bfloat16, the 8-bit floats) go by DLPack only. */
static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    gm_block *block = block_of(self);
    const DLTensor *tensor = &block->tensor;
    const char *format = gm_dlpack_format(tensor->dtype);

    view->obj = NULL;
    if (block->stream) {
        gm_array place = place_of(self);
        PyObject *name = gm_place_name(&place);
        if (name)
            gm_raise(GM_DLPACK_NO_BUFFER, name);
        Py_XDECREF(name);
        return -1;
    }
    if (!format) {
        PyObject *dtype = gm_dlpack_dtype_name(tensor->dtype);
        if (dtype)
            gm_raise(GM_DLPACK_NO_FORMAT, dtype);
        Py_XDECREF(dtype);
        return -1;
    }
    /* Without items there is no memory, but a buffer has an address. */
    if (PyBuffer_FillInfo(view, self, tensor->data ? tensor->data : block, block->bytes, 0, flags) < 0)
        return -1;
    view->itemsize = tensor->dtype.bits / 8;
    if (flags & PyBUF_FORMAT)
        view->format = (char *)format;
    if (flags & PyBUF_ND) {
        view->ndim = tensor->ndim;
        view->shape = tensor->ndim ? (Py_ssize_t *)tensor->shape : NULL;
        view->strides = NULL;
        if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES && tensor->ndim)
            view->strides = (Py_ssize_t *)block->byte_strides;
    }
    return 0;
}

PyDoc_STRVAR(dlpack_doc,
             "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
             "A capsule that holds the array for another library.\n\n"
             "Args:\n"
             "    stream: the stream that will read it, which is made to wait for the items: None or 1 the legacy\n"
             "        default stream, 2 the one of this thread, or a handle; -1 for no waiting. In host memory None.\n"
             "    max_version: the newest DLPack version that the caller understands, (major, minor). From\n"
             "        (1, 0) on the capsule is a versioned one; without it, a legacy one.\n"
             "    dl_device: None or the device that it is on.\n"
             "    copy: True for memory of its own (flagged as copied); None or False share this memory.\n\n"
             "Raises:\n"
             "    ValueError: the stream 0, which is ambiguous, or a stream for an array in host memory.\n"
             "    BufferError: another device was asked for.\n"
             "    MemoryError: no memory for the copy.\n");

PyDoc_STRVAR(dlpack_device_doc,
             "__dlpack_device__($self, /)\n--\n\nThe DLPack device: (1, 0) for the CPU, (2, i) for CUDA device i.");

PyDoc_STRVAR(array_doc,
             "A dense C-order array in memory of gpumem's own.\n\n"
             "What an operation returns for a DLPack array whose library offers no from_dlpack. It speaks\n"
             "DLPack itself, on a CUDA device also the CUDA array interface, and in host memory the buffer\n"
             "protocol where there is a format for its dtype (not for bfloat16 and 8-bit floats: BufferError),\n"
             "so that `numpy.from_dlpack(a)` and `numpy.asarray(a)` share its memory, which lives as long as\n"
             "any of them. On a device it was ordered on the stream of the work and is freed on the legacy default\n"
             "one, behind that work and whatever blocking streams do.\n\n"
             ">>> class Image:\n"
             "...     def __init__(self, pixels):\n"
             "...         self.pixels = pixels\n"
             "...     def __dlpack__(self, **options):\n"
             "...         return self.pixels.__dlpack__(**options)\n"
             ">>> planes = gpumem.permute_dims(Image(np.zeros((20, 30, 3), 'u1')), (2, 0, 1))\n"
             ">>> planes\n"
             "gpumem.Array(shape=(3, 20, 30), dtype='uint8')\n"
             ">>> np.from_dlpack(planes).shape\n"
             "(3, 20, 30)\n");

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_FASTCALL | METH_KEYWORDS, dlpack_doc},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, dlpack_device_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"shape", get_shape, NULL, "The lengths of the axes, a tuple of integers.", NULL},
    {"dtype", get_dtype, NULL, "The name of the items' type, such as 'float32' or 'bfloat16'.", NULL},
    {"ndim", get_ndim, NULL, "The number of axes.", NULL},
    {"device", get_device, NULL, "Where it is: 'cpu', 'cuda:0', ...", NULL},
    {"__cuda_array_interface__", get_cuda_interface, NULL, "The CUDA array interface, version 3, on a CUDA device.",
     NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of one item.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all items.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)array_doc}, {Py_tp_dealloc, dealloc},      {Py_tp_repr, repr}, {Py_tp_methods, methods},
    {Py_tp_getset, getset},         {Py_bf_getbuffer, get_buffer}, {0, NULL},
};

PyType_Spec gm_array_spec = {
    .name = "gpumem.Array",
    .basicsize = sizeof(array_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
