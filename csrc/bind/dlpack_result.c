#include "dlpack_type.h"
#include "dlpack_array.h"
#include "operand.h"
#include "raise.h"
#include "state.h"
#include "stream.h"
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

/* What the library allocates on a device is ordered on the stream that it works on, so that must be known. */
static int has_allocator(const DLPackExchangeAPI *api, gm_device_kind device)
{
    return api && api->managed_tensor_allocator && api->managed_tensor_to_py_object_no_sync &&
           (device == GM_CPU || api->current_work_stream);
}

/* Memory that the library takes from its own stream, which the stream of the work must come after. */
static int settle_memory(gm_dlpack_tensor *result, const gm_dlpack_tensor *like)
{
    gm_array *array = &result->array;

    if (array->device == GM_CPU) {
        /* PyTorch does not ask for huge pages; the page faults would take longer than the work. */
        uintptr_t low, high;
        gm_span(array, &low, &high);
        gm_advise_huge_pages((void *)low, high - low);
        return 0;
    }
    array->stream = like->array.stream;
    result->home = like->home;
    if (!like->home && gm_stream_of_table(result->api, array->device_id, &result->home) < 0)
        return -1;
    return gm_stream_order(array->device_id, result->home, array->stream);
}

static int allocate_theirs(gm_dlpack_tensor *result, const gm_dlpack_tensor *like, DLDevice device, int ndim,
                           const int64_t *shape, DLDataType dtype)
{
    int64_t lengths[GM_MAX_NDIM];
    DLTensor prototype = {.device = device, .ndim = ndim, .dtype = dtype, .shape = lengths};
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
        result->dtype.code != dtype.code || result->dtype.bits != dtype.bits ||
        result->array.device != gm_dlpack_device_kind((int)device.device_type) ||
        result->array.device_id != device.device_id)
        gm_raise(GM_DLPACK_MALFORMED, "its allocator gave another shape, type or device than was asked for");
    else if (settle_memory(result, like) == 0)
        return 0;
    gm_owner_drop(&result->owner);
    return -1;
}

static int allocate_ours(gm_dlpack_tensor *result, DLDevice device, void *stream, int ndim, const int64_t *shape,
                         DLDataType dtype)
{
    gm_failure failure;
    PyThreadState *saved = device.device_type == kDLCUDA ? PyEval_SaveThread() : NULL;
    gm_block *block = gm_block_new(device, stream, ndim, shape, dtype, &failure);

    if (saved)
        PyEval_RestoreThread(saved);
    if (!block)
        return gm_raise(failure.status, failure.text);
    result->owner.block = block;
    result->dtype = dtype;
    result->readonly = NULL;
    if (gm_dlpack_view(&block->tensor, &result->array) == 0) {
        result->array.stream = stream;
        return 0;
    }
    gm_owner_drop(&result->owner);
    return -1;
}

int gm_dlpack_empty(gm_state *state, const gm_dlpack_tensor *like, int ndim, const int64_t *shape, DLDataType dtype,
                    gm_dlpack_tensor *result)
{
    gm_device_kind kind = like->array.device;
    DLDevice device = {kind == GM_CUDA ? kDLCUDA : kDLCPU, like->array.device_id};

    result->owner = (gm_owner){NULL, NULL, NULL, NULL};
    result->home = NULL;
    result->state = state;
    result->object = NULL;
    result->api = like->api;
    return has_allocator(like->api, kind) ? allocate_theirs(result, like, device, ndim, shape, dtype)
                                          : allocate_ours(result, device, like->array.stream, ndim, shape, dtype);
}

void gm_dlpack_discard(gm_dlpack_tensor *result)
{
    if (result->home)
        gm_stream_join(result->array.device_id, result->array.stream, result->home);
    gm_owner_drop(&result->owner);
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

/* Numba has no from_dlpack; what it makes of a CUDA array interface it need not wait for, as it works on the stream
 * that we make ready. */
static int as_numba(PyObject *type, PyObject *array, PyObject **made)
{
    static const char name[] = "numba.cuda";
    PyObject *given = PyObject_GetAttrString(type, "__module__"), *key = PyUnicode_FromString(name), *module = NULL;

    *made = NULL;
    int theirs = given && key && PyUnicode_Check(given) && PyUnicode_Tailmatch(given, key, 0, PY_SSIZE_T_MAX, -1) > 0;
    if (theirs)
        module = PyImport_GetModule(key);
    if (module)
        *made = PyObject_CallMethod(module, "as_cuda_array", "OO", array, Py_False);
    Py_XDECREF(module);
    Py_XDECREF(key);
    Py_XDECREF(given);
    return *made || PyErr_Occurred();
}

/* Takes over the reference to the block. */
static PyObject *finish_ours(gm_state *state, PyObject *object, gm_block *block)
{
    PyObject *from_dlpack = NULL, *array = gm_array_of(state, block), *made;

    if (!array || gm_array_block(state, object))
        return array;
    if (block->stream && as_numba((PyObject *)Py_TYPE(object), array, &made)) {
        Py_DECREF(array);
        return made;
    }
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

/* Marks the end of the work; a library whose table wraps it without asking has its stream wait. */
static int settle_block(const gm_dlpack_tensor *like, gm_block *block)
{
    gm_failure failure = {GM_OK, ""};
    void *home = NULL;

    if (!block->stream)
        return 0;
    if (like->api && like->api->current_work_stream &&
        gm_stream_of_table(like->api, block->tensor.device.device_id, &home) < 0)
        return -1;
    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = gm_block_filled(block, &failure);
    if (status == GM_OK && home)
        status = gm_block_ready(block, home, &failure);
    PyEval_RestoreThread(saved);
    return status == GM_OK ? 0 : gm_raise(status, failure.text);
}

PyObject *gm_dlpack_finish(gm_state *state, const gm_dlpack_tensor *like, gm_dlpack_tensor *result)
{
    DLManagedTensorVersioned *managed = result->owner.versioned;
    gm_block *block = result->owner.block;

    if (block && settle_block(like, block) < 0) {
        gm_dlpack_discard(result);
        return NULL;
    }
    if (result->home)
        gm_stream_join(result->array.device_id, result->array.stream, result->home);
    result->owner = (gm_owner){NULL, NULL, NULL, NULL};
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
