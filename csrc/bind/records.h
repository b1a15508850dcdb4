/* Private: records against the planes of their fields. gpumem's ops.py knows dtypes, this moves the bytes. */
#pragma once
#include "python.h"

PyObject *gm_py_gather_fields(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *gm_py_scatter_fields(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
