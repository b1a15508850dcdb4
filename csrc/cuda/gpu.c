#include "gpu.h"
#include "images.h"
#include "simulated.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What only this file knows of a device: its kernels, each loaded when it is first launched. */
typedef struct gm_gpu_kernels {
    gm_gpu gpu; /* first, so that one pointer is both */
    _Atomic(CUmemoryPool) pool;
    pthread_mutex_t loading;
    CUmodule *modules;               /* by image; written under `loading` */
    _Atomic(CUfunction) functions[]; /* by entry */
} gm_gpu_kernels;

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(gm_gpu_kernels *) devices[GM_MAX_GPUS + 1]; /* the last is the simulated one */

/* Where a device stands there; -1 for one that there cannot be. */
static int place_of(int ordinal)
{
    return ordinal == GM_CUDA_SIMULATED ? GM_MAX_GPUS : ordinal >= 0 && ordinal < GM_MAX_GPUS ? ordinal : -1;
}

int gm_entry_find(const char *name)
{
    int low = 0, high = gm_entry_count;
    while (low < high) {
        int middle = low + (high - low) / 2, order = strcmp(name, gm_entries[middle].name);
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

int gm_entry_sized(const char *name, int size)
{
    char full[64];

    snprintf(full, sizeof full, "%s_%d", name, size);
    return gm_entry_find(full);
}

static gm_status read_figures(const gm_driver *driver, CUdevice device, gm_cuda_figures *figures, gm_failure *failure)
{
    int major = 0, minor = 0;
    size_t bytes = 0;
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &figures->processors},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &figures->l2_bytes},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &figures->shared_bytes},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &figures->memory_khz},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &figures->bus_bits},
    };

    gm_status status = GM_CU(driver, failure, cuDeviceGetName, figures->name, (int)sizeof figures->name, device);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && status == GM_OK; i++)
        status = GM_CU(driver, failure, cuDeviceGetAttribute, wanted[i].value, wanted[i].attribute, device);
    if (status == GM_OK)
        status = GM_CU(driver, failure, cuDeviceTotalMem, &bytes, device);
    figures->capability = 10 * major + minor;
    figures->memory_bytes = (int64_t)bytes;
    figures->driver = driver->version;
    return status;
}

static gm_gpu_kernels *open_device(int ordinal, gm_failure *failure)
{
    int is_simulated = ordinal == GM_CUDA_SIMULATED, count;
    const gm_driver *driver = is_simulated ? &gm_driver_simulated : gm_driver_open(failure);
    CUdevice device;

    if (!driver || GM_CU(driver, failure, cuDeviceGetCount, &count) != GM_OK)
        return NULL;
    if (place_of(ordinal) < 0 || ordinal >= count) {
        snprintf(failure->text, sizeof failure->text, "%d; there are %d, counted from 0", ordinal, count);
        failure->status = GM_NO_DEVICE;
        return NULL;
    }
    gm_gpu_kernels *made = calloc(1, sizeof *made + (size_t)gm_entry_count * sizeof *made->functions);
    CUmodule *modules = calloc((size_t)gm_image_count + 1, sizeof *modules);
    if (!made || !modules) {
        snprintf(failure->text, sizeof failure->text, "the table of the kernels of a CUDA device");
        failure->status = GM_NO_MEMORY;
    } else if ((made->gpu.driver = driver) && GM_CU(driver, failure, cuDeviceGet, &device, ordinal) == GM_OK &&
               read_figures(driver, device, &made->gpu.figures, failure) == GM_OK &&
               GM_CU(driver, failure, cuDevicePrimaryCtxRetain, &made->gpu.context, device) == GM_OK) {
        made->gpu.ordinal = ordinal;
        made->modules = modules;
        pthread_mutex_init(&made->loading, NULL);
        return made;
    }
    free(modules);
    free(made);
    return NULL;
}

gm_gpu *gm_gpu_get(int ordinal, gm_failure *failure)
{
    int place = place_of(ordinal);
    gm_gpu_kernels *found = place >= 0 ? atomic_load(&devices[place]) : NULL;
    if (found)
        return &found->gpu;
    pthread_mutex_lock(&opening);
    found = place >= 0 ? atomic_load(&devices[place]) : NULL;
    if (!found && (found = open_device(ordinal, failure)))
        atomic_store(&devices[place], found);
    pthread_mutex_unlock(&opening);
    return found ? &found->gpu : NULL;
}

static CUmemoryPool make_pool(const gm_gpu *gpu)
{
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->ordinal}};
    cuuint64_t kept = 32 << 20; /* bytes between the uses */
    CUmemoryPool pool;

    if (gpu->driver->cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS)
        return NULL;
    gpu->driver->cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept);
    return pool;
}

CUmemoryPool gm_gpu_pool(gm_gpu *gpu, CUstream stream)
{
    gm_gpu_kernels *whole = (gm_gpu_kernels *)gpu;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;

    CUmemoryPool pool = atomic_load(&whole->pool);
    if (pool || gpu->driver->cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS ||
        capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return pool;
    pthread_mutex_lock(&whole->loading);
    pool = atomic_load(&whole->pool);
    if (!pool)
        atomic_store(&whole->pool, pool = make_pool(gpu));
    pthread_mutex_unlock(&whole->loading);
    return pool;
}

gm_gpu *gm_visit_begin(gm_visit *visit, int device, gm_failure *failure)
{
    CUcontext current;

    gm_gpu *gpu = gm_gpu_get(device, failure);
    if (!gpu || GM_CU(gpu->driver, failure, cuCtxGetCurrent, &current) != GM_OK)
        return NULL;
    *visit = (gm_visit){gpu, current != gpu->context};
    if (visit->pushed && GM_CU(gpu->driver, failure, cuCtxPushCurrent, gpu->context) != GM_OK)
        return NULL;
    return gpu;
}

void gm_visit_end(const gm_visit *visit)
{
    CUcontext ours;
    if (visit->pushed)
        visit->gpu->driver->cuCtxPopCurrent(&ours);
}

/* What says that the code does not suit the chip, or is newer than the driver; any other error has other causes. */
static const struct {
    CUresult result;
    gm_status status;
} misfits[] = {
    {CUDA_ERROR_NO_BINARY_FOR_GPU, GM_NO_KERNELS},
    {CUDA_ERROR_INVALID_IMAGE, GM_NO_KERNELS},
    {CUDA_ERROR_INVALID_PTX, GM_NO_KERNELS},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, GM_NO_KERNELS},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, GM_OLD_DRIVER},
};

static gm_status name_misfit(const gm_gpu *gpu, CUresult result, gm_failure *failure)
{
    const gm_cuda_figures *figures = &gpu->figures;
    gm_failure why = *failure;

    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++)
        if (misfits[i].result == result)
            failure->status = misfits[i].status;
    if (failure->status == GM_OLD_DRIVER)
        snprintf(
            failure->text, sizeof failure->text,
            "it serves CUDA %d.%d and the kernels were made by CUDA %d.%d: update it, or build gpumem with an older "
            "nvcc: %.200s",
            figures->driver / 1000, figures->driver % 1000 / 10, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10,
            why.text);
    else if (failure->status == GM_NO_KERNELS)
        snprintf(failure->text, sizeof failure->text,
                 "%s has compute capability %d.%d; this build has kernels for %s and PTX for later chips: build gpumem "
                 "on this machine, or with GPUMEM_CUDA_ARCHS=%d: %.200s",
                 figures->name, figures->capability / 10, figures->capability % 10, gm_image_chips, figures->capability,
                 why.text);
    return failure->status;
}

static gm_status load_image(gm_gpu_kernels *gpu, int image, gm_failure *failure)
{
    const gm_driver *driver = gpu->gpu.driver;
    CUmodule module; /* of which a failing driver may have made anything */

    if (gpu->modules[image])
        return GM_OK;
    CUresult result = driver->cuModuleLoadData(&module, gm_images[image].code);
    if (gm_driver_check(driver, result, "cuModuleLoadData", failure) != GM_OK)
        return name_misfit(&gpu->gpu, result, failure);
    gpu->modules[image] = module;
    return GM_OK;
}

/* A kernel may use all the shared memory of its chip: above 48 KB that must be asked for once. One that does not load
 * by the first-level cache gets all of the memory that the two share, which makes it 1 to 2 % faster on an H200; one
 * that finds its neighbours' bytes in that cache would lose up to 20 % (those of even.cu gain 1 % in a plain matrix,
 * and lose 3 to 9 % among several axes). */
static gm_status find_function(gm_gpu_kernels *gpu, const gm_launch *launch, CUfunction *function, gm_failure *failure)
{
    const gm_driver *driver = gpu->gpu.driver;
    const gm_entry *entry = &gm_entries[launch->entry];
    int fixed;

    gm_status status = load_image(gpu, entry->image, failure);
    if (status == GM_OK)
        status = GM_CU(driver, failure, cuModuleGetFunction, function, gpu->modules[entry->image], entry->name);
    if (status == GM_OK)
        status = GM_CU(driver, failure, cuFuncGetAttribute, &fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, *function);
    if (status == GM_OK)
        status = GM_CU(driver, failure, cuFuncSetAttribute, *function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       gpu->gpu.figures.shared_bytes - fixed);
    if (status == GM_OK && launch->asynchronous)
        status = GM_CU(driver, failure, cuFuncSetAttribute, *function,
                       CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
    return status;
}

static gm_status function_of(gm_gpu_kernels *gpu, const gm_launch *launch, CUfunction *function, gm_failure *failure)
{
    /* Loading is allowed while this thread captures a graph, if we say that we know. */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    failure->status = GM_OK;
    *function = atomic_load_explicit(&gpu->functions[launch->entry], memory_order_acquire);
    if (*function)
        return GM_OK;
    pthread_mutex_lock(&gpu->loading);
    gpu->gpu.driver->cuThreadExchangeStreamCaptureMode(&mode);
    gm_status status = find_function(gpu, launch, function, failure);
    gpu->gpu.driver->cuThreadExchangeStreamCaptureMode(&mode);
    if (status == GM_OK)
        atomic_store_explicit(&gpu->functions[launch->entry], *function, memory_order_release);
    pthread_mutex_unlock(&gpu->loading);
    return status;
}

gm_status gm_gpu_launch(gm_gpu *gpu, const gm_launch *launch, void **arguments, gm_failure *failure)
{
    CUfunction function;

    if (launch->entry < 0) {
        snprintf(failure->text, sizeof failure->text, "there is none for this launch, which is a defect of gpumem");
        return failure->status = GM_NO_KERNELS;
    }
    if (launch->blocks > INT32_MAX) {
        snprintf(failure->text, sizeof failure->text, "%lld blocks of %s: a launch has %d at the most",
                 (long long)launch->blocks, gm_entries[launch->entry].name, INT32_MAX);
        return failure->status = GM_CUDA_ERROR;
    }
    gm_status status = function_of((gm_gpu_kernels *)gpu, launch, &function, failure);
    if (status != GM_OK)
        return status;
    return GM_CU(gpu->driver, failure, cuLaunchKernel, function, (unsigned)launch->blocks, 1, 1, launch->threads, 1, 1,
                 launch->shared, launch->stream, arguments, NULL);
}
