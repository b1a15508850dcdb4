/* The stages of `reduce` that are plain C, item by item.
 *
 * naive:    one accumulator: each addition waits for the one before it, 3 or 4 cycles an item.
 * unrolled: eight of them, so that eight additions are under way at once. */
#include "sum.h"
#include <string.h>
#include "sum_read.h"

/* Adds n items, `step` bytes apart, to the accumulators of one result. */
typedef void span_fn(gm_acc *acc, const char *src, int64_t n, int64_t step);

enum { WAYS = 8 };

#define SPAN(dtype, sum, member)                                                                                       \
    static void naive_##dtype(gm_acc *acc, const char *src, int64_t n, int64_t step)                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            acc->member += gm_sum_read_##dtype(src + i * step);                                                        \
    }                                                                                                                  \
    static void unrolled_##dtype(gm_acc *acc, const char *src, int64_t n, int64_t step)                                \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        if (n >= WAYS) {                                                                                               \
            sum way[WAYS];                                                                                             \
            for (int w = 0; w < WAYS; w++)                                                                             \
                way[w] = gm_sum_read_##dtype(src + w * step);                                                          \
            for (i = WAYS; i + WAYS <= n; i += WAYS)                                                                   \
                for (int w = 0; w < WAYS; w++)                                                                         \
                    way[w] += gm_sum_read_##dtype(src + (i + w) * step);                                               \
            acc->member += ((way[0] + way[4]) + (way[2] + way[6])) + ((way[1] + way[5]) + (way[3] + way[7]));          \
        }                                                                                                              \
        naive_##dtype(acc, src + i * step, n - i, step);                                                               \
    }
#define SPAN_INT(dtype)   SPAN(dtype, uint64_t, i)
#define SPAN_FLOAT(dtype) SPAN(dtype, double, f)

SPAN_INT(bool)
SPAN_INT(int8)
SPAN_INT(int16)
SPAN_INT(int32)
SPAN_INT(int64)
SPAN_INT(uint8)
SPAN_INT(uint16)
SPAN_INT(uint32)
SPAN_INT(uint64)
SPAN_FLOAT(float16)
SPAN_FLOAT(bfloat16)
SPAN_FLOAT(float32)
SPAN_FLOAT(float64)

#define SPAN_COMPLEX(dtype, part, size)                                                                                \
    static void naive_##dtype(gm_acc *acc, const char *src, int64_t n, int64_t step)                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            acc[0].f += gm_sum_read_##part(src + i * step);                                                            \
            acc[1].f += gm_sum_read_##part(src + i * step + size);                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void unrolled_##dtype(gm_acc *acc, const char *src, int64_t n, int64_t step)                                \
    {                                                                                                                  \
        unrolled_##part(&acc[0], src, n, step);                                                                        \
        unrolled_##part(&acc[1], src + size, n, step);                                                                 \
    }

SPAN_COMPLEX(complex64, float32, 4)
SPAN_COMPLEX(complex128, float64, 8)

#define GM_DTYPE(name, code, bits, kind) naive_##name,
static span_fn *const naive[GM_DTYPE_COUNT] = {
#include "../base/dtype.def"
};
#undef GM_DTYPE
#define GM_DTYPE(name, code, bits, kind) unrolled_##name,
static span_fn *const unrolled[GM_DTYPE_COUNT] = {
#include "../base/dtype.def"
};
#undef GM_DTYPE

/* Steps to the next index of `n` axes and moves the pointers along; 0 after the last one. */
static int next(const gm_axis *axis, int n, int64_t *index, const char **src, char **dst)
{
    for (int i = n - 1; i >= 0; i--) {
        *src += axis[i].src;
        *dst += axis[i].dst;
        if (++index[i] < axis[i].len)
            return 1;
        *src -= axis[i].src * axis[i].len;
        *dst -= axis[i].dst * axis[i].len;
        index[i] = 0;
    }
    return 0;
}

static gm_status sum_with(span_fn *const *spans, const gm_plan *plan, char *dst, gm_dtype to, const char *src,
                          gm_dtype from)
{
    gm_status status = gm_sum_check(from, to);
    if (status != GM_OK)
        return status;

    gm_sum_axes axes;
    int64_t index[GM_MAX_NDIM + 1] = {0};
    gm_sum_axes_of(&axes, plan);
    const gm_axis *summed = axes.axis + axes.kept, *inner = summed + axes.summed - 1;
    int64_t len = axes.summed ? inner->len : 1, step = axes.summed ? inner->src : 0;

    dst += plan->dst_start;
    src += plan->src_start;
    do {
        gm_acc acc[2] = {gm_sum_zero(from), gm_sum_zero(from)};
        const char *p = src;
        do
            spans[from](acc, p, len, step);
        while (next(summed, axes.summed - 1, index + axes.kept, &p, &dst));
        gm_sum_store(dst, 0, to, acc, 1, from);
    } while (next(axes.axis, axes.kept, index, &src, &dst));
    return GM_OK;
}

gm_status gm_sum_naive(const gm_cpu *cpu, const gm_plan *plan, char *dst, gm_dtype to, const char *src, gm_dtype from)
{
    (void)cpu;
    return sum_with(naive, plan, dst, to, src, from);
}

gm_status gm_sum_unrolled(const gm_cpu *cpu, const gm_plan *plan, char *dst, gm_dtype to, const char *src,
                          gm_dtype from)
{
    (void)cpu;
    return sum_with(unrolled, plan, dst, to, src, from);
}
