/* What the user may choose: the instruction set and the number of threads. */
#pragma once
#include "state.h"

/* Sets up state->cpu from GPUMEM_ISA and GPUMEM_NUM_THREADS. 0, or -1 with an ImportError that quotes them. */
int gm_settings_init(gm_state *state);

PyObject *gm_py_set_num_threads(PyObject *module, PyObject *count);
PyObject *gm_py_get_num_threads(PyObject *module, PyObject *unused);
PyObject *gm_py_isa(PyObject *module, PyObject *unused);
PyObject *gm_py_isas(PyObject *module, PyObject *unused);
