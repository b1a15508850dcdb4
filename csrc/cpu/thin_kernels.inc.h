/* The kernels of thin movement, compiled once for each instruction set (isa_kernels.inc.h).
 * turn: blocks of 16 bytes x G = 16 / size rows, one block in each 16-byte lane of a vector, transposed by log2(G)
 * rounds of interleaving: each round rotates the bits of an item's (row, column) by one place.
 * shuffle: every destination vector is assembled from byte permutes of the source (shuffle.h). */
#if defined(__x86_64__) || defined(__aarch64__)

#    if defined(__clang__)
#        define THIN_UNROLL _Pragma("unroll")
#    else
#        define THIN_UNROLL _Pragma("GCC unroll 16")
#    endif

#    if GM_AVX512
typedef __m512i thin_vec;
#        define THIN_LO(a, b, bits) _mm512_unpacklo_epi##bits(a, b)
#        define THIN_HI(a, b, bits) _mm512_unpackhi_epi##bits(a, b)
#        define THIN_LOAD(p)        _mm512_loadu_si512(p)
#        define THIN_STORE(p, v)    _mm512_storeu_si512(p, v)
#    elif GM_AVX2
typedef __m256i thin_vec;
#        define THIN_LO(a, b, bits) _mm256_unpacklo_epi##bits(a, b)
#        define THIN_HI(a, b, bits) _mm256_unpackhi_epi##bits(a, b)
#        define THIN_LOAD(p)        _mm256_loadu_si256((const __m256i *)(p))
#        define THIN_STORE(p, v)    _mm256_storeu_si256((__m256i *)(p), v)
#    elif defined(__x86_64__)
typedef __m128i thin_vec;
#        define THIN_LO(a, b, bits) _mm_unpacklo_epi##bits(a, b)
#        define THIN_HI(a, b, bits) _mm_unpackhi_epi##bits(a, b)
#        define THIN_LOAD(p)        _mm_loadu_si128((const __m128i *)(p))
#        define THIN_STORE(p, v)    _mm_storeu_si128((__m128i *)(p), v)
#    else
typedef uint8x16_t thin_vec;
#        define THIN_LO(a, b, bits)       THIN_ZIP(vzip1q, a, b, bits)
#        define THIN_HI(a, b, bits)       THIN_ZIP(vzip2q, a, b, bits)
#        define THIN_ZIP(zip, a, b, bits) ((uint8x16_t)zip##_u##bits((thin_u##bits)(a), (thin_u##bits)(b)))
typedef uint8x16_t thin_u8;
typedef uint16x8_t thin_u16;
typedef uint32x4_t thin_u32;
typedef uint64x2_t thin_u64;
#        define THIN_LOAD(p)              vld1q_u8((const uint8_t *)(p))
#        define THIN_STORE(p, v)          vst1q_u8((uint8_t *)(p), v)
#    endif

enum { THIN_LANES = GM_VECTOR / 16 };

/* The vector whose lane l holds the 16 bytes at p[l] + at. */
static inline thin_vec thin_gather(const char *const *p, int64_t at)
{
#    if GM_AVX512
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(p[0] + at)));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p[1] + at)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p[2] + at)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(p[3] + at)), 3);
#    elif GM_AVX2
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(p[0] + at))),
                                   _mm_loadu_si128((const __m128i *)(p[1] + at)), 1);
#    else
    return THIN_LOAD(p[0] + at);
#    endif
}

static inline void thin_scatter(char *const *p, int64_t at, thin_vec v)
{
#    if GM_AVX512
    _mm_storeu_si128((__m128i *)(p[0] + at), _mm512_castsi512_si128(v));
    _mm_storeu_si128((__m128i *)(p[1] + at), _mm512_extracti32x4_epi32(v, 1));
    _mm_storeu_si128((__m128i *)(p[2] + at), _mm512_extracti32x4_epi32(v, 2));
    _mm_storeu_si128((__m128i *)(p[3] + at), _mm512_extracti32x4_epi32(v, 3));
#    elif GM_AVX2
    _mm_storeu_si128((__m128i *)(p[0] + at), _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)(p[1] + at), _mm256_extracti128_si256(v, 1));
#    else
    THIN_STORE(p[0] + at, v);
#    endif
}

static inline int64_t thin_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Three ways to fill the lanes: blocks side by side along a (one wide load, narrow stores), along b (narrow loads, one
 * wide store), or anywhere, which is also for what the first two leave over where that is little. Blocks at an edge
 * overlap their neighbours: what is written twice is the same. */
#    define THIN_TURN(bits)                                                                                            \
        enum { THIN_G##bits = 128 / bits };                                                                            \
                                                                                                                       \
        static inline void thin_rounds_##bits(thin_vec *row)                                                           \
        {                                                                                                              \
            enum { G = THIN_G##bits };                                                                                 \
            THIN_UNROLL for (int round = G; round > 1; round /= 2)                                                     \
            {                                                                                                          \
                thin_vec next[G];                                                                                      \
                THIN_UNROLL for (int i = 0; i < G / 2; i++)                                                            \
                {                                                                                                      \
                    next[2 * i] = THIN_LO(row[i], row[i + G / 2], bits);                                               \
                    next[2 * i + 1] = THIN_HI(row[i], row[i + G / 2], bits);                                           \
                }                                                                                                      \
                THIN_UNROLL for (int i = 0; i < G; i++) row[i] = next[i];                                              \
            }                                                                                                          \
        }                                                                                                              \
                                                                                                                       \
        /* At each of `count` places; the innermost loop is that over the places, so that all else stays in registers. \
         */                                                                                                            \
        static void thin_pieces_##bits(const gm_turn *t, char *dst, const char *src, int64_t na, int64_t nb)           \
        {                                                                                                              \
            enum { G = THIN_G##bits, SIZE = bits / 8 };                                                                \
            int64_t across = (na + G - 1) / G, blocks = across * ((nb + G - 1) / G);                                   \
            thin_vec row[G];                                                                                           \
            for (int64_t block = 0; block < blocks; block += THIN_LANES) {                                             \
                const char *from[THIN_LANES];                                                                          \
                char *to[THIN_LANES];                                                                                  \
                for (int l = 0; l < THIN_LANES; l++) {                                                                 \
                    int64_t at = thin_min(block + l, blocks - 1);                                                      \
                    int64_t a0 = thin_min(at % across * G, na - G), b0 = thin_min(at / across * G, nb - G);            \
                    from[l] = src + b0 * t->src_pitch + a0 * SIZE;                                                     \
                    to[l] = dst + a0 * t->dst_pitch + b0 * SIZE;                                                       \
                }                                                                                                      \
                for (int64_t n = 0; n < t->count; n++) {                                                               \
                    THIN_UNROLL for (int i = 0; i < G; i++) row[i] =                                                   \
                        thin_gather(from, n * t->src_step + i * t->src_pitch);                                         \
                    thin_rounds_##bits(row);                                                                           \
                    THIN_UNROLL for (int i = 0; i < G; i++)                                                            \
                        thin_scatter(to, n * t->dst_step + i * t->dst_pitch, row[i]);                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
                                                                                                                       \
        static void thin_turn_##bits(const gm_turn *t)                                                                 \
        {                                                                                                              \
            enum { G = THIN_G##bits, SIZE = bits / 8, WIDE = G * THIN_LANES, FEW = WIDE / 2 };                         \
            thin_vec row[G];                                                                                           \
            if (t->nb >= WIDE) {                                                                                       \
                int64_t rest = t->nb % WIDE, wide = rest <= FEW ? t->nb - rest : t->nb;                                \
                for (int64_t b = 0; b < wide; b += WIDE) {                                                             \
                    int64_t b0 = thin_min(b, t->nb - WIDE);                                                            \
                    for (int64_t a = 0; a < t->na; a += G) {                                                           \
                        int64_t a0 = thin_min(a, t->na - G);                                                           \
                        const char *from[THIN_LANES];                                                                  \
                        char *to = t->dst + a0 * t->dst_pitch + b0 * SIZE;                                             \
                        THIN_UNROLL for (int l = 0; l < THIN_LANES; l++) from[l] =                                     \
                            t->src + (b0 + l * G) * t->src_pitch + a0 * SIZE;                                          \
                        for (int64_t n = 0; n < t->count; n++, to += t->dst_step) {                                    \
                            THIN_UNROLL for (int i = 0; i < G; i++) row[i] =                                           \
                                thin_gather(from, n * t->src_step + i * t->src_pitch);                                 \
                            thin_rounds_##bits(row);                                                                   \
                            THIN_UNROLL for (int i = 0; i < G; i++) THIN_STORE(to + i * t->dst_pitch, row[i]);         \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
                if (wide < t->nb) {                                                                                    \
                    int64_t b0 = thin_min(wide, t->nb - G);                                                            \
                    thin_pieces_##bits(t, t->dst + b0 * SIZE, t->src + b0 * t->src_pitch, t->na, t->nb - b0);          \
                }                                                                                                      \
            } else if (t->na >= WIDE) {                                                                                \
                int64_t rest = t->na % WIDE, wide = rest <= FEW ? t->na - rest : t->na;                                \
                for (int64_t a = 0; a < wide; a += WIDE) {                                                             \
                    int64_t a0 = thin_min(a, t->na - WIDE);                                                            \
                    for (int64_t b = 0; b < t->nb; b += G) {                                                           \
                        int64_t b0 = thin_min(b, t->nb - G);                                                           \
                        const char *from = t->src + b0 * t->src_pitch + a0 * SIZE;                                     \
                        char *to[THIN_LANES];                                                                          \
                        THIN_UNROLL for (int l = 0; l < THIN_LANES; l++) to[l] =                                       \
                            t->dst + (a0 + l * G) * t->dst_pitch + b0 * SIZE;                                          \
                        for (int64_t n = 0; n < t->count; n++, from += t->src_step) {                                  \
                            THIN_UNROLL for (int i = 0; i < G; i++) row[i] = THIN_LOAD(from + i * t->src_pitch);       \
                            thin_rounds_##bits(row);                                                                   \
                            THIN_UNROLL for (int i = 0; i < G; i++)                                                    \
                                thin_scatter(to, n * t->dst_step + i * t->dst_pitch, row[i]);                          \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
                if (wide < t->na) {                                                                                    \
                    int64_t a0 = thin_min(wide, t->na - G);                                                            \
                    thin_pieces_##bits(t, t->dst + a0 * t->dst_pitch, t->src + a0 * SIZE, t->na - a0, t->nb);          \
                }                                                                                                      \
            } else {                                                                                                   \
                thin_pieces_##bits(t, t->dst, t->src, t->na, t->nb);                                                   \
            }                                                                                                          \
        }

THIN_TURN(8)
THIN_TURN(16)
THIN_TURN(32)
THIN_TURN(64)

#    if GM_AVX512
enum { THIN_WINDOW = 64, THIN_PAIR = 2, THIN_IS_DENSE = 1 };

/* A masked store takes many times as long as a whole one. */
static inline void thin_store(char *dst, __m512i v, __mmask64 bytes, int exact)
{
    if (exact)
        _mm512_mask_storeu_epi8(dst, bytes, v);
    else
        _mm512_storeu_si512(dst, v);
}

/* The last `exact` of the `count` places store no byte behind their vector.
 * The number of terms is a constant, so that index vectors and masks stay in registers all along a row of runs. */
#        define THIN_SHUFFLE(TERMS)                                                                                    \
            static void thin_shuffle_##TERMS(const gm_shuffle_vector *vector, const gm_shuffle_term *term,             \
                                             uint64_t readable, char *dst, int64_t dst_step, const char *src,          \
                                             int64_t src_step, int64_t count, int64_t exact)                           \
            {                                                                                                          \
                __m512i picks[TERMS];                                                                                  \
                __mmask64 mask[TERMS], whole = vector->bytes == 64 ? ~0ull : (1ull << vector->bytes) - 1;              \
                int64_t at[TERMS], also[TERMS];                                                                        \
                THIN_UNROLL for (int t = 0; t < TERMS; t++)                                                            \
                {                                                                                                      \
                    picks[t] = _mm512_loadu_si512(term[t].picks);                                                      \
                    mask[t] = term[t].mask;                                                                            \
                    at[t] = term[t].at[0];                                                                             \
                    also[t] = term[t].at[1];                                                                           \
                }                                                                                                      \
                dst += vector->dst;                                                                                    \
                for (; count > 0; count--, dst += dst_step, src += src_step) {                                         \
                    __m512i v = _mm512_setzero_si512();                                                                \
                    THIN_UNROLL for (int t = 0; t < TERMS; t++)                                                        \
                    {                                                                                                  \
                        __m512i a = _mm512_maskz_loadu_epi8(readable, src + at[t]);                                    \
                        __m512i b = _mm512_maskz_loadu_epi8(readable, src + also[t]);                                  \
                        v = _mm512_or_si512(v, _mm512_maskz_permutex2var_epi8(mask[t], a, picks[t], b));               \
                    }                                                                                                  \
                    thin_store(dst, v, whole, count <= exact);                                                         \
                }                                                                                                      \
            }
THIN_SHUFFLE(1)
THIN_SHUFFLE(2)
THIN_SHUFFLE(3)
THIN_SHUFFLE(4)
THIN_SHUFFLE(5)
THIN_SHUFFLE(6)
THIN_SHUFFLE(7)
THIN_SHUFFLE(8)

static void thin_shuffle_any(const gm_shuffle_vector *vector, const gm_shuffle_term *term, uint64_t readable, char *dst,
                             int64_t dst_step, const char *src, int64_t src_step, int64_t count, int64_t exact)
{
    __mmask64 whole = vector->bytes == 64 ? ~0ull : (1ull << vector->bytes) - 1;
    for (dst += vector->dst; count > 0; count--, dst += dst_step, src += src_step) {
        __m512i v = _mm512_setzero_si512();
        for (int t = 0; t < vector->terms; t++) {
            __m512i a = _mm512_maskz_loadu_epi8(readable, src + term[t].at[0]);
            __m512i b = _mm512_maskz_loadu_epi8(readable, src + term[t].at[1]);
            v = _mm512_or_si512(v,
                                _mm512_maskz_permutex2var_epi8(term[t].mask, a, _mm512_loadu_si512(term[t].picks), b));
        }
        thin_store(dst, v, whole, count <= exact);
    }
}

/* All K source vectors stay in registers; the last of an odd number is its own partner. The last vector of either side
 * may be part of one. */
#        define THIN_DENSE(K)                                                                                          \
            static inline __m512i thin_dense_vector_##K(const gm_shuffle *program, int i, const __m512i *in)           \
            {                                                                                                          \
                enum { PAIRS = (K + 1) / 2 };                                                                          \
                const gm_shuffle_term *term = program->term + i * PAIRS;                                               \
                const uint8_t *picks = program->picks + 64 * i * PAIRS;                                                \
                __m512i v = _mm512_permutex2var_epi8(in[0], _mm512_loadu_si512(picks), in[K > 1]);                     \
                THIN_UNROLL for (int t = 1; t < PAIRS; t++)                                                            \
                {                                                                                                      \
                    __m512i also = _mm512_permutex2var_epi8(in[2 * t], _mm512_loadu_si512(picks + 64 * t),             \
                                                            in[2 * t + 1 < K ? 2 * t + 1 : 2 * t]);                    \
                    v = _mm512_mask_blend_epi8(term[t].mask, v, also);                                                 \
                }                                                                                                      \
                return v;                                                                                              \
            }                                                                                                          \
                                                                                                                       \
            static void thin_dense_##K(const gm_shuffle *program, char *dst, int64_t dst_step, const char *src,        \
                                       int64_t src_step, int64_t count, int64_t exact)                                 \
            {                                                                                                          \
                const __mmask64 last = program->readable;                                                              \
                for (; count > 0; count--, dst += dst_step, src += src_step) {                                         \
                    __m512i in[K];                                                                                     \
                    THIN_UNROLL for (int i = 0; i < K - 1; i++) in[i] =                                                \
                        _mm512_loadu_si512(src + program->window_at[i]);                                               \
                    in[K - 1] = _mm512_maskz_loadu_epi8(last, src + program->window_at[K - 1]);                        \
                    for (int i = 0; i < K - 1; i++)                                                                    \
                        _mm512_storeu_si512(dst + program->vector[i].dst, thin_dense_vector_##K(program, i, in));      \
                    thin_store(dst + program->vector[K - 1].dst, thin_dense_vector_##K(program, K - 1, in), last,      \
                               count <= exact);                                                                        \
                }                                                                                                      \
            }
THIN_DENSE(1)
THIN_DENSE(2)
THIN_DENSE(3)
THIN_DENSE(4)
THIN_DENSE(5)
THIN_DENSE(6)
THIN_DENSE(7)
THIN_DENSE(8)
THIN_DENSE(9)
THIN_DENSE(10)
THIN_DENSE(11)
THIN_DENSE(12)
THIN_DENSE(13)
THIN_DENSE(14)
THIN_DENSE(15)
THIN_DENSE(16)

typedef void thin_dense_fn(const gm_shuffle *, char *, int64_t, const char *, int64_t, int64_t, int64_t);

typedef void thin_shuffle_fn(const gm_shuffle_vector *, const gm_shuffle_term *, uint64_t, char *, int64_t,
                             const char *, int64_t, int64_t, int64_t);

static void thin_shuffle(const gm_shuffle *program, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                         int64_t count)
{
    static thin_shuffle_fn *const fixed[] = {NULL,           thin_shuffle_1, thin_shuffle_2,
                                             thin_shuffle_3, thin_shuffle_4, thin_shuffle_5,
                                             thin_shuffle_6, thin_shuffle_7, thin_shuffle_8};
    static thin_dense_fn *const dense[] = {NULL,          thin_dense_1,  thin_dense_2,  thin_dense_3,  thin_dense_4,
                                           thin_dense_5,  thin_dense_6,  thin_dense_7,  thin_dense_8,  thin_dense_9,
                                           thin_dense_10, thin_dense_11, thin_dense_12, thin_dense_13, thin_dense_14,
                                           thin_dense_15, thin_dense_16};
    int64_t exact = gm_shuffle_exact(program, THIN_WINDOW, dst_step, count);
    if (program->dense) {
        dense[program->dense](program, dst, dst_step, src, src_step, count, exact);
        return;
    }
    for (int i = program->vectors - 1; i >= 0; i--) {
        const gm_shuffle_vector *vector = &program->vector[i];
        thin_shuffle_fn *run = vector->terms <= 8 ? fixed[vector->terms] : thin_shuffle_any;
        run(vector, program->term + vector->first, program->readable, dst, dst_step, src, src_step, count, exact);
    }
}
#    elif GM_AVX2 || defined(__aarch64__)
enum { THIN_WINDOW = 16, THIN_PAIR = 1, THIN_IS_DENSE = 0 };

static void thin_shuffle(const gm_shuffle *program, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                         int64_t count)
{
    int64_t exact = gm_shuffle_exact(program, THIN_WINDOW, dst_step, count);
    for (int i = program->vectors - 1; i >= 0; i--) {
        const gm_shuffle_vector *vector = &program->vector[i];
        const gm_shuffle_term *term = program->term + vector->first;
        char *to = dst + vector->dst;
        const char *from = src;
        for (int64_t n = count; n > 0; n--, to += dst_step, from += src_step) {
#        if GM_AVX2
            __m128i v = _mm_setzero_si128();
            for (int t = 0; t < vector->terms; t++)
                v = _mm_or_si128(v, _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(from + term[t].at[0])),
                                                     _mm_loadu_si128((const __m128i *)term[t].picks)));
#        else
            uint8x16_t v = vdupq_n_u8(0);
            for (int t = 0; t < vector->terms; t++)
                v = vorrq_u8(v, vqtbl1q_u8(vld1q_u8((const uint8_t *)from + term[t].at[0]), vld1q_u8(term[t].picks)));
#        endif
            if (vector->bytes == 16 || n > exact) {
                memcpy(to, &v, 16);
            } else {
                char edge[16];
                memcpy(edge, &v, 16);
                memcpy(to, edge, (size_t)vector->bytes);
            }
        }
    }
}
#    else
enum { THIN_WINDOW = 0, THIN_PAIR = 0, THIN_IS_DENSE = 0 };
#        define thin_shuffle NULL
#    endif

#    include "comb_kernels.inc.h"
#    include "deal_kernels.inc.h"
#    include "weave_kernels.inc.h"

static void thin_stream(char *dst, const char *src, int64_t lines)
{
    for (; lines > 0; lines--, dst += 64, src += 64) {
#    if GM_AVX512
        _mm512_stream_si512((__m512i *)dst, _mm512_loadu_si512(src));
#    elif GM_AVX2
        _mm256_stream_si256((__m256i *)dst, _mm256_loadu_si256((const __m256i *)src));
        _mm256_stream_si256((__m256i *)dst + 1, _mm256_loadu_si256((const __m256i *)src + 1));
#    elif defined(__x86_64__)
        THIN_UNROLL for (int i = 0; i < 4; i++)
            _mm_stream_si128((__m128i *)dst + i, _mm_loadu_si128((const __m128i *)src + i));
#    else
        memcpy(dst, src, 64);
#    endif
    }
}

static void thin_fence(void)
{
#    if defined(__x86_64__)
    _mm_sfence();
#    endif
}

static const gm_thin_kernels thin_kernels = {
    .window = THIN_WINDOW,
    .pair = THIN_PAIR,
    .dense = THIN_IS_DENSE,
    .shuffle = thin_shuffle,
    .turn = {thin_turn_8, thin_turn_16, thin_turn_32, thin_turn_64},
    .weaves = GM_WEAVE_KERNELS,
    .deal = deal_round,
    .comb = comb_row,
    .comb_vector = COMB_VECTOR,
    .stream = thin_stream,
    .fence = thin_fence,
};
#    define GM_THIN_KERNELS &thin_kernels
#else
#    define GM_THIN_KERNELS NULL
#endif
