/* sum: a METH_FASTCALL | METH_KEYWORDS function of the module. */
#pragma once
#include "python.h"

PyObject *gm_py_sum(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
