/* One movement from view to view, with the GIL released around it. */
#pragma once
#include "state.h"

typedef struct gm_transfer {
    gm_move_fn *stage;
    int chosen; /* the caller asked for this stage by name: no other way may take its place */
} gm_transfer;

/* The stage by its name; the fastest one where it is NULL or None. */
int gm_transfer_from(PyObject *stage, const char *lesson, gm_transfer *transfer);

/* dst = src for views of one shape that share no memory. 0, or -1 with an exception. */
int gm_transfer_apart(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src);
/* As if src had been copied first, whatever they share. */
int gm_transfer_any(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src);
