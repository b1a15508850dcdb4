/* The kernels of sum_kernels.h, compiled once for each ISA variant.
 *
 * Everything is summed in eight lanes of 64 bits, one or more vectors. Floats are converted to float64 as they are
 * loaded. Integers stay packed, and are added in pairs, which an addition and a shift take apart: two or three
 * operations for 64 bytes whatever the item's size. Signed ones are made unsigned by flipping their top bit, and the
 * sum put right at the end. The order in which floats are added is the same in every variant. */

#include "sum_vectors.inc.h"
#include "sum_lanes.inc.h"
#include "sum_rows.inc.h"
#include "sum_cols.inc.h"

/* ---- results past the caches ---- */

/* Up to the first whole line and after the last one by ordinary stores. */
#define SUM_STREAM(name, type, cast, lanes, STORE)                                                                     \
    static void name(char *dst, const gm_acc *acc, int64_t n)                                                          \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i < n && (uintptr_t)(dst + i * (int64_t)sizeof(type)) % GM_VECTOR; i++)                                 \
            *(type *)(dst + i * (int64_t)sizeof(type)) = (type)acc[i].cast;                                            \
        for (; i + lanes <= n; i += lanes)                                                                             \
            STORE(dst + i * (int64_t)sizeof(type), acc + i);                                                           \
        for (; i < n; i++)                                                                                             \
            *(type *)(dst + i * (int64_t)sizeof(type)) = (type)acc[i].cast;                                            \
    }
#if GM_AVX512
#    define STREAM_64(to, from) _mm512_stream_si512((void *)(to), _mm512_loadu_si512(from))
#    define STREAM_F32(to, from)                                                                                       \
        _mm512_stream_ps((float *)(to),                                                                                \
                         _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(_mm512_loadu_pd(from))),            \
                                            _mm512_cvtpd_ps(_mm512_loadu_pd((from) + 8)), 1))
#elif GM_AVX2
#    define STREAM_64(to, from) _mm256_stream_si256((__m256i *)(to), _mm256_loadu_si256((const __m256i *)(from)))
#    define STREAM_F32(to, from)                                                                                       \
        _mm256_stream_ps((float *)(to), _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(&(from)[4].f)),                \
                                                        _mm256_cvtpd_ps(_mm256_loadu_pd(&(from)->f))))
#endif
#if GM_AVX2
SUM_STREAM(sum_stream, uint64_t, i, SUM_W, STREAM_64)
SUM_STREAM(sum_stream_float32, float, f, 2 * SUM_W, STREAM_F32)
#    undef STREAM_64
#    undef STREAM_F32
#else
#    define sum_stream         NULL
#    define sum_stream_float32 NULL
#endif

/* ---- results as 16-bit floats ---- */

/* gm_narrow of sum_half.h for eight at a time. */
GM_INLINE void sum_narrow(char *dst, sum_f8 x, int digits, int least)
{
    const sum_u64 none = {0}, inf = none + (uint64_t)(0x7fff >> digits << digits);
    const sum_u64 lowest = none + (uint64_t)(1023 + least), highest = none + (uint64_t)(1024 - least);
    uint64_t wide[8];
    uint16_t narrow[8];
    SUM_EACH (i) {
        sum_u64 bits = (sum_u64)x.v[i], sign = bits >> 48 & 0x8000, exponent = bits >> 52 & 0x7ff;
        sum_u64 over = (sum_u64)((sum_s64)exponent > (sum_s64)highest), nan = (sum_u64)(x.v[i] != x.v[i]);
        sum_u64 under = (sum_u64)((sum_s64)exponent < (sum_s64)lowest);
        exponent = (under & lowest) | (~under & exponent);
        sum_f64 per_unit = (sum_f64)(((uint64_t)(2046 + digits) - exponent) << 52);
        sum_f64 scaled = (sum_f64)(bits & INT64_MAX) * per_unit + 0x1p52;
        sum_u64 units = (sum_u64)scaled & (((uint64_t)1 << 52) - 1), finite = ((exponent - lowest) << digits) + units;
        sum_u64 r = sign | (over & (inf | (nan & (uint64_t)1 << (digits - 1)))) | (~over & finite);
        memcpy(wide + i * SUM_W, &r, sizeof r);
    }
    for (int i = 0; i < 8; i++)
        narrow[i] = (uint16_t)wide[i];
    memcpy(dst, narrow, sizeof narrow);
}

GM_INLINE void sum_narrow_to_bfloat16(char *dst, sum_f8 x)
{
    sum_narrow(dst, x, 7, -126);
}

GM_INLINE void sum_narrow_to_float16(char *dst, sum_f8 x)
{
#if GM_AVX512
    /* Rounded first to float32 that is odd where it is inexact, which no second rounding can mistake for a tie. */
    __m512d wide = (__m512d)x.v[0];
    __m256i odd = (__m256i)_mm512_cvt_roundpd_ps(wide, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd((__m256)odd), wide, _CMP_NEQ_OQ);
    __mmask8 nan = _mm512_cmp_pd_mask(wide, wide, _CMP_UNORD_Q);
    odd = _mm256_mask_or_epi32(odd, inexact, odd, _mm256_set1_epi32(1));
    odd = _mm256_mask_and_epi32(odd, nan, odd, _mm256_set1_epi32((int)0xffc00000));
    _mm_storeu_si128((__m128i *)dst, _mm256_cvtps_ph((__m256)odd, _MM_FROUND_TO_NEAREST_INT));
#else
    sum_narrow(dst, x, 10, -14);
#endif
}

#define SUM_NARROW(dtype)                                                                                              \
    static void sum_narrow_##dtype(char *dst, const gm_acc *acc, int64_t n)                                            \
    {                                                                                                                  \
        char last[16];                                                                                                 \
        for (; n >= 8; n -= 8, acc += 8, dst += 16)                                                                    \
            sum_narrow_to_##dtype(dst, sum_load_float64((const char *)acc));                                           \
        if (n == 0)                                                                                                    \
            return;                                                                                                    \
        sum_narrow_to_##dtype(last, sum_part_float64((const char *)acc, n));                                           \
        memcpy(dst, last, 2 * (size_t)n);                                                                              \
    }
SUM_NARROW(float16)
SUM_NARROW(bfloat16)

#define sum_rows_uint64     sum_rows_int64
#define sum_cols_uint64     sum_cols_int64
#define sum_cols_complex64  sum_cols_float32
#define sum_cols_complex128 sum_cols_float64

static const gm_sum_kernels sum_kernels = {
#define GM_DTYPE(name, code, bits, kind) .rows[GM_##name] = sum_rows_##name, .cols[GM_##name] = sum_cols_##name,
#include "../base/dtype.def"
#undef GM_DTYPE
    .past = {[GM_bool] = sum_past_bool,
             [GM_int8] = sum_past_int8,
             [GM_int16] = sum_past_int16,
             [GM_int32] = sum_past_int32,
             [GM_uint8] = sum_past_uint8,
             [GM_uint16] = sum_past_uint16,
             [GM_uint32] = sum_past_uint32,
             [GM_float16] = sum_past_float16},
    .few_float16 = sum_few_past_float16,
    .stream = sum_stream,
    .stream_float32 = sum_stream_float32,
    .narrow_float16 = sum_narrow_float16,
    .narrow_bfloat16 = sum_narrow_bfloat16,
};
