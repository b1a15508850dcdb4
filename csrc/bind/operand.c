#include "operand.h"
#include "place.h"
#include "raise.h"
#include "results.h"
#include "../base/overlap.h"
#include <string.h>

_Static_assert(sizeof(npy_intp) == sizeof(int64_t), "npy_intp and int64_t are taken for one another");

PyObject *gm_shape_tuple(int ndim, const int64_t *shape)
{
    PyObject *tuple = PyTuple_New(ndim);
    for (int i = 0; tuple && i < ndim; i++) {
        PyObject *length = PyLong_FromLongLong(shape[i]);
        if (!length || PyTuple_SetItem(tuple, i, length) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

int64_t gm_bytes_of(int ndim, const int64_t *shape, int64_t itemsize)
{
    int64_t bytes = itemsize;
    int too_big = 0;

    for (int i = 0; i < ndim; i++) {
        if (shape[i] == 0)
            return 0;
        too_big |= __builtin_mul_overflow(bytes, shape[i], &bytes);
    }
    if (!too_big)
        return bytes;
    PyObject *tuple = gm_shape_tuple(ndim, shape);
    if (tuple)
        gm_raise(GM_TOO_BIG, tuple, (Py_ssize_t)itemsize);
    Py_XDECREF(tuple);
    return -1;
}

/* numpy.ma need not be loaded, and must not be loaded for this. */
static int is_masked(PyObject *object)
{
    int yes = 0;
    PyObject *name = PyUnicode_FromString("numpy.ma");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *type = module ? PyObject_GetAttrString(module, "MaskedArray") : NULL;
    if (type)
        yes = PyObject_IsInstance(object, type);
    Py_XDECREF(type);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return PyErr_Occurred() ? -1 : yes;
}

static void view_of(gm_operand *operand, PyArrayObject *array)
{
    int ndim = PyArray_NDIM(array);
    const npy_intp *shape = PyArray_DIMS(array), *strides = PyArray_STRIDES(array); /* NULL without axes */

    operand->array.data = PyArray_BYTES(array);
    operand->array.itemsize = PyArray_ITEMSIZE(array);
    operand->array.ndim = ndim;
    operand->array.device = GM_CPU;
    operand->array.device_id = 0;
    operand->array.stream = NULL;
    for (int i = 0; i < ndim; i++) {
        operand->array.shape[i] = shape[i];
        operand->array.strides[i] = strides[i];
    }
    operand->descr = PyArray_DESCR(array);
    operand->object = (PyObject *)array;
    operand->readonly = PyArray_ISWRITEABLE(array) ? NULL : "its writeable flag is off";
}

static int from_numpy(PyObject *object, const char *what, gm_operand *operand)
{
    if (!PyArray_CheckExact(object)) {
        int masked = is_masked(object);
        if (masked)
            return masked < 0 ? -1 : gm_raise(GM_MASKED, what);
    }
    view_of(operand, (PyArrayObject *)object);
    if (PyDataType_REFCHK(operand->descr))
        return gm_raise(GM_HOLDS_REFERENCES, what, operand->descr);
    return 0;
}

static int take(gm_state *state, PyObject *object, const char *what, void *stream, int written, gm_operand *operand)
{
    if (PyArray_Check(object))
        return from_numpy(object, what, operand);
    int taken = gm_dlpack_import(state, object, stream, written, &operand->tensor);
    if (taken <= 0)
        return taken < 0 ? -1 : gm_raise(GM_NOT_AN_ARRAY, what, Py_TYPE(object));
    gm_array_copy(&operand->array, &operand->tensor.array);
    operand->descr = NULL;
    operand->object = object;
    operand->readonly = operand->tensor.readonly;
    return 0;
}

int gm_operand_from(gm_state *state, PyObject *object, const char *what, void *stream, gm_operand *operand)
{
    return take(state, object, what, stream, 0, operand);
}

int gm_operand_on_host(gm_state *state, PyObject *object, const char *what, gm_operand *operand)
{
    if (take(state, object, what, NULL, 1, operand) < 0)
        return -1;
    if (operand->array.device == GM_CPU)
        return 0;
    gm_operand_release(operand);
    return gm_raise(GM_NOT_ON_HOST, what);
}

void gm_operand_release(gm_operand *operand)
{
    if (!operand->descr)
        gm_dlpack_release(&operand->tensor);
}

/* Items of size 0 (V0, S0, U0): NumPy's copies have room for one character, cleared. What is to be moved is nothing. */
static PyObject *new_array_of_nothing(PyArrayObject *like, int ndim, const int64_t *shape)
{
    PyArray_Dims dims = {(npy_intp *)shape, ndim};
    PyObject *view = PyArray_Newshape(like, &dims, NPY_CORDER);
    PyObject *array = view ? PyArray_NewCopy((PyArrayObject *)view, NPY_CORDER) : NULL;
    Py_XDECREF(view);
    return array;
}

int gm_operand_empty(gm_state *state, const gm_operand *like, int ndim, const int64_t *shape, gm_operand *result)
{
    if (gm_bytes_of(ndim, shape, like->array.itemsize) < 0)
        return -1;
    if (!like->descr) {
        if (gm_dlpack_empty(state, &like->tensor, ndim, shape, like->tensor.dtype, &result->tensor) < 0)
            return -1;
        gm_array_copy(&result->array, &result->tensor.array);
        result->descr = NULL;
        return 0;
    }
    PyObject *array = like->array.itemsize > 0 ? gm_new_result(state, like->descr, ndim, shape)
                                               : new_array_of_nothing((PyArrayObject *)like->object, ndim, shape);
    if (!array)
        return -1;
    view_of(result, (PyArrayObject *)array);
    return 0;
}

PyObject *gm_operand_finish(gm_state *state, const gm_operand *like, gm_operand *result)
{
    return result->descr ? result->object : gm_dlpack_finish(state, &like->tensor, &result->tensor);
}

void gm_operand_discard(gm_operand *result)
{
    if (result->descr)
        Py_DECREF(result->object);
    else
        gm_dlpack_discard(&result->tensor);
}

PyObject *gm_operand_dtype(const gm_operand *operand)
{
    return operand->descr ? PyObject_Str((PyObject *)operand->descr) : gm_dlpack_dtype_name(operand->tensor.dtype);
}

/* The DLPack type of a NumPy one; bits == 0 where there is none, as for long double, which is of the machine's own. */
static DLDataType dlpack_type_of(const PyArray_Descr *descr)
{
    static const struct {
        char kind;
        uint8_t code;
        int longest; /* bytes */
    } codes[] = {{'b', kDLBool, 1}, {'i', kDLInt, 8}, {'u', kDLUInt, 8}, {'f', kDLFloat, 8}, {'c', kDLComplex, 16}};
    DLDataType type = {0, 0, 1};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (descr->kind == codes[i].kind && PyDataType_ELSIZE(descr) <= codes[i].longest &&
            PyArray_ISNBO(descr->byteorder)) {
            type.code = codes[i].code;
            type.bits = (uint8_t)(PyDataType_ELSIZE(descr) * 8);
        }
    return type;
}

/* bfloat16 and the like, which other packages (ml_dtypes) add to NumPy: they have DLPack's names, and any kind. */
static int is_added_type(PyArray_Descr *descr, DLDataType type)
{
    PyObject *ours = PyObject_Str((PyObject *)descr), *theirs = gm_dlpack_dtype_name(type);
    int same = ours && theirs && PyDataType_ELSIZE(descr) * 8 == type.bits && PyUnicode_Compare(ours, theirs) == 0;
    Py_XDECREF(ours);
    Py_XDECREF(theirs);
    return same;
}

static int is_type(PyArray_Descr *descr, DLDataType type)
{
    if (PyTypeNum_ISUSERDEF(descr->type_num))
        return is_added_type(descr, type);
    DLDataType own = dlpack_type_of(descr);
    return own.bits != 0 && own.code == type.code && own.bits == type.bits;
}

static int same_dtype(const gm_operand *a, const gm_operand *b)
{
    if (a->descr && b->descr)
        return a->descr == b->descr || PyArray_EquivTypes(a->descr, b->descr);
    if (a->descr || b->descr)
        return a->descr ? is_type(a->descr, b->tensor.dtype) : is_type(b->descr, a->tensor.dtype);
    return a->tensor.dtype.code == b->tensor.dtype.code && a->tensor.dtype.bits == b->tensor.dtype.bits;
}

static int same_shape(const gm_array *array, int ndim, const int64_t *shape)
{
    return array->ndim == ndim && memcmp(array->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

int gm_operand_alike(const gm_operand *a, const gm_operand *b)
{
    return a->array.device == b->array.device && a->array.device_id == b->array.device_id &&
           same_shape(&a->array, b->array.ndim, b->array.shape) && same_dtype(a, b);
}

/* Takes both references, either of which may have failed. */
static int raise_pair(gm_status status, PyObject *given, PyObject *wanted)
{
    if (given && wanted)
        gm_raise(status, given, wanted);
    Py_XDECREF(given);
    Py_XDECREF(wanted);
    return -1;
}

static int check_out(const gm_operand *out, const gm_operand *like, int ndim, const int64_t *shape)
{
    int overlaps;

    if (out->array.device != like->array.device || out->array.device_id != like->array.device_id)
        return raise_pair(GM_OUT_DEVICE, gm_place_name(&out->array), gm_place_name(&like->array));
    if (!same_shape(&out->array, ndim, shape))
        return raise_pair(GM_OUT_SHAPE, gm_shape_tuple(out->array.ndim, out->array.shape), gm_shape_tuple(ndim, shape));
    if (!same_dtype(out, like))
        return raise_pair(GM_OUT_DTYPE, gm_operand_dtype(out), gm_operand_dtype(like));
    if (out->readonly)
        return gm_raise(GM_OUT_READ_ONLY, out->readonly);
    if (gm_overlaps_itself(&out->array, &overlaps) != GM_OK)
        return gm_raise(GM_NO_MEMORY, "the check of out for overlap");
    return overlaps ? gm_raise(GM_OUT_OVERLAPS_ITSELF) : 0;
}

int gm_operand_out(gm_state *state, PyObject *object, const gm_operand *like, int ndim, const int64_t *shape,
                   gm_operand *out)
{
    if (take(state, object, "out", like->array.stream, 1, out) < 0)
        return -1;
    if (check_out(out, like, ndim, shape) == 0)
        return 0;
    gm_operand_release(out);
    return -1;
}
