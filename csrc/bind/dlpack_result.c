#include "dlpack_type.h"
#include "dlpack_array.h"
#include "operand.h"
#include "raise.h"
#include "state.h"
#include "../base/memory.h"
#include "../base/overlap.h"
#include <string.h>

/* What an allocator reports to; it may come from a thread that does not hold the GIL. */
static void set_error(void *context, const char *kind, const char *message)
{
    const struct {
        const char *name;
        PyObject *exception;
    } kinds[] = {{"MemoryError", PyExc_MemoryError},
                 {"BufferError", PyExc_BufferError},
                 {"ValueError", PyExc_ValueError},
                 {"TypeError", PyExc_TypeError}};
    PyObject *exception = PyExc_RuntimeError;
    PyGILState_STATE held = PyGILState_Ensure();

    (void)context;
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i].name) == 0)
            exception = kinds[i].exception;
    PyErr_SetString(exception, message ? message : "the allocator of the exchange table failed");
    PyGILState_Release(held);
}

static int has_allocator(const DLPackExchangeAPI *api)
{
    return api && api->managed_tensor_allocator && api->managed_tensor_to_py_object_no_sync;
}

static int allocate_theirs(gm_dlpack_tensor *result, int ndim, const int64_t *shape, DLDataType dtype)
{
    int64_t lengths[GM_MAX_NDIM];
    DLTensor prototype = {.device = {kDLCPU, 0}, .ndim = ndim, .dtype = dtype, .shape = lengths};
    DLManagedTensorVersioned *managed = NULL;

    memcpy(lengths, shape, (size_t)ndim * sizeof *shape);
    if (result->api->managed_tensor_allocator(&prototype, &managed, NULL, set_error) != 0 || !managed) {
        if (!PyErr_Occurred())
            gm_raise(GM_DLPACK_NOTHING, "managed_tensor_allocator");
        return -1;
    }
    if (gm_dlpack_adopt(managed, result) < 0)
        return -1;
    if (result->array.ndim != ndim || memcmp(result->array.shape, shape, (size_t)ndim * sizeof *shape) != 0 ||
        result->dtype.code != dtype.code || result->dtype.bits != dtype.bits) {
        gm_dlpack_release(result);
        return gm_raise(GM_DLPACK_MALFORMED, "its allocator gave another shape or type than was asked for");
    }
    /* PyTorch does not ask for huge pages; the page faults would take longer than the work. */
    uintptr_t low, high;
    gm_span(&result->array, &low, &high);
    gm_advise_huge_pages((void *)low, high - low);
    return 0;
}

static int allocate_ours(gm_dlpack_tensor *result, int ndim, const int64_t *shape, DLDataType dtype)
{
    result->block = gm_block_new(ndim, shape, dtype);
    if (!result->block)
        return gm_raise(GM_NO_MEMORY, "the result");
    result->dtype = dtype;
    result->readonly = NULL;
    if (gm_dlpack_view(&result->block->tensor, &result->array) == 0)
        return 0;
    gm_dlpack_release(result);
    return -1;
}

int gm_dlpack_empty(gm_state *state, const gm_dlpack_tensor *like, int ndim, const int64_t *shape, DLDataType dtype,
                    gm_dlpack_tensor *result)
{
    (void)state;
    result->versioned = NULL;
    result->legacy = NULL;
    result->block = NULL;
    result->object = NULL;
    result->api = like->api;
    return has_allocator(like->api) ? allocate_theirs(result, ndim, shape, dtype)
                                    : allocate_ours(result, ndim, shape, dtype);
}

void gm_dlpack_discard(gm_dlpack_tensor *result)
{
    gm_dlpack_release(result);
}

/* The table steals the tensor, also when it fails. */
static PyObject *finish_by_table(const DLPackExchangeAPI *api, DLManagedTensorVersioned *managed)
{
    void *object = NULL;

    if (api->managed_tensor_to_py_object_no_sync(managed, &object) == 0 && object)
        return object;
    if (!PyErr_Occurred())
        gm_raise(GM_DLPACK_NOTHING, "managed_tensor_to_py_object_no_sync");
    return NULL;
}

/* An attribute that need not be there: 1 with it, 0 without, -1 with an exception. */
static int find(PyObject *object, PyObject *name, PyObject **value)
{
    *value = PyObject_GetAttr(object, name);
    if (*value)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return 0;
}

/* from_dlpack of the array namespace (array API standard). */
static int find_in_namespace(const gm_state *state, PyObject *object, PyObject **from_dlpack)
{
    PyObject *method, *space;
    int found = find(object, state->names.array_namespace, &method);

    if (found <= 0)
        return found;
    space = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    if (!space)
        return -1;
    found = find(space, state->names.from_dlpack, from_dlpack);
    Py_DECREF(space);
    return found;
}

/* from_dlpack of the package that defines `type`, such as torch or tvm_ffi. */
static int find_in_package(const gm_state *state, PyObject *type, PyObject **from_dlpack)
{
    PyObject *name, *package = NULL;
    int found = find(type, state->names.module, &name);

    if (found <= 0)
        return found;
    if (PyUnicode_Check(name)) {
        Py_ssize_t length = PyUnicode_GetLength(name);
        Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, length, 1);
        PyObject *top = dot == -2 ? NULL : PyUnicode_Substring(name, 0, dot < 0 ? length : dot);
        if (top)
            package = PyImport_GetModule(top); /* loaded already: it defines the type */
        Py_XDECREF(top);
    }
    Py_DECREF(name);
    if (!package)
        return PyErr_Occurred() ? -1 : 0;
    found = find(package, state->names.from_dlpack, from_dlpack);
    Py_DECREF(package);
    return found;
}

/* The class itself first, then what it derives from: somebody's subclass of a library's array is that library's. */
static int find_in_packages(const gm_state *state, PyObject *object, PyObject **from_dlpack)
{
    PyObject *mro;
    int found = find((PyObject *)Py_TYPE(object), state->names.mro, &mro);

    if (found <= 0)
        return found;
    found = 0;
    for (Py_ssize_t i = 0; !found && i < PyTuple_Size(mro); i++)
        found = find_in_package(state, PyTuple_GetItem(mro, i), from_dlpack);
    Py_DECREF(mro);
    return found;
}

/* Takes over the reference to the block. */
static PyObject *finish_ours(gm_state *state, PyObject *object, gm_block *block)
{
    PyObject *from_dlpack = NULL, *array = gm_array_of(state, block), *made;

    if (!array || gm_array_block(state, object))
        return array;
    int found = find_in_namespace(state, object, &from_dlpack);
    if (!found)
        found = find_in_packages(state, object, &from_dlpack);
    if (!found)
        return array;
    made = found < 0 ? NULL : PyObject_CallFunctionObjArgs(from_dlpack, array, NULL);
    Py_XDECREF(from_dlpack);
    Py_DECREF(array);
    return made;
}

PyObject *gm_dlpack_finish(gm_state *state, const gm_dlpack_tensor *like, gm_dlpack_tensor *result)
{
    DLManagedTensorVersioned *managed = result->versioned;
    gm_block *block = result->block;

    result->versioned = NULL;
    result->block = NULL;
    if (managed)
        return finish_by_table(like->api, managed);
    if (!like->api || !like->api->managed_tensor_to_py_object_no_sync)
        return finish_ours(state, like->object, block);
    managed = gm_block_export(block, 0);
    gm_block_release(block);
    if (managed)
        return finish_by_table(like->api, managed);
    gm_raise(GM_NO_MEMORY, "the result");
    return NULL;
}

int gm_dlpack_init(gm_state *state, PyObject *module)
{
#define NAME(field, text)                                                                                              \
    if (!(state->names.field = PyUnicode_InternFromString(text)))                                                      \
        return -1;
    GM_DLPACK_NAMES(NAME)
#undef NAME
    state->array_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &gm_array_spec, NULL);
    return state->array_type ? PyModule_AddType(module, state->array_type) : -1;
}

void gm_dlpack_clear(gm_state *state)
{
#define NAME(field, text) Py_CLEAR(state->names.field);
    GM_DLPACK_NAMES(NAME)
#undef NAME
}
