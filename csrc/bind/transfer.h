/* One movement from view to view, with the GIL released around it. */
#pragma once
#include "state.h"

typedef struct gm_transfer {
    gm_stage_id stage; /* of the device that does the work; GM_STAGE_COUNT for the fastest of a device without stages */
    int chosen;        /* the caller asked for this stage by name: no other way may take its place */
    int through;       /* the CUDA device that arrays in host memory are sent to and fetched from, or -1 */
} gm_transfer;

/* The stage of that device by its name; the fastest one where it is NULL or None. */
int gm_transfer_from(const gm_state *state, PyObject *stage, gm_lesson lesson, gm_device_kind device,
                     gm_transfer *transfer);

/* dst = src for views of one shape that share no memory. 0, or -1 with an exception. */
int gm_transfer_apart(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src);
/* As if src had been copied first, whatever they share. */
int gm_transfer_any(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src);

/* A dense C-order array of that shape and item size, in the same memory and on the same stream: what out needs where it
 * shares memory with x. 0, or -1 with an exception. */
int gm_dense_like(const gm_array *like, gm_array *dense);
void gm_dense_free(const gm_array *dense);

/* The GIL is released, and taken back, round work on that many bytes, if it is worth it. */
PyThreadState *gm_release_for(int64_t bytes);
void gm_take_back(PyThreadState *saved);
