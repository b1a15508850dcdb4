/* What one interpreter's copy of the module holds. */
#pragma once
#include "python.h"
#include "../cpu/cpu.h"

typedef struct gm_state {
    gm_cpu cpu;
    PyTypeObject *array_type; /* gpumem.Array: our own DLPack producer (dlpack.c) */
} gm_state;

static inline gm_state *gm_state_of(PyObject *module)
{
    return (gm_state *)PyModule_GetState(module);
}
