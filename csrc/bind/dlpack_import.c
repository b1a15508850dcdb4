#include "dlpack_type.h"
#include "cuda_interface.h"
#include "dlpack_array.h"
#include "raise.h"
#include "state.h"
#include "stream.h"
#include <limits.h>
#include <string.h>

enum { ANY_NUMBER = -1 }; /* not known yet */

/* What an array may be that its memory alone does not tell. Exchange tables hand the memory out as it lies (PyTorch's
 * looks at none of these, its __dlpack__ not at is_neg), and the result would be silently wrong. PyTorch's methods give
 * the GIL away and take it back, so they are only asked where `code`, DLPack's kind of number, may have them. */
static int refuse_lazy(const gm_state *state, PyObject *object, int code)
{
    enum { GRADIENT, CONJUGATE, NEGATIVE, MARKS };
    const struct {
        PyObject *name;
        int is_method;
        const char *what, *remedy;
    } marks[MARKS] = {
        [GRADIENT] = {state->names.requires_grad, 0, "the result would not take part in the gradient", "detach()"},
        [CONJUGATE] = {state->names.is_conj, 1, "its memory holds the conjugate of its values", "resolve_conj()"},
        [NEGATIVE] = {state->names.is_neg, 1, "its memory holds the negative of its values", "resolve_neg()"},
    };

    for (int i = 0; i < MARKS; i++) {
        if (i == CONJUGATE && code != kDLComplex && code != ANY_NUMBER)
            continue;
        PyObject *mark = marks[i].is_method ? PyObject_CallMethodObjArgs(object, marks[i].name, NULL)
                                            : PyObject_GetAttr(object, marks[i].name);
        if (!mark) {
            if (!PyErr_ExceptionMatches(PyExc_Exception))
                return -1;
            PyErr_Clear();
            continue;
        }
        Py_DECREF(mark);
        if (mark == Py_True)
            return gm_raise(GM_DLPACK_LAZY, marks[i].name, marks[i].what, marks[i].remedy);
    }
    return 0;
}

/* The table is looked up each time: a cache would have to know when a type dies or changes, and the lookup is one hit
 * in the type's own attribute cache. 0, or -1 with an exception; *api stays NULL where the type offers none. */
static int find_table(const gm_state *state, PyTypeObject *type, const DLPackExchangeAPI **api)
{
    static const char name[] = "dlpack_exchange_api";
    enum { LONGEST_CHAIN = 64 }; /* a chain in a circle must not hold us for ever */

    *api = NULL;
    PyObject *capsule = PyObject_GetAttr((PyObject *)type, state->names.exchange_api);
    if (!capsule) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    /* Drafts of the protocol had an integer here: no capsule, no table. */
    const DLPackExchangeAPIHeader *header = NULL;
    if (PyCapsule_IsValid(capsule, name))
        header = PyCapsule_GetPointer(capsule, name);
    for (int i = 0; header && i < LONGEST_CHAIN; i++, header = header->prev_api)
        if (header->version.major == DLPACK_MAJOR_VERSION) {
            *api = (const DLPackExchangeAPI *)header;
            break;
        }
    Py_DECREF(capsule);
    return 0;
}

static int read_versioned(const DLManagedTensorVersioned *managed, gm_dlpack_tensor *tensor)
{
    if (managed->version.major != DLPACK_MAJOR_VERSION)
        return gm_raise(GM_DLPACK_VERSION, managed->version.major, managed->version.minor, DLPACK_MAJOR_VERSION);
    if (gm_dlpack_view(&managed->dl_tensor, &tensor->array) < 0)
        return -1;
    tensor->dtype = managed->dl_tensor.dtype;
    tensor->readonly = managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY   ? "its library says so"
                       : managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED ? "its library hands out a copy of it"
                                                                        : NULL;
    return 0;
}

int gm_dlpack_adopt(DLManagedTensorVersioned *managed, gm_dlpack_tensor *tensor)
{
    tensor->owner.versioned = managed;
    if (read_versioned(managed, tensor) == 0)
        return 0;
    gm_owner_drop(&tensor->owner);
    return -1;
}

/* A capsule stays as it is until its tensor is known to be one that we take: its own destructor frees a refused one.
 * But a tensor of another major version is for the consumer to delete, says the specification. */
static int take_versioned(PyObject *capsule, gm_dlpack_tensor *tensor)
{
    static const char name[] = "dltensor_versioned", used[] = "used_dltensor_versioned";
    DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, name);

    if (!managed)
        return -1;
    if (managed->version.major != DLPACK_MAJOR_VERSION)
        return PyCapsule_SetName(capsule, used) < 0 ? -1 : gm_dlpack_adopt(managed, tensor);
    if (read_versioned(managed, tensor) < 0 || PyCapsule_SetName(capsule, used) < 0)
        return -1;
    tensor->owner.versioned = managed;
    return 0;
}

static int take_legacy(PyObject *capsule, gm_dlpack_tensor *tensor)
{
    static const char name[] = "dltensor", used[] = "used_dltensor";
    DLManagedTensor *managed = PyCapsule_GetPointer(capsule, name);

    if (!managed || gm_dlpack_view(&managed->dl_tensor, &tensor->array) < 0 || PyCapsule_SetName(capsule, used) < 0)
        return -1;
    tensor->owner.legacy = managed;
    tensor->dtype = managed->dl_tensor.dtype;
    tensor->readonly = "its library hands out legacy DLPack capsules, which do not say that it may be written";
    return 0;
}

static int take_capsule(PyObject *capsule, gm_dlpack_tensor *tensor)
{
    const char *name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;

    if (name && strcmp(name, "dltensor_versioned") == 0)
        return take_versioned(capsule, tensor);
    if (name && strcmp(name, "dltensor") == 0)
        return take_legacy(capsule, tensor);
    if (name && strncmp(name, "used_dltensor", strlen("used_dltensor")) == 0)
        return gm_raise(GM_DLPACK_CONSUMED);
    return gm_raise(GM_DLPACK_NO_CAPSULE, capsule);
}

/* Asked before anything is exported: a producer on another device might have to wait for its work, or to copy. *kind is
 * left as it is where the object does not say. */
static int ask_device(const gm_state *state, PyObject *object, gm_device_kind *kind)
{
    PyObject *method = PyObject_GetAttr(object, state->names.device);
    if (!method) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return 0; /* the tensor will tell */
    }
    PyObject *device = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    if (!device)
        return -1;
    int rc = -1;
    if (!PyTuple_Check(device) || PyTuple_Size(device) != 2) {
        gm_raise(GM_DLPACK_PAIR, "__dlpack_device__", device);
    } else {
        long type = PyLong_AsLong(PyTuple_GetItem(device, 0));
        long id = type == -1 && PyErr_Occurred() ? -1 : PyLong_AsLong(PyTuple_GetItem(device, 1));
        if (PyErr_Occurred()) { /* no integers, or too large ones */
            PyErr_Clear();
            gm_raise(GM_DLPACK_PAIR, "__dlpack_device__", device);
        } else {
            *kind = gm_dlpack_device_kind((int)type);
            rc = gm_dlpack_check_device(type < INT_MIN || type > INT_MAX ? -1 : (int)type, (int)id);
        }
    }
    Py_DECREF(device);
    return rc;
}

static int add_keyword(PyObject *keywords, PyObject *name, PyObject *value)
{
    int rc = value ? PyDict_SetItem(keywords, name, value) : -1;
    Py_XDECREF(value);
    return rc;
}

/* Producers from before DLPack 1.0 do not know max_version and say so by a TypeError; array-api-strict over NumPy 1 by
 * a NotImplementedError. */
static PyObject *ask_capsule(const gm_state *state, PyObject *object, void *stream)
{
    PyObject *capsule = NULL, *none = NULL, *keywords = NULL;
    PyObject *method = PyObject_GetAttr(object, state->names.dlpack);

    if (!method || !(none = PyTuple_New(0)) || !(keywords = PyDict_New()))
        goto done;
    if ((stream && add_keyword(keywords, state->names.stream, PyLong_FromVoidPtr(stream)) < 0) ||
        add_keyword(keywords, state->names.max_version,
                    Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)) < 0)
        goto done;
    capsule = PyObject_Call(method, none, keywords);
    if (!capsule && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_NotImplementedError))) {
        PyErr_Clear();
        if (PyDict_DelItem(keywords, state->names.max_version) == 0)
            capsule = PyObject_Call(method, none, keywords);
    }
done:
    Py_XDECREF(keywords);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

/* An array on a device is asked for with the stream that will read it. */
static int import_capsule(const gm_state *state, PyObject *object, void *stream, gm_dlpack_tensor *tensor)
{
    gm_device_kind kind = GM_CPU;

    if (ask_device(state, object, &kind) < 0)
        return -1;
    if (!stream)
        stream = GM_LEGACY_STREAM;
    PyObject *capsule = ask_capsule(state, object, kind == GM_CUDA ? stream : NULL);
    if (!capsule)
        return -1;
    int rc;
    /* Of threads that were handed the same capsule, one takes what is in it. */
    Py_BEGIN_CRITICAL_SECTION(capsule);
    rc = take_capsule(capsule, tensor);
    Py_END_CRITICAL_SECTION();
    if (rc == 0 && tensor->array.device == GM_CUDA)
        tensor->array.stream = stream;
    /* The destructor of a refused capsule may run Python code: not with our exception set. */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_DECREF(capsule);
    PyErr_Restore(type, value, traceback);
    return rc;
}

/* A gpumem.Array needs no capsule. */
static int import_ours(gm_block *block, void *stream, gm_dlpack_tensor *tensor)
{
    gm_failure failure;

    if (gm_dlpack_view(&block->tensor, &tensor->array) < 0)
        return -1;
    if (tensor->array.device == GM_CUDA) {
        tensor->array.stream = stream ? stream : GM_LEGACY_STREAM;
        if (gm_block_ready(block, tensor->array.stream, &failure) != GM_OK)
            return gm_raise(failure.status, failure.text);
    }
    gm_block_retain(block);
    tensor->owner.block = block;
    tensor->dtype = block->tensor.dtype;
    tensor->readonly = NULL;
    return 0;
}

/* What the table handed out waits for nothing: that is left to us, who know both streams. */
static int settle_by_table(const DLPackExchangeAPI *api, void *stream, gm_dlpack_tensor *tensor)
{
    gm_array *array = &tensor->array;

    if (array->device != GM_CUDA)
        return 0;
    if (gm_stream_of_table(api, array->device_id, &tensor->home) == 0) {
        array->stream = stream ? stream : tensor->home;
        if (gm_stream_order(array->device_id, tensor->home, array->stream) == 0)
            return 0;
    }
    gm_owner_drop(&tensor->owner);
    return -1;
}

/* What is on a device is ordered on its library's stream, so that nothing needs to be owned beyond the call: a view
 * will do, which costs less. 1: done; 0: this is no such array; -1 with an exception. */
static int borrow_by_table(const gm_state *state, void *stream, gm_dlpack_tensor *tensor)
{
    const DLPackExchangeAPI *api = tensor->api;
    DLTensor view;

    if (!api || !api->dltensor_from_py_object_no_sync || !api->current_work_stream)
        return 0;
    if (api->dltensor_from_py_object_no_sync(tensor->object, &view) != 0) {
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
            return -1;
        PyErr_Clear(); /* the other ways know better why */
        return 0;
    }
    if (gm_dlpack_device_kind((int)view.device.device_type) == GM_CPU)
        return 0;
    tensor->dtype = view.dtype;
    tensor->readonly = NULL;
    if (gm_dlpack_view(&view, &tensor->array) < 0 || refuse_lazy(state, tensor->object, view.dtype.code) < 0 ||
        settle_by_table(api, stream, tensor) < 0)
        return -1;
    return 1;
}

/* 1: done; 0: the table cannot, nothing has happened; -1 with an exception. */
static int import_by_table(const gm_state *state, void *stream, gm_dlpack_tensor *tensor)
{
    const DLPackExchangeAPI *api = tensor->api;
    DLManagedTensorVersioned *managed = NULL;

    if (!api || !api->managed_tensor_from_py_object_no_sync)
        return 0;
    if (api->managed_tensor_from_py_object_no_sync(tensor->object, &managed) == 0 && managed) {
        if (gm_dlpack_adopt(managed, tensor) < 0)
            return -1;
        if (tensor->array.device == GM_CPU || api->current_work_stream)
            return settle_by_table(api, stream, tensor) < 0 ? -1 : 1;
        gm_owner_drop(&tensor->owner);
        return 0;
    }
    if (!PyErr_Occurred())
        gm_raise(GM_DLPACK_NOTHING, "managed_tensor_from_py_object_no_sync");
    /* Tables tend to fail with a trace of C++ where __dlpack__ says what is wrong. No attribute may be looked up while
     * an exception is set. */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int may_ask = PyErr_GivenExceptionMatches(type, PyExc_Exception) &&
                  PyObject_HasAttr((PyObject *)Py_TYPE(tensor->object), state->names.dlpack);
    PyErr_Restore(type, value, traceback);
    if (!may_ask)
        return -1;
    PyErr_Clear();
    return 0;
}

/* Some libraries' DLPack is wrong where their CUDA array interface is right (CuPy 14: negative strides). */
static int import_otherwise(gm_state *state, PyObject *object, void *stream, gm_dlpack_tensor *tensor)
{
    PyObject *type, *value, *traceback;

    if (!PyErr_ExceptionMatches(PyExc_BufferError))
        return -1;
    PyErr_Fetch(&type, &value, &traceback);
    int done = PyObject_HasAttr(object, state->names.cuda_interface) &&
               gm_cuda_interface_import(state, object, stream, tensor) >= 0;
    PyErr_Restore(type, value, traceback); /* in place of what the other way may have raised */
    if (!done)
        return -1;
    PyErr_Clear();
    return 0;
}

int gm_dlpack_import(gm_state *state, PyObject *object, void *stream, int written, gm_dlpack_tensor *tensor)
{
    PyObject *kind = (PyObject *)Py_TYPE(object);
    gm_block *block = gm_array_block(state, object);

    tensor->owner = (gm_owner){NULL, NULL, NULL, NULL};
    tensor->home = NULL;
    tensor->state = state;
    tensor->object = object;
    tensor->api = NULL;
    if (block)
        return import_ours(block, stream, tensor) < 0 ? -1 : 1;
    if (find_table(state, Py_TYPE(object), &tensor->api) < 0)
        return -1;
    int speaks = tensor->api || PyObject_HasAttr(kind, state->names.dlpack);
    if (!speaks && !PyObject_HasAttr(object, state->names.cuda_interface))
        return 0;
    int done = written ? 0 : borrow_by_table(state, stream, tensor);
    if (!done && refuse_lazy(state, object, ANY_NUMBER) < 0)
        return -1;
    if (!done)
        done = import_by_table(state, stream, tensor);
    if (done)
        return done;
    if (!speaks)
        return gm_cuda_interface_import(state, object, stream, tensor) < 0 ? -1 : 1;
    if (import_capsule(state, object, stream, tensor) == 0)
        return 1;
    return import_otherwise(state, object, stream, tensor) < 0 ? -1 : 1;
}

void gm_dlpack_release(gm_dlpack_tensor *tensor)
{
    const gm_array *array = &tensor->array;

    if (array->device == GM_CPU) {
        gm_owner_drop(&tensor->owner);
        return;
    }
    if (tensor->home)
        gm_stream_join(array->device_id, array->stream, tensor->home);
    if (tensor->home && !tensor->owner.object)
        gm_owner_drop(&tensor->owner);
    else
        gm_owner_drop_after(tensor->state, &tensor->owner, array->device_id, array->stream);
}
