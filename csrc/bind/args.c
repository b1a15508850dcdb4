#include "args.h"
#include "raise.h"
#include <string.h>

static int is_absent(PyObject *value)
{
    return !value || value == Py_None;
}

static int place_keyword(const gm_parameters *p, PyObject *name, PyObject *value, PyObject **values)
{
    for (int i = p->positional_only; p->names[i]; i++)
        if (PyUnicode_CompareWithASCIIString(name, p->names[i]) == 0) {
            if (values[i])
                return gm_raise(GM_REPEATED_ARGUMENT, p->function, p->names[i]);
            values[i] = value;
            return 0;
        }
    return gm_raise(GM_UNKNOWN_ARGUMENT, p->function, name);
}

int gm_parse(const gm_parameters *p, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values)
{
    if (nargs > p->positional)
        return gm_raise(GM_TOO_MANY_ARGUMENTS, p->function, p->positional, nargs);
    for (int i = 0; p->names[i]; i++)
        values[i] = i < nargs ? args[i] : NULL;
    if (kwnames) {
        Py_ssize_t count = PyTuple_Size(kwnames);
        for (Py_ssize_t k = 0; k < count; k++)
            if (place_keyword(p, PyTuple_GetItem(kwnames, k), args[nargs + k], values) < 0)
                return -1;
    }
    for (int i = 0; i < p->required; i++)
        if (!values[i])
            return gm_raise(GM_MISSING_ARGUMENT, p->function, p->names[i]);
    return 0;
}

/* One axis of `ndim`, counted from the end where it is negative, which `seen` has not yet; -1 with an exception. */
static int axis_from(PyObject *object, int ndim, unsigned char *seen)
{
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return -1;
    /* Clipped, not an overflow: any number so large is out of range. */
    Py_ssize_t given = PyNumber_AsSsize_t(number, NULL);
    int outside = given < -ndim || given >= ndim;
    if (outside)
        gm_raise(GM_AXIS_RANGE, number, ndim);
    Py_DECREF(number);
    if (outside)
        return -1;
    int axis = (int)(given < 0 ? given + ndim : given);
    return seen[axis]++ ? gm_raise(GM_AXIS_REPEATED, axis) : axis;
}

/* An ndarray has an index too, which only works where it holds one number. */
static int is_number(PyObject *object)
{
    return PyIndex_Check(object) && !(PyArray_Check(object) && PyArray_NDIM((PyArrayObject *)object) > 0);
}

/* A new reference; `otherwise` is raised for what is no sequence of numbers. */
static PyObject *axes_tuple(PyObject *object, gm_status otherwise)
{
    if (is_number(object) || !PySequence_Check(object) || PyUnicode_Check(object)) {
        gm_raise(otherwise, Py_TYPE(object));
        return NULL;
    }
    return PySequence_Tuple(object);
}

int gm_axes_from(PyObject *object, int ndim, int *axes)
{
    unsigned char seen[GM_MAX_NDIM] = {0};

    PyObject *tuple = axes_tuple(object, GM_AXES_TYPE);
    if (!tuple)
        return -1;
    Py_ssize_t count = PyTuple_Size(tuple);
    int rc = count == ndim ? 0 : gm_raise(GM_AXES_COUNT, count, count == 1 ? "axis" : "axes", ndim);
    for (int i = 0; i < ndim && rc >= 0; i++)
        rc = axes[i] = axis_from(PyTuple_GetItem(tuple, i), ndim, seen);
    Py_DECREF(tuple);
    return rc < 0 ? -1 : 0;
}

int gm_axis_set_from(PyObject *object, int ndim, unsigned char *chosen)
{
    memset(chosen, is_absent(object), (size_t)ndim);
    if (is_absent(object))
        return 0;
    if (is_number(object))
        return axis_from(object, ndim, chosen) < 0 ? -1 : 0;

    PyObject *tuple = axes_tuple(object, GM_AXIS_TYPE);
    if (!tuple)
        return -1;
    int rc = 0;
    Py_ssize_t count = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < count && rc >= 0; i++)
        rc = axis_from(PyTuple_GetItem(tuple, i), ndim, chosen);
    Py_DECREF(tuple);
    return rc < 0 ? -1 : 0;
}

static const char *const lesson_name[] = {
    [GM_LESSON_TRANSPOSE] = "transpose", [GM_LESSON_COPY] = "copy", [GM_LESSON_REDUCE] = "reduce"};

/* The rows of a lesson for a device, one after another: the first at or after `id`, GM_STAGE_COUNT past the last. */
static int next_stage(gm_lesson lesson, gm_device_kind device, int id)
{
    for (; id < GM_STAGE_COUNT; id++) {
        const gm_stage *stage = gm_stage_get((gm_stage_id)id);
        if (stage->device == device && strcmp(stage->lesson, lesson_name[lesson]) == 0)
            break;
    }
    return id;
}

void gm_find_fastest(gm_state *state)
{
    for (int device = GM_CPU; device <= GM_CUDA; device++)
        for (int lesson = 0; lesson < GM_LESSON_COUNT; lesson++) {
            gm_stage_id *fastest = &state->fastest[device][lesson];
            *fastest = GM_STAGE_COUNT;
            for (int id = -1; (id = next_stage(lesson, device, id + 1)) < GM_STAGE_COUNT;)
                *fastest = (gm_stage_id)id;
        }
}

static int raise_unknown_stage(PyObject *stage, gm_lesson lesson, gm_device_kind device)
{
    PyObject *names = PyUnicode_FromString("");
    for (int id = -1; names && (id = next_stage(lesson, device, id + 1)) < GM_STAGE_COUNT;) {
        PyObject *longer = PyUnicode_FromFormat("%U%s%s", names, PyUnicode_GetLength(names) ? ", " : "",
                                                gm_stage_get((gm_stage_id)id)->name);
        Py_DECREF(names);
        names = longer;
    }
    if (names && PyUnicode_GetLength(names))
        gm_raise(GM_STAGE, stage, device == GM_CUDA ? "CUDA's" : "the CPU's", lesson_name[lesson], names);
    else if (names)
        gm_raise(GM_NO_STAGES, stage, lesson_name[lesson]);
    Py_XDECREF(names);
    return -1;
}

int gm_stage_from(const gm_state *state, PyObject *stage, gm_lesson lesson, gm_device_kind device)
{
    if (is_absent(stage))
        return (int)state->fastest[device][lesson];
    if (PyUnicode_Check(stage))
        for (int id = -1; (id = next_stage(lesson, device, id + 1)) < GM_STAGE_COUNT;)
            if (PyUnicode_CompareWithASCIIString(stage, gm_stage_get((gm_stage_id)id)->name) == 0)
                return id;
    return raise_unknown_stage(stage, lesson, device);
}
