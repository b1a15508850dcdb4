/* An argument or a result as the operations see it, whatever library it belongs to. */
#pragma once
#include "dlpack.h"
#include "state.h"

typedef struct gm_operand {
    gm_array array;          /* first ndim entries of shape and strides are set */
    PyArray_Descr *descr;    /* NumPy's type, borrowed from `object`; NULL for a DLPack tensor */
    PyObject *object;        /* the argument (borrowed), or a result that is still ours */
    const char *readonly;    /* why it must not be written, or NULL */
    gm_dlpack_tensor tensor; /* set where descr is NULL */
} gm_operand;

/* Takes `object` apart; `what` names it in errors ("x", "out"). 0, or -1 with an exception. On success the caller
 * releases it. Subclasses of ndarray are taken as the plain array that they hold, but for masked arrays. What is on a
 * device is made ready on `stream`; NULL for one of its library's choice, which array.stream says. */
int gm_operand_from(gm_state *state, PyObject *object, const char *what, void *stream, gm_operand *operand);
/* For what can be done in host memory only. */
int gm_operand_on_host(gm_state *state, PyObject *object, const char *what, gm_operand *operand);
void gm_operand_release(gm_operand *operand);

/* A new dense C-order array of `like`'s library and dtype, on its device and stream. On success the caller finishes or
 * discards it. */
int gm_operand_empty(gm_state *state, const gm_operand *like, int ndim, const int64_t *shape, gm_operand *result);
/* Hands the result over as a Python object (a new reference), or NULL with an exception; it is gone either way. */
PyObject *gm_operand_finish(gm_state *state, const gm_operand *like, gm_operand *result);
void gm_operand_discard(gm_operand *result);

/* out=: as gm_operand_from, and whether it can take a result of that shape and of `like`'s dtype and device. */
int gm_operand_out(gm_state *state, PyObject *object, const gm_operand *like, int ndim, const int64_t *shape,
                   gm_operand *out);

/* Whether two have one shape, dtype and device. */
int gm_operand_alike(const gm_operand *a, const gm_operand *b);

/* The bytes of `shape`, or -1 with an exception where no memory could hold them. */
int64_t gm_bytes_of(int ndim, const int64_t *shape, int64_t itemsize);

/* New references. */
PyObject *gm_operand_dtype(const gm_operand *operand);
PyObject *gm_shape_tuple(int ndim, const int64_t *shape);
