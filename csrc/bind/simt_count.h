/* _core._count: the counting rules by themselves, for the tests and for pictures of access patterns. */
#pragma once
#include "python.h"

/* _wavefronts(rule, addresses, active, width): how many an access to shared memory takes, and each lane's. */
PyObject *gm_py_wavefronts(PyObject *module, PyObject *args);

PyObject *gm_py_count(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
