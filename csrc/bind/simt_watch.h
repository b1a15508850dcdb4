/* _core._watch: the watch of shared memory by itself, told by the tests what happened. */
#pragma once
#include "python.h"

PyObject *gm_py_watch(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
