#include "dlpack_block.h"
#include "../base/memory.h"
#include <string.h>

gm_block *gm_block_new(int ndim, const int64_t *shape, DLDataType type)
{
    int64_t bytes = type.bits / 8;
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            bytes = 0;
    for (int i = 0; i < ndim && bytes; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes))
            return NULL;

    gm_block *block = gm_alloc(sizeof *block + 3 * (size_t)ndim * sizeof *block->extents);
    if (!block)
        return NULL;
    *block = (gm_block){.references = 1, .bytes = bytes, .byte_strides = block->extents + 2 * ndim};
    block->tensor = (DLTensor){
        .device = {kDLCPU, 0}, .ndim = ndim, .dtype = type, .shape = block->extents, .strides = block->extents + ndim};
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        block->extents[i] = shape[i];
        block->extents[ndim + i] = stride;
        block->byte_strides[i] = stride * (type.bits / 8);
        stride = bytes ? stride * shape[i] : 1;
    }
    if (bytes && !(block->tensor.data = gm_alloc((size_t)bytes))) {
        gm_free(block);
        return NULL;
    }
    return block;
}

gm_block *gm_block_copy(const gm_block *block)
{
    gm_block *copy = gm_block_new(block->tensor.ndim, block->tensor.shape, block->tensor.dtype);
    if (copy && copy->bytes)
        memcpy(copy->tensor.data, block->tensor.data, (size_t)copy->bytes);
    return copy;
}

void gm_block_retain(gm_block *block)
{
    block->references++;
}

void gm_block_release(gm_block *block)
{
    if (--block->references)
        return;
    gm_free(block->tensor.data);
    gm_free(block);
}

static void delete_versioned(DLManagedTensorVersioned *self)
{
    gm_block_release(self->manager_ctx);
    gm_free(self);
}

static void delete_legacy(DLManagedTensor *self)
{
    gm_block_release(self->manager_ctx);
    gm_free(self);
}

DLManagedTensorVersioned *gm_block_export(gm_block *block, uint64_t flags)
{
    DLManagedTensorVersioned *managed = gm_alloc(sizeof *managed);
    if (!managed)
        return NULL;
    *managed = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                          .manager_ctx = block,
                                          .deleter = delete_versioned,
                                          .flags = flags,
                                          .dl_tensor = block->tensor};
    gm_block_retain(block);
    return managed;
}

DLManagedTensor *gm_block_export_legacy(gm_block *block)
{
    DLManagedTensor *managed = gm_alloc(sizeof *managed);
    if (!managed)
        return NULL;
    *managed = (DLManagedTensor){.dl_tensor = block->tensor, .manager_ctx = block, .deleter = delete_legacy};
    gm_block_retain(block);
    return managed;
}
