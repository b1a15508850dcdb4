/* Combing (comb.h) by permutes of bytes, for each ISA variant that has them: 64 bytes at a time, or 16. */
#if GM_AVX512
enum { COMB_VECTOR = 64 };
typedef __m512i comb_vec;
#elif GM_AVX2
enum { COMB_VECTOR = 16 };
typedef __m128i comb_vec;
#elif defined(__aarch64__)
enum { COMB_VECTOR = 16 };
typedef uint8x16_t comb_vec;
#else
enum { COMB_VECTOR = 16 };
#endif

#if GM_AVX2 || defined(__aarch64__)
/* What a loop keeps in registers. Tables in memory would be read between streaming stores, and a load waits for every
 * store under way that ends in the same 12 bits of an address: some always does. */
typedef struct comb_table {
    comb_vec picks[GM_COMB_WINDOWS];
    uint64_t takes[GM_COMB_WINDOWS];
    int64_t at[GM_COMB_WINDOWS];
} comb_table;

GM_INLINE comb_table comb_tables(const gm_comb *comb, int windows)
{
    comb_table t;
    for (int w = 0; w < windows; w++) {
        memcpy(&t.picks[w], comb->picks[w], sizeof t.picks[w]);
        t.takes[w] = comb->takes[w];
        t.at[w] = comb->at[w];
    }
    return t;
}
#endif

#if GM_AVX512

GM_INLINE comb_vec comb_gather(const comb_table *t, int windows, const char *src)
{
    comb_vec v = _mm512_permutexvar_epi8(t->picks[0], _mm512_loadu_si512(src));
    GM_UNROLL for (int w = 1; w < windows; w++) v =
        _mm512_mask_permutexvar_epi8(v, t->takes[w], t->picks[w], _mm512_loadu_si512(src + t->at[w]));
    return v;
}

GM_INLINE void comb_put(char *dst, comb_vec v, int streams)
{
    if (streams)
        _mm512_stream_si512((void *)dst, v);
    else
        _mm512_storeu_si512(dst, v);
}

GM_INLINE __mmask64 comb_below(int64_t n)
{
    return n <= 0 ? 0 : _bzhi_u64(~UINT64_C(0), n < 64 ? (unsigned)n : 64);
}

/* Fewer items than a vector has: the picks count from where the first of a whole vector's would lie. */
static comb_vec comb_few(const gm_comb *comb, const char *src, int64_t n)
{
    int64_t whole = COMB_VECTOR / comb->item, from = comb->backwards ? (whole - n) * comb->step : 0;
    int64_t end = from + (n - 1) * comb->step + comb->item;
    comb_vec v = _mm512_setzero_si512();
    for (int w = 0; w < comb->windows; w++) {
        __mmask64 there = comb_below(end - comb->at[w]) & ~comb_below(from - comb->at[w]);
        const char *at = (const char *)((uintptr_t)src - (uintptr_t)(from - comb->at[w]));
        v = _mm512_mask_permutexvar_epi8(v, comb->takes[w], _mm512_load_si512(comb->picks[w]),
                                         _mm512_maskz_loadu_epi8(there, at));
    }
    return v;
}

/* The first n items, which end with a line. */
static void comb_head(const gm_comb *comb, char *dst, const char *src, int64_t n, const gm_comb_joint *before)
{
    const __m512i byte =
        _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
                         0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    int64_t bytes = n * comb->item, rest = 64 - bytes;
    if (n == 0)
        return;
    comb_vec v = comb_few(comb, src, n);
    if (before && before->waiting == rest) {
        __m512i from = _mm512_sub_epi8(byte, _mm512_set1_epi8((char)rest));
        v = _mm512_mask_permutexvar_epi8(_mm512_load_si512(before->line), ~comb_below(rest), from, v);
        _mm512_stream_si512((void *)(dst - rest), v);
    } else {
        _mm512_mask_storeu_epi8(dst, comb_below(bytes), v);
    }
}

/* The last n items, which begin one. */
static void comb_tail(const gm_comb *comb, char *dst, const char *src, int64_t n, gm_comb_joint *after)
{
    if (after)
        after->waiting = n * comb->item;
    if (n == 0)
        return;
    comb_vec v = comb_few(comb, src, n);
    if (after)
        _mm512_store_si512(after->line, v);
    else
        _mm512_mask_storeu_epi8(dst, comb_below(n * comb->item), v);
}
#elif GM_AVX2 || defined(__aarch64__)
GM_INLINE comb_vec comb_gather(const comb_table *t, int windows, const char *src)
{
    comb_vec v, from;
    memset(&v, 0, sizeof v);
    GM_UNROLL for (int w = 0; w < windows; w++)
    {
        memcpy(&from, src + t->at[w], sizeof from);
#    if GM_AVX2
        v = _mm_or_si128(v, _mm_shuffle_epi8(from, t->picks[w]));
#    else
        v = vorrq_u8(v, vqtbl1q_u8(from, t->picks[w]));
#    endif
    }
    return v;
}

GM_INLINE void comb_put(char *dst, comb_vec v, int streams)
{
#    if GM_AVX2
    if (streams) {
        _mm_stream_si128((__m128i *)dst, v);
        return;
    }
#    endif
    (void)streams;
    memcpy(dst, &v, sizeof v);
}

/* Whole vectors, then item by item. */
static void comb_few(const gm_comb *comb, char *dst, const char *src, int64_t n)
{
    const comb_table t = comb_tables(comb, comb->windows);
    int64_t whole = COMB_VECTOR / comb->item, i = 0;
    for (; i + whole <= n; i += whole)
        comb_put(dst + (comb->backwards ? n - whole - i : i) * comb->item,
                 comb_gather(&t, comb->windows, src + i * comb->step), 0);
    for (; i < n; i++)
        memcpy(dst + (comb->backwards ? n - 1 - i : i) * comb->item, src + i * comb->step, (size_t)comb->item);
}

static void comb_head(const gm_comb *comb, char *dst, const char *src, int64_t n, const gm_comb_joint *before)
{
    (void)before;
    comb_few(comb, dst, src, n);
}

static void comb_tail(const gm_comb *comb, char *dst, const char *src, int64_t n, gm_comb_joint *after)
{
    if (after)
        after->waiting = 0;
    comb_few(comb, dst, src, n);
}
#endif

#if GM_AVX2 || defined(__aarch64__)
/* Whole lines of the destination; `ask` is added to an address to get one that will be wanted soon. */
GM_INLINE void comb_lines_of(const gm_comb *comb, int windows, char *dst, const char *src, int64_t lines, uintptr_t ask,
                             int streams)
{
    const int64_t src_line = 64 / comb->item * comb->step, src_vector = COMB_VECTOR / comb->item * comb->step;
    const int64_t dst_line = comb->backwards ? -64 : 64, dst_vector = comb->backwards ? -COMB_VECTOR : COMB_VECTOR;
    const comb_table t = comb_tables(comb, windows);

    if (comb->backwards)
        dst += 64 * lines - COMB_VECTOR;
    for (; lines > 0; lines--, dst += dst_line, src += src_line) {
        for (int64_t k = 0; k < src_line; k += 64)
            __builtin_prefetch((const char *)((uintptr_t)src + ask + (uintptr_t)k), 0, 2);
        GM_UNROLL for (int k = 0; k < 64 / COMB_VECTOR; k++)
            comb_put(dst + k * dst_vector, comb_gather(&t, windows, src + k * src_vector), streams);
    }
}

static __attribute__((noinline)) void comb_lines(const gm_comb *comb, char *dst, const char *src, int64_t lines,
                                                 uintptr_t ask, int streams)
{
#    define COMB_CASE(windows)                                                                                         \
    case windows:                                                                                                      \
        comb_lines_of(comb, windows, dst, src, lines, ask, streams);                                                   \
        return
    switch (comb->windows) {
        COMB_CASE(1);
        COMB_CASE(2);
        COMB_CASE(3);
        COMB_CASE(4);
        COMB_CASE(5);
        COMB_CASE(6);
        COMB_CASE(7);
        COMB_CASE(8);
    }
#    undef COMB_CASE
}

/* In the source's order. What lies ahead of its last lines is the next row's beginning. */
static void comb_row(const gm_comb *comb, const gm_comb_row *row)
{
    enum { AHEAD = 1 << 10 };
    const int64_t item = comb->item, per_line = 64 / item, src_line = per_line * comb->step;
    const int64_t to_line = (int64_t)(-(uintptr_t)row->dst & 63), aligned = to_line % item == 0;
    const int64_t head = aligned ? to_line / item : 0, lines = (row->n - head) / per_line;
    const int64_t tail = row->n - head - lines * per_line, last = gm_least(lines, AHEAD / src_line),
                  first = lines - last;
    const int streams = comb->streams && aligned;
    const char *src = row->src + (comb->backwards ? tail : head) * comb->step, *end = row->src + row->n * comb->step;
    char *dst = row->dst + head * item, *rest = dst + lines * 64;
    const uintptr_t beyond = row->next ? (uintptr_t)AHEAD + (row->next - (uintptr_t)end) : 0;

    if (comb->backwards) {
        comb_tail(comb, rest, row->src, tail, aligned ? row->after : NULL);
        comb_lines(comb, dst + last * 64, src, first, AHEAD, streams);
        comb_lines(comb, dst, src + first * src_line, last, beyond, streams);
        comb_head(comb, row->dst, src + lines * src_line, head, aligned ? row->before : NULL);
    } else {
        comb_head(comb, row->dst, row->src, head, aligned ? row->before : NULL);
        comb_lines(comb, dst, src, first, AHEAD, streams);
        comb_lines(comb, dst + first * 64, src + first * src_line, last, beyond, streams);
        comb_tail(comb, rest, src + lines * src_line, tail, aligned ? row->after : NULL);
    }
}
#else
#    define comb_row NULL
#endif
