/* The kernels of sum_kernels.h, compiled once for each ISA variant.
 *
 * Everything is summed in eight lanes of 64 bits, one or more vectors. Floats are converted to float64 as they are
 * loaded. Integers stay packed: a 64-bit lane is split into its even and odd items by a mask and a shift, which costs
 * four operations for 64 bytes whatever the item's size. Signed ones are made unsigned by flipping their top bit, and
 * the sum put right at the end. The order in which floats are added is the same in every variant. */

enum { SUM_VECTORS = 64 / GM_VECTOR, SUM_W = GM_VECTOR / 8 };

#define SUM_INLINE static inline __attribute__((always_inline))
#define EACH(i)    for (int i = 0; i < SUM_VECTORS; i++)

typedef double sum_f64 __attribute__((vector_size(GM_VECTOR)));
typedef float sum_f32 __attribute__((vector_size(GM_VECTOR)));
typedef float sum_f32h __attribute__((vector_size(GM_VECTOR / 2))); /* as many as there are float64 in a vector */
typedef uint64_t sum_u64 __attribute__((vector_size(GM_VECTOR)));
typedef int64_t sum_s64 __attribute__((vector_size(GM_VECTOR)));
typedef uint8_t sum_u8 __attribute__((vector_size(GM_VECTOR)));

/* 64 bytes: eight lanes, or 16 float32, or packed integers. */
typedef struct sum_f8 {
    sum_f64 v[SUM_VECTORS];
} sum_f8;
typedef struct sum_s16 {
    sum_f32 v[SUM_VECTORS];
} sum_s16;
typedef struct sum_i8 {
    sum_u64 v[SUM_VECTORS];
} sum_i8;

#define ADD(V8)                                                                                                        \
    SUM_INLINE V8 add_##V8(V8 a, V8 b)                                                                                 \
    {                                                                                                                  \
        EACH(i)                                                                                                        \
        a.v[i] += b.v[i];                                                                                              \
        return a;                                                                                                      \
    }
ADD(sum_f8)
ADD(sum_s16)
ADD(sum_i8)
#undef ADD

SUM_INLINE sum_i8 sum_all(uint64_t x)
{
    sum_i8 r;
    EACH(i)
    r.v[i] = x - (sum_u64){0};
    return r;
}

SUM_INLINE sum_f8 sum_no_floats(void)
{
    sum_f8 r;
    EACH(i)
    r.v[i] = -(sum_f64){0};
    return r;
}

SUM_INLINE sum_i8 sum_load64(const char *src)
{
    sum_i8 r;
    memcpy(&r, src, sizeof r);
    return r;
}

/* The first n of 64 bytes, 0 < n < 64; `fill` in the rest. */
SUM_INLINE sum_i8 sum_part64(const char *src, int64_t n, uint64_t fill)
{
#if GM_AVX512
    __m512i r = _mm512_mask_loadu_epi8(_mm512_set1_epi64((long long)fill), ((__mmask64)1 << n) - 1, src);
    return (sum_i8){{(sum_u64)r}};
#else
    uint64_t bytes[8] = {fill, fill, fill, fill, fill, fill, fill, fill};
    memcpy(bytes, src, (size_t)n);
    return sum_load64((const char *)bytes);
#endif
}

/* ---- eight items as float64 ---- */

SUM_INLINE sum_f8 sum_load_float64(const char *src)
{
    sum_f8 r;
    memcpy(&r, src, sizeof r);
    return r;
}

/* A vector of float64 from as many float32. GCC makes three instructions of __builtin_convertvector. */
SUM_INLINE sum_f64 sum_widen(sum_f32h x)
{
#if GM_AVX512
    return (sum_f64)_mm512_cvtps_pd((__m256)x);
#elif GM_AVX2
    return (sum_f64)_mm256_cvtps_pd((__m128)x);
#else
    return __builtin_convertvector(x, sum_f64);
#endif
}

SUM_INLINE sum_f8 sum_load_float32(const char *src)
{
    sum_f8 r;
    EACH(i)
    {
        sum_f32h x;
        memcpy(&x, src + i * (int)sizeof x, sizeof x);
        r.v[i] = sum_widen(x);
    }
    return r;
}

/* Sixteen items as float32. */
SUM_INLINE sum_s16 sum_load16_float16(const char *src)
{
    sum_s16 r;
#if GM_AVX512
    r.v[0] = (sum_f32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)src));
#elif GM_AVX2
    EACH(i)
    r.v[i] = (sum_f32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + 16 * i)));
#else
    uint16_t half[16];
    float x[16];
    memcpy(half, src, sizeof half);
    for (int i = 0; i < 16; i++)
        x[i] = gm_half_to_float(half[i]);
    memcpy(&r, x, sizeof r);
#endif
    return r;
}

SUM_INLINE sum_s16 sum_load16_bfloat16(const char *src)
{
    sum_s16 r;
#if GM_AVX512
    r.v[0] = (sum_f32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)src)), 16);
#elif GM_AVX2
    EACH(i)
    r.v[i] = (sum_f32)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(src + 16 * i))), 16);
#else
    uint16_t half[16];
    uint32_t x[16];
    memcpy(half, src, sizeof half);
    for (int i = 0; i < 16; i++)
        x[i] = (uint32_t)half[i] << 16;
    memcpy(&r, x, sizeof r);
#endif
    return r;
}

SUM_INLINE sum_f8 sum_load_float16(const char *src)
{
#if GM_AVX2
    __m256 x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)src));
    return sum_load_float32((const char *)&x);
#else
    float x[8];
    uint16_t half[8];
    memcpy(half, src, sizeof half);
    for (int i = 0; i < 8; i++)
        x[i] = gm_half_to_float(half[i]);
    return sum_load_float32((const char *)x);
#endif
}

SUM_INLINE sum_f8 sum_load_bfloat16(const char *src)
{
#if GM_AVX2
    __m256i x = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)src)), 16);
    return sum_load_float32((const char *)&x);
#else
    uint16_t half[8];
    uint32_t x[8];
    memcpy(half, src, sizeof half);
    for (int i = 0; i < 8; i++)
        x[i] = (uint32_t)half[i] << 16;
    return sum_load_float32((const char *)x);
#endif
}

SUM_INLINE sum_i8 sum_load_int64(const char *src)
{
    return sum_load64(src);
}

/* The first n of eight items, 0 < n < 8, and -0.0 in the other lanes. */
#define PART(dtype, item, zero, V8)                                                                                    \
    SUM_INLINE V8 sum_part_##dtype(const char *src, int64_t n)                                                         \
    {                                                                                                                  \
        item x[8] = {zero, zero, zero, zero, zero, zero, zero, zero};                                                  \
        memcpy(x, src, (size_t)n * sizeof(item));                                                                      \
        return sum_load_##dtype((const char *)x);                                                                      \
    }
#if GM_AVX512
SUM_INLINE sum_f8 sum_part_float64(const char *src, int64_t n)
{
    return (sum_f8){{(sum_f64)_mm512_mask_loadu_pd(_mm512_set1_pd(-0.0), (__mmask8)((1 << n) - 1), src)}};
}
SUM_INLINE sum_f8 sum_part_float32(const char *src, int64_t n)
{
    __m256 x = _mm256_mask_loadu_ps(_mm256_set1_ps(-0.0f), (__mmask8)((1 << n) - 1), src);
    return (sum_f8){{(sum_f64)_mm512_cvtps_pd(x)}};
}
SUM_INLINE sum_f8 sum_part_float16(const char *src, int64_t n)
{
    __m128i x = _mm_mask_loadu_epi16(_mm_set1_epi16((short)0x8000), (__mmask8)((1 << n) - 1), src);
    return (sum_f8){{(sum_f64)_mm512_cvtps_pd(_mm256_cvtph_ps(x))}};
}
SUM_INLINE sum_f8 sum_part_bfloat16(const char *src, int64_t n)
{
    __m128i x = _mm_mask_loadu_epi16(_mm_set1_epi16((short)0x8000), (__mmask8)((1 << n) - 1), src);
    __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16);
    return (sum_f8){{(sum_f64)_mm512_cvtps_pd(_mm256_castsi256_ps(wide))}};
}
SUM_INLINE sum_i8 sum_part_int64(const char *src, int64_t n)
{
    return sum_part64(src, n * 8, 0);
}
#else
PART(float64, double, -0.0, sum_f8)
PART(float32, float, -0.0f, sum_f8)
PART(float16, uint16_t, 0x8000, sum_f8)
PART(bfloat16, uint16_t, 0x8000, sum_f8)
PART(int64, uint64_t, 0, sum_i8)
#endif
#undef PART

/* Keeps the last n lanes, 0 < n < 8. */
SUM_INLINE sum_f8 sum_last_lanes(sum_f8 x, int64_t n)
{
#if GM_AVX512
    x.v[0] = (sum_f64)_mm512_mask_mov_pd(_mm512_set1_pd(-0.0), (__mmask8)(0xff00 >> n), (__m512d)x.v[0]);
#else
    static const int64_t keep[16] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
    EACH(i)
    {
        sum_s64 mask, zero = (sum_s64) - (sum_f64){0};
        memcpy(&mask, keep + n + i * SUM_W, sizeof mask);
        x.v[i] = (sum_f64)(((sum_s64)x.v[i] & mask) | (zero & ~mask));
    }
#endif
    return x;
}

/* The first and the last eight of sixteen float32. */
SUM_INLINE sum_f8 sum_low(sum_s16 x)
{
#if GM_AVX512
    return (sum_f8){{sum_widen((sum_f32h)_mm512_castps512_ps256((__m512)x.v[0]))}};
#else
    return sum_load_float32((const char *)&x);
#endif
}

SUM_INLINE sum_f8 sum_high(sum_s16 x)
{
#if GM_AVX512
    return (sum_f8){{sum_widen((sum_f32h)_mm512_extractf32x8_ps((__m512)x.v[0], 1))}};
#else
    return sum_load_float32((const char *)&x + 32);
#endif
}

/* ---- from eight lanes to one sum, or to the two of a complex number: lane i and lane i + 4, then + 2, then + 1 ----
 */

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

/* ---- floats ---- */

/* Blocks of 1024 items are summed pairwise, as a binary counter: level l holds the sum of 2^l blocks, or nothing. */
enum { SUM_SHORT = 32, SUM_BLOCK = 1024, SUM_LEVELS = 64 };

/* What is left of a block when it is shorter than a step of its loop. The row has at least eight items: the last few
 * are loaded with those before them, which are then blanked. */
#define SUM_FLOAT_REST(dtype, size)                                                                                    \
    for (; n >= 16; n -= 16, src += 16 * size) {                                                                       \
        acc[0] = add_sum_f8(acc[0], sum_load_##dtype(src));                                                            \
        acc[1] = add_sum_f8(acc[1], sum_load_##dtype(src + 8 * size));                                                 \
    }                                                                                                                  \
    if (n >= 8)                                                                                                        \
        acc[2] = add_sum_f8(acc[2], sum_load_##dtype(src));                                                            \
    if (n % 8)                                                                                                         \
        acc[3] = add_sum_f8(acc[3], sum_last_lanes(sum_load_##dtype(src + (n - 8) * size), n % 8));                    \
    return add_sum_f8(add_sum_f8(acc[0], acc[1]), add_sum_f8(acc[2], acc[3]))

/* Up to SUM_BLOCK items in four times eight accumulators. */
#define SUM_FLOAT_BLOCK(dtype, size)                                                                                   \
    SUM_INLINE sum_f8 sum_block_##dtype(const char *src, int64_t n)                                                    \
    {                                                                                                                  \
        sum_f8 acc[4] = {sum_no_floats(), sum_no_floats(), sum_no_floats(), sum_no_floats()};                          \
        for (; n >= 32; n -= 32, src += 32 * size)                                                                     \
            for (int a = 0; a < 4; a++)                                                                                \
                acc[a] = add_sum_f8(acc[a], sum_load_##dtype(src + 8 * a * size));                                     \
        SUM_FLOAT_REST(dtype, size);                                                                                   \
    }

/* Conversion to float64 is what limits 16-bit floats: four vectors of them are first added in float32. */
#define SUM_HALF_BLOCK(dtype, name)                                                                                    \
    SUM_INLINE sum_f8 name(const char *src, int64_t n)                                                                 \
    {                                                                                                                  \
        sum_f8 acc[4] = {sum_no_floats(), sum_no_floats(), sum_no_floats(), sum_no_floats()};                          \
        for (; n >= 64; n -= 64, src += 128) {                                                                         \
            sum_s16 s = add_sum_s16(add_sum_s16(sum_load16_##dtype(src), sum_load16_##dtype(src + 32)),                \
                                    add_sum_s16(sum_load16_##dtype(src + 64), sum_load16_##dtype(src + 96)));          \
            acc[0] = add_sum_f8(acc[0], sum_low(s));                                                                   \
            acc[1] = add_sum_f8(acc[1], sum_high(s));                                                                  \
        }                                                                                                              \
        SUM_FLOAT_REST(dtype, 2);                                                                                      \
    }

SUM_INLINE int sum_finite(sum_f8 x)
{
    sum_f64 t = {0};
    EACH(i)
    t += x.v[i] * 0;
    double sum = 0;
    for (int i = 0; i < SUM_W; i++)
        sum += t[i];
    return sum == 0;
}

SUM_FLOAT_BLOCK(float32, 4)
SUM_FLOAT_BLOCK(float64, 8)
SUM_HALF_BLOCK(float16, sum_block_float16)
SUM_HALF_BLOCK(bfloat16, sum_quick_block_bfloat16)

static __attribute__((noinline)) sum_f8 sum_slow_block_bfloat16(const char *src, int64_t n)
{
    sum_f8 acc[4] = {sum_no_floats(), sum_no_floats(), sum_no_floats(), sum_no_floats()};
    SUM_FLOAT_REST(bfloat16, 2);
}

/* The largest bfloat16 are the largest float32: four of them may overflow where their sum would not. */
SUM_INLINE sum_f8 sum_block_bfloat16(const char *src, int64_t n)
{
    sum_f8 sum = sum_quick_block_bfloat16(src, n);
    return n < 64 || sum_finite(sum) ? sum : sum_slow_block_bfloat16(src, n);
}

#define SUM_FLOAT_LANES(dtype, size)                                                                                   \
    static __attribute__((noinline)) void sum_long_##dtype(sum_f8 *out, const char *src, int64_t n)                    \
    {                                                                                                                  \
        sum_f8 level[SUM_LEVELS], sum;                                                                                 \
        uint64_t blocks = 0;                                                                                           \
        int l;                                                                                                         \
        for (; n > SUM_BLOCK; n -= SUM_BLOCK, src += SUM_BLOCK * size, blocks++) {                                     \
            sum = sum_block_##dtype(src, SUM_BLOCK);                                                                   \
            for (l = 0; blocks >> l & 1; l++)                                                                          \
                sum = add_sum_f8(level[l], sum);                                                                       \
            level[l] = sum;                                                                                            \
        }                                                                                                              \
        sum = sum_block_##dtype(src, n);                                                                               \
        for (l = 0; blocks >> l; l++)                                                                                  \
            if (blocks >> l & 1)                                                                                       \
                sum = add_sum_f8(level[l], sum);                                                                       \
        *out = sum;                                                                                                    \
    }                                                                                                                  \
    SUM_INLINE sum_f8 sum_lanes_##dtype(const char *src, int64_t n)                                                    \
    {                                                                                                                  \
        sum_f8 sum;                                                                                                    \
        if (n < 8)                                                                                                     \
            return sum_part_##dtype(src, n);                                                                           \
        if (n <= SUM_SHORT)                                                                                            \
            return sum_block_##dtype(src, n);                                                                          \
        sum_long_##dtype(&sum, src, n);                                                                                \
        return sum;                                                                                                    \
    }
SUM_FLOAT_LANES(float16, 2)
SUM_FLOAT_LANES(bfloat16, 2)
SUM_FLOAT_LANES(float32, 4)
SUM_FLOAT_LANES(float64, 8)

/* ---- integers ---- */

/* Splits packed unsigned items into wider ones: mask and shift take the even and odd items of a 64-bit lane apart. */
SUM_INLINE sum_i8 sum_split(sum_i8 x, uint64_t mask, int shift)
{
    EACH(i)
    x.v[i] = (x.v[i] & mask) + (x.v[i] >> shift & mask);
    return x;
}

/* The eight bytes of each lane added up. */
SUM_INLINE sum_i8 sum_bytes(sum_i8 x)
{
#if GM_AVX512
    x.v[0] = (sum_u64)_mm512_sad_epu8((__m512i)x.v[0], _mm512_setzero_si512());
    return x;
#elif GM_AVX2
    EACH(i)
    x.v[i] = (sum_u64)_mm256_sad_epu8((__m256i)x.v[i], _mm256_setzero_si256());
    return x;
#else
    return sum_split(sum_split(sum_split(x, 0x00ff00ff00ff00ff, 8), 0x0000ffff0000ffff, 16), 0xffffffff, 32);
#endif
}

SUM_INLINE sum_i8 sum_xor(sum_i8 x, uint64_t bits)
{
    EACH(i)
    x.v[i] ^= bits;
    return x;
}

SUM_INLINE sum_i8 sum_is_set(sum_i8 x)
{
#if GM_AVX512
    x.v[0] = (sum_u64)_mm512_min_epu8((__m512i)x.v[0], _mm512_set1_epi8(1));
#else
    EACH(i)
    x.v[i] = (sum_u64)((sum_u8)x.v[i] != 0) & 0x0101010101010101;
#endif
    return x;
}

/* 64 bytes of items as lanes of 64 bits that add up to the same, once each item is made unsigned. */
#define SUM_ONLY_bool(x)   sum_is_set(x)
#define SUM_ONLY_int8(x)   sum_xor(x, 0x8080808080808080)
#define SUM_ONLY_int16(x)  sum_xor(x, 0x8000800080008000)
#define SUM_ONLY_int32(x)  sum_xor(x, 0x8000000080000000)
#define SUM_ONLY_int64(x)  (x)
#define SUM_ONLY_uint8(x)  (x)
#define SUM_ONLY_uint16(x) (x)
#define SUM_ONLY_uint32(x) (x)

#define SUM_WIDE_1(x) sum_bytes(x)
#define SUM_WIDE_2(x) sum_split(sum_split(x, 0x0000ffff0000ffff, 16), 0xffffffff, 32)
#define SUM_WIDE_4(x) sum_split(x, 0xffffffff, 32)
#define SUM_WIDE_8(x) (x)

/* `zero` is a lane of items that count nothing once unsigned, `bias` what making an item unsigned adds to it. */
#define SUM_INT_LANES(dtype, size, zero, bias)                                                                         \
    SUM_INLINE sum_i8 sum_lanes_##dtype(const char *src, int64_t n)                                                    \
    {                                                                                                                  \
        sum_i8 a = sum_all(0), b = a;                                                                                  \
        int64_t bytes = n * size;                                                                                      \
        a.v[0][0] -= (uint64_t)bias * (uint64_t)n;                                                                     \
        for (; bytes >= 128; bytes -= 128, src += 128) {                                                               \
            a = add_sum_i8(a, SUM_WIDE_##size(SUM_ONLY_##dtype(sum_load64(src))));                                     \
            b = add_sum_i8(b, SUM_WIDE_##size(SUM_ONLY_##dtype(sum_load64(src + 64))));                                \
        }                                                                                                              \
        if (bytes >= 64) {                                                                                             \
            a = add_sum_i8(a, SUM_WIDE_##size(SUM_ONLY_##dtype(sum_load64(src))));                                     \
            bytes -= 64, src += 64;                                                                                    \
        }                                                                                                              \
        if (bytes)                                                                                                     \
            b = add_sum_i8(b, SUM_WIDE_##size(SUM_ONLY_##dtype(sum_part64(src, bytes, zero))));                        \
        return add_sum_i8(a, b);                                                                                       \
    }
SUM_INT_LANES(bool, 1, 0, 0)
SUM_INT_LANES(int8, 1, 0x8080808080808080, 0x80)
SUM_INT_LANES(int16, 2, 0x8000800080008000, 0x8000)
SUM_INT_LANES(int32, 4, 0x8000000080000000, 0x80000000)
SUM_INT_LANES(int64, 8, 0, 0)
SUM_INT_LANES(uint8, 1, 0, 0)
SUM_INT_LANES(uint16, 2, 0, 0)
SUM_INT_LANES(uint32, 4, 0, 0)

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
