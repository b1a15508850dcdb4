/* From accumulators to results: which types a sum may be given as, and the one rounding at its end. */
#include "sum.h"
#include "sum_half.h"
#include <string.h>

int gm_sum_parts(gm_dtype dtype)
{
    return gm_dtype_get(dtype)->kind == 'c' ? 2 : 1;
}

/* 0 for what is counted in integers, then floats, then complex numbers. */
static int rank(gm_dtype dtype)
{
    char kind = gm_dtype_get(dtype)->kind;
    return (kind == 'f') + 2 * (kind == 'c');
}

gm_acc gm_sum_zero(gm_dtype dtype)
{
    return rank(dtype) ? (gm_acc){.f = -0.0} : (gm_acc){.i = 0};
}

gm_status gm_sum_check(gm_dtype from, gm_dtype to)
{
    return rank(to) < rank(from) || (to == GM_bool && from != GM_bool) ? GM_SUM_DTYPE : GM_OK;
}

void gm_sum_axes_of(gm_sum_axes *axes, const gm_plan *plan)
{
    int n = plan->naxes;

    /* A planned copy moves runs; a sum must see the items in them. Such a run is kept, and the innermost of all. */
    int64_t run = plan->item / plan->itemsize;
    int widened = run > 1;
    memcpy(axes->axis, plan->axis, (size_t)n * sizeof *plan->axis);
    if (widened)
        axes->axis[n++] = (gm_axis){run, plan->itemsize, plan->itemsize};
    axes->kept = 0;
    while (axes->kept < n && axes->axis[axes->kept].dst != 0)
        axes->kept++;
    axes->summed = n - axes->kept;
}

typedef void store_fn(char *dst, int64_t step, const gm_acc *acc, int64_t parts, int64_t n);

/* Reads one accumulator in `parts`; a contiguous result gets its own loop, which the compiler can vectorise. */
#define STORE(name, type, member, cast, convert)                                                                       \
    static void name(char *dst, int64_t step, const gm_acc *acc, int64_t parts, int64_t n)                             \
    {                                                                                                                  \
        if (step == sizeof(type) && parts == 1)                                                                        \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                type value = (type)convert((cast)acc[i].member);                                                       \
                memcpy(dst + i * (int64_t)sizeof value, &value, sizeof value);                                         \
            }                                                                                                          \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                type value = (type)convert((cast)acc[i * parts].member);                                               \
                memcpy(dst + i * step, &value, sizeof value);                                                          \
            }                                                                                                          \
    }
#define STORE_FLOATS(from, member, cast)                                                                               \
    STORE(from##_float16, uint16_t, member, cast, gm_double_to_half)                                                   \
    STORE(from##_bfloat16, uint16_t, member, cast, gm_double_to_bfloat)                                                \
    STORE(from##_float32, float, member, cast, )                                                                       \
    STORE(from##_float64, double, member, cast, )

STORE(bit, uint8_t, i, uint64_t, 0 !=)
STORE(int8, uint8_t, i, uint64_t, )
STORE(int16, uint16_t, i, uint64_t, )
STORE(int32, uint32_t, i, uint64_t, )
STORE(int64, uint64_t, i, uint64_t, )
STORE_FLOATS(signed, i, int64_t)
STORE_FLOATS(unsigned, i, uint64_t)
STORE_FLOATS(float, f, double)

/* A complex result is two real ones, `size` bytes apart. */
typedef struct target {
    store_fn *from_signed, *from_unsigned, *from_float;
    int64_t size;
} target;

#define FLOAT(type, size)                                                                                              \
    {                                                                                                                  \
        signed_##type, unsigned_##type, float_##type, size                                                             \
    }
static const target targets[GM_DTYPE_COUNT] = {
    [GM_bool] = {bit, bit, NULL, 1},       [GM_int8] = {int8, int8, NULL, 1},     [GM_int16] = {int16, int16, NULL, 2},
    [GM_int32] = {int32, int32, NULL, 4},  [GM_int64] = {int64, int64, NULL, 8},  [GM_uint8] = {int8, int8, NULL, 1},
    [GM_uint16] = {int16, int16, NULL, 2}, [GM_uint32] = {int32, int32, NULL, 4}, [GM_uint64] = {int64, int64, NULL, 8},
    [GM_float16] = FLOAT(float16, 2),      [GM_bfloat16] = FLOAT(bfloat16, 2),    [GM_float32] = FLOAT(float32, 4),
    [GM_float64] = FLOAT(float64, 8),      [GM_complex64] = FLOAT(float32, 4),    [GM_complex128] = FLOAT(float64, 8),
};

void gm_sum_store(char *dst, int64_t step, gm_dtype to, const gm_acc *acc, int64_t n, gm_dtype from)
{
    const target *t = &targets[to];
    int64_t parts = gm_sum_parts(from);
    store_fn *store = rank(from) ? t->from_float : gm_dtype_get(from)->kind == 'u' ? t->from_unsigned : t->from_signed;

    store(dst, step, acc, parts, n);
    if (parts == 2)
        store(dst + t->size, step, acc + 1, parts, n);
    else if (rank(to) == 2)
        for (int64_t i = 0; i < n; i++)
            memset(dst + i * step + t->size, 0, (size_t)t->size);
}
