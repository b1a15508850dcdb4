/* Column kernels (sum_kernels.h), for each ISA variant.
 *
 * Eight rows are taken at a time, so that the accumulators are read and written once for them all; and of each row one
 * line of 64 bytes, since short runs of eight streams defeat the prefetchers more than single lines do. */

enum { SUM_STEP = GM_SUM_FEW };

/* The processor does not see in time where a strip goes on. So later rows are asked for, into L2: two steps ahead, and
 * SUM_AHEAD bytes of the strip. `ask` holds the address of the present columns in them, or 0. It is no pointer: what it
 * names may lie past the last row, where nothing is read. */
enum { SUM_AHEAD = 16 << 10 };

GM_INLINE void sum_ask(uintptr_t ask, int64_t step, int R, int bytes)
{
    if (ask)
        for (int r = 0; r < R; r++)
            for (int b = 0; b < bytes; b += 64)
                __builtin_prefetch((const char *)(ask + (uintptr_t)(r * step) + (unsigned)b), 0, 2);
}

/* What to ask for while rows from r on are added. */
GM_INLINE uintptr_t sum_ask_for(const char *src, int64_t step, int64_t rows, int64_t r, int64_t bytes, const char *next)
{
    int64_t ahead = (SUM_AHEAD / bytes + 2 * SUM_STEP) / SUM_STEP * SUM_STEP;
    if (ahead > rows)
        ahead = rows;
    if (r + ahead < rows)
        return (uintptr_t)src + (uintptr_t)((r + ahead) * step);
    return next ? (uintptr_t)next + (uintptr_t)((r + ahead - rows) * step) : 0;
}

/* ---- items that are widened as they are loaded ---- */

#define SUM_WIDE_PASS(dtype, size, V8)                                                                                 \
    GM_INLINE void sum_strip_##dtype(gm_acc *out, const char *src, uintptr_t ask, int64_t step, int R, int vectors,    \
                                     int more)                                                                         \
    {                                                                                                                  \
        V8 acc[4], old;                                                                                                \
        sum_ask(ask, step, R, 8 * vectors * size);                                                                     \
        for (int v = 0; v < vectors; v++)                                                                              \
            acc[v] = sum_load_##dtype(src + 8 * v * size);                                                             \
        for (int r = 1; r < R; r++)                                                                                    \
            for (int v = 0; v < vectors; v++)                                                                          \
                acc[v] = add_##V8(acc[v], sum_load_##dtype(src + r * step + 8 * v * size));                            \
        for (int v = 0; v < vectors; v++, out += 8) {                                                                  \
            if (more) {                                                                                                \
                memcpy(&old, out, sizeof old);                                                                         \
                acc[v] = add_##V8(old, acc[v]);                                                                        \
            }                                                                                                          \
            memcpy(out, &acc[v], sizeof *acc);                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    GM_INLINE void sum_edge_##dtype(gm_acc *out, const char *src, int64_t step, int R, int64_t n, int more)            \
    {                                                                                                                  \
        V8 acc = sum_part_##dtype(src, n), old = acc;                                                                  \
        for (int r = 1; r < R; r++)                                                                                    \
            acc = add_##V8(acc, sum_part_##dtype(src + r * step, n));                                                  \
        if (more) {                                                                                                    \
            memcpy(&old, out, (size_t)n * sizeof *out);                                                                \
            acc = add_##V8(old, acc);                                                                                  \
        }                                                                                                              \
        memcpy(out, &acc, (size_t)n * sizeof *out);                                                                    \
    }                                                                                                                  \
    /* Columns from c on. */                                                                                           \
    GM_INLINE void sum_pass_##dtype(gm_acc *out, const char *src, uintptr_t ask, int64_t step, int R, int64_t c,       \
                                    int64_t cols, int more)                                                            \
    {                                                                                                                  \
        for (; c + 64 / size <= cols; c += 64 / size)                                                                  \
            sum_strip_##dtype(out + c, src + c * size, ask ? ask + (uintptr_t)(c * size) : 0, step, R, 8 / size,       \
                              more);                                                                                   \
        for (; c + 8 <= cols; c += 8)                                                                                  \
            sum_strip_##dtype(out + c, src + c * size, ask ? ask + (uintptr_t)(c * size) : 0, step, R, 1, more);       \
        if (c < cols)                                                                                                  \
            sum_edge_##dtype(out + c, src + c * size, step, R, cols - c, more);                                        \
    }
SUM_WIDE_PASS(int64, 8, sum_i8)
SUM_WIDE_PASS(float16, 2, sum_f8)
SUM_WIDE_PASS(bfloat16, 2, sum_f8)
SUM_WIDE_PASS(float32, 4, sum_f8)
SUM_WIDE_PASS(float64, 8, sum_f8)

#define SUM_WIDE_COLS(dtype, size)                                                                                     \
    static void sum_cols_##dtype(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t cols,               \
                                 const char *next)                                                                     \
    {                                                                                                                  \
        int64_t r = 0;                                                                                                 \
        for (; r + SUM_STEP <= rows; r += SUM_STEP)                                                                    \
            sum_pass_##dtype(out, src + r * step, sum_ask_for(src, step, rows, r, cols * size, next), step, SUM_STEP,  \
                             0, cols, r > 0);                                                                          \
        if (r < rows)                                                                                                  \
            sum_pass_##dtype(out, src + r * step, sum_ask_for(src, step, rows, r, cols * size, next), step,            \
                             (int)(rows - r), 0, cols, r > 0);                                                         \
    }
SUM_WIDE_COLS(int64, 8)
SUM_WIDE_COLS(float32, 4)
SUM_WIDE_COLS(float64, 8)

/* ---- 16-bit floats: four rows are first added in float32 ---- */

/* Sixteen columns, or n < 16, of up to four rows. */
#define SUM_FOUR_ROWS(dtype)                                                                                           \
    GM_INLINE sum_s16 sum_some16_##dtype(const char *src, int64_t n)                                                   \
    {                                                                                                                  \
        char some[32] = {0};                                                                                           \
        if (n >= 16)                                                                                                   \
            return sum_load16_##dtype(src);                                                                            \
        memcpy(some, src, 2 * (size_t)n);                                                                              \
        return sum_load16_##dtype(some);                                                                               \
    }                                                                                                                  \
    GM_INLINE sum_s16 sum_four_rows_##dtype(const char *src, int64_t step, int R, int64_t n)                           \
    {                                                                                                                  \
        sum_s16 sum = sum_some16_##dtype(src, n);                                                                      \
        if (R > 1)                                                                                                     \
            sum = add_sum_s16(sum, sum_some16_##dtype(src + step, n));                                                 \
        if (R > 3)                                                                                                     \
            return add_sum_s16(                                                                                        \
                sum, add_sum_s16(sum_some16_##dtype(src + 2 * step, n), sum_some16_##dtype(src + 3 * step, n)));       \
        return R > 2 ? add_sum_s16(sum, sum_some16_##dtype(src + 2 * step, n)) : sum;                                  \
    }
SUM_FOUR_ROWS(float16)
SUM_FOUR_ROWS(bfloat16)

/* n <= 16 sums, where there are `more`, onto those before. */
GM_INLINE void sum_add16(gm_acc *out, sum_s16 x, int64_t n, int more)
{
    sum_f8 sum[2] = {sum_low(x), sum_high(x)}, old[2];
    if (more) {
        memcpy(old, out, (size_t)n * sizeof *out);
        sum[0] = add_sum_f8(old[0], sum[0]);
        sum[1] = add_sum_f8(old[1], sum[1]);
    }
    memcpy(out, sum, (size_t)n * sizeof *out);
}

#define SUM_HALF_COLS(dtype, name)                                                                                     \
    GM_INLINE void sum_halves_##dtype(gm_acc *out, const char *src, uintptr_t ask, int64_t step, int vectors,          \
                                      int more)                                                                        \
    {                                                                                                                  \
        sum_s16 sum[2][2];                                                                                             \
        sum_ask(ask, step, SUM_STEP, 32 * vectors);                                                                    \
        for (int h = 0; h < 2; h++) {                                                                                  \
            const char *p = src + 4 * h * step;                                                                        \
            for (int v = 0; v < vectors; v++)                                                                          \
                sum[h][v] = add_sum_s16(sum_load16_##dtype(p + 32 * v), sum_load16_##dtype(p + step + 32 * v));        \
            p += 2 * step;                                                                                             \
            for (int v = 0; v < vectors; v++)                                                                          \
                sum[h][v] = add_sum_s16(                                                                               \
                    sum[h][v], add_sum_s16(sum_load16_##dtype(p + 32 * v), sum_load16_##dtype(p + step + 32 * v)));    \
        }                                                                                                              \
        for (int v = 0; v < vectors; v++, out += 16) {                                                                 \
            sum_f8 low = add_sum_f8(sum_low(sum[0][v]), sum_low(sum[1][v])), old;                                      \
            sum_f8 high = add_sum_f8(sum_high(sum[0][v]), sum_high(sum[1][v]));                                        \
            if (more) {                                                                                                \
                memcpy(&old, out, sizeof old);                                                                         \
                low = add_sum_f8(old, low);                                                                            \
                memcpy(&old, out + 8, sizeof old);                                                                     \
                high = add_sum_f8(old, high);                                                                          \
            }                                                                                                          \
            memcpy(out, &low, sizeof low);                                                                             \
            memcpy(out + 8, &high, sizeof high);                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t cols, const char *next)         \
    {                                                                                                                  \
        int64_t r = 0;                                                                                                 \
        for (; r + SUM_STEP <= rows; r += SUM_STEP) {                                                                  \
            const char *row = src + r * step;                                                                          \
            uintptr_t ask = sum_ask_for(src, step, rows, r, cols * 2, next);                                           \
            int64_t c = 0;                                                                                             \
            for (; c + 32 <= cols; c += 32)                                                                            \
                sum_halves_##dtype(out + c, row + 2 * c, ask ? ask + (uintptr_t)(2 * c) : 0, step, 2, r > 0);          \
            for (; c + 16 <= cols; c += 16)                                                                            \
                sum_halves_##dtype(out + c, row + 2 * c, 0, step, 1, r > 0);                                           \
            sum_pass_##dtype(out, row, 0, step, SUM_STEP, c, cols, r > 0);                                             \
        }                                                                                                              \
        for (int R; r < rows; r += R) {                                                                                \
            const char *row = src + r * step;                                                                          \
            uintptr_t ask = sum_ask_for(src, step, rows, r, cols * 2, next);                                           \
            int64_t c = 0;                                                                                             \
            R = rows - r < 4 ? (int)(rows - r) : 4;                                                                    \
            for (; c + 16 <= cols; c += 16) {                                                                          \
                sum_ask(ask ? ask + (uintptr_t)(2 * c) : 0, step, R, 32);                                              \
                sum_add16(out + c, sum_four_rows_##dtype(row + 2 * c, step, R, 16), 16, r > 0);                        \
            }                                                                                                          \
            if (c < cols)                                                                                              \
                sum_add16(out + c, sum_four_rows_##dtype(row + 2 * c, step, R, cols - c), cols - c, r > 0);            \
        }                                                                                                              \
    }
SUM_HALF_COLS(float16, sum_cols_float16)
SUM_HALF_COLS(bfloat16, sum_quick_cols_bfloat16)

static void sum_cols_bfloat16(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t cols, const char *next)
{
    sum_quick_cols_bfloat16(out, src, step, rows, cols, next);
    sum_f8 check = sum_no_floats(), x = check;
    int64_t c = 0;
    for (; c + 8 <= cols; c += 8) {
        memcpy(&x, out + c, sizeof x);
        SUM_EACH (i)
            check.v[i] += x.v[i] * 0;
    }
    if (!sum_finite(check)) /* see sum_block_bfloat16 */
        for (int64_t r = 0; r < rows; r++)
            sum_pass_bfloat16(out, src + r * step, 0, step, 1, 0, cols, r > 0);
}

#if GM_AVX512
/* Up to four rows of float16, as float16. */
GM_INLINE void sum_past_rows_float16(char *dst, const char *src, uintptr_t ask, int64_t step, int64_t cols, int R)
{
    for (int64_t b = 0; b < 2 * cols; b += 64) {
        sum_ask(ask ? ask + (uintptr_t)b : 0, step, R, 64);
        __m256i low = sum_halves16(sum_four_rows_float16(src + b, step, R, 16));
        __m256i high = sum_halves16(sum_four_rows_float16(src + b + 32, step, R, 16));
        _mm512_stream_si512((void *)(dst + b), _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
}

static void sum_past_float16(char *dst, const char *src, int64_t step, int64_t rows, int64_t cols, const char *next)
{
    uintptr_t ask = sum_ask_for(src, step, rows, 0, cols * 2, next);
    if (rows == 4)
        sum_past_rows_float16(dst, src, ask, step, cols, 4);
    else
        sum_past_rows_float16(dst, src, ask, step, cols, (int)rows);
}
#else
#    define sum_past_float16 NULL
#endif

/* ---- narrow integers ---- */

/* A field is two columns side by side. Whole fields are added, wrapping, and their upper columns once more by
 * themselves: the sum of the lower ones is what the first sum has beyond the second. A field holds GM_SUM_ROWS of
 * either. So an addition and a shift take two columns apart, without a mask. */

/* The fields of a and b in turn, in order. */
GM_INLINE void sum_zip(int size, vec a, vec b, vec out[2])
{
    zip(size, a, b, &out[0], &out[1]);
#if GM_AVX512
    vec low = out[0];
    out[0] = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), out[1]);
    out[1] = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), out[1]);
#elif GM_AVX2
    turn_lanes(out);
#endif
}

#define SUM_INT_COLS(dtype, size, V, field, zero, bias)                                                                \
    /* `bytes` of a line: R rows of it. */                                                                             \
    GM_INLINE void sum_line_##dtype(sum_i8 *acc, const char *src, uintptr_t ask, int64_t step, int R, int64_t bytes,   \
                                    int more)                                                                          \
    {                                                                                                                  \
        V both[SUM_VECTORS] = {0}, upper[SUM_VECTORS] = {0};                                                           \
        if (more) {                                                                                                    \
            memcpy(both, acc, sizeof both);                                                                            \
            memcpy(upper, acc + 1, sizeof upper);                                                                      \
        }                                                                                                              \
        sum_ask(ask, step, R, 64);                                                                                     \
        for (int r = 0; r < R; r++) {                                                                                  \
            const char *p = src + r * step;                                                                            \
            sum_i8 x = SUM_ONLY_##dtype(bytes >= 64 ? sum_load32x2(p) : sum_part64(p, bytes, zero));                   \
            SUM_EACH (v) {                                                                                             \
                both[v] += (V)x.v[v];                                                                                  \
                upper[v] += (V)x.v[v] >> 8 * size;                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(acc, both, sizeof both);                                                                                \
        memcpy(acc + 1, upper, sizeof upper);                                                                          \
    }                                                                                                                  \
    GM_INLINE void sum_pass_##dtype(sum_i8 *acc, const char *src, uintptr_t ask, int64_t step, int R, int64_t bytes,   \
                                    int more)                                                                          \
    {                                                                                                                  \
        int64_t b = 0;                                                                                                 \
        for (; b + 64 <= bytes; b += 64, acc += 2)                                                                     \
            sum_line_##dtype(acc, src + b, ask ? ask + (uintptr_t)b : 0, step, R, 64, more);                           \
        if (b < bytes)                                                                                                 \
            sum_line_##dtype(acc, src + b, 0, step, R, bytes - b, more);                                               \
    }                                                                                                                  \
    /* One line's columns, in order, from the sums of its fields. */                                                   \
    GM_INLINE void sum_columns_##dtype(char *out, const sum_i8 *acc, uint64_t excess, int past)                        \
    {                                                                                                                  \
        V both[SUM_VECTORS], upper[SUM_VECTORS];                                                                       \
        vec part[2 * SUM_VECTORS];                                                                                     \
        memcpy(both, acc, sizeof both);                                                                                \
        memcpy(upper, acc + 1, sizeof upper);                                                                          \
        SUM_EACH (v)                                                                                                   \
            sum_zip(2 * size, (vec)(both[v] - (upper[v] << 8 * size)), (vec)upper[v], part + 2 * v);                   \
        for (int i = 0; i < 64 / size; i += 8) {                                                                       \
            sum_i8 x = sum_load_##field((const char *)part + 2 * size * i);                                            \
            SUM_EACH (v)                                                                                               \
                x.v[v] -= excess;                                                                                      \
            for (int v = 0; past && v < SUM_VECTORS; v++)                                                              \
                NT_STORE(out + 8 * i + v * GM_VECTOR, (vec)x.v[v]);                                                    \
            if (!past)                                                                                                 \
                memcpy(out + 8 * i, &x, sizeof x);                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void sum_cols_##dtype(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t cols,               \
                                 const char *next)                                                                     \
    {                                                                                                                  \
        enum { CHUNK = 64 / size };                                                                                    \
        sum_i8 sums[2 * GM_SUM_COLS / CHUNK], *acc = sums;                                                             \
        int64_t bytes = cols * size, r = 0;                                                                            \
        for (; r + SUM_STEP <= rows; r += SUM_STEP)                                                                    \
            sum_pass_##dtype(acc, src + r * step, sum_ask_for(src, step, rows, r, bytes, next), step, SUM_STEP, bytes, \
                             r > 0);                                                                                   \
        if (r < rows)                                                                                                  \
            sum_pass_##dtype(acc, src + r * step, sum_ask_for(src, step, rows, r, bytes, next), step, (int)(rows - r), \
                             bytes, r > 0);                                                                            \
        uint64_t excess = (uint64_t)bias * (uint64_t)rows;                                                             \
        for (; cols >= CHUNK; cols -= CHUNK, out += CHUNK, acc += 2)                                                   \
            sum_columns_##dtype((char *)out, acc, excess, 0);                                                          \
        if (cols > 0) {                                                                                                \
            gm_acc last[CHUNK];                                                                                        \
            sum_columns_##dtype((char *)last, acc, excess, 0);                                                         \
            memcpy(out, last, (size_t)cols * sizeof *last);                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void sum_past_##dtype(char *dst, const char *src, int64_t step, int64_t rows, int64_t cols,                 \
                                 const char *next)                                                                     \
    {                                                                                                                  \
        uintptr_t ask = sum_ask_for(src, step, rows, 0, cols * size, next);                                            \
        for (int64_t b = 0; b < cols * size; b += 64, dst += 8 * 64 / size) {                                          \
            sum_i8 acc[2];                                                                                             \
            sum_line_##dtype(acc, src + b, ask ? ask + (uintptr_t)b : 0, step, (int)rows, 64, 0);                      \
            sum_columns_##dtype(dst, acc, (uint64_t)bias *(uint64_t)rows, 1);                                          \
        }                                                                                                              \
    }
SUM_INT_COLS(bool, 1, sum_u16, uint16, 0, 0)
SUM_INT_COLS(int8, 1, sum_u16, uint16, 0x8080808080808080, 0x80)
SUM_INT_COLS(int16, 2, sum_u32, uint32, 0x8000800080008000, 0x8000)
SUM_INT_COLS(int32, 4, sum_u64, uint64, 0x8000000080000000, 0x80000000)
SUM_INT_COLS(uint8, 1, sum_u16, uint16, 0, 0)
SUM_INT_COLS(uint16, 2, sum_u32, uint32, 0, 0)
SUM_INT_COLS(uint32, 4, sum_u64, uint64, 0, 0)
