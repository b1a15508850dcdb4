/* k planes of one shape, in any library's memory, become one array of the first one's kind, whose last axis counts
 * them.
 *
 * Dense planes in host memory go in one pass, as the fields of records do. All others are first copied into the rows of
 * one dense array, whose axes are then permuted: on a device two passes that move whole sectors are faster than k that
 * write an item out of each. */
#include "interleave.h"
#include "operand.h"
#include "place.h"
#include "raise.h"
#include "transfer.h"
#include "../base/memory.h"

/* "(3,) float32 in host memory" */
static PyObject *described(const gm_operand *plane)
{
    PyObject *shape = gm_shape_tuple(plane->array.ndim, plane->array.shape);
    PyObject *dtype = gm_operand_dtype(plane), *place = gm_place_name(&plane->array), *text = NULL;
    if (shape && dtype && place)
        text = PyUnicode_FromFormat("%S %S in %S", shape, dtype, place);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    Py_XDECREF(place);
    return text;
}

static int refuse(const gm_operand *first, const gm_operand *other)
{
    PyObject *a = described(first), *b = described(other);
    if (a && b)
        gm_raise(GM_PLANES_DIFFER, a, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return -1;
}

/* Takes the planes apart; *taken of them are to be released, whatever comes of it. */
static int take(gm_state *state, PyObject *planes, gm_operand *operands, int *taken)
{
    int count = (int)PyList_Size(planes);

    for (*taken = 0; *taken < count;) {
        gm_operand *plane = &operands[*taken];
        void *stream = *taken ? operands->array.stream : NULL;
        if (gm_operand_from(state, PyList_GetItem(planes, *taken), "a plane", stream, plane) < 0)
            return -1;
        ++*taken;
        if (!gm_operand_alike(operands, plane))
            return refuse(operands, plane);
    }
    if (operands->array.ndim == GM_MAX_NDIM)
        return gm_raise(GM_DLPACK_NDIM, GM_MAX_NDIM + 1, GM_MAX_NDIM);
    return 0;
}

static int is_dense(const gm_array *array)
{
    int64_t step = array->itemsize;
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] != 1 && array->strides[i] != step)
            return 0;
        step *= array->shape[i];
    }
    return 1;
}

static int from_dense(gm_state *state, const gm_operand *planes, int count, const gm_array *result)
{
    int64_t size = result->itemsize, record = size * count, bytes = gm_bytes_of(result->ndim, result->shape, size);
    gm_field *fields = gm_alloc((size_t)count * sizeof *fields);

    if (!fields)
        return gm_raise(GM_NO_MEMORY, "the table of planes");
    for (int i = 0; i < count; i++)
        fields[i] = (gm_field){size, i * size, planes[i].array.data, size};
    PyThreadState *saved = gm_release_for(bytes);
    gm_status status = gm_cpu_scatter_fields(&state->cpu, fields, count, result->data, bytes / record, record);
    gm_take_back(saved);
    gm_free(fields);
    return status == GM_OK ? 0 : gm_raise(status, "the scratch of a conversion");
}

/* `rows` has k in front of the planes' axes; the result has it behind them. */
static int by_rows(gm_state *state, const gm_operand *planes, int count, const gm_array *rows, const gm_array *result)
{
    int ndim = result->ndim - 1;
    gm_array row = planes->array, view = *result;
    gm_transfer copy, turn;

    if (gm_transfer_from(state, NULL, GM_LESSON_COPY, rows->device, &copy) < 0 ||
        gm_transfer_from(state, NULL, GM_LESSON_TRANSPOSE, rows->device, &turn) < 0)
        return -1;
    copy.through = turn.through = -1;
    for (int i = 0; i < ndim; i++) {
        row.strides[i] = view.strides[i] = rows->strides[i + 1];
        view.shape[i] = rows->shape[i + 1];
    }
    for (int i = 0; i < count; i++) {
        row.data = rows->data + i * rows->strides[0];
        if (gm_transfer_apart(state, &copy, &row, &planes[i].array) < 0)
            return -1;
    }
    view.data = rows->data;
    view.strides[ndim] = rows->strides[0];
    return gm_transfer_apart(state, &turn, result, &view);
}

static int interleave(gm_state *state, const gm_operand *planes, int count, const gm_array *result)
{
    int dense = planes->array.device == GM_CPU;
    gm_array like = *result, rows;

    if (gm_bytes_of(result->ndim, result->shape, result->itemsize) == 0)
        return 0;
    for (int i = 0; i < count && dense; i++)
        dense = is_dense(&planes[i].array);
    if (dense)
        return from_dense(state, planes, count, result);
    like.shape[0] = count;
    for (int i = 1; i < like.ndim; i++)
        like.shape[i] = result->shape[i - 1];
    if (gm_dense_like(&like, &rows) < 0)
        return -1;
    int rc = by_rows(state, planes, count, &rows, result);
    gm_dense_free(&rows);
    return rc;
}

static PyObject *interleaved(gm_state *state, const gm_operand *planes, int count)
{
    gm_operand result;
    int ndim = planes->array.ndim;
    int64_t shape[GM_MAX_NDIM];

    for (int i = 0; i < ndim; i++)
        shape[i] = planes->array.shape[i];
    shape[ndim] = count;
    if (gm_operand_empty(state, planes, ndim + 1, shape, &result) < 0)
        return NULL;
    if (interleave(state, planes, count, &result.array) < 0) {
        gm_operand_discard(&result);
        return NULL;
    }
    return gm_operand_finish(state, planes, &result);
}

PyObject *gm_py_interleave(PyObject *module, PyObject *planes)
{
    gm_state *state = gm_state_of(module);
    PyObject *result = NULL;
    int taken;

    if (!PyList_Check(planes) || PyList_Size(planes) < 1 || PyList_Size(planes) > INT_MAX)
        return PyErr_Format(PyExc_TypeError, "a list of one plane or more is needed, not %R", planes);
    gm_operand *operands = gm_alloc((size_t)PyList_Size(planes) * sizeof *operands);
    if (!operands) {
        gm_raise(GM_NO_MEMORY, "the table of planes");
        return NULL;
    }
    gm_owner_poll(state);
    if (take(state, planes, operands, &taken) == 0)
        result = interleaved(state, operands, taken);
    for (int i = 0; i < taken; i++)
        gm_operand_release(&operands[i]);
    gm_free(operands);
    return result;
}
