/* Python.h and NumPy's C API, set up the same way in every file of the bindings. module.c defines GM_IMPORTS_NUMPY: it
 * holds NumPy's function table, which the others share. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define PY_ARRAY_UNIQUE_SYMBOL gm_numpy_api
#ifndef GM_IMPORTS_NUMPY
#    define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
