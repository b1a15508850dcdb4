#include "place.h"
#include "raise.h"
#include "stream.h"
#include <stdlib.h>
#include <string.h>

static int is_absent(PyObject *value)
{
    return !value || value == Py_None;
}

/* A library's own object for the device that x is on. */
static int is_device_of(PyObject *device, PyObject *x)
{
    PyObject *own = PyUnicode_Check(device) ? NULL : PyObject_GetAttrString(x, "device");
    int same = own ? PyObject_RichCompareBool(own, device, Py_EQ) : 0;
    Py_XDECREF(own);
    if (same <= 0)
        PyErr_Clear(); /* then it is known by what it prints, or not at all */
    return same > 0;
}

/* "cpu", "cuda", "cuda:1" */
static int read_name(const char *name, gm_place *place)
{
    char *end;

    if (strcmp(name, "cpu") == 0) {
        place->kind = GM_CPU;
        return 0;
    }
    if (strcmp(name, "sim") == 0)
        return gm_raise(GM_NO_SIM, place->device);
    if (strncmp(name, "cuda", 4) != 0 || (name[4] && (name[4] != ':' || name[5] < '0' || name[5] > '9')))
        return gm_raise(GM_DEVICE, place->device);
    long id = name[4] ? strtol(name + 5, &end, 10) : 0;
    if (name[4] && (*end || id > INT32_MAX))
        return gm_raise(GM_DEVICE, place->device);
    place->kind = GM_CUDA;
    place->device_id = (int)id;
    return 0;
}

int gm_place_from(const gm_state *state, PyObject *device, PyObject *stream, PyObject *x, gm_place *place)
{
    *place = (gm_place){NULL, GM_CPU, 0, NULL, NULL};
    if (!is_absent(device) && !is_device_of(device, x)) {
        PyObject *text = PyObject_Str(device);
        const char *name = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
        place->device = device;
        int rc = name ? read_name(name, place) : -1;
        Py_XDECREF(text);
        if (rc < 0)
            return -1;
    }
    if (is_absent(stream))
        return 0;
    place->stream_given = stream;
    if (gm_stream_from(state, stream, &place->stream) == 0)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_ValueError))
        return -1;
    PyErr_Clear(); /* what is wrong with it depends on where x is */
    return 0;
}

PyObject *gm_place_name(const gm_array *array)
{
    return array->device == GM_CUDA ? PyUnicode_FromFormat("CUDA device %d", array->device_id)
                                    : PyUnicode_FromString("host memory");
}

int gm_place_check(const gm_place *place, const gm_array *x, int *through)
{
    *through = -1;
    if (x->device == GM_CPU) {
        if (place->device && place->kind == GM_CUDA)
            *through = place->device_id;
        return place->stream_given ? gm_raise(GM_STREAM, place->stream_given) : 0;
    }
    if (place->stream_given && !place->stream)
        return gm_raise(GM_CUDA_STREAM, place->stream_given);
    if (!place->device || (place->kind == GM_CUDA && place->device_id == x->device_id))
        return 0;
    PyObject *name = gm_place_name(x);
    if (name)
        gm_raise(GM_OTHER_DEVICE, place->device, name);
    Py_XDECREF(name);
    return -1;
}
