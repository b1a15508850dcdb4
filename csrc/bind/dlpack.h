/* DLPack: tensors of other libraries in, results of their kind out; the CUDA array interface for what has no DLPack.
 *
 *   dlpack_type.c      which types and tensors are taken, and what they are as a gm_array
 *   dlpack_import.c    a Python object -> gm_dlpack_tensor, by exchange table or capsule
 *   cuda_interface.c   the same by __cuda_array_interface__, and back
 *   dlpack_result.c    memory for a result, and the result as an object of the caller's library
 *   dlpack_block.c     our own memory, which outlives the interpreter where it must
 *   dlpack_array.c     gpumem.Array, the Python object over such a block
 *
 * What the specification leaves to the consumer is decided so: a legacy capsule carries no read-only flag and is taken
 * to be read-only, as NumPy does; a copy that the producer made is no place for a result, as its owner would not see
 * it; pinned host memory is host memory, managed memory is the memory of its device; an array in host memory is
 * imported without a stream, so that its producer waits for the work that is under way.
 *
 * The stream of an array on a device is that of the work. Where its library tells which stream it works on (`home`),
 * the work comes after what is there and is over before what follows: on that stream itself, or, where the caller named
 * another, by events. Otherwise the producer is told our stream, which is the legacy default one unless the caller
 * names one, and nobody can be told afterwards. */
#pragma once
#include "owner.h"
#include "../base/array.h"
#include "../base/dtype.h"

typedef struct gm_dlpack_tensor {
    gm_array array; /* byte strides; those of axes shorter than 2 are made up */
    DLDataType dtype;
    const char *readonly; /* why it must not be written, or NULL */
    gm_owner owner;
    void *home; /* the stream that its library works on, NULL where it does not say */
    /* Where it comes from. */
    gm_state *state;
    PyObject *object;             /* the argument (borrowed), or NULL in a result */
    const DLPackExchangeAPI *api; /* what the type of `object` offers, or NULL */
} gm_dlpack_tensor;

/* 1, 0 where the type of `object` neither speaks DLPack nor has a CUDA array interface, or -1 with an exception. On
 * success the caller releases it: exactly one deleter call. What is on a device is made ready on `stream`, or where
 * that is NULL on one of its library's choice; which, the array says. What is only read while the caller holds `object`
 * may be borrowed from it; `written` asks for what says whether it may be written. */
int gm_dlpack_import(gm_state *state, PyObject *object, void *stream, int written, gm_dlpack_tensor *tensor);
/* Keeps the exception that is set, if any. */
void gm_dlpack_release(gm_dlpack_tensor *tensor);

/* Memory for a result of the library of `like`, on its device and stream, dense in C order; finished or discarded by
 * the caller. */
int gm_dlpack_empty(gm_state *state, const gm_dlpack_tensor *like, int ndim, const int64_t *shape, DLDataType dtype,
                    gm_dlpack_tensor *result);
/* The result as an array of the library of `like`, without a copy: made by the exchange table of its type, by
 * from_dlpack of its array namespace, or of the package that its class comes from; where there is none of them, a
 * gpumem.Array. A new reference, or NULL with an exception; `result` is gone either way. */
PyObject *gm_dlpack_finish(gm_state *state, const gm_dlpack_tensor *like, gm_dlpack_tensor *result);
void gm_dlpack_discard(gm_dlpack_tensor *result);

/* The type as one that gpumem computes with, GM_DTYPE_COUNT where it is none; and back. */
gm_dtype gm_dlpack_to_dtype(DLDataType type);
DLDataType gm_dlpack_from_dtype(gm_dtype dtype);

/* "float32", "bfloat16", ...: for error texts. A new reference. */
PyObject *gm_dlpack_dtype_name(DLDataType dtype);

/* Adds gpumem.Array and makes the names that every import looks up. */
int gm_dlpack_init(gm_state *state, PyObject *module);
void gm_dlpack_clear(gm_state *state);
