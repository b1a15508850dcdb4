/* Column kernels (sum_kernels.h), for each ISA variant.
 *
 * Eight rows are taken at a time, so that the accumulators are read and written once for them all. */

enum { SUM_STEP = 8 };

/* The processor does not see where a strip goes on, not even one that is as wide as its row, since the lines of eight
 * rows are read in turn. So later rows are asked for, into L2, SUM_AHEAD bytes of the strip
 * before they are due. `ask` holds the address of the present columns in them, or 0. It is no pointer: what it names
 * may lie past the last row, where nothing is read. */
enum { SUM_AHEAD = 32 << 10 };

SUM_INLINE void sum_ask(uintptr_t ask, int64_t step, int R, int bytes)
{
    if (ask)
        for (int r = 0; r < R; r++)
            for (int b = 0; b < bytes; b += 64)
                __builtin_prefetch((const char *)(ask + (uintptr_t)(r * step) + (unsigned)b), 0, 2);
}

/* What to ask for while rows from r on are added. */
SUM_INLINE uintptr_t sum_ask_for(const char *src, int64_t step, int64_t rows, int64_t r, int64_t bytes,
                                 const char *next)
{
    int64_t ahead = (SUM_AHEAD / bytes + SUM_STEP) / SUM_STEP * SUM_STEP;
    if (ahead > rows)
        ahead = rows;
    if (r + ahead < rows)
        return (uintptr_t)src + (uintptr_t)((r + ahead) * step);
    return next ? (uintptr_t)next + (uintptr_t)((r + ahead - rows) * step) : 0;
}

/* ---- items that are widened as they are loaded ---- */

#define SUM_WIDE_PASS(dtype, size, V8)                                                                                 \
    SUM_INLINE void sum_strip_##dtype(gm_acc *out, const char *src, uintptr_t ask, int64_t step, int R, int vectors,   \
                                      int more)                                                                        \
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
    SUM_INLINE void sum_edge_##dtype(gm_acc *out, const char *src, int64_t step, int R, int64_t n, int more)           \
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
    SUM_INLINE void sum_pass_##dtype(gm_acc *out, const char *src, uintptr_t ask, int64_t step, int R, int64_t c,      \
                                     int64_t cols, int more)                                                           \
    {                                                                                                                  \
        for (; c + 32 <= cols; c += 32)                                                                                \
            sum_strip_##dtype(out + c, src + c * size, ask ? ask + (uintptr_t)(c * size) : 0, step, R, 4, more);       \
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

#define SUM_HALF_COLS(dtype, name)                                                                                     \
    SUM_INLINE void sum_halves_##dtype(gm_acc *out, const char *src, uintptr_t ask, int64_t step, int vectors,         \
                                       int more)                                                                       \
    {                                                                                                                  \
        sum_s16 sum[2][4];                                                                                             \
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
            for (; c + 64 <= cols; c += 64)                                                                            \
                sum_halves_##dtype(out + c, row + 2 * c, ask ? ask + (uintptr_t)(2 * c) : 0, step, 4, r > 0);          \
            for (; c + 16 <= cols; c += 16)                                                                            \
                sum_halves_##dtype(out + c, row + 2 * c, 0, step, 1, r > 0);                                           \
            sum_pass_##dtype(out, row, 0, step, SUM_STEP, c, cols, r > 0);                                             \
        }                                                                                                              \
        if (r < rows)                                                                                                  \
            sum_pass_##dtype(out, src + r * step, sum_ask_for(src, step, rows, r, cols * 2, next), step,               \
                             (int)(rows - r), 0, cols, r > 0);                                                         \
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

/* ---- narrow integers ---- */

/* Even and odd columns are added apart, in fields of twice the width, which hold GM_SUM_ROWS of them;
 * at the end they are put back in order. `wide` lines of 64 bytes from column c on, for R rows. */
#define SUM_INT_COLS(dtype, size, field, mask, shift, zero, bias)                                                      \
    SUM_INLINE void sum_lines_##dtype(sum_i8 *acc, const char *src, uintptr_t ask, int64_t step, int R, int lines,     \
                                      int64_t bytes, int more)                                                         \
    {                                                                                                                  \
        sum_i8 sum[8];                                                                                                 \
        for (int i = 0; i < 2 * lines; i++)                                                                            \
            sum[i] = more ? acc[i] : sum_all(0);                                                                       \
        sum_ask(ask, step, R, 64 * lines);                                                                             \
        for (int r = 0; r < R; r++)                                                                                    \
            for (int i = 0; i < lines; i++) {                                                                          \
                const char *p = src + r * step + 64 * i;                                                               \
                sum_i8 x = SUM_ONLY_##dtype(bytes >= 64 ? sum_load64(p) : sum_part64(p, bytes, zero));                 \
                SUM_EACH (v) {                                                                                         \
                    sum[2 * i].v[v] += x.v[v] & mask;                                                                  \
                    sum[2 * i + 1].v[v] += x.v[v] >> shift & mask;                                                     \
                }                                                                                                      \
            }                                                                                                          \
        for (int i = 0; i < 2 * lines; i++)                                                                            \
            acc[i] = sum[i];                                                                                           \
    }                                                                                                                  \
    SUM_INLINE void sum_pass_##dtype(sum_i8 *acc, const char *src, uintptr_t ask, int64_t step, int R, int64_t bytes,  \
                                     int more)                                                                         \
    {                                                                                                                  \
        int64_t b = 0;                                                                                                 \
        for (; b + 256 <= bytes; b += 256, acc += 8)                                                                   \
            sum_lines_##dtype(acc, src + b, ask ? ask + (uintptr_t)b : 0, step, R, 4, 64, more);                       \
        for (; b + 64 <= bytes; b += 64, acc += 2)                                                                     \
            sum_lines_##dtype(acc, src + b, ask ? ask + (uintptr_t)b : 0, step, R, 1, 64, more);                       \
        if (b < bytes)                                                                                                 \
            sum_lines_##dtype(acc, src + b, 0, step, R, 1, bytes - b, more);                                           \
    }                                                                                                                  \
    static void sum_cols_##dtype(gm_acc *out, const char *src, int64_t step, int64_t rows, int64_t cols,               \
                                 const char *next)                                                                     \
    {                                                                                                                  \
        enum { CHUNK = 64 / size };                                                                                    \
        sum_i8 acc[2 * GM_SUM_COLS / CHUNK];                                                                           \
        int64_t bytes = cols * size, r = 0;                                                                            \
        for (; r + SUM_STEP <= rows; r += SUM_STEP)                                                                    \
            sum_pass_##dtype(acc, src + r * step, sum_ask_for(src, step, rows, r, bytes, next), step, SUM_STEP, bytes, \
                             r > 0);                                                                                   \
        if (r < rows)                                                                                                  \
            sum_pass_##dtype(acc, src + r * step, sum_ask_for(src, step, rows, r, bytes, next), step, (int)(rows - r), \
                             bytes, r > 0);                                                                            \
        uint64_t excess = (uint64_t)bias * (uint64_t)rows;                                                             \
        for (int64_t c = 0; c < cols; c += CHUNK) {                                                                    \
            field part[CHUNK];                                                                                         \
            gm_acc wide[CHUNK];                                                                                        \
            memcpy(part, acc + 2 * (c / CHUNK), sizeof part);                                                          \
            for (int i = 0; i < CHUNK / 2; i++) {                                                                      \
                wide[2 * i].i = part[i] - excess;                                                                      \
                wide[2 * i + 1].i = part[CHUNK / 2 + i] - excess;                                                      \
            }                                                                                                          \
            memcpy(out + c, wide, (size_t)(cols - c < CHUNK ? cols - c : CHUNK) * sizeof *wide);                       \
        }                                                                                                              \
    }
SUM_INT_COLS(bool, 1, uint16_t, 0x00ff00ff00ff00ff, 8, 0, 0)
SUM_INT_COLS(int8, 1, uint16_t, 0x00ff00ff00ff00ff, 8, 0x8080808080808080, 0x80)
SUM_INT_COLS(int16, 2, uint32_t, 0x0000ffff0000ffff, 16, 0x8000800080008000, 0x8000)
SUM_INT_COLS(int32, 4, uint64_t, 0xffffffff, 32, 0x8000000080000000, 0x80000000)
SUM_INT_COLS(uint8, 1, uint16_t, 0x00ff00ff00ff00ff, 8, 0, 0)
SUM_INT_COLS(uint16, 2, uint32_t, 0x0000ffff0000ffff, 16, 0, 0)
SUM_INT_COLS(uint32, 4, uint64_t, 0xffffffff, 32, 0, 0)
