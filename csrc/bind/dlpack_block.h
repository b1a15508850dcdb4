/* A dense array in memory of our own, shared by reference count. Knows nothing of Python: what is exported from it may
 * be deleted by any thread, without the GIL, and after the interpreter is gone. */
#pragma once
#include <stdint.h>
#include <dlpack/dlpack.h>

typedef struct gm_block {
    _Atomic int64_t references;
    int64_t bytes;
    DLTensor tensor; /* C order; data is NULL where there are no items, as DLPack asks */
    int64_t *byte_strides;
    int64_t extents[]; /* what the pointers to shape and strides lead to */
} gm_block;

/* With one reference, items not cleared; NULL where there is no memory. The type has whole bytes and one lane. */
gm_block *gm_block_new(int ndim, const int64_t *shape, DLDataType type);
/* The same shape and items. */
gm_block *gm_block_copy(const gm_block *block);
void gm_block_retain(gm_block *block);
void gm_block_release(gm_block *block);

/* Managed tensors with a reference of their own; NULL where there is no memory. */
DLManagedTensorVersioned *gm_block_export(gm_block *block, uint64_t flags);
DLManagedTensor *gm_block_export_legacy(gm_block *block);
