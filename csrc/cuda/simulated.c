#include "simulated.h"
#include "backend.h"
#include <stdlib.h>
#include <string.h>

/* What an H200 has: launches are planned for the chip whose counters the lens knows. */
static const struct {
    CUdevice_attribute attribute;
    int value;
} figures[] = {
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 60 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
};

static CUresult get_count(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

static CUresult get_name(char *name, int length, CUdevice device)
{
    (void)device;
    strncpy(name, "the simulated device", (size_t)length - 1);
    name[length - 1] = 0;
    return CUDA_SUCCESS;
}

static CUresult get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (figures[i].attribute == attribute) {
            *value = figures[i].value;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_memory(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)141 << 30;
    return CUDA_SUCCESS;
}

/* There is one context, current everywhere. */
static CUresult retain_context(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)&gm_driver_simulated;
    return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *context)
{
    return retain_context(context, 0);
}

static CUresult load_module(CUmodule *module, const void *image)
{
    *module = (CUmodule)(uintptr_t)image;
    return CUDA_SUCCESS;
}

/* A function is its own name. */
static CUresult get_function(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = (CUfunction)(uintptr_t)name;
    return CUDA_SUCCESS;
}

static CUresult get_function_attribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)attribute, (void)function;
    *value = 0;
    return CUDA_SUCCESS;
}

static CUresult set_function_attribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
    (void)mode;
    return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult make_pool(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    (void)pool, (void)properties;
    return CUDA_ERROR_NOT_SUPPORTED; /* the usual one serves */
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    enum { ALIGNMENT = 256 };
    gm_simulator *simulator = (gm_simulator *)stream;
    size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = simulator->count < GM_SIMULATED_ARRAYS ? aligned_alloc(ALIGNMENT, whole) : NULL;

    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(memory, 0, whole);
    simulator->array[simulator->count++] = (gm_simulated_array){memory, bytes};
    *pointer = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr pointer, CUstream stream)
{
    gm_simulator *simulator = (gm_simulator *)stream;

    for (int i = 0; i < simulator->count; i++)
        if ((CUdeviceptr)(uintptr_t)simulator->array[i].memory == pointer) {
            free(simulator->array[i].memory);
            simulator->array[i] = simulator->array[--simulator->count];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult fill(CUdeviceptr pointer, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    memset((void *)(uintptr_t)pointer, value, bytes);
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments,
                       void **extra)
{
    gm_simulator *simulator = (gm_simulator *)stream;
    gm_simulated_launch given = {
        (const char *)function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, arguments};

    (void)extra;
    return simulator->launch(simulator, &given) == 0 ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

/* A tensor map in the lens's own encoding (gm_tensor_map in simt/lens.h): CUtensorMap's is the driver's secret. */
typedef struct gm_simulated_map {
    uint32_t magic;
    uint8_t rank, item_bytes, swizzle, reserved;
    uint64_t address, stride[4];
    uint32_t size[5], box[5], step[5], padding[5];
} gm_simulated_map;

_Static_assert(sizeof(gm_simulated_map) <= sizeof(CUtensorMap), "it takes the place of the driver's");

static CUresult encode_map(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                           const cuuint64_t *lengths, const cuuint64_t *steps, const cuuint32_t *box,
                           const cuuint32_t *strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                           CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill oob)
{
    static const uint8_t bytes[] = {[CU_TENSOR_MAP_DATA_TYPE_UINT8] = 1,
                                    [CU_TENSOR_MAP_DATA_TYPE_UINT16] = 2,
                                    [CU_TENSOR_MAP_DATA_TYPE_UINT32] = 4,
                                    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = 8};
    gm_simulated_map made = {.magic = UINT32_C(0x676d746d),
                             .rank = (uint8_t)rank,
                             .swizzle = (uint8_t)swizzle,
                             .address = (uint64_t)(uintptr_t)address};

    (void)promotion, (void)oob;
    if (rank < 1 || rank > 5 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || (size_t)type >= sizeof bytes ||
        !bytes[type])
        return CUDA_ERROR_NOT_SUPPORTED;
    made.item_bytes = bytes[type];
    for (cuuint32_t i = 0; i < rank; i++) {
        made.size[i] = (uint32_t)lengths[i];
        made.box[i] = box[i];
        made.step[i] = strides[i];
        if (i > 0)
            made.stride[i - 1] = steps[i - 1];
    }
    memset(map, 0, sizeof *map);
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}

static CUresult error_name(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_NOT_SUPPORTED ? "the simulated device cannot do this" : "the simulated device";
    return CUDA_SUCCESS;
}

const gm_driver gm_driver_simulated = {
    .cuDeviceGetCount = get_count,
    .cuDeviceGet = get_device,
    .cuDeviceGetName = get_name,
    .cuDeviceGetAttribute = get_attribute,
    .cuDeviceTotalMem = get_memory,
    .cuDevicePrimaryCtxRetain = retain_context,
    .cuCtxGetCurrent = get_current,
    .cuModuleLoadData = load_module,
    .cuModuleGetFunction = get_function,
    .cuFuncGetAttribute = get_function_attribute,
    .cuFuncSetAttribute = set_function_attribute,
    .cuThreadExchangeStreamCaptureMode = exchange_mode,
    .cuStreamIsCapturing = is_capturing,
    .cuMemPoolCreate = make_pool,
    .cuMemAllocAsync = allocate,
    .cuMemFreeAsync = release,
    .cuMemsetD8Async = fill,
    .cuLaunchKernel = launch,
    .cuTensorMapEncodeTiled = encode_map,
    .cuGetErrorName = error_name,
    .cuGetErrorString = error_name,
    .version = 13000,
};
