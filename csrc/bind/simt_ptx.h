/* _core._ptx: what the reader of PTX understood, for the tests. */
#pragma once
#include "python.h"

PyObject *gm_py_ptx(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
