#include "dlpack_array.h"
#include "dlpack_type.h"
#include "args.h"
#include "operand.h"
#include "raise.h"
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

static PyObject *dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const gm_parameters parameters = {.function = "__dlpack__",
                                             .names = {"stream", "max_version", "dl_device", "copy", NULL}};
    PyObject *values[4];
    long version[2] = {0, 0}, device[2] = {kDLCPU, 0};
    int copy;

    if (gm_parse(&parameters, args, nargs, kwnames, values) < 0)
        return NULL;
    if (given(values[0])) {
        gm_raise(GM_STREAM, values[0]);
        return NULL;
    }
    if ((given(values[1]) && pair_from(values[1], "max_version", version) < 0) ||
        (given(values[2]) && pair_from(values[2], "dl_device", device) < 0))
        return NULL;
    if (device[0] != kDLCPU || device[1] != 0) {
        gm_raise(GM_DLPACK_TO_DEVICE, values[2]);
        return NULL;
    }
    copy = given(values[3]) ? PyObject_IsTrue(values[3]) : 0;
    if (copy < 0)
        return NULL;

    gm_block *block = block_of(self);
    if (copy) {
        PyThreadState *thread = PyEval_SaveThread();
        block = gm_block_copy(block);
        PyEval_RestoreThread(thread);
        if (!block) {
            gm_raise(GM_NO_MEMORY, "a copy for DLPack");
            return NULL;
        }
    }
    PyObject *capsule =
        version[0] >= 1 ? versioned_capsule(block, copy ? DLPACK_FLAG_BITMASK_IS_COPIED : 0) : legacy_capsule(block);
    if (copy)
        gm_block_release(block);
    return capsule;
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", kDLCPU, 0);
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
    PyObject *text = shape && dtype ? PyUnicode_FromFormat("gpumem.Array(shape=%R, dtype=%R)", shape, dtype) : NULL;
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
             "    stream: None; the CPU has no streams.\n"
             "    max_version: the newest DLPack version that the caller understands, (major, minor). From\n"
             "        (1, 0) on the capsule is a versioned one; without it, a legacy one.\n"
             "    dl_device: None or (1, 0), the CPU.\n"
             "    copy: True for memory of its own (flagged as copied); None or False share this memory.\n\n"
             "Raises:\n"
             "    ValueError: a stream was given.\n"
             "    BufferError: another device was asked for.\n"
             "    MemoryError: no memory for the copy.\n");

PyDoc_STRVAR(dlpack_device_doc, "__dlpack_device__($self, /)\n--\n\nThe DLPack device: (1, 0), the CPU.");

PyDoc_STRVAR(array_doc,
             "A dense C-order array in memory of gpumem's own.\n\n"
             "What an operation returns for a DLPack array whose library offers no from_dlpack. It speaks\n"
             "DLPack itself, and the buffer protocol where there is a format for its dtype (not for bfloat16\n"
             "and 8-bit floats: BufferError), so that `numpy.from_dlpack(a)` and `numpy.asarray(a)` share its\n"
             "memory, which lives as long as any of them.\n\n"
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
