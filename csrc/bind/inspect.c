#include "inspect.h"
#include "args.h"
#include "operand.h"
#include "raise.h"
#include "../base/memory.h"
#include "../cpu/stream.h"

PyObject *gm_py_caches(PyObject *module, PyObject *unused)
{
    (void)unused;
    const gm_cpu *cpu = &gm_state_of(module)->cpu;
    return Py_BuildValue("{s:L,s:L,s:L}", "l1", (long long)cpu->l1_bytes, "l2", (long long)cpu->l2_bytes, "l3",
                         (long long)cpu->l3_bytes);
}

PyObject *gm_py_stages(PyObject *module, PyObject *unused)
{
    static const char *const device[] = {[GM_CPU] = "cpu", [GM_CUDA] = "cuda"};
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    for (int id = 0; list && id < GM_STAGE_COUNT; id++) {
        const gm_stage *s = gm_stage_get((gm_stage_id)id);
        PyObject *row = Py_BuildValue("(sssssi)", s->lesson, s->name, device[s->device], s->kernel, s->idea, s->bytes);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

int gm_integers_from(PyObject *object, int64_t *values)
{
    PyObject *tuple = PySequence_Tuple(object);
    if (!tuple)
        return -1;
    int count = (int)PyTuple_Size(tuple);
    if (count > GM_MAX_NDIM)
        PyErr_SetString(PyExc_ValueError, "more than 64 axes");
    for (int i = 0; i < count && !PyErr_Occurred(); i++)
        values[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    Py_DECREF(tuple);
    return PyErr_Occurred() ? -1 : count;
}

static PyObject *plan_as_dict(const gm_plan *plan)
{
    PyObject *axes = PyList_New(0);
    for (int i = 0; axes && i < plan->naxes; i++) {
        const gm_axis *axis = &plan->axis[i];
        PyObject *row = Py_BuildValue("(LLL)", (long long)axis->len, (long long)axis->src, (long long)axis->dst);
        if (!row || PyList_Append(axes, row) < 0)
            Py_CLEAR(axes);
        Py_XDECREF(row);
    }
    if (!axes)
        return NULL;
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:L,s:i,s:i,s:N}", "family", gm_family_name(plan->family), "itemsize",
                         (long long)plan->itemsize, "item", (long long)plan->item, "items", (long long)plan->items,
                         "src_start", (long long)plan->src_start, "dst_start", (long long)plan->dst_start, "src_axis",
                         plan->src_axis, "dst_axis", plan->dst_axis, "axes", axes);
}

int gm_plan_from(PyObject *const *args, gm_plan *plan)
{
    int64_t shape[GM_MAX_NDIM], src[GM_MAX_NDIM], dst[GM_MAX_NDIM];

    int64_t itemsize = PyLong_AsLongLong(args[0]);
    if (itemsize == -1 && PyErr_Occurred())
        return -1;
    int ndim = gm_integers_from(args[1], shape);
    int nsrc = ndim < 0 ? -1 : gm_integers_from(args[2], src);
    int ndst = nsrc < 0 ? -1 : gm_integers_from(args[3], dst);
    if (ndst < 0)
        return -1;
    if (ndim != nsrc || ndim != ndst) {
        PyErr_SetString(PyExc_ValueError, "shape and strides of different lengths");
        return -1;
    }
    gm_plan_make(plan, itemsize, ndim, shape, src, dst);
    return 0;
}

PyObject *gm_py_plan(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    gm_plan plan;
    (void)module;

    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "_plan(itemsize, shape, src_strides, dst_strides)");
        return NULL;
    }
    return gm_plan_from(args, &plan) < 0 ? NULL : plan_as_dict(&plan);
}

PyObject *gm_py_fail_allocation(PyObject *module, PyObject *count)
{
    (void)module;
    long value = PyLong_AsLong(count);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    gm_alloc_fail_after(value);
    Py_RETURN_NONE;
}

/* A dense array as so many bytes; `what` names it in errors. */
static int dense_from(gm_state *state, PyObject *object, const char *what, int written, gm_operand *operand,
                      int64_t *bytes)
{
    if (gm_operand_on_host(state, object, what, operand) < 0)
        return -1;
    gm_array *array = &operand->array;
    int dense = 1;
    *bytes = array->itemsize;
    for (int i = array->ndim - 1; i >= 0; i--) {
        dense &= array->shape[i] == 1 || array->strides[i] == *bytes;
        *bytes *= array->shape[i];
    }
    if ((dense || *bytes == 0) && !(written && operand->readonly))
        return 0;
    gm_operand_release(operand);
    PyErr_Format(PyExc_ValueError, "%s must be C-contiguous%s", what, written ? " and writable" : "");
    return -1;
}

typedef void reference_fn(const gm_cpu *cpu, char *dst, const char *src, int64_t n);

static const struct {
    const char *name;
    reference_fn *function;
} references[] = {{"memcpy", gm_reference_memcpy}, {"streaming", gm_reference_stream}};

PyObject *gm_py_reference_copy(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    gm_state *state = gm_state_of(module);
    reference_fn *function = NULL;
    gm_operand out, x;
    int64_t room, bytes;

    for (size_t i = 0; nargs == 3 && PyUnicode_Check(args[2]) && i < sizeof references / sizeof *references; i++)
        if (PyUnicode_CompareWithASCIIString(args[2], references[i].name) == 0)
            function = references[i].function;
    if (!function) {
        PyErr_SetString(PyExc_ValueError, "_reference_copy(out, x, how) with how one of memcpy, streaming");
        return NULL;
    }
    if (dense_from(state, args[0], "out", 1, &out, &room) < 0)
        return NULL;
    if (dense_from(state, args[1], "x", 0, &x, &bytes) < 0) {
        gm_operand_release(&out);
        return NULL;
    }
    if (bytes == room) {
        PyThreadState *saved = PyEval_SaveThread();
        function(&state->cpu, out.array.data, x.array.data, bytes);
        PyEval_RestoreThread(saved);
    } else {
        PyErr_Format(PyExc_ValueError, "x has %zd bytes, out has %zd", (Py_ssize_t)bytes, (Py_ssize_t)room);
    }
    gm_operand_release(&x);
    gm_operand_release(&out);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyObject *gm_py_reference_read(PyObject *module, PyObject *object)
{
    gm_state *state = gm_state_of(module);
    gm_operand x;
    int64_t bytes;

    if (dense_from(state, object, "x", 0, &x, &bytes) < 0)
        return NULL;
    PyThreadState *saved = PyEval_SaveThread();
    uint64_t words = gm_reference_read(&state->cpu, x.array.data, bytes);
    PyEval_RestoreThread(saved);
    gm_operand_release(&x);
    return PyLong_FromUnsignedLongLong(words);
}
