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
    int count;
    const gm_driver *driver = gm_driver_open(failure);
    return driver && GM_CU(driver, failure, cuDeviceGetCount, &count) == GM_OK ? count : -1;
}

gm_status gm_cuda_figures_of(int device, gm_cuda_figures *figures, gm_failure *failure)
{
    const gm_gpu *gpu = gm_gpu_get(device, failure);
    if (!gpu)
        return failure->status;
    *figures = gpu->figures;
    return GM_OK;
}

gm_status gm_cuda_open(int device, gm_failure *failure)
{
    return gm_gpu_get(device, failure) ? GM_OK : failure->status;
}

gm_status gm_cuda_device_of(const void *memory, int *device, gm_failure *failure)
{
    gm_visit visit = {NULL, 0};
    CUcontext current = NULL;

    const gm_driver *driver = gm_driver_open(failure);
    if (!driver)
        return failure->status;
    /* Any context will do, as addresses are the same in all; one that is there is cheaper than one on device 0. */
    driver->cuCtxGetCurrent(&current);
    if (!current && !gm_visit_begin(&visit, 0, failure))
        return failure->status;
    gm_status status = GM_CU(driver, failure, cuPointerGetAttribute, device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                             (CUdeviceptr)(uintptr_t)memory);
    gm_visit_end(&visit);
    return status;
}

gm_status gm_cuda_alloc(int device, void *stream, int64_t bytes, void **memory, gm_failure *failure)
{
    gm_visit visit;
    CUdeviceptr pointer = 0;
    size_t size = bytes ? (size_t)bytes : 1;

    gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    CUmemoryPool pool = gm_gpu_pool(gpu, (CUstream)stream);
    gm_status status =
        pool ? GM_CU(gpu->driver, failure, cuMemAllocFromPoolAsync, &pointer, size, pool, (CUstream)stream)
             : GM_CU(gpu->driver, failure, cuMemAllocAsync, &pointer, size, (CUstream)stream);
    *memory = status == GM_OK ? (void *)(uintptr_t)pointer : NULL;
    gm_visit_end(&visit);
    return status;
}

void gm_cuda_free(int device, void *stream, void *memory)
{
    gm_visit visit;
    gm_failure ignored;

    if (!memory || !gm_visit_begin(&visit, device, &ignored))
        return;
    visit.gpu->driver->cuMemFreeAsync((CUdeviceptr)(uintptr_t)memory, (CUstream)stream);
    gm_visit_end(&visit);
}

gm_status gm_cuda_zero(int device, void *stream, void *memory, int64_t bytes, gm_failure *failure)
{
    gm_visit visit;

    const gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    gm_status status = GM_CU(gpu->driver, failure, cuMemsetD8Async, (CUdeviceptr)(uintptr_t)memory, 0, (size_t)bytes,
                             (CUstream)stream);
    gm_visit_end(&visit);
    return status;
}

/* Events carry no time here, which would make them slower. */
static gm_status record(const gm_driver *driver, void *stream, CUevent *event, gm_failure *failure)
{
    gm_status status = GM_CU(driver, failure, cuEventCreate, event, CU_EVENT_DISABLE_TIMING);
    if (status != GM_OK)
        return status;
    status = GM_CU(driver, failure, cuEventRecord, *event, (CUstream)stream);
    if (status != GM_OK)
        driver->cuEventDestroy(*event);
    return status;
}

gm_status gm_cuda_order(int device, void *first, void *later, gm_failure *failure)
{
    gm_visit visit;
    CUevent event;

    if (first == later)
        return GM_OK;
    const gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    gm_status status = record(gpu->driver, first, &event, failure);
    if (status == GM_OK) {
        status = GM_CU(gpu->driver, failure, cuStreamWaitEvent, (CUstream)later, event, 0);
        gpu->driver->cuEventDestroy(event); /* the driver keeps it until it has happened */
    }
    gm_visit_end(&visit);
    return status;
}

gm_status gm_cuda_mark(int device, void *stream, void **mark, gm_failure *failure)
{
    gm_visit visit;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUevent event = NULL;

    const gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    gm_status status = GM_CU(gpu->driver, failure, cuStreamIsCapturing, (CUstream)stream, &capture);
    if (status == GM_OK && capture == CU_STREAM_CAPTURE_STATUS_NONE)
        status = record(gpu->driver, stream, &event, failure);
    *mark = status == GM_OK ? event : NULL;
    gm_visit_end(&visit);
    return status;
}

int gm_cuda_happened(int device, void *mark)
{
    /* The question is allowed while another thread captures a graph, if we say that we know. */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gm_visit visit;
    gm_failure ignored;

    const gm_gpu *gpu = gm_visit_begin(&visit, device, &ignored);
    if (!gpu)
        return 0;
    gpu->driver->cuThreadExchangeStreamCaptureMode(&mode);
    int happened = gpu->driver->cuEventQuery((CUevent)mark) != CUDA_ERROR_NOT_READY; /* a broken context does no work */
    gpu->driver->cuThreadExchangeStreamCaptureMode(&mode);
    gm_visit_end(&visit);
    return happened;
}

gm_status gm_cuda_after(int device, void *stream, void *mark, gm_failure *failure)
{
    gm_visit visit;

    const gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    gm_status status = GM_CU(gpu->driver, failure, cuStreamWaitEvent, (CUstream)stream, (CUevent)mark, 0);
    gm_visit_end(&visit);
    return status;
}

void gm_cuda_unmark(int device, void *mark)
{
    gm_visit visit;
    gm_failure ignored;

    if (!mark || !gm_visit_begin(&visit, device, &ignored))
        return;
    visit.gpu->driver->cuEventDestroy((CUevent)mark);
    gm_visit_end(&visit);
}

gm_status gm_cuda_wait(int device, void *stream, gm_failure *failure)
{
    gm_visit visit;

    const gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    gm_status status = GM_CU(gpu->driver, failure, cuStreamSynchronize, (CUstream)stream);
    gm_visit_end(&visit);
    return status;
}

const char *gm_cuda_ptx(const char *kernel)
{
    int entry = gm_entry_find(kernel);
    return entry < 0 ? NULL : gm_images[gm_entries[entry].image].ptx;
}
