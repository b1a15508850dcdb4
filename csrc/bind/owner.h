/* Who owns memory that was lent to us, and when it can be given back.
 *
 * What a library frees in the order of the stream that we worked on may go back at once. Any other owner is kept until
 * the work that was on the stream has happened; later calls look whether it has. The driver's own callbacks are no
 * help: they may call neither CUDA nor Python. */
#pragma once
#include "python.h"
#include <dlpack/dlpack.h>

typedef struct gm_state gm_state;
typedef struct gm_block gm_block;

/* One of these, or none. */
typedef struct gm_owner {
    DLManagedTensorVersioned *versioned;
    DLManagedTensor *legacy;
    gm_block *block;
    PyObject *object; /* what has a CUDA array interface */
} gm_owner;

/* Exactly one deleter call. Keeps the exception that is set, if any. */
void gm_owner_drop(gm_owner *owner);
/* The same once the work that is on the stream now has happened. */
void gm_owner_drop_after(gm_state *state, gm_owner *owner, int device, void *stream);

/* Drops the owners whose work has happened; returns how many are left. */
Py_ssize_t gm_owner_poll(gm_state *state);
PyObject *gm_py_kept(PyObject *module, PyObject *unused);
