/* Row kernels (sum_kernels.h), for each ISA variant: eight rows of eight lanes become eight sums at once. */

/* From eight lanes to one sum, or to the two of a complex number: lane i and lane i + 4, then + 2, then + 1. */

#define REDUCE(V8, member)                                                                                             \
    GM_INLINE void sum_reduce_##V8(gm_acc *out, V8 x, int parts)                                                       \
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
        GM_INLINE V sum_fold4_##V8(V a, V b) /* two rows of eight lanes: four lanes each */                            \
        {                                                                                                              \
            return (V)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0x44) +                                             \
                   (V)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0xee);                                              \
        }                                                                                                              \
        GM_INLINE V sum_fold2_##V8(V a, V b) /* four rows of four lanes: two lanes each */                             \
        {                                                                                                              \
            return (V)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0x88) +                                             \
                   (V)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0xdd);                                              \
        }                                                                                                              \
        GM_INLINE V sum_fold1_##V8(V a, V b) /* eight rows of two lanes: one each */                                   \
        {                                                                                                              \
            __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14),                                               \
                    odd = _mm512_or_si512(even, _mm512_set1_epi64(1));                                                 \
            return (V)_mm512_permutex2var_pd((__m512d)a, even, (__m512d)b) +                                           \
                   (V)_mm512_permutex2var_pd((__m512d)a, odd, (__m512d)b);                                             \
        }                                                                                                              \
        GM_INLINE void sum_finish_##V8(gm_acc *out, V a, V b, int parts) /* eight rows of two lanes, written */        \
        {                                                                                                              \
            if (parts == 2) {                                                                                          \
                memcpy(out, &a, sizeof a);                                                                             \
                memcpy(out + 8, &b, sizeof b);                                                                         \
            } else {                                                                                                   \
                a = sum_fold1_##V8(a, b);                                                                              \
                memcpy(out, &a, sizeof a);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        GM_INLINE void sum_reduce8_##V8(gm_acc *out, const V8 *x, int parts)                                           \
        {                                                                                                              \
            V a = sum_fold2_##V8(sum_fold4_##V8(x[0].v[0], x[1].v[0]), sum_fold4_##V8(x[2].v[0], x[3].v[0]));          \
            V b = sum_fold2_##V8(sum_fold4_##V8(x[4].v[0], x[5].v[0]), sum_fold4_##V8(x[6].v[0], x[7].v[0]));          \
            sum_finish_##V8(out, a, b, parts);                                                                         \
        }
#else
#    define LEVELS(V8, V)                                                                                              \
        GM_INLINE void sum_reduce8_##V8(gm_acc *out, const V8 *x, int parts)                                           \
        {                                                                                                              \
            for (int r = 0; r < 8; r++)                                                                                \
                sum_reduce_##V8(out + r * parts, x[r], parts);                                                         \
        }
#endif
LEVELS(sum_f8, sum_f64)
LEVELS(sum_i8, sum_u64)
#undef LEVELS

/* ---- rows of a few items: several of them in one vector ---- */

#if GM_AVX512
/* Floats: rows of up to P items, q items apart, 8 / P of them at a time; stops where a load would pass the last row's
 * end. Returns how many rows it did, a multiple of eight. */
#    define SUM_FEW_FLOATS(dtype, size, parts)                                                                         \
        GM_INLINE int64_t sum_tiny_##dtype##_##parts(gm_acc *out, const char *src, int64_t q, int64_t rows, int64_t n, \
                                                     const int64_t P)                                                  \
        {                                                                                                              \
            const int64_t per = 8 / P;                                                                                 \
            int64_t index[8] = {0}, done = 0;                                                                          \
            const char *end = src + ((rows - 1) * q + n) * size;                                                       \
            unsigned kept = 0;                                                                                         \
            for (int64_t lane = 0; lane < 8; lane++)                                                                   \
                if (lane % P < n) {                                                                                    \
                    index[lane] = lane / P * q + lane % P;                                                             \
                    kept |= 1u << lane;                                                                                \
                }                                                                                                      \
            __m512i order = _mm512_loadu_si512(index);                                                                 \
            for (; (rows - done - 1) * q + n >= (8 - per) * q + 8 && rows - done >= 8; done += 8) {                    \
                sum_f64 x[4] = {{0}};                                                                                  \
                sum_fetch(src + done * q * size, end, 8 * (int)P * size);                                              \
                for (int64_t i = 0; i < P; i++) {                                                                      \
                    __m512d v = (__m512d)sum_load_##dtype(src + (done + i * per) * q * size).v[0];                     \
                    x[i] = (sum_f64)_mm512_mask_permutexvar_pd(_mm512_set1_pd(-0.0), (__mmask8)kept, order, v);        \
                }                                                                                                      \
                gm_acc *to = out + done * parts;                                                                       \
                if (P == 4)                                                                                            \
                    sum_finish_sum_f8(to, sum_fold2_sum_f8(x[0], x[1]), sum_fold2_sum_f8(x[2], x[3]), parts);          \
                else                                                                                                   \
                    sum_finish_sum_f8(to, x[0], x[1], parts);                                                          \
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
            return 3 * q + n <= 8 ? sum_tiny_##dtype##_##parts(out, src, q, rows, n, 2) : 0;                           \
        }

/* Four vectors of eight items each, added in float32, which does not overflow with any four of float16. */
GM_INLINE __m256 sum_quarters_float16(__m512i v)
{
    __m512 x =
        _mm512_add_ps(_mm512_cvtph_ps(_mm512_castsi512_si256(v)), _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1)));
    return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}

GM_INLINE sum_f8 sum_four_float16(__m512i v)
{
    return (sum_f8){{(sum_f64)_mm512_cvtps_pd(sum_quarters_float16(v))}};
}

GM_INLINE sum_f8 sum_four_bfloat16(__m512i v)
{
    const char *x = (const char *)&v;
    return add_sum_f8(add_sum_f8(sum_load_bfloat16(x), sum_load_bfloat16(x + 32)),
                      add_sum_f8(sum_load_bfloat16(x + 16), sum_load_bfloat16(x + 48)));
}

/* The order in which the items of eight such rows are taken, and which of them there are; 0 if they are too wide. */
GM_INLINE int sum_order_halves(__m512i *order, uint32_t *kept, int64_t step, int64_t n)
{
    int64_t q = step / 2;
    uint16_t index[32] = {0};
    if (step % 2 || n > 4 || 7 * q + n > 32)
        return 0;
    *kept = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t r = 0; r < 8; r++) {
            index[8 * j + r] = (uint16_t)(r * q + j);
            *kept |= 1u << (8 * j + r);
        }
    *order = _mm512_loadu_si512(index);
    return 1;
}

/* 16-bit floats: rows of up to four items, q items apart. Item j of eight rows goes to quarter j of a vector. */
#    define SUM_FEW_HALVES(dtype)                                                                                      \
        static int64_t sum_few_##dtype##_1(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t n)        \
        {                                                                                                              \
            const __m512i blank = _mm512_set1_epi16((short)0x8000);                                                    \
            int64_t q = step / 2, done = 0;                                                                            \
            const char *end = src + (rows - 1) * step + 2 * n;                                                         \
            uint32_t kept;                                                                                             \
            __m512i order;                                                                                             \
            if (!sum_order_halves(&order, &kept, step, n))                                                             \
                return 0;                                                                                              \
            for (; rows - done >= 8 && (rows - done - 1) * q + n >= 32; done += 8) {                                   \
                sum_fetch(src + done * step, end, 64);                                                                 \
                __m512i v = _mm512_loadu_si512(src + done * step);                                                     \
                v = _mm512_mask_permutexvar_epi16(blank, kept, order, v);                                              \
                sum_f8 sum = sum_four_##dtype(v);                                                                      \
                memcpy(out + done, &sum, sizeof sum);                                                                  \
            }                                                                                                          \
            for (; done < rows; done += 8) { /* the last ones, without what lies behind them */                        \
                int64_t left = gm_least(rows - done, 8), items = gm_least((left - 1) * q + n, 32);                     \
                __m512i v = _mm512_maskz_loadu_epi16(_bzhi_u32(~0u, (unsigned)items), src + done * step);              \
                v = _mm512_mask_permutexvar_epi16(blank, kept, order, v);                                              \
                sum_f8 sum = sum_four_##dtype(v);                                                                      \
                memcpy(out + done, &sum, (size_t)left * sizeof *out);                                                  \
            }                                                                                                          \
            return rows;                                                                                               \
        }

/* Such rows of float16, as float16, past the caches: 32 at a time, a line of results. */
static int64_t sum_few_past_float16(char *dst, const char *src, int64_t step, int64_t rows, int64_t n)
{
    const __m512i blank = _mm512_set1_epi16((short)0x8000);
    int64_t q = step / 2, done = 0;
    const char *end = src + (rows - 1) * step + 2 * n;
    uint32_t kept;
    __m512i order;
    if (!sum_order_halves(&order, &kept, step, n))
        return 0;
    for (; rows - done >= 32 && (rows - done - 25) * q + n >= 32; done += 32) {
        sum_fetch(src + done * step, end, 256);
        sum_s16 pair[2];
        for (int k = 0; k < 2; k++) {
            const char *from = src + (done + 16 * k) * step;
            __m256 low =
                sum_quarters_float16(_mm512_mask_permutexvar_epi16(blank, kept, order, _mm512_loadu_si512(from)));
            from += 8 * step;
            __m256 high =
                sum_quarters_float16(_mm512_mask_permutexvar_epi16(blank, kept, order, _mm512_loadu_si512(from)));
            pair[k].v[0] = (sum_f32)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
        }
        _mm512_stream_si512((void *)(dst + 2 * done), _mm512_inserti64x4(_mm512_castsi256_si512(sum_halves16(pair[0])),
                                                                         sum_halves16(pair[1]), 1));
    }
    return done;
}

/* Integers: rows of up to P lanes of 64 bits, 8 / P of them at a time. */
#    define SUM_FEW_INTS(dtype, size, zero, bias)                                                                      \
        GM_INLINE int64_t sum_tiny_##dtype(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t bytes,    \
                                           const int64_t P)                                                            \
        {                                                                                                              \
            const int64_t per = 8 / P;                                                                                 \
            const char *end = src + (rows - 1) * step + bytes;                                                         \
            char index[64] = {0};                                                                                      \
            int64_t done = 0;                                                                                          \
            uint64_t kept = 0;                                                                                         \
            if ((per - 1) * step + bytes > 64)                                                                         \
                return 0;                                                                                              \
            for (int64_t row = 0; row < per; row++)                                                                    \
                for (int64_t b = 0; b < bytes; b++) {                                                                  \
                    index[row * P * 8 + b] = (char)(row * step + b);                                                   \
                    kept |= (uint64_t)1 << (row * P * 8 + b);                                                          \
                }                                                                                                      \
            __m512i order = _mm512_loadu_si512(index), blank = _mm512_set1_epi64((long long)zero);                     \
            for (; rows - done >= 8 && (rows - done - 1) * step + bytes >= (8 - per) * step + 64; done += 8) {         \
                sum_u64 x[4] = {{0}};                                                                                  \
                sum_fetch(src + done * step, end, 64 * (int)P);                                                        \
                for (int64_t i = 0; i < P; i++) {                                                                      \
                    __m512i v = _mm512_loadu_si512(src + (done + i * per) * step);                                     \
                    sum_i8 lanes = {{(sum_u64)_mm512_mask_permutexvar_epi8(blank, kept, order, v)}};                   \
                    x[i] = SUM_WIDE_##size(SUM_ONLY_##dtype(lanes)).v[0];                                              \
                }                                                                                                      \
                if (P == 4)                                                                                            \
                    x[0] = sum_fold2_sum_i8(x[0], x[1]), x[1] = sum_fold2_sum_i8(x[2], x[3]);                          \
                if (P > 1)                                                                                             \
                    x[0] = sum_fold1_sum_i8(x[0], x[1]);                                                               \
                x[0] -= (uint64_t)bias * (uint64_t)(bytes / size);                                                     \
                memcpy(out + done, x, sizeof *x);                                                                      \
            }                                                                                                          \
            return done;                                                                                               \
        }                                                                                                              \
        static int64_t sum_few_##dtype##_1(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t n)        \
        {                                                                                                              \
            int64_t bytes = n * size;                                                                                  \
            return bytes <= 8    ? sum_tiny_##dtype(out, src, step, rows, bytes, 1)                                    \
                   : bytes <= 16 ? sum_tiny_##dtype(out, src, step, rows, bytes, 2)                                    \
                   : bytes <= 32 ? sum_tiny_##dtype(out, src, step, rows, bytes, 4)                                    \
                                 : 0;                                                                                  \
        }
#else
/* As lane i and lane i + 4, then + 2, then + 1 would add them. */
#    define SUM_FEW(dtype, size, parts, type, blank)                                                                   \
        static int64_t sum_few_##dtype##_##parts(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t n)  \
        {                                                                                                              \
            if (n > 4)                                                                                                 \
                return 0;                                                                                              \
            for (int64_t r = 0; r < rows; r++, src += step) {                                                          \
                type x[4] = {blank, blank, blank, blank};                                                              \
                for (int64_t i = 0; i < n; i++)                                                                        \
                    x[i] = (type)gm_sum_read_##dtype(src + i * size);                                                  \
                x[0] += x[2], x[1] += x[3];                                                                            \
                if (parts == 1)                                                                                        \
                    x[0] += x[1];                                                                                      \
                __typeof__(gm_sum_read_##dtype(src)) sum[2] = {x[0], x[1]};                                            \
                memcpy(out + r * parts, sum, parts * sizeof *sum);                                                     \
            }                                                                                                          \
            return rows;                                                                                               \
        }
#    define SUM_FEW_FLOATS(dtype, size, parts)    SUM_FEW(dtype, size, parts, double, -0.0)
#    define SUM_FEW_HALVES(dtype)                 SUM_FEW(dtype, 2, 1, SUM_FOUR_##dtype, -0.0f)
#    define SUM_FOUR_float16                      float /* holds any four */
#    define SUM_FOUR_bfloat16                     double
#    define SUM_FEW_INTS(dtype, size, zero, bias) SUM_FEW(dtype, size, 1, __typeof__(gm_sum_read_##dtype(src)), 0)
#    define sum_few_past_float16                  NULL
#endif
SUM_FEW_INTS(bool, 1, 0, 0)
SUM_FEW_INTS(int8, 1, 0x8080808080808080, 0x80)
SUM_FEW_INTS(int16, 2, 0x8000800080008000, 0x8000)
SUM_FEW_INTS(int32, 4, 0x8000000080000000, 0x80000000)
SUM_FEW_INTS(int64, 8, 0, 0)
SUM_FEW_INTS(uint8, 1, 0, 0)
SUM_FEW_INTS(uint16, 2, 0, 0)
SUM_FEW_INTS(uint32, 4, 0, 0)
SUM_FEW_HALVES(float16)
SUM_FEW_HALVES(bfloat16)
SUM_FEW_FLOATS(float32, 4, 1)
SUM_FEW_FLOATS(float64, 8, 1)
SUM_FEW_FLOATS(float32, 4, 2)
SUM_FEW_FLOATS(float64, 8, 2)

/* ---- rows of any length ---- */

/* Up to `whole` items fill one vector. Rows less than a line apart are read as one run. */
#define SUM_ROWS(name, dtype, size, whole, V8, parts)                                                                  \
    static void sum_rows_##name(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t n)                   \
    {                                                                                                                  \
        n *= parts;                                                                                                    \
        int64_t bytes = n * size, run = step >= bytes && step < bytes + 64 ? (rows - 1) * step + bytes : 0;            \
        int64_t r = sum_few_##dtype##_##parts(out, src, step, rows, n);                                                \
        for (; n <= whole && r + 8 <= rows; r += 8) {                                                                  \
            V8 x[8];                                                                                                   \
            for (int i = 0; i < 8; i++)                                                                                \
                x[i] = sum_part_##dtype(src + (r + i) * step, n);                                                      \
            sum_reduce8_##V8(out + r * parts, x, parts);                                                               \
        }                                                                                                              \
        for (; r + 8 <= rows; r += 8) {                                                                                \
            V8 x[8];                                                                                                   \
            for (int i = 0; i < 8; i++) {                                                                              \
                const char *row = src + (r + i) * step;                                                                \
                x[i] = sum_lanes_##dtype(row, n, run ? src + run : row + bytes);                                       \
            }                                                                                                          \
            sum_reduce8_##V8(out + r * parts, x, parts);                                                               \
        }                                                                                                              \
        for (; r < rows; r++) {                                                                                        \
            const char *row = src + r * step;                                                                          \
            sum_reduce_##V8(out + r * parts, sum_lanes_##dtype(row, n, run ? src + run : row + bytes), parts);         \
        }                                                                                                              \
    }
SUM_ROWS(bool, bool, 1, 64, sum_i8, 1)
SUM_ROWS(int8, int8, 1, 64, sum_i8, 1)
SUM_ROWS(int16, int16, 2, 32, sum_i8, 1)
SUM_ROWS(int32, int32, 4, 16, sum_i8, 1)
SUM_ROWS(int64, int64, 8, 8, sum_i8, 1)
SUM_ROWS(uint8, uint8, 1, 64, sum_i8, 1)
SUM_ROWS(uint16, uint16, 2, 32, sum_i8, 1)
SUM_ROWS(uint32, uint32, 4, 16, sum_i8, 1)
SUM_ROWS(float16, float16, 2, 8, sum_f8, 1)
SUM_ROWS(bfloat16, bfloat16, 2, 8, sum_f8, 1)
SUM_ROWS(float32, float32, 4, 8, sum_f8, 1)
SUM_ROWS(float64, float64, 8, 8, sum_f8, 1)
SUM_ROWS(complex64, float32, 4, 8, sum_f8, 2)
SUM_ROWS(complex128, float64, 8, 8, sum_f8, 2)
