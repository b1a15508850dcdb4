/* Weaving (weave.h) where bytes can be picked out of two vectors at once and blended by masks. All vectors of a tile
 * stay in registers. What limits: two permutations and log2(k) blends for each line, and its streaming store. */
#if GM_AVX512
enum { WEAVE_AHEAD = 8 << 10, WEAVE_ROW_AHEAD = 1 << 10 }; /* bytes fetched ahead: of the stream, of each row */
enum { WEAVE_FEW = 20 };                                   /* rows */

/* Vectors first, first + by, ... modulo `len`, all `apart`: lanes in `mask` move on to the next one. */
GM_INLINE void weave_turn(__m512i *v, int first, int by, int len, int count, int apart, uint64_t mask)
{
    __m512i last = v[(first + (count - 1) * by) % len * apart];
    GM_UNROLL for (int j = 0; j < count; j++)
    {
        __m512i *at = &v[(first + j * by) % len * apart], here = *at;
        *at = _mm512_mask_blend_epi8(mask, here, last);
        last = here;
    }
}

/* Vectors v[g * m + i], in place: lanes move along g by 1, 2, 4 ... (c is a power of two), then along i (m is odd;
 * where not, no lane moves). */
GM_INLINE void weave_rotate(int c, int m, const gm_weave *w, __m512i *v)
{
    const uint64_t *turns = w->turns;
    GM_UNROLL for (int s = 0; s < GM_WEAVE_STAGES; s++)
    {
        if (1 << s < c) {
            GM_UNROLL for (int i = 0; i < m << s; i++) weave_turn(v + i % m, i / m, 1 << s, c, c >> s, m, *turns);
            turns++;
        }
    }
    GM_UNROLL for (int s = 0; s < GM_WEAVE_STAGES; s++)
    {
        if (m % 2 && 1 << s < m) {
            GM_UNROLL for (int g = 0; g < c; g++) weave_turn(v + g * m, 0, 1 << s, m, m, 1, *turns);
            turns++;
        }
    }
}

/* One: all picks are out of `a`, whichever of the two they say. */
GM_INLINE __m512i weave_pick(int one, __m512i a, const uint8_t *picks, __m512i b)
{
    __m512i from = _mm512_load_si512(picks);
    return one ? _mm512_permutexvar_epi8(from, a) : _mm512_permutex2var_epi8(a, from, b);
}

GM_INLINE void weave_store(int streams, char *to, __m512i line)
{
    if (streams)
        _mm512_stream_si512((__m512i *)to, line);
    else
        _mm512_store_si512(to, line);
}

/* The lines of a tile on their way to the rows. What is asked for far ahead goes into the second-level cache: the
 * buffers of the first one's misses, which the next loads need, are too few for it. Long tiles ask for every fourth
 * line, so that every page is begun in time; the hardware fetches the others while the tile is turned. */
GM_INLINE void unweave_lines(int k, const gm_weave *w, int aligned, char *dst, const __m512i *v, const char *ahead)
{
    __m512i *carry = (__m512i *)w->carry;
    GM_UNROLL for (int i = 0; i < k; i++)
    {
        if (k <= WEAVE_FEW || i % 4 == 0)
            _mm_prefetch(ahead + 64 * i, _MM_HINT_T1);
        weave_store(w->streams, dst + w->row[i], weave_pick(aligned, aligned ? v[i] : carry[i], w->after[i], v[i]));
        if (!aligned)
            carry[i] = v[i];
    }
}

GM_INLINE void unweave_of(int c, int m, const gm_weave *w, char *dst, const char *src, int64_t tiles)
{
    const int k = c * m, aligned = w->aligned;
    __m512i v[GM_WEAVE_MOST], line = _mm512_load_si512(src);
    for (int64_t t = 0; t < tiles; t++, dst += 64, src += 64 * k) {
        GM_UNROLL for (int i = 0; i < k; i++)
        {
            __m512i next = _mm512_load_si512(src + 64 * (i + 1));
            v[i] = weave_pick(0, line, w->before[i], next);
            line = next;
        }
        weave_rotate(c, m, w, v);
        if (t == 0)
            GM_UNROLL for (int i = 0; i < k; i++) _mm512_store_si512(w->carry + 64 * i, v[i]);
        else if (aligned)
            unweave_lines(k, w, 1, dst, v, src + WEAVE_AHEAD);
        else
            unweave_lines(k, w, 0, dst, v, src + WEAVE_AHEAD);
    }
}

GM_INLINE void weave_tiles(int c, int m, int aligned, const gm_weave *w, char *dst, const char *src, int64_t tiles)
{
    const int k = c * m;
    __m512i v[GM_WEAVE_MOST], carry = _mm512_setzero_si512();
    for (int64_t t = 0; t < tiles; t++, dst += 64 * k, src += 64) {
        GM_UNROLL for (int i = 0; i < k; i++)
        {
            const char *row = src + w->row[i];
            _mm_prefetch(row + WEAVE_ROW_AHEAD, _MM_HINT_T1);
            __m512i line = _mm512_load_si512(row);
            v[i] = weave_pick(aligned, line, w->before[i], aligned ? line : _mm512_load_si512(row + 64));
        }
        weave_rotate(c, m, w, v);
        GM_UNROLL for (int i = 0; i < k; i++)
        {
            if (t > 0)
                weave_store(w->streams, dst + 64 * i, weave_pick(0, carry, w->after[i], v[i]));
            carry = v[i];
        }
    }
}

GM_INLINE void weave_of(int c, int m, const gm_weave *w, char *dst, const char *src, int64_t tiles)
{
    if (w->aligned)
        weave_tiles(c, m, 1, w, dst, src, tiles);
    else
        weave_tiles(c, m, 0, w, dst, src, tiles);
}

#    define WEAVE(c, m)                                                                                                \
        static void weave_##c##_##m(const gm_weave *w, char *dst, const char *src, int64_t tiles)                      \
        {                                                                                                              \
            weave_of(c, m, w, dst, src, tiles);                                                                        \
        }                                                                                                              \
        static void unweave_##c##_##m(const gm_weave *w, char *dst, const char *src, int64_t tiles)                    \
        {                                                                                                              \
            unweave_of(c, m, w, dst, src, tiles);                                                                      \
        }
/* Every k of 2 .. 33; of multiples of 16 also those for vectors of fewer lanes. */
/* clang-format off */
#    define WEAVE_EACH(X)                                                                                              \
        X(2, 1) X(1, 3) X(4, 1) X(1, 5) X(2, 3) X(1, 7) X(8, 1) X(1, 9) X(2, 5) X(1, 11) X(4, 3) X(1, 13) X(2, 7)      \
        X(1, 15) X(16, 1) X(8, 2) X(1, 17) X(2, 9) X(1, 19) X(4, 5) X(1, 21) X(2, 11) X(1, 23) X(8, 3) X(1, 25)        \
        X(2, 13) X(1, 27) X(4, 7) X(1, 29) X(2, 15) X(1, 31) X(32, 1) X(16, 2) X(8, 4) X(1, 33)
/* clang-format on */
WEAVE_EACH(WEAVE)

#    define WEAVE_ROW(c, m) {c, m, weave_##c##_##m, unweave_##c##_##m},
static const gm_weave_kernel weave_kernels[] = {WEAVE_EACH(WEAVE_ROW){0, 0, NULL, NULL}};
#    define GM_WEAVE_KERNELS weave_kernels
#else
#    define GM_WEAVE_KERNELS NULL
#endif
