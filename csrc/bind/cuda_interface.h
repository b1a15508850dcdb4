/* The CUDA array interface, version 3 (numba.readthedocs.io): for arrays whose type has no DLPack, and back. */
#pragma once
#include "dlpack.h"

/* As gm_dlpack_import. Masked arrays are refused, and the stream 0, which the interface forbids as ambiguous. */
int gm_cuda_interface_import(gm_state *state, PyObject *object, void *stream, gm_dlpack_tensor *tensor);

/* The dictionary for a block; NULL with an exception, an AttributeError for what is not on a CUDA device or has a type
 * that the interface does not know. */
PyObject *gm_cuda_interface_of(gm_block *block);
