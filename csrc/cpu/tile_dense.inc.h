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
            char *carry = p->carry + (j + k) * 64;
            stream_run(p->dst + p->col_dst[j + k], image + k * p->pitch, p->rows * item, carry, carry, p->continues,
                       p->goes_on);
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
