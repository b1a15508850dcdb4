#include "dlpack_block.h"
#include "../base/memory.h"
#include "../cuda/backend.h"
#include <stdio.h>
#include <string.h>

static gm_status no_memory(gm_failure *failure)
{
    snprintf(failure->text, sizeof failure->text, "the result");
    return failure->status = GM_NO_MEMORY;
}

static gm_status allocate(gm_block *block, gm_failure *failure)
{
    DLTensor *tensor = &block->tensor;

    if (!block->bytes)
        return GM_OK;
    if (tensor->device.device_type == kDLCUDA)
        return gm_cuda_alloc(tensor->device.device_id, block->stream, block->bytes, &tensor->data, failure);
    tensor->data = gm_alloc((size_t)block->bytes);
    return tensor->data ? GM_OK : no_memory(failure);
}

gm_block *gm_block_new(DLDevice device, void *stream, int ndim, const int64_t *shape, DLDataType type,
                       gm_failure *failure)
{
    int64_t bytes = type.bits / 8;
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            bytes = 0;
    for (int i = 0; i < ndim && bytes; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes)) {
            no_memory(failure);
            return NULL;
        }

    gm_block *block = gm_alloc(sizeof *block + 3 * (size_t)ndim * sizeof *block->extents);
    if (!block) {
        no_memory(failure);
        return NULL;
    }
    *block = (gm_block){.references = 1, .bytes = bytes, .stream = stream, .byte_strides = block->extents + 2 * ndim};
    block->tensor = (DLTensor){
        .device = device, .ndim = ndim, .dtype = type, .shape = block->extents, .strides = block->extents + ndim};
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        block->extents[i] = shape[i];
        block->extents[ndim + i] = stride;
        block->byte_strides[i] = stride * (type.bits / 8);
        stride = bytes ? stride * shape[i] : 1;
    }
    if (allocate(block, failure) != GM_OK) {
        gm_free(block);
        return NULL;
    }
    return block;
}

static gm_status copy_on_device(gm_block *copy, const gm_block *block, gm_failure *failure)
{
    const int64_t step = 1;
    gm_plan plan;

    gm_plan_make(&plan, 1, 1, &block->bytes, &step, &step);
    gm_status status = gm_block_ready(block, copy->stream, failure);
    if (status == GM_OK)
        status = gm_cuda_move(copy->tensor.device.device_id, copy->stream, &plan, copy->tensor.data, block->tensor.data,
                              GM_STAGE_COUNT, failure);
    return status == GM_OK ? gm_block_filled(copy, failure) : status;
}

gm_block *gm_block_copy(gm_block *block, void *stream, gm_failure *failure)
{
    const DLTensor *from = &block->tensor;
    gm_block *copy = gm_block_new(from->device, stream, from->ndim, from->shape, from->dtype, failure);

    if (!copy || !copy->bytes)
        return copy;
    if (from->device.device_type != kDLCUDA)
        memcpy(copy->tensor.data, from->data, (size_t)copy->bytes);
    else if (copy_on_device(copy, block, failure) != GM_OK) {
        gm_block_release(copy);
        return NULL;
    }
    return copy;
}

void gm_block_retain(gm_block *block)
{
    block->references++;
}

/* Behind the work that filled it, the memory goes back on the legacy default stream, which exists for ever and comes
 * after all blocking streams; without a mark (nothing was done, or a graph was captured) on the block's own. */
static void free_on_device(gm_block *block)
{
    gm_failure ignored;
    int device = block->tensor.device.device_id;

    if (block->mark && gm_cuda_after(device, GM_LEGACY_STREAM, block->mark, &ignored) == GM_OK)
        block->stream = GM_LEGACY_STREAM;
    gm_cuda_free(device, block->stream, block->tensor.data);
    gm_cuda_unmark(device, block->mark);
}

void gm_block_release(gm_block *block)
{
    if (--block->references)
        return;
    if (block->tensor.device.device_type == kDLCUDA)
        free_on_device(block);
    else
        gm_free(block->tensor.data);
    gm_free(block);
}

gm_status gm_block_filled(gm_block *block, gm_failure *failure)
{
    if (block->stream == GM_LEGACY_STREAM)
        return GM_OK; /* it is always there */
    return block->bytes ? gm_cuda_mark(block->tensor.device.device_id, block->stream, &block->mark, failure) : GM_OK;
}

gm_status gm_block_ready(const gm_block *block, void *stream, gm_failure *failure)
{
    int device = block->tensor.device.device_id;

    if (!block->bytes || stream == block->stream)
        return GM_OK;
    return block->mark ? gm_cuda_after(device, stream, block->mark, failure)
                       : gm_cuda_order(device, block->stream, stream, failure);
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
