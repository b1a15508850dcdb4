/* Squares in place: what lies on one side of the diagonal changes places with what lies on the other (tile.h's
 * `pairs`).
 *
 * A line that has just been read is written for next to nothing by an ordinary store, while one past the caches would
 * have to drive it out first. So no line leaves before both it and its mirror image are there: one tile of a pair waits
 * in scratch, dense, since in the array lines a power of two apart would evict one another; the other one is exchanged
 * with it block by block; then its rows, turned, take the place of those that they came from, which the next tile's
 * replace in scratch line by line. All that time memory is asked for the lines that come next but two strips, into the
 * second cache: there is more room for requests than on the way to the first.
 *
 * A block is a few rows of one vector, and as many bytes of as many rows as that has items. No more than eight rows: of
 * so many lines in one set of the first cache, each must still be there when it is stored to. */
#if GM_AVX512
/* Rows of a block, and the 16-byte lanes that these make of a row on the other side. */
#    define SQUARE_LANES(item) ((item) >= 8 ? 4 : (item) == 4 ? 2 : 1)
#    define SQUARE_ROWS(item)  ((item) == 1 ? 8 : SQUARE_LANES(item) * 16 / (item))

/* The first lanes of rows l * rows + i, side by side: lane k of row l becomes lane l of v[k]. */
GM_INLINE void square_load(int lanes, const char *rows, int64_t apart, vec v[4])
{
    if (lanes == 4) {
        GM_UNROLL for (int l = 0; l < 4; l++) v[l] = load(rows + l * apart);
        turn_lanes(v);
    } else if (lanes == 2) {
        vec half[2];
        GM_UNROLL for (int l = 0; l < 2; l++)
        {
            __m256i low = _mm256_loadu_si256((const __m256i *)(rows + 2 * l * apart));
            __m256i high = _mm256_loadu_si256((const __m256i *)(rows + (2 * l + 1) * apart));
            half[l] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        }
        v[0] = _mm512_shuffle_i64x2(half[0], half[1], 0x88);
        v[1] = _mm512_shuffle_i64x2(half[0], half[1], 0xDD);
    } else {
        v[0] = dense_lanes(rows, apart);
    }
}

/* The way back. */
GM_INLINE void square_store(int lanes, char *rows, int64_t apart, vec v[4])
{
    if (lanes == 4) {
        turn_lanes(v);
        GM_UNROLL for (int l = 0; l < 4; l++) store(rows + l * apart, v[l]);
    } else if (lanes == 2) {
        const __m512i low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), four = _mm512_set1_epi64(4);
        vec pair[2] = {_mm512_permutex2var_epi64(v[0], low, v[1]),
                       _mm512_permutex2var_epi64(v[0], _mm512_add_epi64(low, four), v[1])};
        GM_UNROLL for (int l = 0; l < 2; l++)
        {
            _mm256_storeu_si256((__m256i *)(rows + 2 * l * apart), _mm512_castsi512_si256(pair[l]));
            _mm256_storeu_si256((__m256i *)(rows + (2 * l + 1) * apart), _mm512_extracti64x4_epi64(pair[l], 1));
        }
    } else {
        _mm_storeu_si128((__m128i *)rows, _mm512_castsi512_si128(v[0]));
        _mm_storeu_si128((__m128i *)(rows + apart), _mm512_extracti32x4_epi32(v[0], 1));
        _mm_storeu_si128((__m128i *)(rows + 2 * apart), _mm512_extracti32x4_epi32(v[0], 2));
        _mm_storeu_si128((__m128i *)(rows + 3 * apart), _mm512_extracti32x4_epi32(v[0], 3));
    }
}

/* The same with half a lane: of bytes, eight rows are no more. */
GM_INLINE vec square_load_halves(const char *rows, int64_t apart, int64_t lanes_apart)
{
    vec v = {0};
    GM_UNROLL for (int l = 0; l < 4; l++)
    {
        const char *low = rows + l * lanes_apart;
        __m128i both = _mm_loadl_epi64((const __m128i *)low), high = _mm_loadl_epi64((const __m128i *)(low + apart));
        both = _mm_unpacklo_epi64(both, high);
        v = l == 0   ? _mm512_castsi128_si512(both)
            : l == 1 ? _mm512_inserti32x4(v, both, 1)
            : l == 2 ? _mm512_inserti32x4(v, both, 2)
                     : _mm512_inserti32x4(v, both, 3);
    }
    return v;
}

GM_INLINE void square_store_halves(char *rows, int64_t apart, int64_t lanes_apart, vec v)
{
    __m128i lane[4] = {_mm512_castsi512_si128(v), _mm512_extracti32x4_epi32(v, 1), _mm512_extracti32x4_epi32(v, 2),
                       _mm512_extracti32x4_epi32(v, 3)};
    GM_UNROLL for (int l = 0; l < 4; l++)
    {
        char *low = rows + l * lanes_apart;
        _mm_storel_epi64((__m128i *)low, lane[l]);
        int64_t high = _mm_extract_epi64(lane[l], 1);
        memcpy(low + apart, &high, sizeof high);
    }
}

/* Eight rows of 64 bytes at a, and 64 of eight at b. Three rounds of interleaving turn 8 x 16 bytes, four more turn
 * them back. */
GM_INLINE void square_block_of_bytes(char *a, int64_t row_a, char *b, int64_t row_b)
{
    enum { ROWS = 8 };
    vec of_a[ROWS], of_b[ROWS], t[ROWS];

    GM_UNROLL for (int i = 0; i < ROWS; i++) of_a[i] = load(a + i * row_a);
    turn_items(1, ROWS, of_a);
    GM_UNROLL for (int i = 0; i < ROWS; i++)
    {
        of_b[i] = square_load_halves(b + 2 * i * row_b, row_b, 16 * row_b);
        square_store_halves(b + 2 * i * row_b, row_b, 16 * row_b, of_a[i]);
    }
    turn_items(1, ROWS, of_b);
    GM_UNROLL for (int i = 0; i < ROWS / 2; i++) zip(1, of_b[i], of_b[i + ROWS / 2], &t[2 * i], &t[2 * i + 1]);
    GM_UNROLL for (int i = 0; i < ROWS; i++) store(a + i * row_a, t[i]);
}

/* Rows of a vector at a, and the columns of as many items at b, into one another's places. */
GM_INLINE void square_block(int item, char *a, int64_t row_a, char *b, int64_t row_b)
{
    enum { MOST = 4 };
    const int p = 16 / item, lanes = SQUARE_LANES(item);
    vec of_a[MOST][16], of_b[MOST][16];

    if (item == 1) {
        square_block_of_bytes(a, row_a, b, row_b);
        return;
    }
    GM_UNROLL for (int k = 0; k < lanes; k++)
    {
        GM_UNROLL for (int i = 0; i < p; i++) of_a[k][i] = load(a + (k * p + i) * row_a);
        turn_items(item, p, of_a[k]);
    }
    GM_UNROLL for (int i = 0; i < p; i++)
    {
        vec v[4], w[4];
        square_load(lanes, b + i * row_b, p * row_b, v);
        GM_UNROLL for (int k = 0; k < lanes; k++) of_b[k][i] = v[k], w[k] = of_a[k][i];
        square_store(lanes, b + i * row_b, p * row_b, w);
    }
    GM_UNROLL for (int k = 0; k < lanes; k++)
    {
        turn_items(item, p, of_b[k]);
        GM_UNROLL for (int i = 0; i < p; i++) store(a + (k * p + i) * row_a, of_b[k][i]);
    }
}

#else
#    define SQUARE_ROWS(item) (GM_VECTOR / (item))

/* As many square tiles as make a line. */
GM_INLINE void square_block(int item, char *a, int64_t row_a, char *b, int64_t row_b)
{
    const int p = 16 / item;
    for (int at = 0; at < 64; at += GM_VECTOR, a += GM_VECTOR, b += SQUARE_ROWS(item) * row_b) {
        vec of_a[LANES][16], of_b[LANES][16];
        int64_t to_a[GM_VECTOR], to_b[GM_VECTOR];
        GM_UNROLL for (int l = 0; l < LANES; l++)
        {
            GM_UNROLL for (int i = 0; i < p; i++)
            {
                const int64_t r = l * p + i;
                of_a[l][i] = load(a + r * row_a);
                of_b[l][i] = load(b + r * row_b);
                to_a[r] = r * row_a;
                to_b[r] = r * row_b;
            }
            turn_items(item, p, of_a[l]);
            turn_items(item, p, of_b[l]);
        }
        store_columns(item, of_a, b, to_b);
        store_columns(item, of_b, a, to_a);
    }
}
#endif

/* Items that fill no block, one by one. */
GM_INLINE void square_items(int item, char *a, int64_t row_a, int64_t rows, int64_t cols, char *b, int64_t row_b)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            char one[16], *p = a + i * row_a + j * item, *q = b + j * row_b + i * item;
            memcpy(one, p, (size_t)item);
            memcpy(p, q, (size_t)item);
            memcpy(q, one, (size_t)item);
        }
}

/* ---- the lines that come next ----------------------------------------------------------------------------------- */

/* Tiles in the order in which they are read: of each pair the upper one, then the lower one. */
typedef struct square_ahead {
    const gm_pairs *pairs;
    int64_t pair, row, rows, bytes;
    int lower;
    const char *start, *line; /* of the row */
    int64_t left;             /* its lines from there on; one that it has of another is fetched with the last of them */
} square_ahead;

GM_INLINE int64_t square_columns(const gm_pairs *p, int64_t pair)
{
    return gm_most(gm_least(p->side, p->along - pair * p->side), 0);
}

GM_INLINE void square_next_row(int item, square_ahead *f)
{
    const gm_pairs *p = f->pairs;
    f->start += p->row;
    if (++f->row >= f->rows) {
        f->row = 0;
        f->lower = !f->lower;
        f->pair += !f->lower;
        int64_t columns = square_columns(p, f->pair);
        f->start = f->lower ? p->lower + f->pair * p->side * p->row : p->upper + f->pair * p->side * item;
        f->rows = f->lower ? columns : p->side;
        f->bytes = item * (f->lower ? p->side : columns);
    }
    f->line = f->start;
    f->left = (f->bytes + 63) / 64;
}

static __attribute__((noinline)) void square_fetch_rows(int item, square_ahead *f, int64_t lines)
{
    while (lines > 0 && f->left) {
        int64_t now = gm_least(lines, f->left);
        for (int64_t k = 0; k < now; k++)
            __builtin_prefetch(f->line + k * 64, 0, 2);
        f->line += now * 64;
        f->left -= now;
        lines -= now;
        if (f->left == 0) {
            __builtin_prefetch(f->start + f->bytes - 1, 0, 2);
            square_next_row(item, f);
        }
    }
}

/* As many lines as have been read meanwhile. */
GM_INLINE void square_fetch(int item, square_ahead *f, int64_t lines)
{
    if (f->left <= lines) {
        square_fetch_rows(item, f, lines);
        return;
    }
    GM_UNROLL for (int64_t k = 0; k < lines; k++) __builtin_prefetch(f->line + k * 64, 0, 2);
    f->line += lines * 64;
    f->left -= lines;
}

/* ---- pairs of tiles --------------------------------------------------------------------------------------------- */

/* The lower tile against what scratch holds. Blocks below one another fill the lines of scratch between them. */
GM_INLINE void square_exchange(int item, const gm_pairs *p, char *lower, int64_t rows, square_ahead *next)
{
    enum { WIDE = 8 };
    const int64_t n = 64 / item, high = SQUARE_ROWS(item), deep = n / high;
    for (int64_t i = 0, now; i < rows; i += now) {
        now = gm_least(deep * high, rows - i);
        for (int64_t j = 0, many; j < p->side; j += many) {
            many = gm_least(WIDE * n, p->side - j);
            int64_t k = 0;
            for (; k + high <= now; k += high)
                for (int64_t l = j; l < j + many; l += n) {
                    square_fetch(item, next, high);
                    square_block(item, lower + (i + k) * p->row + l * item, p->row,
                                 p->scratch + l * p->pitch + (i + k) * item, p->pitch);
                }
            square_items(item, lower + (i + k) * p->row + j * item, p->row, now - k, many,
                         p->scratch + j * p->pitch + (i + k) * item, p->pitch);
        }
    }
}

/* A line of scratch to the array, and another one in its stead. */
GM_INLINE void square_line(char *scratch, char *to, const char *from)
{
    GM_UNROLL for (int k = 0; k < 64; k += GM_VECTOR)
    {
        vec v = load(scratch + k);
        store(scratch + k, load(from + k));
        store(to + k, v);
    }
}

/* What scratch holds goes to the upper tile, the next one's rows come in. */
GM_INLINE void square_replace(int item, const gm_pairs *p, char *upper, int64_t columns, int64_t coming,
                              square_ahead *next)
{
    enum { BESIDE = 8 };
    const int64_t both = gm_least(columns, coming) * item / 64 * 64;
    const char *from = upper + columns * item;
    for (int64_t i = 0, now; i < p->side; i += now) {
        now = gm_least(BESIDE, p->side - i);
        for (int64_t at = 0; at < both; at += 64) {
            square_fetch(item, next, BESIDE);
            for (int64_t k = 0; k < now; k++)
                square_line(p->scratch + (i + k) * p->pitch + at, upper + (i + k) * p->row + at,
                            from + (i + k) * p->row + at);
        }
        for (int64_t k = 0; k < now; k++) {
            char *scratch = p->scratch + (i + k) * p->pitch + both;
            memcpy(upper + (i + k) * p->row + both, scratch, (size_t)(columns * item - both));
            memcpy(scratch, from + (i + k) * p->row + both, (size_t)(coming * item - both));
        }
    }
}

GM_INLINE void pairs_of(int item, const gm_pairs *p)
{
    enum { SLACK = 128 };
    square_ahead next = {.pairs = p, .pair = -1, .lower = 1, .start = p->upper};

    square_next_row(item, &next);
    square_fetch_rows(item, &next, p->side + SLACK);
    for (int64_t i = 0; i < p->side; i++) {
        square_fetch_rows(item, &next, square_columns(p, 0) * item / 64);
        memcpy(p->scratch + i * p->pitch, p->upper + i * p->row, (size_t)(square_columns(p, 0) * item));
    }
    for (int64_t pair = 0; pair * p->side < p->along; pair++) {
        int64_t columns = square_columns(p, pair), coming = square_columns(p, pair + 1);
        square_exchange(item, p, p->lower + pair * p->side * p->row, columns, &next);
        square_replace(item, p, p->upper + pair * p->side * item, columns, coming, &next);
    }
}

#define GM_PAIRS(item)                                                                                                 \
    static void pairs_##item(const gm_pairs *pairs)                                                                    \
    {                                                                                                                  \
        pairs_of(item, pairs);                                                                                         \
    }
GM_PAIRS(1)
GM_PAIRS(2)
GM_PAIRS(4)
GM_PAIRS(8)
GM_PAIRS(16)
