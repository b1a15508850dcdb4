/* A dense array in memory of our own, shared by reference count. Knows nothing of Python: what is exported from it may
 * be deleted by any thread, without the GIL, and after the interpreter is gone.
 *
 * On a device its memory is ordered on the stream of the work that filled it, and a mark stands behind that work, as
 * the stream may be gone before the block is. Who reads it says on which stream (gm_block_ready). */
#pragma once
#include "../base/failure.h"
#include <stdint.h>
#include <dlpack/dlpack.h>

typedef struct gm_block {
    _Atomic int64_t references;
    int64_t bytes;
    DLTensor tensor; /* C order; data is NULL where there are no items, as DLPack asks */
    void *stream;    /* NULL in host memory */
    void *mark;      /* behind the work that filled it; NULL until then, in a graph, and on the legacy default stream */
    int64_t *byte_strides;
    int64_t extents[]; /* what the pointers to shape and strides lead to */
} gm_block;

/* With one reference, items not cleared; NULL with the reason. The type has whole bytes and one lane. */
gm_block *gm_block_new(DLDevice device, void *stream, int ndim, const int64_t *shape, DLDataType type,
                       gm_failure *failure);
/* The same shape and items, on that stream. */
gm_block *gm_block_copy(gm_block *block, void *stream, gm_failure *failure);
void gm_block_retain(gm_block *block);
void gm_block_release(gm_block *block);

/* The work that fills the block is on its stream now. */
gm_status gm_block_filled(gm_block *block, gm_failure *failure);
/* Makes what comes on the stream wait for that work. */
gm_status gm_block_ready(const gm_block *block, void *stream, gm_failure *failure);

/* Managed tensors with a reference of their own; NULL where there is no memory. */
DLManagedTensorVersioned *gm_block_export(gm_block *block, uint64_t flags);
DLManagedTensor *gm_block_export_legacy(gm_block *block);
