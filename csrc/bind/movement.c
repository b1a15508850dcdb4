/* All movement is one thing: the result is the input with its axes in another order, dense or in the caller's out. */
#include "movement.h"
#include "args.h"
#include "operand.h"
#include "place.h"
#include "raise.h"
#include "transfer.h"

/* Where each axis of the result comes from. 0, or -1 with an exception. */
typedef int gm_order(PyObject *axes, int ndim, int *from);

static int as_asked(PyObject *axes, int ndim, int *from)
{
    return gm_axes_from(axes, ndim, from);
}

static int reversed_or_as_asked(PyObject *axes, int ndim, int *from)
{
    if (axes && axes != Py_None)
        return gm_axes_from(axes, ndim, from);
    for (int i = 0; i < ndim; i++)
        from[i] = ndim - 1 - i;
    return 0;
}

static int as_it_is(PyObject *axes, int ndim, int *from)
{
    (void)axes;
    for (int i = 0; i < ndim; i++)
        from[i] = i;
    return 0;
}

static int last_two_swapped(PyObject *axes, int ndim, int *from)
{
    if (ndim < 2)
        return gm_raise(GM_TOO_FEW_AXES, ndim);
    as_it_is(axes, ndim, from);
    from[ndim - 2] = ndim - 1;
    from[ndim - 1] = ndim - 2;
    return 0;
}

typedef struct gm_movement {
    gm_parameters parameters;
    gm_lesson lesson;
    gm_order *order;
    int has_axes;
} gm_movement;

#define OPTIONS "out", "device", "stage", "stream"

static const gm_movement transpose = {
    {"transpose", 1, 1, 2, {"x", "axes", OPTIONS}}, GM_LESSON_TRANSPOSE, reversed_or_as_asked, 1};
static const gm_movement permute_dims = {
    {"permute_dims", 1, 2, 2, {"x", "axes", OPTIONS}}, GM_LESSON_TRANSPOSE, as_asked, 1};
static const gm_movement matrix_transpose = {
    {"matrix_transpose", 1, 1, 1, {"x", OPTIONS}}, GM_LESSON_TRANSPOSE, last_two_swapped, 0};
static const gm_movement copy = {{"copy", 1, 1, 1, {"x", OPTIONS}}, GM_LESSON_COPY, as_it_is, 0};

/* The same items, axes in another order. */
static int permuted(const gm_movement *movement, PyObject *axes, const gm_array *source, gm_array *view)
{
    int from[GM_MAX_NDIM];

    if (movement->order(axes, source->ndim, from) < 0)
        return -1;
    gm_array_copy(view, source);
    for (int i = 0; i < source->ndim; i++) {
        view->shape[i] = source->shape[from[i]];
        view->strides[i] = source->strides[from[i]];
    }
    return 0;
}

static PyObject *into_new(gm_state *state, const gm_transfer *transfer, const gm_operand *source, const gm_array *view)
{
    gm_operand result;

    if (gm_operand_empty(state, source, view->ndim, view->shape, &result) < 0)
        return NULL;
    if (gm_transfer_apart(state, transfer, &result.array, view) < 0) {
        gm_operand_discard(&result);
        return NULL;
    }
    return gm_operand_finish(state, source, &result);
}

static PyObject *into_out(gm_state *state, const gm_transfer *transfer, PyObject *object, const gm_operand *source,
                          const gm_array *view)
{
    gm_operand out;

    if (gm_operand_out(state, object, source, view->ndim, view->shape, &out) < 0)
        return NULL;
    int rc = gm_transfer_any(state, transfer, &out.array, view);
    gm_operand_release(&out);
    return rc < 0 ? NULL : Py_NewRef(object);
}

/* device="sim" has the lens execute the kernels; gpumem/simulate.py sees to it. */
static PyObject *on_sim(const gm_movement *movement, PyObject *const *values)
{
    PyObject *const *option = values + 1 + movement->has_axes;
    PyObject *axes = movement->has_axes && values[1] ? values[1] : Py_None, *out = option[0] ? option[0] : Py_None,
             *stage = option[2] ? option[2] : Py_None;

    if (option[3] && option[3] != Py_None) {
        gm_raise(GM_STREAM, option[3]);
        return NULL;
    }
    PyObject *simulate = PyImport_ImportModule("gpumem.simulate");
    if (!simulate)
        return NULL;
    PyObject *result =
        PyObject_CallMethod(simulate, "operation", "sOOOO", movement->parameters.function, values[0], axes, out, stage);
    Py_DECREF(simulate);
    return result;
}

static PyObject *move(PyObject *module, const gm_movement *movement, PyObject *const *args, Py_ssize_t nargs,
                      PyObject *kwnames)
{
    gm_state *state = gm_state_of(module);
    PyObject *values[GM_MAX_PARAMETERS];
    gm_operand source;
    gm_array view;
    gm_place place;
    gm_transfer transfer;
    int through;
    PyObject *result = NULL;

    if (gm_parse(&movement->parameters, args, nargs, kwnames, values) < 0)
        return NULL;
    PyObject *const *option = values + 1 + movement->has_axes;
    PyObject *out = option[0];
    if (option[1] && PyUnicode_Check(option[1]) && PyUnicode_CompareWithASCIIString(option[1], "sim") == 0)
        return on_sim(movement, values);
    if (gm_place_from(state, option[1], option[3], values[0], &place) < 0)
        return NULL;
    gm_owner_poll(state);
    if (gm_operand_from(state, values[0], "x", place.stream, &source) < 0)
        return NULL;
    if (gm_place_check(&place, &source.array, &through) == 0 &&
        gm_transfer_from(state, option[2], movement->lesson, through < 0 ? source.array.device : GM_CUDA, &transfer) ==
            0 &&
        permuted(movement, movement->has_axes ? values[1] : NULL, &source.array, &view) == 0) {
        transfer.through = through;
        result = out && out != Py_None ? into_out(state, &transfer, out, &source, &view)
                                       : into_new(state, &transfer, &source, &view);
    }
    gm_operand_release(&source);
    return result;
}

PyObject *gm_py_transpose(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return move(module, &transpose, args, nargs, kwnames);
}

PyObject *gm_py_permute_dims(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return move(module, &permute_dims, args, nargs, kwnames);
}

PyObject *gm_py_matrix_transpose(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return move(module, &matrix_transpose, args, nargs, kwnames);
}

PyObject *gm_py_copy(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return move(module, &copy, args, nargs, kwnames);
}
