/* Bodies of tile.h's kernels, compiled once for each instruction set (see isa_kernels.inc.h).
 *
 * A tile is N x N items, N = GM_VECTOR / item: N loads of a vector, N stores of one. Seen as 16-byte lanes it is L x L
 * lanes of P x P items. log2(P) rounds of interleaving rows i and i + P/2 transpose all lanes of a row group at once;
 * log2(L) rounds of exchanging lanes between the groups then bring each column together. */

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

/* ---- lines put together ------------------------------------------------------------------------------------------
 *
 * A load across two lines that meets stores still under way, as the streams out always are, would wait for them. So
 * lines are loaded whole and put together from two. Only AVX-512 permutes by a variable this cheaply. */

#if GM_AVX512
/* What joins the last `back` bytes of one line to the first ones of another. */
GM_INLINE vec joint(intptr_t back)
{
    const __m512i first =
        _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
                         0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    return _mm512_sub_epi8(first, _mm512_set1_epi8((char)back));
}

GM_INLINE vec join(vec a, vec b, vec by)
{
    return _mm512_permutex2var_epi8(b, by, a);
}

/* The line that holds *p, which may lie beyond an array in part. Sanitizers need not know. */
GM_INLINE vec load_line(const char *p)
{
    vec v;
    __asm__("vmovdqa64 %1, %0" : "=v"(v) : "m"(*(const vec *)((uintptr_t)p & ~(uintptr_t)63)));
    return v;
}
#endif

GM_INLINE vec load_across(const char *p)
{
#if GM_AVX512
    return join(load_line(p), load_line(p + 63), joint(64 - (intptr_t)((uintptr_t)p & 63)));
#else
    return load(p);
#endif
}

/* How a panel's rows and runs lie in lines. All begin with one; or the runs do, the rows anywhere; or all at one place
 * inside one; or anywhere, but each run goes on where the block before and this one end, and is whole lines long; or
 * anyhow. */
enum { WHOLE, WHOLE_RUNS, ALIKE, SHIFTED, ANYHOW };

/* The next vector of a row. Where rows do not begin with a line, the line loaded last may stand in `before`. Large
 * items are so few to a line that a load across two costs less. */
GM_INLINE vec load_row(int item, int lie, const char *row, char *before, vec by)
{
#if GM_AVX512
    if (lie != WHOLE && item < 8) {
        vec last, here = load_line(row + 63);
        if (before) {
            last = load(before);
            store(before, here);
        } else {
            last = load_line(row);
        }
        return join(last, here, lie == ALIKE ? by : joint((intptr_t)(-(uintptr_t)row & 63)));
    }
#endif
    (void)item, (void)lie, (void)before, (void)by;
    return load(row);
}

/* The columns of a tile whose row groups are turned. */
GM_INLINE void store_columns(int item, vec v[LANES][16], char *out, const int64_t *col_out)
{
    const int p = 16 / item;
    GM_UNROLL for (int i = 0; i < p; i++)
    {
        vec lane[LANES];
        GM_UNROLL for (int l = 0; l < LANES; l++) lane[l] = v[l][i];
        turn_lanes(lane);
        GM_UNROLL for (int l = 0; l < LANES; l++) store(out + col_out[l * p + i], lane[l]);
    }
}

/* `before`: a line for each row, where they do not lie in whole ones. */
GM_INLINE void tile(int item, int lie, const char *src, const int64_t *row_src, char *before, char *out,
                    const int64_t *col_out)
{
    const int p = 16 / item;
    vec v[LANES][16];

    GM_UNROLL for (int l = 0; l < LANES; l++)
    {
        GM_UNROLL for (int i = 0; i < p; i++)
        {
            const int r = l * p + i;
            v[l][i] = load_row(item, lie, src + row_src[r], before ? before + r * 64 : NULL, (vec){0});
        }
        turn_items(item, p, v[l]);
    }
    store_columns(item, v, out, col_out);
}

/* How many items lie before the first vector boundary, if runs `pitch` bytes apart all have theirs in the same place;
 * else, or if there are none, a whole vector's. */
GM_INLINE int64_t items_before_boundary(int item, const char *start, int64_t pitch)
{
    int64_t bytes = (int64_t)(-(uintptr_t)start & (GM_VECTOR - 1));
    return bytes && bytes % item == 0 && pitch % GM_VECTOR == 0 ? bytes / item : GM_VECTOR / item;
}

/* The lines of a page that a tile's rows touch: bit k for line k. */
GM_INLINE uint64_t lines_of_page(const char *start, int64_t pitch, int64_t rows)
{
    uint64_t lines = 0;
    for (int64_t r = 0; r < rows; r++) {
        uintptr_t first = (uintptr_t)(start + r * pitch);
        lines |= (uint64_t)1 << (first / 64 & 63) | (uint64_t)1 << ((first + GM_VECTOR - 1) / 64 & 63);
    }
    return lines;
}

/* In how many streams to take a run's tiles. A load across two lines waits for stores still under way that end in the
 * same 12 bits of an address. Where the pitches are a little over a page, or over a half of it and so on, the stores of
 * each tile meet the loads of the next; with a tile from each of several parts of the run in turn they do not. */
static int64_t streams_of(const gm_matrix *m, int64_t item, int64_t n)
{
    enum { PAGE = 4096, UNDER_WAY = 3, FEWEST = 3, MOST = 6, LONG = 16 };
    const int64_t step = n * item, tiles = m->rows / n;
    if (GM_VECTOR < 32 || tiles < LONG || (((uintptr_t)m->src | (uintptr_t)m->row_src) & (GM_VECTOR - 1)) == 0 ||
        (n * m->row_src - step) % PAGE || (n * m->col_dst - step) % PAGE)
        return 1; /* aligned, or now here, now there */
    uint64_t loads = lines_of_page(m->src, m->row_src, n), stores = lines_of_page(m->dst, m->col_dst, n);
    int64_t best = 1, least = INT64_MAX;
    for (int64_t k = 1; k <= MOST && least; k += k == 1 ? FEWEST - 1 : 1) {
        int64_t meet = 0, part = (tiles + k - 1) / k;
        for (int64_t t = 0; t < k; t++)
            for (int64_t later = t + 1; later <= t + UNDER_WAY; later++) {
                int64_t rows = (later % k - t % k) * part + later / k;
                unsigned by = (unsigned)(rows * step / 64) & 63;
                meet += __builtin_popcountll((loads << by | loads >> (-by & 63)) & stores);
            }
        if (meet * best < least * k || least == INT64_MAX) {
            least = meet;
            best = k;
        }
    }
    return best;
}

/* How many tiles to take beside one another: as many as a line is wide where a column of lines would not stay in the
 * first cache, since the pitch is a power of two, until the next tiles want the rest of them. */
GM_INLINE int64_t tiles_beside(int item, const gm_matrix *m)
{
    enum { WAY = 4096, WAYS = 8 };
    int64_t apart = m->row_src & -m->row_src; /* the power of two in the pitch */
    return item >= 4 && apart >= 64 && m->rows > WAYS * WAY / apart ? 64 / GM_VECTOR : 1;
}

/* A side of a matrix without what is left behind the last tile, if that is too little to be worth another one. */
GM_INLINE int64_t without_few(int64_t side, int64_t first, int64_t n)
{
    int64_t rest = (side - first) % n;
    return rest <= (n + 15) / 16 && side - rest >= n ? side - rest : side;
}

GM_INLINE void move_few(int item, const gm_matrix *m, int64_t first_row, int64_t rows, int64_t first_col, int64_t cols)
{
    for (int64_t j = first_col; j < first_col + cols; j++)
        for (int64_t i = first_row; i < first_row + rows; i++)
            memcpy(m->dst + j * m->col_dst + i * item, m->src + i * m->row_src + j * item, (size_t)item);
}

/* In `streams` streams, `beside` tiles of each at a time. */
GM_INLINE void matrix_in_turns(int item, const gm_matrix *m, const int64_t *row_src, const int64_t *col_dst,
                               int64_t first_row, int64_t first_col, int64_t streams, int64_t beside)
{
    const int64_t n = GM_VECTOR / item;
    int64_t tiles = 1 + (m->rows - first_row + n - 1) / n, part = streams > 1 ? (tiles + streams - 1) / streams : 1;
    for (int64_t j = 0, next; j < m->cols; j = next) {
        next = gm_least(j ? j + beside * n : first_col, m->cols);
        for (int64_t first = 0; first < part; first++)
            for (int64_t k = first; k < tiles; k += part) {
                int64_t row = gm_least(k ? first_row + (k - 1) * n : 0, m->rows - n);
                const char *src = m->src + row * m->row_src;
                for (int64_t l = j; l < next; l += n) {
                    int64_t col = gm_least(l, m->cols - n);
                    tile(item, WHOLE, src + col * item, row_src, NULL, m->dst + col * m->col_dst + row * item, col_dst);
                }
            }
    }
}

enum { WORTH_IMAGES = 768 }; /* rows */
enum { IMAGE_TILES = 8, IMAGE_RUN = IMAGE_TILES * GM_VECTOR, IMAGE_PITCH = IMAGE_RUN + 64 };

/* Several tiles below one another are turned into an image, which is then written run by run: each line at once, not in
 * two parts with the next tile's loads in between, which fall into the same few sets of the first cache. */
GM_INLINE void matrix_by_images(int item, const gm_matrix *m, const int64_t *row_src)
{
    const int64_t n = GM_VECTOR / item, high = IMAGE_TILES * n;
    char image[GM_VECTOR * IMAGE_PITCH] __attribute__((aligned(64)));
    int64_t col_image[GM_VECTOR];

    for (int64_t k = 0; k < n; k++)
        col_image[k] = k * IMAGE_PITCH;
    for (int64_t j = 0; j < m->cols; j += n)
        for (int64_t i = 0; i < m->rows; i += high) {
            int64_t col = gm_least(j, m->cols - n), row = gm_least(i, m->rows - high);
            const char *src = m->src + row * m->row_src + col * item;
            char *dst = m->dst + col * m->col_dst + row * item;
            for (int64_t k = 0; k < IMAGE_TILES; k++)
                tile(item, WHOLE, src + k * n * m->row_src, row_src, NULL, image + k * GM_VECTOR, col_image);
            for (int64_t k = 0; k < n; k++) {
                GM_UNROLL for (int at = 0; at < IMAGE_RUN; at += GM_VECTOR)
                    store(dst + k * m->col_dst + at, load(image + k * IMAGE_PITCH + at));
            }
        }
}

/* Matrices of at least a tile, one run of the destination after the other. The first tiles reach over to where the next
 * ones are aligned, the last ones back over their neighbours rather than past the edge. */
GM_INLINE void matrix_of(int item, const gm_matrix *whole)
{
    const int64_t n = GM_VECTOR / item;
    gm_matrix cut = *whole;
    const gm_matrix *m = &cut;
    int64_t first_col = items_before_boundary(item, m->src, m->row_src);
    int64_t first_row = items_before_boundary(item, m->dst, m->col_dst);
    int64_t streams = streams_of(m, item, n), beside = tiles_beside(item, m), row_src[GM_VECTOR], col_dst[GM_VECTOR];

    for (int64_t k = 0; k < n; k++) {
        row_src[k] = k * m->row_src;
        col_dst[k] = k * m->col_dst;
    }
    cut.rows = without_few(m->rows, first_row, n);
    cut.cols = without_few(m->cols, first_col, n);
    if (GM_VECTOR == 64 && item <= 4 && streams > 1 && m->rows >= WORTH_IMAGES)
        matrix_by_images(item, m, row_src);
    else if (streams > 1 || beside > 1)
        matrix_in_turns(item, m, row_src, col_dst, first_row, first_col, streams, beside);
    else
        for (int64_t j = 0; j < m->cols; j += j ? n : first_col) {
            int64_t col = j + n <= m->cols ? j : m->cols - n;
            const char *src = m->src + col * item;
            char *dst = m->dst + col * m->col_dst;
            for (int64_t i = 0; i < m->rows; i += i ? n : first_row) {
                int64_t row = i + n <= m->rows ? i : m->rows - n;
                tile(item, WHOLE, src + row * m->row_src, row_src, NULL, dst + row * item, col_dst);
            }
        }
    if (cut.rows < whole->rows)
        move_few(item, whole, cut.rows, whole->rows - cut.rows, 0, whole->cols);
    if (cut.cols < whole->cols)
        move_few(item, whole, 0, cut.rows, cut.cols, whole->cols - cut.cols);
}

#define GM_MATRIX(item)                                                                                                \
    static void matrix_##item(const gm_matrix *m)                                                                      \
    {                                                                                                                  \
        matrix_of(item, m);                                                                                            \
    }
GM_MATRIX(1)
GM_MATRIX(2)
GM_MATRIX(4)
GM_MATRIX(8)
GM_MATRIX(16)

/* A tile of which only the first `rows` and `cols` exist. */
#if GM_AVX512
GM_INLINE void ragged_tile(int item, gm_strip_fn *whole, const gm_strip *strip)
{
    const int p = 16 / item;
    __mmask64 in = _bzhi_u64(~(uint64_t)0, (unsigned)(strip->cols * item));
    __mmask64 out = _bzhi_u64(~(uint64_t)0, (unsigned)(strip->rows * item));
    vec v[LANES][16];
    (void)whole;

    GM_UNROLL for (int l = 0; l < LANES; l++)
    {
        GM_UNROLL for (int i = 0; i < p; i++) v[l][i] =
            l * p + i < strip->rows ? _mm512_maskz_loadu_epi8(in, strip->src + strip->row_src[l * p + i])
                                    : _mm512_setzero_si512();
        turn_items(item, p, v[l]);
    }
    GM_UNROLL for (int i = 0; i < p; i++)
    {
        vec lane[LANES];
        GM_UNROLL for (int l = 0; l < LANES; l++) lane[l] = v[l][i];
        turn_lanes(lane);
        GM_UNROLL for (int l = 0; l < LANES; l++) if (l * p + i < strip->cols)
            _mm512_mask_storeu_epi8(strip->out + strip->col_out[l * p + i], out, lane[l]);
    }
}
#else
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
#endif

/* The next lines, row by row: memory is read in runs, and the second cache has room for them. */
GM_INLINE void fetch_ahead(gm_ahead *a, int64_t lines)
{
    while (a->src && a->row < a->rows && lines > 0) {
        uintptr_t first = (uintptr_t)(a->src + a->row_src[a->row]);
        int64_t row_lines = (int64_t)(((first & 63) + (uintptr_t)a->bytes + 63) / 64);
        const char *line = (const char *)(first & ~(uintptr_t)63) + a->line * 64;
        int64_t now = row_lines - a->line < lines ? row_lines - a->line : lines;
        for (int64_t k = 0; k < now; k++)
            __builtin_prefetch(line + k * 64, 0, 2);
        lines -= now;
        a->line += now;
        if (a->line == row_lines) {
            a->line = 0;
            a->row++;
        }
    }
}

GM_INLINE void strip_of(int item, gm_strip_fn *self, const gm_strip *s, gm_flush *flush)
{
    const int64_t n = GM_VECTOR / item;
    gm_ahead ahead = s->ahead;

    for (int64_t j = 0; j < s->cols; j += n) {
        /* The last tile reaches back over its neighbour rather than past the edge. */
        int64_t at = j + n <= s->cols ? j : s->cols - n;
        fetch_ahead(&ahead, n * GM_VECTOR / 64 + 1);
        if (s->rows == n && at >= 0) {
            tile(item, WHOLE, s->src + at * item, s->row_src, NULL, s->out, s->col_out + at);
        } else {
            gm_strip piece = *s;
            piece.src += j * item;
            piece.col_out += j;
            piece.cols = s->cols - j < n ? s->cols - j : n;
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

/* ---- panels --------------------------------------------------------------------------------------------------- */

#if GM_AVX512
/* A run of n >= 64 bytes, shifted to whole lines. If it continues, `before` ends in what it has of its first line; if
 * it goes on, what it has of its last one ends `after`. */
GM_INLINE void stream_run(char *dst, const char *image, int64_t n, const char *before, char *after, int continues,
                          int goes_on)
{
    const int64_t back = (int64_t)((uintptr_t)dst & 63), lines = (back + n) / 64, rest = (back + n) % 64;
    const vec by = joint(back);
    vec last = load(continues ? before : image);
    int64_t i = 0;

    dst -= back;
    if (back && !continues) {
        _mm512_mask_storeu_epi8(dst, ~UINT64_C(0) << back, join(last, last, by));
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
        store(after, load(image + n - 64));
    else if (rest)
        _mm512_mask_storeu_epi8(dst + 64 * lines, _bzhi_u64(~UINT64_C(0), (unsigned)rest),
                                join(last, load(image + 64 * lines), by));
}
#else
GM_INLINE void stream_run(char *dst, const char *image, int64_t n, const char *before, char *after, int continues,
                          int goes_on)
{
    int64_t misaligned = (int64_t)((uintptr_t)dst & 63);
    (void)before; /* stands in front of the image */
    if (misaligned && continues) {
        dst -= misaligned;
        image -= misaligned;
        n += misaligned;
    } else if (misaligned) {
        int64_t head = 64 - misaligned < n ? 64 - misaligned : n;
        memcpy(dst, image, (size_t)head);
        dst += head;
        image += head;
        n -= head;
    }
    int64_t lines = n & -64;
    stream_lines(dst, image, lines);
    if (n > lines && goes_on) {
        GM_UNROLL for (int i = 0; i < 64; i += GM_VECTOR) store(after + i, load(image + n - 64 + i));
    } else if (n > lines) {
        memcpy(dst + lines, image + lines, (size_t)(n - lines));
    }
}
#endif

/* The columns of an image whose runs lie anyhow. A first line that the block before began stands whole in the image; a
 * last one that the next block completes goes to `carry`. */
GM_INLINE void flush_columns(const gm_image *m)
{
    for (int64_t k = m->col; k < m->cols; k++) {
        const char *run = m->image + k * m->pitch;
        stream_run(m->dst + m->col_dst[k], run, m->run_bytes, run - 64, m->carry + k * 64, m->continues, m->goes_on);
    }
}

/* Vectors that go out in a row beside a tile: lines of one run, without loads between them, for those and loads in turn
 * take twice as long. */
enum { IN_TURN = 256 / GM_VECTOR };

/* The lines of an image that stream out, of one run after the other. */
typedef struct lines_out {
    char *dst, *carry; /* carry: of the present run */
    const char *image;
    const int64_t *line_dst, *line_image;
    int64_t line, run_lines;         /* line: of its run, that comes next */
    int64_t rest;                    /* bytes of a run behind its lines */
    int in_turn, continues, goes_on; /* in_turn: runs are a multiple of what goes out in a row */
} lines_out;

GM_INLINE lines_out lines_of(const gm_image *m, int64_t next)
{
    return (lines_out){
        .dst = m->dst,
        .carry = m->carry + (m->run_lines ? next / m->run_lines * 64 : 0),
        .image = m->image,
        .line_dst = m->line_dst + next,
        .line_image = m->line_image + next,
        .line = m->run_lines ? next % m->run_lines : 0,
        .run_lines = m->run_lines,
        .rest = m->run_bytes - m->run_lines * 64,
        .in_turn = m->run_lines % (IN_TURN * GM_VECTOR / 64) == 0,
        .continues = m->continues,
        .goes_on = m->goes_on,
    };
}

#if GM_AVX512
/* What a run has behind its lines. */
static __attribute__((noinline)) void end_run(char *dst, const char *image, int64_t n, char *carry, int goes_on)
{
    stream_run(dst, image, n, image - 64, carry, 1, goes_on);
}
#endif

/* Lines that follow one another on both sides. Shifted ones begin with what the block before left of the run, and
 * leave what they do not end. */
GM_INLINE void stream_in_turn(int lie, lines_out *b, int line, int lines)
{
    char *dst = b->dst + b->line_dst[line];
    const char *image = b->image + b->line_image[line];
#if GM_AVX512
    if (lie == ALIKE || lie == SHIFTED) {
        intptr_t back = (intptr_t)((uintptr_t)dst & 63);
        vec by = joint(back), last = load(b->line ? image - 64 : b->carry);
        GM_UNROLL for (int k = 0; k < lines; k++)
        {
            vec here = load(image + k * 64), whole = join(last, here, by);
            if (k == 0 && !b->continues && b->line == 0)
                _mm512_mask_storeu_epi8(dst - back, ~UINT64_C(0) << back, whole);
            else
                NT_STORE(dst - back + k * 64, whole);
            last = here;
        }
        b->line += lines;
        if (b->line < b->run_lines)
            return;
        if (b->goes_on && b->rest == 0)
            store(b->carry, last);
        else
            end_run(dst + lines * 64, image + lines * 64, b->rest, b->carry, b->goes_on);
        b->line = 0;
        b->carry += 64;
        return;
    }
#endif
    (void)lie;
    GM_UNROLL for (int k = 0; k < lines * 64; k += GM_VECTOR) NT_STORE(dst + k, load(image + k));
}

GM_INLINE void stream_some(int lie, lines_out *b, int line, int lines)
{
    if (b->in_turn)
        stream_in_turn(lie, b, line, lines);
    else
        GM_UNROLL for (int k = 0; k < lines; k++) stream_in_turn(lie, b, line + k, 1);
}

/* What is left of an image, from line `next` on. */
static __attribute__((noinline)) void finish_image(gm_image *m, int64_t next)
{
    for (; next < m->lines; next++) {
        lines_out out = lines_of(m, next);
        if (m->lie == ALIKE || m->lie == SHIFTED)
            stream_in_turn(SHIFTED, &out, 0, 1);
        else
            stream_in_turn(WHOLE, &out, 0, 1);
    }
    flush_columns(m);
    m->lie = WHOLE;
    m->lines = m->cols = m->col = 0;
}

/* Rows whose lines are fetched beside a tile's: those of some columns further on. */
typedef struct rows_ahead {
    const char *src;
    const int64_t *row_src;
    int64_t rows;
    int first; /* the columns are a panel's first ones */
} rows_ahead;

/* Beside columns j. Lines are fetched in the order in which they will be read, so that few are on their way at a time:
 * where the pitch is a power of two, a panel's rows share a few sets of the caches. */
GM_INLINE rows_ahead ahead_of(int item, const gm_panel *p, int64_t j)
{
    const int64_t n = GM_VECTOR / item, whole = (p->cols + n - 1) / n * n, col = j + p->lead;
    if (col < p->cols)
        return (rows_ahead){p->src + col * item, p->row_src, p->rows, 0};
    if (!p->next.src) /* some that are there */
        return (rows_ahead){p->src, p->row_src, n, 0};
    int64_t then = gm_least(gm_most(col - whole, 0), p->next.cols - 1);
    return (rows_ahead){p->next.src + then * item, p->next.row_src, p->next.rows, then == 0};
}

/* What goes on beside a tile, and what shifts rows that lie alike. */
typedef struct beside {
    lines_out out;
    const char *ahead;
    const int64_t *row_ahead;
    vec by_row;
} beside;

/* Between a tile's loads as many lines of the image before it stream out, and lines further on come in: so
 * memory never waits for the tile, nor the tile for memory. */
GM_INLINE void tile_beside(int item, int lie, const char *src, const int64_t *row_src, char *before, char *out,
                           const int64_t *col_out, beside *b)
{
    const int p = 16 / item, every = LANES * p < IN_TURN ? LANES * p : IN_TURN;
    vec v[LANES][16];

    GM_UNROLL for (int l = 0; l < LANES; l++)
    {
        GM_UNROLL for (int i = 0; i < p; i++)
        {
            const int r = l * p + i;
            v[l][i] = load_row(item, lie, src + row_src[r], before ? before + r * 64 : NULL, b->by_row);
            __builtin_prefetch(b->ahead + b->row_ahead[r], 0, 2);
            if ((r + 1) % every == 0)
                stream_some(lie, &b->out, (r + 1 - every) * GM_VECTOR / 64, every * GM_VECTOR / 64);
        }
        turn_items(item, p, v[l]);
    }
    store_columns(item, v, out, col_out);
}

/* Whole rows and columns of tiles. Leaves the last image to the next panel. */
GM_INLINE void panel_of(int item, int lie, const gm_panel *p)
{
    const int64_t n = GM_VECTOR / item, tile_lines = n * GM_VECTOR / 64;
    const int64_t run_lines = p->run_lines;
    int64_t col_out[GM_VECTOR];
    char *before = item < 8 && p->cols >= 2 * n ? p->before : NULL;
    beside b;

    for (int64_t k = 0; k < n; k++)
        col_out[k] = k * p->pitch;
    if (p->left->image[p->left->turn].lie != lie)
        finish_image(&p->left->image[p->left->turn], p->left->image[p->left->turn].line);
    for (int64_t j = 0; j < p->cols; j += n) {
        /* The last tiles reach back over their neighbours rather than past the edge. */
        int64_t at = j + n <= p->cols ? j : p->cols - n;
        int turn = !p->left->turn;
        gm_image *left = &p->left->image[!turn], *built = &p->left->image[turn];
        char *image = p->image + turn * n * p->pitch + GM_STAGE_HEAD, *carry = p->carry + at * 64;

        *built = (gm_image){
            .image = image,
            .dst = p->dst,
            .lie = lie,
            .run_bytes = p->rows * item,
            .carry = carry,
            .continues = p->continues,
            .goes_on = p->goes_on,
        };
        if (lie == ANYHOW) {
            built->pitch = p->pitch;
            built->col_dst = p->col_dst + at;
            built->cols = n;
            built->col = j - at;
        } else {
            built->line_dst = p->line_dst + at * run_lines;
            built->line_image = p->line_image;
            built->line = (j - at) * run_lines;
            built->lines = n * run_lines;
            built->run_lines = run_lines;
        }
#if GM_AVX512
        if (lie == ALIKE)
            b.by_row = joint((intptr_t)(-(uintptr_t)(p->src + at * item + p->row_src[0]) & 63));
        for (int64_t i = 0; lie != WHOLE && (j == 0 || at != j) && before && i < (p->rows + n - 1) / n * n; i++)
            store(before + i * 64, load_line(p->src + at * item + p->row_src[i]));
#endif
        if (lie == ANYHOW && p->continues)
            for (int64_t k = 0; k < n; k++)
                GM_UNROLL for (int i = 0; i < 64; i += GM_VECTOR)
                    store(image + k * p->pitch - 64 + i, load(carry + k * 64 + i));
        int64_t next = left->line;
        b.out = left->lines ? lines_of(left, next) : (lines_out){.dst = NULL};
        rows_ahead ahead = ahead_of(item, p, j);
        b.ahead = ahead.src + 63; /* the latter of two lines; the former one was the latter before */
        for (int64_t i = 0; lie != WHOLE && ahead.first && i < ahead.rows; i++)
            __builtin_prefetch(ahead.src + ahead.row_src[i], 0, 2);
        for (int64_t i = 0; i < p->rows; i += n) {
            b.row_ahead = ahead.row_src + gm_least(i, ahead.rows - n);
            const char *src = p->src + at * item;
            char *out = image + (i + n <= p->rows ? i : p->rows - n) * item;
            if (lie != ANYHOW && tile_lines && next + tile_lines <= left->lines) {
                b.out.line_dst = left->line_dst + next;
                b.out.line_image = left->line_image + next;
                tile_beside(item, lie, src, p->row_src + i, before ? before + i * 64 : NULL, out, col_out, &b);
                next += tile_lines;
            } else {
                for (int64_t r = 0; r < n; r++)
                    __builtin_prefetch(b.ahead + b.row_ahead[r], 0, 2);
                tile(item, lie == WHOLE ? WHOLE : ANYHOW, src, p->row_src + i, before ? before + i * 64 : NULL, out,
                     col_out);
            }
        }
        if (next < left->lines || lie == ANYHOW)
            finish_image(left, next);
        left->lines = 0;
        p->left->turn = turn;
    }
    /* The next panel's first columns go on where these end. */
    if (!p->next.src || (lie == ANYHOW && p->cols < 2 * n))
        finish_image(&p->left->image[p->left->turn], p->left->image[p->left->turn].line);
}

GM_INLINE void any_panel(int item, const gm_panel *p)
{
    const int64_t n = GM_VECTOR / item, run = p->rows * item;
    uintptr_t rows = 0, runs = 0, first = (uintptr_t)(p->src + p->row_src[0]) & 63, dst = (uintptr_t)p->dst & 63;

    for (int64_t i = 0; i < p->rows; i += n)
        for (int64_t r = 0; r < n; r++)
            rows |= (uintptr_t)(p->row_src[i + r] - p->row_src[0]);
    for (int64_t k = 0; k < p->cols; k++)
        runs |= (uintptr_t)p->col_dst[k];
    int lines = p->run_lines > 0, whole = p->run_lines * 64 == run && !((runs | dst) & 63);
    if (whole && (!((rows | first) & 63) || !GM_AVX512))
        panel_of(item, WHOLE, p);
    else if (GM_AVX512 && whole)
        panel_of(item, WHOLE_RUNS, p);
    else if (GM_AVX512 && lines && !((rows | runs) & 63))
        panel_of(item, ALIKE, p);
    else if (GM_AVX512 && lines)
        panel_of(item, SHIFTED, p);
    else
        panel_of(item, ANYHOW, p);
}

#define GM_PANEL(item)                                                                                                 \
    static void panel_##item(const gm_panel *panel)                                                                    \
    {                                                                                                                  \
        any_panel(item, panel);                                                                                        \
    }
GM_PANEL(1)
GM_PANEL(2)
GM_PANEL(4)
GM_PANEL(8)
GM_PANEL(16)

#include "tile_dense.inc.h"
#include "square_kernels.inc.h"

/* ---- items of any size ---------------------------------------------------------------------------------------- */

GM_INLINE void items_of(int64_t item, const gm_strip *s, gm_flush *flush)
{
    int64_t fetched = 0;
    gm_ahead ahead = s->ahead;

    for (int64_t j = 0; j < s->cols; j++) {
        const char *src = s->src + s->col_src[j];
        char *out = s->out + s->col_out[j];
        for (int64_t i = 0; i < s->rows; i++)
            memcpy(out + i * s->row_step, src + s->row_src[i], (size_t)item);
        fetched += item * GM_ITEM_ROWS;
        if (fetched >= 64) {
            fetch_ahead(&ahead, fetched / 64);
            fetched &= 63;
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

/* Fetches into the second cache, while it copies, as many lines from `next` on. */
GM_INLINE void stream_fetching(char *dst, const char *src, int64_t n, const char *next)
{
    int64_t head = (int64_t)(-(uintptr_t)dst & 63), i = 0;
    if (head > n)
        head = n;
    memcpy(dst, src, (size_t)head);
    dst += head;
    src += head;
    n -= head;
    for (; i + 256 <= n; i += 256) {
        GM_UNROLL for (int k = 0; k < 256; k += 64) __builtin_prefetch(next + i + k, 0, 2);
        stream_lines(dst + i, src + i, 256);
    }
    for (; i + 64 <= n; i += 64) {
        __builtin_prefetch(next + i, 0, 2);
        stream_lines(dst + i, src + i, 64);
    }
    memcpy(dst + i, src + i, (size_t)(n - i));
}

/* A long run is fetched ahead of itself, a short one while the run before it moves. Into the second cache, and so far:
 * an Emerald Rapids copies at 28 GB/s with what is fetched for once only (prefetchnta), or not at all, and at 42 with
 * this. */
static void stream(char *dst, const char *src, int64_t n, const char *next)
{
    enum { AHEAD = 8 << 10 };
    stream_fetching(dst, src, n, next && n < AHEAD ? next : src + AHEAD);
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
    GM_VECTOR,
    {matrix_1, matrix_2, matrix_4, matrix_8, matrix_16},
    {strip_1, strip_2, strip_4, strip_8, strip_16},
    {panel_1, panel_2, panel_4, panel_8, panel_16},
    GM_DENSE_PANELS,
    {pairs_1, pairs_2, pairs_4, pairs_8, pairs_16},
    strip_items,
    flush_all,
    stream,
    fence,
    read_words,
};
