/* gpumem.Array: a block of our own as a Python object. */
#pragma once
#include "python.h"
#include "dlpack_block.h"

typedef struct gm_state gm_state;

extern PyType_Spec gm_array_spec;

/* Takes over the caller's reference to the block, also when it fails: NULL with an exception. */
PyObject *gm_array_of(gm_state *state, gm_block *block);
/* The block of an Array, borrowed; NULL for any other object. */
gm_block *gm_array_block(const gm_state *state, PyObject *object);
