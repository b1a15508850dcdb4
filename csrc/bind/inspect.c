#include "inspect.h"
#include "args.h"
#include "operand.h"
#include "raise.h"
#include "../base/memory.h"
#include <string.h>

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

/* A sequence of at most GM_MAX_NDIM integers; returns how many, or -1 with an exception. */
static int integers_from(PyObject *object, int64_t *values)
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

PyObject *gm_py_plan(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t shape[GM_MAX_NDIM], src[GM_MAX_NDIM], dst[GM_MAX_NDIM];
    gm_plan plan;
    (void)module;

    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "_plan(itemsize, shape, src_strides, dst_strides)");
        return NULL;
    }
    int64_t itemsize = PyLong_AsLongLong(args[0]);
    if (itemsize == -1 && PyErr_Occurred())
        return NULL;
    int ndim = integers_from(args[1], shape);
    int nsrc = ndim < 0 ? -1 : integers_from(args[2], src);
    int ndst = nsrc < 0 ? -1 : integers_from(args[3], dst);
    if (ndst < 0)
        return NULL;
    if (ndim != nsrc || ndim != ndst) {
        PyErr_SetString(PyExc_ValueError, "shape and strides of different lengths");
        return NULL;
    }
    gm_plan_make(&plan, itemsize, ndim, shape, src, dst);
    return plan_as_dict(&plan);
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
