/* Bodies of tile.h's kernels, compiled once for each instruction set (see isa_kernels.inc.h).
 *
 * A tile is N x N items, N = GM_VECTOR / item: N loads of a vector, N stores of one. Seen as 16-byte lanes it is L x L
 * lanes of P x P items. log2(P) rounds of interleaving rows i and i + P/2 transpose all lanes of a row group at once;
 * log2(L) rounds of exchanging lanes between the groups then bring each column together. */

#define GM_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#    define GM_UNROLL _Pragma("unroll")
#else
#    define GM_UNROLL _Pragma("GCC unroll 64")
#endif

enum { LANES = GM_VECTOR / 16 };

/* ---- vectors -------------------------------------------------------------------------------------------------- */

#if GM_AVX512
typedef __m512i vec;
#    define ZIP(part, bits) _mm512_unpack##part##_epi##bits
#    define NT_STORE(p, v)  _mm512_stream_si512((void *)(p), v)
#elif GM_AVX2
typedef __m256i vec;
#    define ZIP(part, bits) _mm256_unpack##part##_epi##bits
#    define NT_STORE(p, v)  _mm256_stream_si256((void *)(p), v)
#elif defined(__x86_64__)
typedef __m128i vec;
#    define ZIP(part, bits) _mm_unpack##part##_epi##bits
#    define NT_STORE(p, v)  _mm_stream_si128((void *)(p), v)
#else
typedef uint8_t vec __attribute__((vector_size(16)));
#    define NT_STORE(p, v) store(p, v)
#endif

GM_INLINE vec load(const char *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

GM_INLINE void store(char *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

/* Lane by lane: the items of the lower (upper) halves of a and b, in turn. */
GM_INLINE void zip(int item, vec a, vec b, vec *low, vec *high)
{
#if defined(__x86_64__)
    *low = item == 1   ? ZIP(lo, 8)(a, b)
           : item == 2 ? ZIP(lo, 16)(a, b)
           : item == 4 ? ZIP(lo, 32)(a, b)
                       : ZIP(lo, 64)(a, b);
    *high = item == 1   ? ZIP(hi, 8)(a, b)
            : item == 2 ? ZIP(hi, 16)(a, b)
            : item == 4 ? ZIP(hi, 32)(a, b)
                        : ZIP(hi, 64)(a, b);
#else
    typedef uint16_t vec2 __attribute__((vector_size(16)));
    typedef uint32_t vec4 __attribute__((vector_size(16)));
    typedef uint64_t vec8 __attribute__((vector_size(16)));
    if (item == 1) {
        *low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        *high = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    } else if (item == 2) {
        *low = (vec)__builtin_shufflevector((vec2)a, (vec2)b, 0, 8, 1, 9, 2, 10, 3, 11);
        *high = (vec)__builtin_shufflevector((vec2)a, (vec2)b, 4, 12, 5, 13, 6, 14, 7, 15);
    } else if (item == 4) {
        *low = (vec)__builtin_shufflevector((vec4)a, (vec4)b, 0, 4, 1, 5);
        *high = (vec)__builtin_shufflevector((vec4)a, (vec4)b, 2, 6, 3, 7);
    } else {
        *low = (vec)__builtin_shufflevector((vec8)a, (vec8)b, 0, 2);
        *high = (vec)__builtin_shufflevector((vec8)a, (vec8)b, 1, 3);
    }
#endif
}

/* LANES vectors as a square of lanes, transposed. */
GM_INLINE void turn_lanes(vec v[LANES])
{
#if GM_AVX512
    vec a = _mm512_shuffle_i64x2(v[0], v[1], 0x44), b = _mm512_shuffle_i64x2(v[0], v[1], 0xEE);
    vec c = _mm512_shuffle_i64x2(v[2], v[3], 0x44), d = _mm512_shuffle_i64x2(v[2], v[3], 0xEE);
    v[0] = _mm512_shuffle_i64x2(a, c, 0x88);
    v[1] = _mm512_shuffle_i64x2(a, c, 0xDD);
    v[2] = _mm512_shuffle_i64x2(b, d, 0x88);
    v[3] = _mm512_shuffle_i64x2(b, d, 0xDD);
#elif GM_AVX2
    vec a = v[0];
    v[0] = _mm256_permute2x128_si256(a, v[1], 0x20);
    v[1] = _mm256_permute2x128_si256(a, v[1], 0x31);
#else
    (void)v;
#endif
}

/* ---- streaming out -------------------------------------------------------------------------------------------- */

/* n bytes, n a multiple of 64, to a 64-byte boundary. */
GM_INLINE void stream_lines(char *dst, const char *src, int64_t n)
{
    for (int64_t i = 0; i < n; i += 64) {
        GM_UNROLL for (int k = 0; k < 64; k += GM_VECTOR) NT_STORE(dst + i + k, load(src + i + k));
    }
}

/* The next `bytes` or so of a finished block. */
GM_INLINE void flush_some(gm_flush *f, int64_t bytes)
{
    while (bytes > 0 && f->run < f->runs) {
        char *dst = f->dst + f->run_dst[f->run];
        const char *src = f->stage + f->run * f->pitch + GM_STAGE_HEAD;
        int64_t n = f->run_bytes, misaligned = (int64_t)((uintptr_t)dst & 63);

        if (f->continues) {
            dst -= misaligned;
            src -= misaligned;
            n += misaligned;
        } else if (misaligned) {
            int64_t head = 64 - misaligned < n ? 64 - misaligned : n;
            if (f->done == 0)
                memcpy(dst, src, (size_t)head);
            dst += head;
            src += head;
            n -= head;
        }
        int64_t lines = n & -64, now = lines - f->done < bytes ? lines - f->done : (bytes + 63) & -64;
        stream_lines(dst + f->done, src + f->done, now);
        f->done += now;
        bytes -= now;
        if (f->done < lines)
            return;
        if (f->next_stage) { /* only the last n - lines of these bytes matter */
            char *head = f->next_stage + f->run * f->pitch;
            GM_UNROLL for (int k = 0; k < 64; k += GM_VECTOR) store(head + k, load(src + n - 64 + k));
        } else if (n > lines) {
            memcpy(dst + lines, src + lines, (size_t)(n - lines));
        }
        f->done = 0;
        f->run++;
        bytes -= 64;
    }
}

static void flush_all(gm_flush *flush)
{
    flush_some(flush, INT64_MAX);
}

/* ---- tiles ---------------------------------------------------------------------------------------------------- */

/* P vectors of one row group: every lane transposed. */
GM_INLINE void turn_items(int item, int p, vec *v)
{
    vec t[16];
    GM_UNROLL for (int width = p; width > 1; width /= 2)
    {
        GM_UNROLL for (int i = 0; i < p / 2; i++) zip(item, v[i], v[i + p / 2], &t[2 * i], &t[2 * i + 1]);
        GM_UNROLL for (int i = 0; i < p; i++) v[i] = t[i];
    }
}

GM_INLINE void tile(int item, const char *src, const int64_t *row_src, char *out, const int64_t *col_out)
{
    const int p = 16 / item;
    vec v[LANES][16];

    GM_UNROLL for (int l = 0; l < LANES; l++)
    {
        GM_UNROLL for (int i = 0; i < p; i++) v[l][i] = load(src + row_src[l * p + i]);
        turn_items(item, p, v[l]);
    }
    GM_UNROLL for (int i = 0; i < p; i++)
    {
        vec lane[LANES];
        GM_UNROLL for (int l = 0; l < LANES; l++) lane[l] = v[l][i];
        turn_lanes(lane);
        GM_UNROLL for (int l = 0; l < LANES; l++) store(out + col_out[l * p + i], lane[l]);
    }
}

/* A tile of which only the first `rows` and `cols` exist. */
static __attribute__((noinline)) void ragged_tile(int item, gm_strip_fn *whole, const gm_strip *strip)
{
    enum { MOST = GM_VECTOR };
    char in[MOST * GM_VECTOR], image[MOST * GM_VECTOR];
    int64_t offset[MOST];
    int n = GM_VECTOR / item;

    for (int i = 0; i < n; i++)
        offset[i] = (int64_t)i * GM_VECTOR;
    for (int64_t i = 0; i < strip->rows; i++)
        memcpy(in + offset[i], strip->src + strip->row_src[i], (size_t)(strip->cols * item));
    for (int64_t i = strip->rows; i < n; i++)
        memset(in + offset[i], 0, GM_VECTOR);
    gm_strip full = {.src = in, .row_src = offset, .out = image, .col_out = offset, .rows = n, .cols = n};
    whole(&full, NULL);
    for (int64_t j = 0; j < strip->cols; j++)
        memcpy(strip->out + strip->col_out[j], image + offset[j], (size_t)(strip->rows * item));
}

GM_INLINE void strip_of(int item, gm_strip_fn *self, const gm_strip *s, gm_flush *flush)
{
    const int64_t n = GM_VECTOR / item;

    for (int64_t j = 0; j < s->cols; j += n) {
        /* The last tile reaches back over its neighbour rather than past the edge. */
        int64_t at = j + n <= s->cols ? j : s->cols - n;
        if (s->ahead)
            for (int64_t i = 0; i < n; i++)
                __builtin_prefetch(s->ahead + s->ahead_row[i] + at * item, 0, 2);
        if (s->rows == n && at >= 0) {
            tile(item, s->src + at * item, s->row_src, s->out, s->col_out + at);
        } else {
            gm_strip piece = *s;
            at = j;
            piece.src += at * item;
            piece.col_out += at;
            piece.cols = s->cols - at < n ? s->cols - at : n;
            ragged_tile(item, self, &piece);
        }
        if (flush)
            flush_some(flush, flush->step);
    }
}

#define GM_STRIP(item)                                                                                                 \
    static void strip_##item(const gm_strip *strip, gm_flush *flush)                                                   \
    {                                                                                                                  \
        strip_of(item, strip_##item, strip, flush);                                                                    \
    }
GM_STRIP(1)
GM_STRIP(2)
GM_STRIP(4)
GM_STRIP(8)
GM_STRIP(16)

/* ---- items of any size ---------------------------------------------------------------------------------------- */

GM_INLINE void items_of(int64_t item, const gm_strip *s, gm_flush *flush)
{
    int64_t line = 0;
    for (int64_t j = 0; j < s->cols; j++) {
        const char *src = s->src + s->col_src[j];
        char *out = s->out + s->col_out[j];
        for (int64_t i = 0; i < s->rows; i++)
            memcpy(out + i * s->row_step, src + s->row_src[i], (size_t)item);
        if (s->ahead && (j + 1) * item > line) {
            for (; line < (j + 1) * item; line += 64)
                for (int64_t i = 0; i < GM_ITEM_ROWS; i++)
                    __builtin_prefetch(s->ahead + s->ahead_row[i] + line, 0, 2);
        }
        if (flush)
            flush_some(flush, flush->step);
    }
}

static void strip_items(const gm_strip *s, gm_flush *flush)
{
#define GM_ITEM(size)                                                                                                  \
    case size:                                                                                                         \
        items_of(size, s, flush);                                                                                      \
        return
    switch (s->item) {
        GM_ITEM(1);
        GM_ITEM(2);
        GM_ITEM(3);
        GM_ITEM(4);
        GM_ITEM(6);
        GM_ITEM(8);
        GM_ITEM(12);
        GM_ITEM(16);
        GM_ITEM(24);
        GM_ITEM(32);
        GM_ITEM(48);
        GM_ITEM(64);
        GM_ITEM(128);
    default:
        items_of(s->item, s, flush);
    }
#undef GM_ITEM
}

/* ---- whole runs ----------------------------------------------------------------------------------------------- */

static void stream(char *dst, const char *src, int64_t n)
{
    int64_t head = (int64_t)(-(uintptr_t)dst & 63);
    if (head > n)
        head = n;
    memcpy(dst, src, (size_t)head);
    dst += head;
    src += head;
    n -= head;
    int64_t i = 0;
    for (; i + 256 <= n; i += 256) {
        GM_UNROLL for (int k = 0; k < 256; k += 64) __builtin_prefetch(src + i + 1024 + k, 0, 0);
        stream_lines(dst + i, src + i, 256);
    }
    int64_t lines = (n - i) & -64;
    stream_lines(dst + i, src + i, lines);
    i += lines;
    memcpy(dst + i, src + i, (size_t)(n - i));
}

static void fence(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* No prefetch: the hardware's own does better on one long run than any distance tried. */
static uint64_t read_words(const char *src, int64_t n)
{
    typedef uint64_t words __attribute__((vector_size(GM_VECTOR)));
    words sum[4] = {{0}, {0}, {0}, {0}};
    uint64_t total = 0, word;
    int64_t i = 0;

    for (; i + 4 * GM_VECTOR <= n; i += 4 * GM_VECTOR) {
        GM_UNROLL for (int k = 0; k < 4; k++)
        {
            words v;
            memcpy(&v, src + i + k * GM_VECTOR, sizeof v);
            sum[k] += v;
        }
    }
    sum[0] += sum[1] + sum[2] + sum[3];
    for (int k = 0; k < GM_VECTOR / 8; k++)
        total += sum[0][k];
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, src + i, 8);
        total += word;
    }
    return total;
}

static const gm_tile_kernels tile_kernels = {
    GM_VECTOR, {strip_1, strip_2, strip_4, strip_8, strip_16}, strip_items, flush_all, stream, fence, read_words,
};
