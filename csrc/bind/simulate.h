/* Stages on the simulated device: their launches go to a Python function, which has the lens execute them. */
#pragma once
#include "python.h"

/* _simulate_move(launch, lesson, stage, itemsize, shape, src_strides, dst_strides, src, dst): dst[...] = src[...]. */
PyObject *gm_py_simulate_move(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
/* _simulate_stage(launch, lesson, stage, item, dtype, figures, src, dst, index): as _run_stage. */
PyObject *gm_py_simulate_stage(PyObject *module, PyObject *args);
/* _kernel_ptx(kernel): the PTX of the file that has it, or None. */
PyObject *gm_py_kernel_ptx(PyObject *module, PyObject *kernel);
