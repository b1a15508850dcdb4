/* _core._count: the counting rules by themselves, for the tests and for pictures of access patterns. */
#pragma once
#include "python.h"

PyObject *gm_py_count(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
