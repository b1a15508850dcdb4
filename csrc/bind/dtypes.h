/* Between the types that gpumem computes with (base/dtype.def) and those of its callers. */
#pragma once
#include "operand.h"
#include "../base/dtype.h"

/* The type of the items, whatever their byte order; -1 where gpumem cannot compute with it. */
int gm_dtype_of(const gm_operand *operand);
int gm_dtype_of_numpy(PyArray_Descr *descr);

/* NumPy's type in native byte order, a new reference; NULL with an exception. NumPy has no bfloat16. */
PyArray_Descr *gm_dtype_as_numpy(gm_dtype dtype);
/* The same in native byte order: takes the reference, returns a new one or NULL with an exception. */
PyArray_Descr *gm_dtype_native(PyArray_Descr *descr);

/* The type whose name `object` is, has or prints as, a library's prefix aside ("float32", numpy.float32,
 * torch.float32); -1 where there is none. */
int gm_dtype_by_name(PyObject *object);

/* "bool, int8, ..., complex128"; a new reference. */
PyObject *gm_dtype_names(void);
