/* What one interpreter's copy of the module holds. */
#pragma once
#include "python.h"
#include "dlpack_names.h"
#include "../cpu/cpu.h"

/* The lessons of the stage table whose stages an operation may be told to use. */
typedef enum gm_lesson { GM_LESSON_TRANSPOSE, GM_LESSON_COPY, GM_LESSON_REDUCE, GM_LESSON_COUNT } gm_lesson;

typedef struct gm_state {
    gm_cpu cpu;
    gm_stage_id fastest[GM_LESSON_COUNT]; /* on the CPU: the last row of each */
    PyTypeObject *array_type;             /* gpumem.Array: our own DLPack producer (dlpack_array.c) */
    gm_dlpack_names names;
} gm_state;

static inline gm_state *gm_state_of(PyObject *module)
{
    return (gm_state *)PyModule_GetState(module);
}
