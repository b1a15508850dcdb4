/* The calls that need no kernel. */
#include "backend.h"
#include "gpu.h"
#include "images.h"
#include <stddef.h>

const char *gm_cuda_chips(void)
{
    return gm_image_chips;
}

int gm_cuda_count(gm_failure *failure)
{
    return gm_gpu_count(failure);
}

gm_status gm_cuda_figures_of(int device, gm_cuda_figures *figures, gm_failure *failure)
{
    const gm_gpu *gpu = gm_gpu_get(device, failure);
    if (!gpu)
        return failure->status;
    *figures = gpu->figures;
    return GM_OK;
}

/* Opens the device and enters its context; the caller ends the visit when this returns GM_OK. */
static gm_status begin(int device, gm_visit *visit, gm_failure *failure)
{
    const gm_gpu *gpu = gm_gpu_get(device, failure);
    return gpu ? gm_visit_begin(visit, gpu, failure) : failure->status;
}

gm_status gm_cuda_alloc(int device, void *stream, int64_t bytes, void **memory, gm_failure *failure)
{
    gm_visit visit;
    CUdeviceptr pointer = 0;

    gm_status status = begin(device, &visit, failure);
    if (status != GM_OK)
        return status;
    status = GM_CU(visit.gpu->driver, failure, cuMemAllocAsync, &pointer, bytes ? (size_t)bytes : 1, (CUstream)stream);
    *memory = (void *)(uintptr_t)pointer;
    gm_visit_end(&visit);
    return status;
}

void gm_cuda_free(int device, void *stream, void *memory)
{
    gm_visit visit;
    gm_failure ignored;

    if (!memory || begin(device, &visit, &ignored) != GM_OK)
        return;
    visit.gpu->driver->cuMemFreeAsync((CUdeviceptr)(uintptr_t)memory, (CUstream)stream);
    gm_visit_end(&visit);
}

gm_status gm_cuda_when_done(int device, void *stream, void (*done)(void *ctx), void *ctx, gm_failure *failure)
{
    gm_visit visit;

    gm_status status = begin(device, &visit, failure);
    if (status != GM_OK)
        return status;
    status = GM_CU(visit.gpu->driver, failure, cuLaunchHostFunc, (CUstream)stream, done, ctx);
    gm_visit_end(&visit);
    return status;
}

gm_status gm_cuda_order(int device, void *first, void *later, gm_failure *failure)
{
    gm_visit visit;
    CUevent event;

    if (first == later)
        return GM_OK;
    gm_status status = begin(device, &visit, failure);
    if (status != GM_OK)
        return status;
    const gm_driver *driver = visit.gpu->driver;
    status = GM_CU(driver, failure, cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    if (status == GM_OK) {
        status = GM_CU(driver, failure, cuEventRecord, event, (CUstream)first);
        if (status == GM_OK)
            status = GM_CU(driver, failure, cuStreamWaitEvent, (CUstream)later, event, 0);
        driver->cuEventDestroy(event); /* the driver keeps it until it has happened */
    }
    gm_visit_end(&visit);
    return status;
}

gm_status gm_cuda_wait(int device, void *stream, gm_failure *failure)
{
    gm_visit visit;

    gm_status status = begin(device, &visit, failure);
    if (status != GM_OK)
        return status;
    status = GM_CU(visit.gpu->driver, failure, cuStreamSynchronize, (CUstream)stream);
    gm_visit_end(&visit);
    return status;
}

const char *gm_cuda_ptx(const char *kernel)
{
    int entry = gm_entry_find(kernel);
    return entry < 0 ? NULL : gm_images[gm_entries[entry].image].ptx;
}
