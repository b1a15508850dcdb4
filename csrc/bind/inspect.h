/* Private functions through which the Python side and the tests look inside: tables, plans, caches, references. */
#pragma once
#include "state.h"

PyObject *gm_py_caches(PyObject *module, PyObject *unused);
PyObject *gm_py_stages(PyObject *module, PyObject *unused);
PyObject *gm_py_plan(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *gm_py_fail_allocation(PyObject *module, PyObject *count);
PyObject *gm_py_reference_copy(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *gm_py_reference_read(PyObject *module, PyObject *x);

/* The plan of four arguments: itemsize, shape, source strides, destination strides. 0, or -1 with an exception. */
int gm_plan_from(PyObject *const *args, gm_plan *plan);

/* A sequence of at most GM_MAX_NDIM integers; returns how many, or -1 with an exception. */
int gm_integers_from(PyObject *object, int64_t *values);
