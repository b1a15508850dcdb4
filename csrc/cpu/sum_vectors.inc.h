/* The vectors in which sums are made, for each ISA variant: 64 bytes, in one register or several, and the ways to load
 * items into them. */

enum { SUM_VECTORS = 64 / GM_VECTOR, SUM_W = GM_VECTOR / 8 };

#define SUM_EACH(i) for (int i = 0; i < SUM_VECTORS; i++)

typedef double sum_f64 __attribute__((vector_size(GM_VECTOR)));
typedef float sum_f32 __attribute__((vector_size(GM_VECTOR)));
typedef float sum_f32h __attribute__((vector_size(GM_VECTOR / 2))); /* as many as there are float64 in a vector */
typedef uint64_t sum_u64 __attribute__((vector_size(GM_VECTOR)));
typedef int64_t sum_s64 __attribute__((vector_size(GM_VECTOR)));
typedef uint8_t sum_u8 __attribute__((vector_size(GM_VECTOR)));
typedef uint16_t sum_u16 __attribute__((vector_size(GM_VECTOR)));
typedef uint32_t sum_u32 __attribute__((vector_size(GM_VECTOR)));

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
    GM_INLINE V8 add_##V8(V8 a, V8 b)                                                                                  \
    {                                                                                                                  \
        SUM_EACH (i)                                                                                                   \
            a.v[i] += b.v[i];                                                                                          \
        return a;                                                                                                      \
    }
ADD(sum_f8)
ADD(sum_s16)
ADD(sum_i8)
#undef ADD

GM_INLINE sum_i8 sum_all(uint64_t x)
{
    sum_i8 r;
    SUM_EACH (i)
        r.v[i] = x - (sum_u64){0};
    return r;
}

GM_INLINE sum_f8 sum_no_floats(void)
{
    sum_f8 r;
    SUM_EACH (i)
        r.v[i] = -(sum_f64){0};
    return r;
}

GM_INLINE sum_i8 sum_load64(const char *src)
{
#if GM_AVX512
    return (sum_i8){{(sum_u64)_mm512_loadu_si512(src)}};
#else
    sum_i8 r;
    memcpy(&r, src, sizeof r);
    return r;
#endif
}

/* As two halves, of which only one may cross the end of a line. */
GM_INLINE sum_i8 sum_load32x2(const char *src)
{
#if GM_AVX512
    __m512i low = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)src));
    return (sum_i8){{(sum_u64)_mm512_inserti64x4(low, _mm256_loadu_si256((const __m256i *)(src + 32)), 1)}};
#else
    return sum_load64(src);
#endif
}

/* The first n of 64 bytes, 0 < n <= 64; `fill` in the rest. */
GM_INLINE sum_i8 sum_part64(const char *src, int64_t n, uint64_t fill)
{
#if GM_AVX512
    __m512i r = _mm512_mask_loadu_epi8(_mm512_set1_epi64((long long)fill), ~(__mmask64)0 >> (64 - n), src);
    return (sum_i8){{(sum_u64)r}};
#else
    uint64_t bytes[8] = {fill, fill, fill, fill, fill, fill, fill, fill};
    memcpy(bytes, src, (size_t)n);
    return sum_load64((const char *)bytes);
#endif
}

/* ---- eight items as float64 ---- */

GM_INLINE sum_f8 sum_load_float64(const char *src)
{
#if GM_AVX512
    return (sum_f8){{(sum_f64)_mm512_loadu_pd(src)}};
#else
    sum_f8 r;
    memcpy(&r, src, sizeof r);
    return r;
#endif
}

/* A vector of float64 from as many float32. GCC makes three instructions of __builtin_convertvector. */
GM_INLINE sum_f64 sum_widen(sum_f32h x)
{
#if GM_AVX512
    return (sum_f64)_mm512_cvtps_pd((__m256)x);
#elif GM_AVX2
    return (sum_f64)_mm256_cvtps_pd((__m128)x);
#else
    return __builtin_convertvector(x, sum_f64);
#endif
}

GM_INLINE sum_f8 sum_load_float32(const char *src)
{
    sum_f8 r;
    SUM_EACH (i) {
        sum_f32h x;
        memcpy(&x, src + i * (int)sizeof x, sizeof x);
        r.v[i] = sum_widen(x);
    }
    return r;
}

/* Sixteen items as float32. */
GM_INLINE sum_s16 sum_load16_float16(const char *src)
{
    sum_s16 r;
#if GM_AVX512
    r.v[0] = (sum_f32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)src));
#elif GM_AVX2
    SUM_EACH (i)
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

GM_INLINE sum_s16 sum_load16_bfloat16(const char *src)
{
    sum_s16 r;
#if GM_AVX512
    r.v[0] = (sum_f32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)src)), 16);
#elif GM_AVX2
    SUM_EACH (i)
        r.v[i] =
            (sum_f32)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(src + 16 * i))), 16);
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

GM_INLINE sum_f8 sum_load_float16(const char *src)
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

GM_INLINE sum_f8 sum_load_bfloat16(const char *src)
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

/* ---- eight items as 64-bit integers ---- */

#if GM_AVX512
#    define SUM_LOAD_INT(dtype, type, load, from, convert)                                                             \
        GM_INLINE sum_i8 sum_load_##dtype(const char *src)                                                             \
        {                                                                                                              \
            return (sum_i8){{(sum_u64)convert(load((const from *)src))}};                                              \
        }
#else
#    define SUM_LOAD_INT(dtype, type, load, from, convert)                                                             \
        GM_INLINE sum_i8 sum_load_##dtype(const char *src)                                                             \
        {                                                                                                              \
            type x[8];                                                                                                 \
            uint64_t wide[8];                                                                                          \
            memcpy(x, src, sizeof x);                                                                                  \
            for (int i = 0; i < 8; i++)                                                                                \
                wide[i] = (uint64_t)x[i];                                                                              \
            return sum_load64((const char *)wide);                                                                     \
        }
#endif
SUM_LOAD_INT(uint16, uint16_t, _mm_loadu_si128, __m128i, _mm512_cvtepu16_epi64)
SUM_LOAD_INT(uint32, uint32_t, _mm256_loadu_si256, __m256i, _mm512_cvtepu32_epi64)
#undef SUM_LOAD_INT

#define sum_load_int64  sum_load64
#define sum_load_uint64 sum_load64

/* The first n of eight items, 0 < n <= 8, and -0.0 in the other lanes. */
#define PART(dtype, item, zero, V8)                                                                                    \
    GM_INLINE V8 sum_part_##dtype(const char *src, int64_t n)                                                          \
    {                                                                                                                  \
        item x[8] = {zero, zero, zero, zero, zero, zero, zero, zero};                                                  \
        memcpy(x, src, (size_t)n * sizeof(item));                                                                      \
        return sum_load_##dtype((const char *)x);                                                                      \
    }
#if GM_AVX512
GM_INLINE sum_f8 sum_part_float64(const char *src, int64_t n)
{
    return (sum_f8){{(sum_f64)_mm512_mask_loadu_pd(_mm512_set1_pd(-0.0), (__mmask8)(0xff >> (8 - n)), src)}};
}
GM_INLINE sum_f8 sum_part_float32(const char *src, int64_t n)
{
    __m256 x = _mm256_mask_loadu_ps(_mm256_set1_ps(-0.0f), (__mmask8)(0xff >> (8 - n)), src);
    return (sum_f8){{(sum_f64)_mm512_cvtps_pd(x)}};
}
GM_INLINE sum_f8 sum_part_float16(const char *src, int64_t n)
{
    __m128i x = _mm_mask_loadu_epi16(_mm_set1_epi16((short)0x8000), (__mmask8)(0xff >> (8 - n)), src);
    return (sum_f8){{(sum_f64)_mm512_cvtps_pd(_mm256_cvtph_ps(x))}};
}
GM_INLINE sum_f8 sum_part_bfloat16(const char *src, int64_t n)
{
    __m128i x = _mm_mask_loadu_epi16(_mm_set1_epi16((short)0x8000), (__mmask8)(0xff >> (8 - n)), src);
    __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16);
    return (sum_f8){{(sum_f64)_mm512_cvtps_pd(_mm256_castsi256_ps(wide))}};
}
#else
PART(float64, double, -0.0, sum_f8)
PART(float32, float, -0.0f, sum_f8)
PART(float16, uint16_t, 0x8000, sum_f8)
PART(bfloat16, uint16_t, 0x8000, sum_f8)
#endif
#undef PART

/* Keeps the last n lanes, 0 < n < 8. */
GM_INLINE sum_f8 sum_last_lanes(sum_f8 x, int64_t n)
{
#if GM_AVX512
    x.v[0] = (sum_f64)_mm512_mask_mov_pd(_mm512_set1_pd(-0.0), (__mmask8)(0xff00 >> n), (__m512d)x.v[0]);
#else
    static const int64_t keep[16] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
    SUM_EACH (i) {
        sum_s64 mask, zero = (sum_s64) - (sum_f64){0};
        memcpy(&mask, keep + n + i * SUM_W, sizeof mask);
        x.v[i] = (sum_f64)(((sum_s64)x.v[i] & mask) | (zero & ~mask));
    }
#endif
    return x;
}

/* The first and the last eight of sixteen float32. */
#if GM_AVX512
/* Rounded to float16, NaN as sum_store.c has it. */
GM_INLINE __m256i sum_halves16(sum_s16 x)
{
    __m512 v = (__m512)x.v[0];
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    __m512i bits = _mm512_mask_and_epi32((__m512i)v, nan, (__m512i)v, _mm512_set1_epi32((int)0xffc00000));
    return _mm512_cvtps_ph((__m512)bits, _MM_FROUND_TO_NEAREST_INT);
}
#endif

GM_INLINE sum_f8 sum_low(sum_s16 x)
{
#if GM_AVX512
    return (sum_f8){{sum_widen((sum_f32h)_mm512_castps512_ps256((__m512)x.v[0]))}};
#else
    return sum_load_float32((const char *)&x);
#endif
}

GM_INLINE sum_f8 sum_high(sum_s16 x)
{
#if GM_AVX512
    return (sum_f8){{sum_widen((sum_f32h)_mm512_extractf32x8_ps((__m512)x.v[0], 1))}};
#else
    return sum_load_float32((const char *)&x + 32);
#endif
}
