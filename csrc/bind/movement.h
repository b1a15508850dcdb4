/* transpose, permute_dims, matrix_transpose, copy: METH_FASTCALL | METH_KEYWORDS functions of the module. */
#pragma once
#include "python.h"

PyObject *gm_py_transpose(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *gm_py_permute_dims(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *gm_py_matrix_transpose(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *gm_py_copy(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
