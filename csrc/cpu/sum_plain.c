/* The stages of `reduce` that are plain C, item by item.
 *
 * naive:    one accumulator: each addition waits for the one before it, 3 or 4 cycles an item.
 * unrolled: eight of them, so that eight additions are under way at once. */
#include "sum.h"
#include "sum_half.h"
#include <string.h>

/* Adds n items, `step` bytes apart, to the accumulators of one result. */
typedef void span_fn(gm_acc *acc, const char *src, int64_t n, int64_t step);

enum { WAYS = 8 };

#define SPAN(dtype, type, member, value)                                                                               \
    static inline __typeof__(((gm_acc *)0)->member) read_##dtype(const char *src)                                      \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, src, sizeof x);                                                                                     \
        return value;                                                                                                  \
    }                                                                                                                  \
    static void naive_##dtype(gm_acc *acc, const char *src, int64_t n, int64_t step)                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            acc->member += read_##dtype(src + i * step);                                                               \
    }                                                                                                                  \
    static void unrolled_##dtype(gm_acc *acc, const char *src, int64_t n, int64_t step)                                \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        if (n >= WAYS) {                                                                                               \
            __typeof__(acc->member) way[WAYS];                                                                         \
            for (int w = 0; w < WAYS; w++)                                                                             \
                way[w] = read_##dtype(src + w * step);                                                                 \
            for (i = WAYS; i + WAYS <= n; i += WAYS)                                                                   \
                for (int w = 0; w < WAYS; w++)                                                                         \
                    way[w] += read_##dtype(src + (i + w) * step);                                                      \
            acc->member += ((way[0] + way[4]) + (way[2] + way[6])) + ((way[1] + way[5]) + (way[3] + way[7]));          \
        }                                                                                                              \
        naive_##dtype(acc, src + i * step, n - i, step);                                                               \
    }

SPAN(bool, uint8_t, i, x != 0)
SPAN(int8, int8_t, i, (uint64_t)x)
SPAN(int16, int16_t, i, (uint64_t)x)
SPAN(int32, int32_t, i, (uint64_t)x)
SPAN(int64, int64_t, i, (uint64_t)x)
SPAN(uint8, uint8_t, i, x)
SPAN(uint16, uint16_t, i, x)
SPAN(uint32, uint32_t, i, x)
SPAN(uint64, uint64_t, i, x)
SPAN(float16, uint16_t, f, (double)gm_half_to_float(x))
SPAN(bfloat16, uint16_t, f, (double)gm_bfloat_to_float(x))
SPAN(float32, float, f, (double)x)
SPAN(float64, double, f, x)

#define SPAN_COMPLEX(dtype, part)                                                                                      \
    static void naive_##dtype(gm_acc *acc, const char *src, int64_t n, int64_t step)                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            acc[0].f += read_##part(src + i * step);                                                                   \
            acc[1].f += read_##part(src + i * step + gm_dtype_get(GM_##part)->bits / 8);                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void unrolled_##dtype(gm_acc *acc, const char *src, int64_t n, int64_t step)                                \
    {                                                                                                                  \
        unrolled_##part(&acc[0], src, n, step);                                                                        \
        unrolled_##part(&acc[1], src + gm_dtype_get(GM_##part)->bits / 8, n, step);                                    \
    }

SPAN_COMPLEX(complex64, float32)
SPAN_COMPLEX(complex128, float64)

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
