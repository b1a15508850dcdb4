/* A stage of a lesson on arrays of a CUDA device; gpumem/lessons.py says what each lesson makes of them. */
#pragma once
#include "state.h"

PyObject *gm_py_run_stage(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
