#include "dlpack_type.h"
#include "raise.h"
#include "../cuda/backend.h"
#include <stdio.h>

/* Widths as a mask, so that W(8) | W(16) reads as a set: bit 3 is 8, bit 4 is 16, ... */
#define W(bits) ((bits) == 8 ? 1 : (bits) == 16 ? 2 : (bits) == 32 ? 4 : (bits) == 64 ? 8 : 16)

/* Every code of DLPack 1.3. No widths: the type cannot be taken, and `refusal` says why. `formats` are the letters for
 * buffers, by width from 8 bits up. */
static const struct {
    const char *name;
    int widths;
    int numbered; /* the name goes on with the width */
    const char *refusal;
    const char *formats[5];
} codes[] = {
    [kDLInt] = {"int", W(8) | W(16) | W(32) | W(64), 1, NULL, {"b", "h", "i", "l", NULL}},
    [kDLUInt] = {"uint", W(8) | W(16) | W(32) | W(64), 1, NULL, {"B", "H", "I", "L", NULL}},
    [kDLFloat] = {"float", W(16) | W(32) | W(64) | W(128), 1, NULL, {NULL, "e", "f", "d", NULL}},
    [kDLOpaqueHandle] = {"opaque handle", 0, 0, "a handle is no data", {NULL}},
    [kDLBfloat] = {"bfloat", W(16), 1, NULL, {NULL}},
    [kDLComplex] = {"complex", W(32) | W(64) | W(128), 1, NULL, {NULL, NULL, NULL, "Zf", "Zd"}},
    [kDLBool] = {"bool", W(8), 0, NULL, {"?"}},
    [kDLFloat8_e3m4] = {"float8_e3m4", W(8), 0, NULL, {NULL}},
    [kDLFloat8_e4m3] = {"float8_e4m3", W(8), 0, NULL, {NULL}},
    [kDLFloat8_e4m3b11fnuz] = {"float8_e4m3b11fnuz", W(8), 0, NULL, {NULL}},
    [kDLFloat8_e4m3fn] = {"float8_e4m3fn", W(8), 0, NULL, {NULL}},
    [kDLFloat8_e4m3fnuz] = {"float8_e4m3fnuz", W(8), 0, NULL, {NULL}},
    [kDLFloat8_e5m2] = {"float8_e5m2", W(8), 0, NULL, {NULL}},
    [kDLFloat8_e5m2fnuz] = {"float8_e5m2fnuz", W(8), 0, NULL, {NULL}},
    [kDLFloat8_e8m0fnu] = {"float8_e8m0fnu", W(8), 0, NULL, {NULL}},
    [kDLFloat6_e2m3fn] = {"float6_e2m3fn", 0, 0, "items smaller than a byte are not taken", {NULL}},
    [kDLFloat6_e3m2fn] = {"float6_e3m2fn", 0, 0, "items smaller than a byte are not taken", {NULL}},
    [kDLFloat4_e2m1fn] = {"float4_e2m1fn", 0, 0, "items smaller than a byte are not taken", {NULL}},
};
enum { CODES = sizeof codes / sizeof *codes };

static const char *const devices[] = {
    [kDLCUDA] = "CUDA",     [kDLOpenCL] = "OpenCL", [kDLVulkan] = "Vulkan",    [kDLMetal] = "Metal",
    [kDLVPI] = "VPI",       [kDLROCM] = "ROCm",     [kDLExtDev] = "extension", [kDLCUDAManaged] = "CUDA managed memory",
    [kDLOneAPI] = "oneAPI", [kDLWebGPU] = "WebGPU", [kDLHexagon] = "Hexagon",  [kDLMAIA] = "MAIA",
    [kDLTrn] = "Trainium",
};

/* 0 for 8 bits, 1 for 16, ... 4 for 128; -1 for anything else. */
static int width_index(int bits)
{
    for (int i = 0; i < 5; i++)
        if (bits == 8 << i)
            return i;
    return -1;
}

PyObject *gm_dlpack_dtype_name(DLDataType type)
{
    if (type.code >= CODES)
        return PyUnicode_FromFormat("DLPack type code %d", type.code);
    if (codes[type.code].numbered)
        return PyUnicode_FromFormat("%s%d", codes[type.code].name, type.bits);
    return PyUnicode_FromString(codes[type.code].name);
}

const char *gm_dlpack_format(DLDataType type)
{
    int width = width_index(type.bits);
    return type.code < CODES && width >= 0 ? codes[type.code].formats[width] : NULL;
}

/* NumPy's letters; the types that it has none for go by DLPack only. */
static const struct {
    char kind;
    uint8_t code;
} kinds[] = {{'b', kDLBool}, {'i', kDLInt}, {'u', kDLUInt}, {'f', kDLFloat}, {'c', kDLComplex}};
enum { KINDS = sizeof kinds / sizeof *kinds };

int gm_dlpack_type_from(char kind, int64_t bytes, DLDataType *type)
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].kind == kind && bytes >= 1 && bytes <= 16 && width_index((int)bytes * 8) >= 0 &&
            codes[kinds[i].code].widths & 1 << width_index((int)bytes * 8)) {
            *type = (DLDataType){kinds[i].code, (uint8_t)(bytes * 8), 1};
            return 1;
        }
    return 0;
}

const char *gm_dlpack_type_string(DLDataType type, char text[8])
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].code == type.code) {
            snprintf(text, 8, "%c%c%d", type.bits == 8 ? '|' : '<', kinds[i].kind, type.bits / 8);
            return text;
        }
    return NULL;
}

gm_dtype gm_dlpack_to_dtype(DLDataType type)
{
    for (int i = 0; i < GM_DTYPE_COUNT; i++) {
        DLDataType row = gm_dlpack_from_dtype((gm_dtype)i);
        if (type.code == row.code && type.bits == row.bits && type.lanes == row.lanes)
            return (gm_dtype)i;
    }
    return GM_DTYPE_COUNT;
}

DLDataType gm_dlpack_from_dtype(gm_dtype dtype)
{
    static const DLDataType rows[GM_DTYPE_COUNT] = {
#define GM_DTYPE(name, code, bits, kind) {kDL##code, bits, 1},
#include "../base/dtype.def"
#undef GM_DTYPE
    };
    return rows[dtype];
}

gm_device_kind gm_dlpack_device_kind(int device_type)
{
    return device_type == kDLCUDA || device_type == kDLCUDAManaged ? GM_CUDA : GM_CPU;
}

int gm_dlpack_check_device(int device_type, int device_id)
{
    if (device_type == kDLCPU || device_type == kDLCUDAHost || device_type == kDLROCMHost)
        return 0;
    if (gm_dlpack_device_kind(device_type) == GM_CUDA) {
        gm_failure failure;
        return gm_cuda_open(device_id, &failure) == GM_OK ? 0 : gm_raise(failure.status, failure.text);
    }
    int known = device_type > 0 && device_type < (int)(sizeof devices / sizeof *devices) && devices[device_type];
    return gm_raise(GM_DLPACK_DEVICE, device_type, known ? devices[device_type] : "unknown");
}

static int check_type(DLDataType type)
{
    const char *reason = NULL;

    if (type.code >= CODES)
        reason = "the code is not one of DLPack 1.3";
    else if (type.lanes != 1)
        reason = "items of several lanes are not taken";
    else if (codes[type.code].refusal)
        reason = codes[type.code].refusal;
    else if (type.bits < 8)
        reason = "items smaller than a byte are not taken";
    else if (width_index(type.bits) < 0 || !(codes[type.code].widths & 1 << width_index(type.bits)))
        reason = "there is no such width of this type";
    if (!reason)
        return 0;
    return gm_raise(GM_DLPACK_TYPE, type.code < CODES ? codes[type.code].name : "unknown", type.code, type.bits,
                    type.lanes, reason);
}

/* Shape, and dense strides. `bytes` becomes the size of all items; 0 where it would not fit 63 bits. */
static int dense(const DLTensor *tensor, gm_array *array, int64_t *bytes)
{
    int empty = 0;

    for (int i = 0; i < array->ndim; i++) {
        array->shape[i] = tensor->shape[i];
        if (array->shape[i] < 0)
            return gm_raise(GM_DLPACK_MALFORMED, "an axis of negative length");
        empty |= array->shape[i] == 0;
    }
    *bytes = array->itemsize;
    for (int i = array->ndim - 1; i >= 0; i--) {
        array->strides[i] = *bytes;
        /* An empty array may have any other lengths. */
        if (!empty && __builtin_mul_overflow(*bytes, array->shape[i], bytes))
            return gm_raise(GM_DLPACK_MALFORMED, "more items than an address can reach");
    }
    if (empty)
        *bytes = 0;
    return 0;
}

/* DLPack counts strides in items. What an axis shorter than 2 says means nothing: it keeps its dense stride. */
static int given(const DLTensor *tensor, gm_array *array)
{
    int64_t reach = 0;

    for (int i = 0; i < array->ndim; i++) {
        int64_t length = array->shape[i], run;
        if (length < 2)
            continue;
        if (__builtin_mul_overflow(tensor->strides[i], array->itemsize, &array->strides[i]) ||
            array->strides[i] == INT64_MIN ||
            __builtin_mul_overflow(array->strides[i] < 0 ? -array->strides[i] : array->strides[i], length - 1, &run) ||
            __builtin_add_overflow(reach, run, &reach))
            return gm_raise(GM_DLPACK_MALFORMED, "strides that lead beyond what an address can reach");
    }
    return 0;
}

int gm_dlpack_view(const DLTensor *tensor, gm_array *array)
{
    int64_t bytes = 0;

    int device = (int)tensor->device.device_type;
    if (gm_dlpack_check_device(device, tensor->device.device_id) < 0 || check_type(tensor->dtype) < 0)
        return -1;
    if (tensor->ndim < 0 || tensor->ndim > GM_MAX_NDIM)
        return gm_raise(GM_DLPACK_NDIM, (int)tensor->ndim, GM_MAX_NDIM);
    if (tensor->ndim && !tensor->shape)
        return gm_raise(GM_DLPACK_MALFORMED, "axes without a shape");

    array->itemsize = tensor->dtype.bits / 8;
    array->ndim = tensor->ndim;
    array->device = gm_dlpack_device_kind(device);
    array->device_id = array->device == GM_CPU ? 0 : tensor->device.device_id;
    array->stream = NULL;
    if (dense(tensor, array, &bytes) < 0)
        return -1;
    /* Before DLPack 1.2, no strides meant C order; producers of that time are still about. */
    if (bytes && tensor->strides && given(tensor, array) < 0)
        return -1;
    if (bytes && !tensor->data)
        return gm_raise(GM_DLPACK_MALFORMED, "items without memory");
    array->data = tensor->data;
    if (bytes)
        array->data = (char *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
    return 0;
}
