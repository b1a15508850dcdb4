/* A stand-in for libcutensor on host memory: the calls that the benchmark makes, with its checks of arguments. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40, INVALID_VALUE = 7, NOT_SUPPORTED = 15, EXECUTION_FAILED = 13 };

typedef struct {
    uint32_t modes, alignment;
    int64_t extent[MOST], stride[MOST];
    int type;
} tensor;

typedef struct {
    tensor a, b; /* b's modes in the order of a's */
    bool wide;   /* arithmetic in double */
} permutation;

static const int arithmetic_32f, arithmetic_64f;
extern const void *const CUTENSOR_COMPUTE_DESC_32F, *const CUTENSOR_COMPUTE_DESC_64F;
const void *const CUTENSOR_COMPUTE_DESC_32F = &arithmetic_32f, *const CUTENSOR_COMPUTE_DESC_64F = &arithmetic_64f;

static int handle;

int cutensorCreate(void **made)
{
    *made = &handle;
    return 0;
}

size_t cutensorGetVersion(void)
{
    return 20801;
}

const char *cutensorGetErrorString(int status)
{
    return status == INVALID_VALUE ? "an invalid value" : "some other error";
}

int cutensorCreatePlanPreference(const void *h, void **made, int algorithm, int jit)
{
    if (h != &handle || algorithm != -1 || jit != 0)
        return INVALID_VALUE;
    *made = &handle;
    return 0;
}

static size_t size_of(int type) /* of cudaDataType_t */
{
    static const uint8_t sizes[16] = {[0] = 4, [1] = 8, [2] = 2, [4] = 8, [5] = 16, [14] = 2};
    return type >= 0 && type < 16 ? sizes[type] : 0;
}

int cutensorCreateTensorDescriptor(const void *h, tensor **made, uint32_t modes, const int64_t *extent,
                                   const int64_t *stride, int type, uint32_t alignment)
{
    if (h != &handle || modes > MOST || alignment == 0 || alignment > 256 || (alignment & (alignment - 1)))
        return INVALID_VALUE;
    for (uint32_t i = 0; i < modes; i++)
        if (extent[i] < 1 || stride[i] < 1)
            return INVALID_VALUE;
    tensor *t = *made = calloc(1, sizeof *t);
    t->modes = modes, t->alignment = alignment, t->type = type;
    memcpy(t->extent, extent, modes * sizeof *extent);
    memcpy(t->stride, stride, modes * sizeof *stride);
    return 0;
}

int cutensorCreatePermutation(const void *h, permutation **made, const tensor *a, const int32_t *mode_a, int op_a,
                              const tensor *b, const int32_t *mode_b, const void *compute)
{
    if (h != &handle || a->modes != b->modes || a->type != b->type || op_a != 1)
        return INVALID_VALUE;
    bool wide = a->type == 1 || a->type == 5;
    if (size_of(a->type) == 0 || compute != (wide ? CUTENSOR_COMPUTE_DESC_64F : CUTENSOR_COMPUTE_DESC_32F))
        return NOT_SUPPORTED;
    permutation *p = *made = calloc(1, sizeof *p);
    p->a = p->b = *a, p->wide = wide, p->b.alignment = b->alignment;
    for (uint32_t i = 0; i < a->modes; i++)
        for (uint32_t j = 0; j < b->modes; j++)
            if (mode_a[i] == mode_b[j]) {
                p->b.stride[i] = b->stride[j];
                if (a->extent[i] != b->extent[j])
                    return INVALID_VALUE;
            }
    return 0;
}

int cutensorCreatePlan(const void *h, permutation **made, permutation *p, const void *preference, uint64_t workspace)
{
    if (h != &handle || preference != &handle || workspace != 0)
        return INVALID_VALUE;
    *made = p;
    return 0;
}

int cutensorPermute(const void *h, const permutation *p, const void *alpha, const char *a, char *b, const void *stream)
{
    float one = 0;
    double wide_one = 0;
    memcpy(&one, alpha, sizeof one);
    memcpy(&wide_one, alpha, sizeof wide_one);
    bool aligned = (uintptr_t)a % p->a.alignment == 0 && (uintptr_t)b % p->b.alignment == 0;
    if (h != &handle || stream || !aligned || (p->wide ? wide_one != 1 : one != 1))
        return EXECUTION_FAILED;
    size_t size = size_of(p->a.type);
    int64_t at[MOST] = {0};
    for (;;) {
        int64_t from = 0, to = 0;
        for (uint32_t i = 0; i < p->a.modes; i++)
            from += at[i] * p->a.stride[i], to += at[i] * p->b.stride[i];
        memcpy(b + to * (int64_t)size, a + from * (int64_t)size, size);
        uint32_t axis = 0;
        while (axis < p->a.modes && ++at[axis] == p->a.extent[axis])
            at[axis++] = 0;
        if (axis == p->a.modes)
            return 0;
    }
}
