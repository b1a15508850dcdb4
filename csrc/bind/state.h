/* What one interpreter's copy of the module holds. */
#pragma once
#include "python.h"
#include "dlpack_names.h"
#include "../cpu/cpu.h"

typedef struct gm_state {
    gm_cpu cpu;
    PyTypeObject *array_type; /* gpumem.Array: our own DLPack producer (dlpack_array.c) */
    gm_dlpack_names names;
} gm_state;

static inline gm_state *gm_state_of(PyObject *module)
{
    return (gm_state *)PyModule_GetState(module);
}
