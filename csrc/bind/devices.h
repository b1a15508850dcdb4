/* The CUDA back end from Python, as far as it is reached yet: what is there, and movement between raw addresses. */
#pragma once
#include "state.h"

PyObject *gm_py_cuda(PyObject *module, PyObject *unused);
PyObject *gm_py_cuda_move(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
