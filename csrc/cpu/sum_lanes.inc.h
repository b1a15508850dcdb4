/* One row in eight lanes: sum_lanes_<dtype>(src, n, end), for each ISA variant. What is read next goes on to `end`,
 * past the row where others follow it. */

/* While a line's items wait to be added, few lines behind it can be asked for, and the processor's own prefetching does
 * not go far enough: an Emerald Rapids reads at 0.6 to 0.7 of its speed. So lines are asked for SUM_FETCH bytes ahead,
 * as far as there is something to read, before `end`; into the second cache, since the few buffers of the first one's
 * misses are for what is read now. */
enum { SUM_FETCH = 8 << 10 };

GM_INLINE void sum_fetch(const char *src, const char *end, int bytes)
{
    if (end - src >= SUM_FETCH + bytes)
        for (int b = 0; b < bytes; b += 64)
            __builtin_prefetch(src + SUM_FETCH + b, 0, 2);
}

/* ---- floats ---- */

/* Blocks of 1024 items are summed pairwise, as a binary counter: level l holds the sum of 2^l blocks, or nothing. */
enum { SUM_SHORT = 32, SUM_BLOCK = 1024, SUM_LEVELS = 64 };

/* What is left of a block when it is shorter than a step of its loop. The row has at least eight items: the last few
 * are loaded with those before them, which are then blanked. */
#define SUM_FLOAT_REST(dtype, size)                                                                                    \
    for (; n >= 16; n -= 16, src += 16 * size) {                                                                       \
        acc[0] = add_sum_f8(acc[0], sum_load_##dtype(src));                                                            \
        acc[1] = add_sum_f8(acc[1], sum_load_##dtype(src + 8 * size));                                                 \
    }                                                                                                                  \
    if (n >= 8)                                                                                                        \
        acc[2] = add_sum_f8(acc[2], sum_load_##dtype(src));                                                            \
    if (n % 8)                                                                                                         \
        acc[3] = add_sum_f8(acc[3], sum_last_lanes(sum_load_##dtype(src + (n - 8) * size), n % 8));                    \
    return add_sum_f8(add_sum_f8(acc[0], acc[1]), add_sum_f8(acc[2], acc[3]))

/* Up to SUM_BLOCK items in four times eight accumulators. */
#define SUM_FLOAT_BLOCK(dtype, size)                                                                                   \
    GM_INLINE sum_f8 sum_block_##dtype(const char *src, int64_t n, const char *end)                                    \
    {                                                                                                                  \
        sum_f8 acc[4] = {sum_no_floats(), sum_no_floats(), sum_no_floats(), sum_no_floats()};                          \
        for (; n >= 32; n -= 32, src += 32 * size) {                                                                   \
            sum_fetch(src, end, 32 * size);                                                                            \
            for (int a = 0; a < 4; a++)                                                                                \
                acc[a] = add_sum_f8(acc[a], sum_load_##dtype(src + 8 * a * size));                                     \
        }                                                                                                              \
        SUM_FLOAT_REST(dtype, size);                                                                                   \
    }

/* Conversion to float64 is what limits 16-bit floats: four vectors of them are first added in float32. */
#define SUM_HALF_BLOCK(dtype, name)                                                                                    \
    GM_INLINE sum_f8 name(const char *src, int64_t n, const char *end)                                                 \
    {                                                                                                                  \
        sum_f8 acc[4] = {sum_no_floats(), sum_no_floats(), sum_no_floats(), sum_no_floats()};                          \
        for (; n >= 64; n -= 64, src += 128) {                                                                         \
            sum_fetch(src, end, 128);                                                                                  \
            sum_s16 s = add_sum_s16(add_sum_s16(sum_load16_##dtype(src), sum_load16_##dtype(src + 32)),                \
                                    add_sum_s16(sum_load16_##dtype(src + 64), sum_load16_##dtype(src + 96)));          \
            acc[0] = add_sum_f8(acc[0], sum_low(s));                                                                   \
            acc[1] = add_sum_f8(acc[1], sum_high(s));                                                                  \
        }                                                                                                              \
        SUM_FLOAT_REST(dtype, 2);                                                                                      \
    }

GM_INLINE int sum_finite(sum_f8 x)
{
    sum_f64 t = {0};
    SUM_EACH (i)
        t += x.v[i] * 0;
    double sum = 0;
    for (int i = 0; i < SUM_W; i++)
        sum += t[i];
    return sum == 0;
}

SUM_FLOAT_BLOCK(float32, 4)
SUM_FLOAT_BLOCK(float64, 8)
SUM_HALF_BLOCK(float16, sum_block_float16)
SUM_HALF_BLOCK(bfloat16, sum_quick_block_bfloat16)

static __attribute__((noinline)) sum_f8 sum_slow_block_bfloat16(const char *src, int64_t n)
{
    sum_f8 acc[4] = {sum_no_floats(), sum_no_floats(), sum_no_floats(), sum_no_floats()};
    SUM_FLOAT_REST(bfloat16, 2);
}

/* The largest bfloat16 are the largest float32: four of them may overflow where their sum would not. */
GM_INLINE sum_f8 sum_block_bfloat16(const char *src, int64_t n, const char *end)
{
    sum_f8 sum = sum_quick_block_bfloat16(src, n, end);
    return n < 64 || sum_finite(sum) ? sum : sum_slow_block_bfloat16(src, n);
}

#define SUM_FLOAT_LANES(dtype, size)                                                                                   \
    static __attribute__((noinline)) void sum_long_##dtype(sum_f8 *out, const char *src, int64_t n, const char *end)   \
    {                                                                                                                  \
        sum_f8 level[SUM_LEVELS], sum;                                                                                 \
        uint64_t blocks = 0;                                                                                           \
        int l;                                                                                                         \
        for (; n > SUM_BLOCK; n -= SUM_BLOCK, src += SUM_BLOCK * size, blocks++) {                                     \
            sum = sum_block_##dtype(src, SUM_BLOCK, end);                                                              \
            for (l = 0; blocks >> l & 1; l++)                                                                          \
                sum = add_sum_f8(level[l], sum);                                                                       \
            level[l] = sum;                                                                                            \
        }                                                                                                              \
        sum = sum_block_##dtype(src, n, end);                                                                          \
        for (l = 0; blocks >> l; l++)                                                                                  \
            if (blocks >> l & 1)                                                                                       \
                sum = add_sum_f8(level[l], sum);                                                                       \
        *out = sum;                                                                                                    \
    }                                                                                                                  \
    GM_INLINE sum_f8 sum_lanes_##dtype(const char *src, int64_t n, const char *end)                                    \
    {                                                                                                                  \
        sum_f8 sum;                                                                                                    \
        if (n < 8)                                                                                                     \
            return sum_part_##dtype(src, n);                                                                           \
        if (n <= SUM_SHORT)                                                                                            \
            return sum_block_##dtype(src, n, end);                                                                     \
        sum_long_##dtype(&sum, src, n, end);                                                                           \
        return sum;                                                                                                    \
    }
SUM_FLOAT_LANES(float16, 2)
SUM_FLOAT_LANES(bfloat16, 2)
SUM_FLOAT_LANES(float32, 4)
SUM_FLOAT_LANES(float64, 8)

/* ---- integers ---- */

/* Splits packed unsigned items into wider ones: mask and shift take the even and odd items of a 64-bit lane apart. */
GM_INLINE sum_i8 sum_split(sum_i8 x, uint64_t mask, int shift)
{
    SUM_EACH (i)
        x.v[i] = (x.v[i] & mask) + (x.v[i] >> shift & mask);
    return x;
}

/* The eight bytes of each lane added up. */
GM_INLINE sum_i8 sum_bytes(sum_i8 x)
{
#if GM_AVX512
    x.v[0] = (sum_u64)_mm512_sad_epu8((__m512i)x.v[0], _mm512_setzero_si512());
    return x;
#elif GM_AVX2
    SUM_EACH (i)
        x.v[i] = (sum_u64)_mm256_sad_epu8((__m256i)x.v[i], _mm256_setzero_si256());
    return x;
#else
    return sum_split(sum_split(sum_split(x, 0x00ff00ff00ff00ff, 8), 0x0000ffff0000ffff, 16), 0xffffffff, 32);
#endif
}

GM_INLINE sum_i8 sum_xor(sum_i8 x, uint64_t bits)
{
    SUM_EACH (i)
        x.v[i] ^= bits;
    return x;
}

GM_INLINE sum_i8 sum_is_set(sum_i8 x)
{
#if GM_AVX512
    x.v[0] = (sum_u64)_mm512_min_epu8((__m512i)x.v[0], _mm512_set1_epi8(1));
#else
    SUM_EACH (i)
        x.v[i] = (sum_u64)((sum_u8)x.v[i] != 0) & 0x0101010101010101;
#endif
    return x;
}

/* 64 bytes of items as lanes of 64 bits that add up to the same, once each item is made unsigned. */
#define SUM_ONLY_bool(x)   sum_is_set(x)
#define SUM_ONLY_int8(x)   sum_xor(x, 0x8080808080808080)
#define SUM_ONLY_int16(x)  sum_xor(x, 0x8000800080008000)
#define SUM_ONLY_int32(x)  sum_xor(x, 0x8000000080000000)
#define SUM_ONLY_int64(x)  (x)
#define SUM_ONLY_uint8(x)  (x)
#define SUM_ONLY_uint16(x) (x)
#define SUM_ONLY_uint32(x) (x)

#define SUM_WIDE_1(x) sum_bytes(x)
#define SUM_WIDE_2(x) sum_split(sum_split(x, 0x0000ffff0000ffff, 16), 0xffffffff, 32)
#define SUM_WIDE_4(x) sum_split(x, 0xffffffff, 32)
#define SUM_WIDE_8(x) (x)

/* Sums of up to GM_SUM_ROW_BYTES of them. Items of 16 and 32 bits are added as the columns of sum_cols.inc.h are: whole
 * fields of two, wrapping, and the upper items once more by themselves. */
typedef struct sum_tally {
    sum_i8 both, upper;
} sum_tally;

GM_INLINE sum_tally sum_tally2(sum_tally t, sum_i8 x)
{
    SUM_EACH (i) {
        t.both.v[i] = (sum_u64)((sum_u32)t.both.v[i] + (sum_u32)x.v[i]);
        t.upper.v[i] = (sum_u64)((sum_u32)t.upper.v[i] + ((sum_u32)x.v[i] >> 16));
    }
    return t;
}

GM_INLINE sum_tally sum_tally4(sum_tally t, sum_i8 x)
{
    SUM_EACH (i) {
        t.both.v[i] += x.v[i];
        t.upper.v[i] += x.v[i] >> 32;
    }
    return t;
}

GM_INLINE sum_tally sum_tally8(sum_tally t, sum_i8 x)
{
    t.both = add_sum_i8(t.both, x);
    return t;
}

GM_INLINE sum_i8 sum_told2(sum_tally t)
{
    sum_i8 lower;
    SUM_EACH (i)
        lower.v[i] = (sum_u64)((sum_u32)t.both.v[i] - ((sum_u32)t.upper.v[i] << 16));
    return add_sum_i8(sum_split(lower, 0xffffffff, 32), sum_split(t.upper, 0xffffffff, 32));
}

GM_INLINE sum_i8 sum_told4(sum_tally t)
{
    SUM_EACH (i)
        t.both.v[i] += t.upper.v[i] - (t.upper.v[i] << 32);
    return t.both;
}

#define SUM_TALLY_1(t, x) sum_tally8(t, sum_bytes(x))
#define SUM_TALLY_2(t, x) sum_tally2(t, x)
#define SUM_TALLY_4(t, x) sum_tally4(t, x)
#define SUM_TALLY_8(t, x) sum_tally8(t, x)
#define SUM_TOLD_1(t)     (t).both
#define SUM_TOLD_2(t)     sum_told2(t)
#define SUM_TOLD_4(t)     sum_told4(t)
#define SUM_TOLD_8(t)     (t).both

/* sum_part: of a row of 64 bytes or less. `zero` is a lane of items that count nothing once unsigned, `bias` what
 * making an item unsigned adds to it. */
#define SUM_INT_LANES(dtype, size, zero, bias)                                                                         \
    GM_INLINE sum_i8 sum_part_##dtype(const char *src, int64_t n)                                                      \
    {                                                                                                                  \
        sum_i8 sum = SUM_WIDE_##size(SUM_ONLY_##dtype(sum_part64(src, n * size, zero)));                               \
        sum.v[0] -= (sum_u64){(uint64_t)bias * (uint64_t)n};                                                           \
        return sum;                                                                                                    \
    }                                                                                                                  \
    GM_INLINE sum_i8 sum_lanes_##dtype(const char *src, int64_t n, const char *end)                                    \
    {                                                                                                                  \
        sum_tally t = {sum_all(0), sum_all(0)};                                                                        \
        int64_t bytes = n * size;                                                                                      \
        for (; bytes >= 128; bytes -= 128, src += 128) {                                                               \
            sum_fetch(src, end, 128);                                                                                  \
            t = SUM_TALLY_##size(t, SUM_ONLY_##dtype(sum_load64(src)));                                                \
            t = SUM_TALLY_##size(t, SUM_ONLY_##dtype(sum_load64(src + 64)));                                           \
        }                                                                                                              \
        if (bytes >= 64) {                                                                                             \
            t = SUM_TALLY_##size(t, SUM_ONLY_##dtype(sum_load64(src)));                                                \
            bytes -= 64, src += 64;                                                                                    \
        }                                                                                                              \
        if (bytes)                                                                                                     \
            t = SUM_TALLY_##size(t, SUM_ONLY_##dtype(sum_part64(src, bytes, zero)));                                   \
        sum_i8 sum = SUM_TOLD_##size(t);                                                                               \
        sum.v[0] -= (sum_u64){(uint64_t)bias * (uint64_t)n};                                                           \
        return sum;                                                                                                    \
    }
SUM_INT_LANES(bool, 1, 0, 0)
SUM_INT_LANES(int8, 1, 0x8080808080808080, 0x80)
SUM_INT_LANES(int16, 2, 0x8000800080008000, 0x8000)
SUM_INT_LANES(int32, 4, 0x8000000080000000, 0x80000000)
SUM_INT_LANES(int64, 8, 0, 0)
SUM_INT_LANES(uint8, 1, 0, 0)
SUM_INT_LANES(uint16, 2, 0, 0)
SUM_INT_LANES(uint32, 4, 0, 0)
