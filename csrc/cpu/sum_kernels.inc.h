/* The kernels of sum_kernels.h, compiled once for each ISA variant.
 *
 * Everything is summed in eight lanes of 64 bits, one or more vectors. Floats are converted to float64 as they are
 * loaded. Integers stay packed: a 64-bit lane is split into its even and odd items by a mask and a shift, which costs
 * four operations for 64 bytes whatever the item's size. Signed ones are made unsigned by flipping their top bit, and
 * the sum put right at the end. The order in which floats are added is the same in every variant. */

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
        _mm_sfence();                                                                                                  \
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

#define sum_rows_uint64     sum_rows_int64
#define sum_cols_uint64     sum_cols_int64
#define sum_cols_complex64  sum_cols_float32
#define sum_cols_complex128 sum_cols_float64

static const gm_sum_kernels sum_kernels = {
#define GM_DTYPE(name, code, bits, kind) .rows[GM_##name] = sum_rows_##name, .cols[GM_##name] = sum_cols_##name,
#include "../base/dtype.def"
#undef GM_DTYPE
    .stream = sum_stream,
    .stream_float32 = sum_stream_float32,
};
