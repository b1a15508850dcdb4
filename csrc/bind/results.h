/* The memory of NumPy arrays that gpumem makes. */
#pragma once
#include "python.h"
#include "state.h"

/* Makes state->results, the handler that such arrays keep. Returns 0, or -1 with an exception set. */
int gm_results_init(gm_state *state);

/* A new array in C order. A large one begins with a cache line, as NumPy's own do not: lines of both sides lie alike
 * then, and each is written as a whole. */
PyObject *gm_new_result(gm_state *state, PyArray_Descr *descr, int ndim, const int64_t *shape);
