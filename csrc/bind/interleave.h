/* Private: what gpumem's to_aos makes of a sequence of planes. */
#pragma once
#include "python.h"

PyObject *gm_py_interleave(PyObject *module, PyObject *planes);
