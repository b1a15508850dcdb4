/* Row kernels (sum_kernels.h), for each ISA variant: eight rows of eight lanes become eight sums at once. */

/* From eight lanes to one sum, or to the two of a complex number: lane i and lane i + 4, then + 2, then + 1. */

#define REDUCE(V8, member)                                                                                             \
    SUM_INLINE void sum_reduce_##V8(gm_acc *out, V8 x, int parts)                                                      \
    {                                                                                                                  \
        gm_acc a[8];                                                                                                   \
        memcpy(a, &x, sizeof x);                                                                                       \
        for (int p = 0; p < 2; p++)                                                                                    \
            a[p].member = (a[p].member + a[p + 4].member) + (a[p + 2].member + a[p + 6].member);                       \
        out[0] = a[0];                                                                                                 \
        if (parts == 2)                                                                                                \
            out[1] = a[1];                                                                                             \
        else                                                                                                           \
            out[0].member += a[1].member;                                                                              \
    }
REDUCE(sum_f8, f)
REDUCE(sum_i8, i)
#undef REDUCE

/* Eight rows of eight lanes at once. */
#if GM_AVX512
#    define LEVELS(V8, V)                                                                                              \
        SUM_INLINE V sum_fold4_##V8(V a, V b) /* two rows of eight lanes: four lanes each */                           \
        {                                                                                                              \
            return (V)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0x44) +                                             \
                   (V)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0xee);                                              \
        }                                                                                                              \
        SUM_INLINE V sum_fold2_##V8(V a, V b) /* four rows of four lanes: two lanes each */                            \
        {                                                                                                              \
            return (V)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0x88) +                                             \
                   (V)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0xdd);                                              \
        }                                                                                                              \
        SUM_INLINE V sum_fold1_##V8(V a, V b) /* eight rows of two lanes: one each */                                  \
        {                                                                                                              \
            __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14),                                               \
                    odd = _mm512_or_si512(even, _mm512_set1_epi64(1));                                                 \
            return (V)_mm512_permutex2var_pd((__m512d)a, even, (__m512d)b) +                                           \
                   (V)_mm512_permutex2var_pd((__m512d)a, odd, (__m512d)b);                                             \
        }                                                                                                              \
        SUM_INLINE void sum_finish_##V8(gm_acc *out, V a, V b, int parts) /* eight rows of two lanes, written */       \
        {                                                                                                              \
            if (parts == 2) {                                                                                          \
                memcpy(out, &a, sizeof a);                                                                             \
                memcpy(out + 8, &b, sizeof b);                                                                         \
            } else {                                                                                                   \
                a = sum_fold1_##V8(a, b);                                                                              \
                memcpy(out, &a, sizeof a);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        SUM_INLINE void sum_reduce8_##V8(gm_acc *out, const V8 *x, int parts)                                          \
        {                                                                                                              \
            V a = sum_fold2_##V8(sum_fold4_##V8(x[0].v[0], x[1].v[0]), sum_fold4_##V8(x[2].v[0], x[3].v[0]));          \
            V b = sum_fold2_##V8(sum_fold4_##V8(x[4].v[0], x[5].v[0]), sum_fold4_##V8(x[6].v[0], x[7].v[0]));          \
            sum_finish_##V8(out, a, b, parts);                                                                         \
        }
#else
#    define LEVELS(V8, V)                                                                                              \
        SUM_INLINE void sum_reduce8_##V8(gm_acc *out, const V8 *x, int parts)                                          \
        {                                                                                                              \
            for (int r = 0; r < 8; r++)                                                                                \
                sum_reduce_##V8(out + r * parts, x[r], parts);                                                         \
        }
#endif
LEVELS(sum_f8, sum_f64)
LEVELS(sum_i8, sum_u64)
#undef LEVELS

/* Rows of one to four items: several of them in one vector. */
#if GM_AVX512
SUM_INLINE sum_i8 sum_load_bool(const char *src)
{
    __m128i x = _mm_min_epu8(_mm_loadl_epi64((const __m128i *)src), _mm_set1_epi8(1));
    return (sum_i8){{(sum_u64)_mm512_cvtepu8_epi64(x)}};
}
#    define SUM_LOAD_INT(dtype, load, type, convert)                                                                   \
        SUM_INLINE sum_i8 sum_load_##dtype(const char *src)                                                            \
        {                                                                                                              \
            return (sum_i8){{(sum_u64)convert(load((const type *)src))}};                                              \
        }
SUM_LOAD_INT(int8, _mm_loadl_epi64, __m128i, _mm512_cvtepi8_epi64)
SUM_LOAD_INT(int16, _mm_loadu_si128, __m128i, _mm512_cvtepi16_epi64)
SUM_LOAD_INT(int32, _mm256_loadu_si256, __m256i, _mm512_cvtepi32_epi64)
SUM_LOAD_INT(uint8, _mm_loadl_epi64, __m128i, _mm512_cvtepu8_epi64)
SUM_LOAD_INT(uint16, _mm_loadu_si128, __m128i, _mm512_cvtepu16_epi64)
SUM_LOAD_INT(uint32, _mm256_loadu_si256, __m256i, _mm512_cvtepu32_epi64)
#    undef SUM_LOAD_INT

/* Rows of up to P items, q items apart, 8 / P of them at a time; stops where a load would pass the last row's end.
 * Returns how many rows it did, a multiple of eight. */
#    define SUM_TINY(dtype, size, V8, V, parts, blank)                                                                 \
        SUM_INLINE int64_t sum_tiny_##dtype##_##parts(gm_acc *out, const char *src, int64_t q, int64_t rows,           \
                                                      int64_t n, const int64_t P)                                      \
        {                                                                                                              \
            const int64_t per = 8 / P;                                                                                 \
            int64_t index[8] = {0}, done = 0;                                                                          \
            unsigned kept = 0;                                                                                         \
            for (int64_t lane = 0; lane < 8; lane++)                                                                   \
                if (lane % P < n) {                                                                                    \
                    index[lane] = lane / P * q + lane % P;                                                             \
                    kept |= 1u << lane;                                                                                \
                }                                                                                                      \
            __m512i order = _mm512_loadu_si512(index);                                                                 \
            for (; (rows - done - 1) * q + n >= (8 - per) * q + 8 && rows - done >= 8; done += 8) {                    \
                V x[4] = {{0}};                                                                                        \
                for (int64_t i = 0; i < P; i++) {                                                                      \
                    __m512d v = (__m512d)sum_load_##dtype(src + (done + i * per) * q * size).v[0];                     \
                    x[i] = (V)_mm512_mask_permutexvar_pd(_mm512_set1_pd(blank), (__mmask8)kept, order, v);             \
                }                                                                                                      \
                gm_acc *to = out + done * parts;                                                                       \
                if (P == 4)                                                                                            \
                    sum_finish_##V8(to, sum_fold2_##V8(x[0], x[1]), sum_fold2_##V8(x[2], x[3]), parts);                \
                else if (P == 2)                                                                                       \
                    sum_finish_##V8(to, x[0], x[1], parts);                                                            \
                else                                                                                                   \
                    memcpy(to, x, sizeof *x);                                                                          \
            }                                                                                                          \
            return done;                                                                                               \
        }                                                                                                              \
        static int64_t sum_few_##dtype##_##parts(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t n)  \
        {                                                                                                              \
            int64_t q = step / size;                                                                                   \
            if (step % size || n > 4)                                                                                  \
                return 0;                                                                                              \
            if (n > 2)                                                                                                 \
                return q + n <= 8 ? sum_tiny_##dtype##_##parts(out, src, q, rows, n, 4) : 0;                           \
            if (n == 2)                                                                                                \
                return 3 * q + n <= 8 ? sum_tiny_##dtype##_##parts(out, src, q, rows, n, 2) : 0;                       \
            return q == 1 ? sum_tiny_##dtype##_##parts(out, src, q, rows, n, 1) : 0;                                   \
        }
#else
/* As lane i and lane i + 4, then + 2, then + 1 would add them. */
#    define SUM_TINY(dtype, size, V8, V, parts, blank)                                                                 \
        static int64_t sum_few_##dtype##_##parts(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t n)  \
        {                                                                                                              \
            if (n > 4)                                                                                                 \
                return 0;                                                                                              \
            for (int64_t r = 0; r < rows; r++, src += step) {                                                          \
                __typeof__(gm_sum_read_##dtype(src)) x[4] = {blank, blank, blank, blank};                              \
                for (int64_t i = 0; i < n; i++)                                                                        \
                    x[i] = gm_sum_read_##dtype(src + i * size);                                                        \
                x[0] += x[2], x[1] += x[3];                                                                            \
                if (parts == 1)                                                                                        \
                    x[0] += x[1];                                                                                      \
                memcpy(out + r * parts, x, parts * sizeof *x);                                                         \
            }                                                                                                          \
            return rows;                                                                                               \
        }
#endif

#define SUM_ROWS(name, dtype, size, V8, V, parts, blank)                                                               \
    SUM_TINY(dtype, size, V8, V, parts, blank)                                                                         \
    static void sum_rows_##name(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t n)                   \
    {                                                                                                                  \
        n *= parts;                                                                                                    \
        int64_t r = sum_few_##dtype##_##parts(out, src, step, rows, n);                                                \
        for (; r + 8 <= rows; r += 8) {                                                                                \
            V8 x[8];                                                                                                   \
            for (int i = 0; i < 8; i++)                                                                                \
                x[i] = sum_lanes_##dtype(src + (r + i) * step, n);                                                     \
            sum_reduce8_##V8(out + r * parts, x, parts);                                                               \
        }                                                                                                              \
        for (; r < rows; r++)                                                                                          \
            sum_reduce_##V8(out + r * parts, sum_lanes_##dtype(src + r * step, n), parts);                             \
    }
SUM_ROWS(bool, bool, 1, sum_i8, sum_u64, 1, 0)
SUM_ROWS(int8, int8, 1, sum_i8, sum_u64, 1, 0)
SUM_ROWS(int16, int16, 2, sum_i8, sum_u64, 1, 0)
SUM_ROWS(int32, int32, 4, sum_i8, sum_u64, 1, 0)
SUM_ROWS(int64, int64, 8, sum_i8, sum_u64, 1, 0)
SUM_ROWS(uint8, uint8, 1, sum_i8, sum_u64, 1, 0)
SUM_ROWS(uint16, uint16, 2, sum_i8, sum_u64, 1, 0)
SUM_ROWS(uint32, uint32, 4, sum_i8, sum_u64, 1, 0)
SUM_ROWS(float16, float16, 2, sum_f8, sum_f64, 1, -0.0)
SUM_ROWS(bfloat16, bfloat16, 2, sum_f8, sum_f64, 1, -0.0)
SUM_ROWS(float32, float32, 4, sum_f8, sum_f64, 1, -0.0)
SUM_ROWS(float64, float64, 8, sum_f8, sum_f64, 1, -0.0)
SUM_ROWS(complex64, float32, 4, sum_f8, sum_f64, 2, -0.0)
SUM_ROWS(complex128, float64, 8, sum_f8, sum_f64, 2, -0.0)
