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

/* One thread at a time for the same object. With a GIL it does nothing, and the stable ABI has no name for it. */
#ifndef Py_BEGIN_CRITICAL_SECTION
#    define Py_BEGIN_CRITICAL_SECTION(object) {
#    define Py_END_CRITICAL_SECTION()         }
#endif
