/* From Python's arguments to C values; every error is raised here, before anything is allocated. */
#pragma once
#include "state.h"

enum { GM_MAX_PARAMETERS = 10 };

typedef struct gm_parameters {
    const char *function;
    int positional_only, required, positional; /* of the first names: without keyword, not to be left out, without need
                                                  of a keyword */
    const char *names[GM_MAX_PARAMETERS + 1];  /* ended by NULL */
} gm_parameters;

/* Sorts the arguments of a METH_FASTCALL | METH_KEYWORDS function into values[], NULL where one is absent. */
int gm_parse(const gm_parameters *parameters, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
             PyObject **values);

/* A sequence of ndim integers, negative ones counted from the end, each axis once. */
int gm_axes_from(PyObject *object, int ndim, int *axes);

/* None (every axis), an integer or a sequence of them: sets chosen[axis] to 1, and to 0 for the other axes. */
int gm_axis_set_from(PyObject *object, int ndim, unsigned char *chosen);

/* Finds the fastest stage of each lesson and device, once. */
void gm_find_fastest(gm_state *state);

/* The row of the stage table; where no stage is asked for the fastest one of the lesson, GM_STAGE_COUNT for a device
 * that has no rows. -1 with an exception. */
int gm_stage_from(const gm_state *state, PyObject *stage, gm_lesson lesson, gm_device_kind device);
