/* Private functions through which the Python side and the tests look inside: tables, plans, caches, references. */
#pragma once
#include "state.h"

PyObject *gm_py_caches(PyObject *module, PyObject *unused);
PyObject *gm_py_stages(PyObject *module, PyObject *unused);
PyObject *gm_py_plan(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *gm_py_fail_allocation(PyObject *module, PyObject *count);
PyObject *gm_py_reference_copy(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *gm_py_reference_read(PyObject *module, PyObject *x);
