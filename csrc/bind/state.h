/* What one interpreter's copy of the module holds. */
#pragma once
#include "python.h"
#include "dlpack_names.h"
#include "../cpu/cpu.h"
#include <stdatomic.h>

/* The lessons of the stage table whose stages an operation may be told to use. */
typedef enum gm_lesson { GM_LESSON_TRANSPOSE, GM_LESSON_COPY, GM_LESSON_REDUCE, GM_LESSON_COUNT } gm_lesson;

typedef struct gm_kept gm_kept;

typedef struct gm_state {
    gm_cpu cpu;
    gm_stage_id fastest[2][GM_LESSON_COUNT]; /* by gm_device_kind: the last row of each; GM_STAGE_COUNT without rows */
    PyTypeObject *array_type;                /* gpumem.Array: our own DLPack producer (dlpack_array.c) */
    PyTypeObject *lens_type;                 /* gpumem._core.Lens (simt.c) */
    PyObject *results;                       /* the memory of large NumPy arrays that we make (results.c) */
    gm_dlpack_names names;
    _Atomic(gm_kept *) kept; /* owners of memory that a stream still works on (owner.c) */
} gm_state;

static inline gm_state *gm_state_of(PyObject *module)
{
    return (gm_state *)PyModule_GetState(module);
}
