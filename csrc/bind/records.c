#include "records.h"
#include "operand.h"
#include "raise.h"
#include "transfer.h"
#include "../base/memory.h"

typedef gm_status gm_records_fn(const gm_cpu *cpu, const gm_field *fields, int nfields, char *records, int64_t n,
                                int64_t stride);

static gm_status gather(const gm_cpu *cpu, const gm_field *fields, int nfields, char *records, int64_t n,
                        int64_t stride)
{
    return gm_cpu_gather_fields(cpu, fields, nfields, records, n, stride);
}

/* A plane of n values, one after another: each value is one item, or a dense subarray of items. */
static int field_from(gm_state *state, PyObject *object, PyObject *offset, const gm_operand *records, int written,
                      gm_field *field)
{
    gm_operand plane;

    if (gm_operand_on_host(state, object, "a plane", &plane) < 0)
        return -1;
    const gm_array *array = &plane.array;
    int64_t size = array->itemsize;
    int dense = 1;
    for (int i = array->ndim - 1; i > 0; i--) {
        dense &= array->shape[i] == 1 || array->strides[i] == size;
        size *= array->shape[i];
    }
    dense |= size * records->array.shape[0] == 0; /* where nothing lies, strides mean nothing */
    field->size = size;
    field->offset = PyLong_AsLongLong(offset);
    field->plane = array->data;
    field->plane_stride = array->ndim ? array->strides[0] : 0;
    int fits = plane.descr && dense && array->ndim > 0 && array->shape[0] == records->array.shape[0] &&
               field->offset >= 0 && field->offset <= records->array.itemsize - size && !(written && plane.readonly);
    gm_operand_release(&plane);
    if (PyErr_Occurred())
        return -1;
    return fits ? 0 : gm_raise(GM_PLANE, offset);
}

static int move_records(gm_state *state, PyObject *planes, PyObject *offsets, const gm_operand *records, int written,
                        gm_records_fn *function)
{
    int count = (int)PyList_Size(planes), rc = 0;
    int64_t bytes = 0;
    gm_field *fields = gm_alloc((size_t)count * sizeof *fields);

    if (!fields)
        return gm_raise(GM_NO_MEMORY, "the table of fields");
    for (int i = 0; i < count && rc == 0; i++) {
        rc = field_from(state, PyList_GetItem(planes, i), PyList_GetItem(offsets, i), records, written, &fields[i]);
        bytes += fields[i].size * records->array.shape[0];
    }
    if (rc == 0 && bytes > 0) {
        PyThreadState *saved = gm_release_for(bytes);
        gm_status status = function(&state->cpu, fields, count, records->array.data, records->array.shape[0],
                                    records->array.strides[0]);
        gm_take_back(saved);
        if (status != GM_OK)
            rc = gm_raise(status, "the scratch of a conversion");
    }
    gm_free(fields);
    return rc;
}

static PyObject *convert(PyObject *module, PyObject *const *args, Py_ssize_t nargs, int gathers)
{
    gm_state *state = gm_state_of(module);
    gm_operand records;
    int rc = -1;

    if (nargs != 3 || !PyList_Check(args[1]) || !PyList_Check(args[2]) ||
        PyList_Size(args[1]) != PyList_Size(args[2])) {
        PyErr_SetString(PyExc_TypeError, "records, a list of planes and a list of as many offsets are needed");
        return NULL;
    }
    if (gm_operand_on_host(state, args[0], "x", &records) < 0)
        return NULL;
    if (!records.descr || records.array.ndim != 1 || (!gathers && records.readonly))
        PyErr_SetString(PyExc_ValueError, "the records must be a one-dimensional ndarray, writable to be scattered to");
    else
        rc = move_records(state, args[1], args[2], &records, gathers, gathers ? gather : gm_cpu_scatter_fields);
    gm_operand_release(&records);
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *gm_py_gather_fields(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    return convert(module, args, nargs, 1);
}

PyObject *gm_py_scatter_fields(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    return convert(module, args, nargs, 0);
}
