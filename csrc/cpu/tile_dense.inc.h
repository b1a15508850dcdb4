/* Panels of small items whose rows lie densely in scratch (tile.h's `dense`), 16 bytes of each row at a time. A tile's
 * lanes are loaded to where they belong, so that nothing waits in memory between its rounds, and the runs of so few
 * columns stay in the first cache until they leave, shifted to whole lines.
 *
 * Whatever side the source's rows lie on, each is read once, and in one go: taken 64 bytes at a time, rows about a
 * multiple of 4 KB apart would evict one another from both caches. What limits: 256 interleavings for each 4 KB, and
 * the way of every line into the first cache, out of it and in again. */
#if GM_AVX512
GM_INLINE __m128i dense_load(const char *p)
{
    return _mm_load_si128((const __m128i *)p);
}

/* 16 bytes of each of four rows, `apart` bytes between them. */
GM_INLINE vec dense_lanes(const char *src, int64_t apart)
{
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(dense_load(src)), dense_load(src + apart), 1);
    __m256i high =
        _mm256_inserti128_si256(_mm256_castsi128_si256(dense_load(src + 2 * apart)), dense_load(src + 3 * apart), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

GM_INLINE __mmask64 dense_below(int64_t n)
{
    return _bzhi_u64(~UINT64_C(0), (unsigned)n);
}

/* A run of n >= 64 bytes. If it continues, what it has of its first line ends `carry`; if it goes on, what it has of
 * its last one is left there. */
GM_INLINE void dense_stream(char *dst, const char *image, int64_t n, char *carry, int continues, int goes_on)
{
    const int64_t back = (int64_t)((uintptr_t)dst & 63), lines = (back + n) / 64, rest = (back + n) % 64;
    const vec by = joint(back);
    vec last = load(continues ? carry : image);
    int64_t i = 0;

    dst -= back;
    if (back && !continues) {
        _mm512_mask_storeu_epi8(dst, ~dense_below(back), join(last, last, by));
        i = 1;
    }
    for (; i + 4 <= lines; i += 4) {
        GM_UNROLL for (int k = 0; k < 4; k++)
        {
            vec here = load(image + 64 * (i + k));
            NT_STORE(dst + 64 * (i + k), join(last, here, by));
            last = here;
        }
    }
    for (; i < lines; i++) {
        vec here = load(image + 64 * i);
        NT_STORE(dst + 64 * i, join(last, here, by));
        last = here;
    }
    if (goes_on)
        store(carry, load(image + n - 64));
    else if (rest)
        _mm512_mask_storeu_epi8(dst + 64 * lines, dense_below(rest), join(last, load(image + 64 * lines), by));
}

/* The next panel's rows, a line at a time; behind the last one, that again. */
typedef struct dense_rows {
    const gm_rows *next;
    int64_t bytes;
    int64_t row;
    uintptr_t line, end;
} dense_rows;

GM_INLINE void dense_next_row(dense_rows *f)
{
    uintptr_t first = (uintptr_t)(f->next->src + f->next->row_src[f->row]);
    f->line = first & ~(uintptr_t)63;
    f->end = first + (uintptr_t)f->bytes;
    f->row += f->row + 1 < f->next->rows;
}

GM_INLINE void dense_fetch(dense_rows *f, int64_t lines)
{
    for (; lines > 0; lines--) {
        __builtin_prefetch((const char *)f->line, 0, 2);
        f->line += 64;
        if (f->line >= f->end)
            dense_next_row(f);
    }
}

GM_INLINE void dense_panel_of(int item, const gm_panel *p)
{
    const int64_t n = GM_VECTOR / item, wide = 16 / item, tiles = (p->rows + n - 1) / n;
    const int64_t row = p->row_src[1], lines = p->next.rows * (p->next.cols * item / 64 + 1);
    const int64_t rate = p->next.src ? lines / p->cols + 1 : 0;
    char *image = p->image + GM_STAGE_HEAD;
    dense_rows next = {.next = &p->next, .bytes = p->next.cols * item};

    if (rate)
        dense_next_row(&next);
    for (int64_t j = 0; j < p->cols; j += wide) {
        /* The last columns may be fewer: what lies behind them is scratch on both sides. */
        const int64_t cols = j + wide <= p->cols ? wide : p->cols - j;
        const char *src = p->src + j * item;
        for (int64_t t = 0; t < tiles; t++, src += n * row) {
            /* The last tile reaches back over its neighbour rather than past the last row. */
            char *out = image + (t + 1 < tiles ? t * n : p->rows - n) * item;
            vec v[16];
            GM_UNROLL for (int k = 0; k < 16 / item; k++) v[k] = dense_lanes(src + k * row, wide * row);
            turn_items(item, 16 / item, v);
            GM_UNROLL for (int k = 0; k < 16 / item; k++) store(out + k * p->pitch, v[k]);
        }
        for (int64_t k = 0; k < cols; k++) {
            dense_stream(p->dst + p->col_dst[j + k], image + k * p->pitch, p->rows * item, p->carry + (j + k) * 64,
                         p->continues, p->goes_on);
            dense_fetch(&next, rate);
        }
    }
}

#    define GM_DENSE(item)                                                                                             \
        static void dense_panel_##item(const gm_panel *panel)                                                          \
        {                                                                                                              \
            dense_panel_of(item, panel);                                                                               \
        }
GM_DENSE(1)
GM_DENSE(2)
#    define GM_DENSE_PANELS                                                                                            \
        {                                                                                                              \
            dense_panel_1, dense_panel_2                                                                               \
        }
#else
#    define GM_DENSE_PANELS                                                                                            \
        {                                                                                                              \
            NULL                                                                                                       \
        }
#endif
