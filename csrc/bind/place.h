/* Where an operation runs: what its caller asked for by device= and stream=, and what that means for x. */
#pragma once
#include "state.h"
#include "../base/array.h"

typedef struct gm_place {
    PyObject *device;       /* as it was given, NULL for None and for the device that x is on anyway */
    gm_device_kind kind;    /* what `device` names */
    int device_id;          /* of CUDA's */
    PyObject *stream_given; /* NULL for None */
    void *stream;           /* what it names, or NULL */
} gm_place;

/* Either may be NULL or None. 0, or -1 with an exception. */
int gm_place_from(const gm_state *state, PyObject *device, PyObject *stream, PyObject *x, gm_place *place);

/* Whether x, now that it is known, can be worked on there: 0, or -1 with an exception. *through is the CUDA device that
 * an array in host memory is to be sent to and fetched from, or -1. */
int gm_place_check(const gm_place *place, const gm_array *x, int *through);

/* "host memory", "CUDA device 0": for error texts. A new reference. */
PyObject *gm_place_name(const gm_array *array);
