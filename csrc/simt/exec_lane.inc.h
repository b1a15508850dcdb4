/* What one lane computes: the functions that the rows of handlers.def name. Plain C without branches where it matters,
 * so that a loop over 32 lanes becomes vector code. Included once an ISA variant, inside its target. */

static inline s32 clamp_s32(s64 a)
{
    return (s32)(a < INT32_MIN ? INT32_MIN : a > INT32_MAX ? INT32_MAX : a);
}

/* Sign and absolute value of a signed number, as the C operators on unsigned halves need them. */
static inline u64 high_u64(u64 a, u64 b)
{
    u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
    u64 low = al * bl, mid = ah * bl + (low >> 32), other = al * bh + (u32)mid;
    return ah * bh + (mid >> 32) + (other >> 32);
}

static inline u64 high_s64(s64 a, s64 b)
{
    return high_u64((u64)a, (u64)b) - (a < 0 ? (u64)b : 0) - (b < 0 ? (u64)a : 0);
}

static inline s32 sign24(u32 a)
{
    return (s32)(a << 8) >> 8;
}

/* 64-bit division is the slowest thing a lane does; most operands fit in 32 bits. */
static inline u64 divide_u64(u64 a, u64 b)
{
    if (b == 0)
        return UINT64_MAX;
    return (a | b) >> 32 ? a / b : (u32)a / (u32)b;
}

static inline u64 remainder_u64(u64 a, u64 b)
{
    if (b == 0)
        return a;
    return (a | b) >> 32 ? a % b : (u32)a % (u32)b;
}

static inline s64 divide_s64(s64 a, s64 b)
{
    if (b == 0)
        return -1;
    if (b == -1)
        return (s64)(0 - (u64)a);
    return ((u64)a | (u64)b) >> 32 ? a / b : (s64)((u32)a / (u32)b);
}

static inline s64 remainder_s64(s64 a, s64 b)
{
    if (b == 0)
        return a;
    if (b == -1)
        return 0;
    return ((u64)a | (u64)b) >> 32 ? a % b : (s64)((u32)a % (u32)b);
}

static inline u32 reverse_b32(u32 a)
{
    a = (a & 0x55555555u) << 1 | (a >> 1 & 0x55555555u);
    a = (a & 0x33333333u) << 2 | (a >> 2 & 0x33333333u);
    a = (a & 0x0f0f0f0fu) << 4 | (a >> 4 & 0x0f0f0f0fu);
    return __builtin_bswap32(a);
}

/* The highest set bit, or all ones; as a shift that brings it to the top if `shift`. */
static inline u32 find_bit(u64 a, u32 top, int shift)
{
    if (a == 0)
        return GM_FULL;
    u32 at = 63 - (u32)__builtin_clzll(a);
    return shift ? top - at : at;
}

static inline u64 low_ones(u32 count)
{
    return count > 63 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static inline u64 extract_u(u64 a, u32 width, u32 at, u32 count)
{
    at &= 255, count &= 255;
    return (at >= width ? 0 : a >> at) & low_ones(count);
}

static inline u64 extract_s(u64 a, u32 width, u32 at, u32 count)
{
    at &= 255, count &= 255;
    if (count == 0)
        return 0;
    u32 last = at + count - 1 < width - 1 ? at + count - 1 : width - 1;
    u64 sign = a >> last & 1 ? UINT64_MAX : 0;
    u64 bits = at >= width ? sign : (a >> at) | (at ? sign << (width - at) : 0);
    if (width == 64 && at < 64)
        bits = (u64)((s64)a >> at); /* shifts in a's own sign; what lies above `last` is replaced below */
    return (bits & low_ones(count)) | (sign & ~low_ones(count)) |
           (at + count > width && at < width ? sign & ~low_ones(width - at) : 0);
}

static inline u64 insert_bits(u64 a, u64 b, u32 width, u32 at, u32 count)
{
    at &= 255, count &= 255;
    u64 hole = at >= width ? 0 : low_ones(count) << (at & 63);
    return (b & ~hole) | ((at >= width ? 0 : a << (at & 63)) & hole);
}

static inline u32 find_nth(u32 mask, u32 base, s32 offset)
{
    base &= 31;
    if (offset == 0)
        return mask >> base & 1 ? base : GM_FULL;
    s32 step = offset > 0 ? 1 : -1, left = offset > 0 ? offset : offset == INT32_MIN ? INT32_MAX : -offset;
    for (s32 at = (s32)base; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && --left == 0)
            return (u32)at;
    return GM_FULL;
}

/* Bit by bit, the entry of an 8-row truth table. */
static inline u32 table3(u32 a, u32 b, u32 c, u32 table)
{
    u32 k[8];
    for (int i = 0; i < 8; i++)
        k[i] = 0 - (table >> i & 1);
    u32 k00 = k[0] ^ (c & (k[0] ^ k[1])), k01 = k[2] ^ (c & (k[2] ^ k[3]));
    u32 k10 = k[4] ^ (c & (k[4] ^ k[5])), k11 = k[6] ^ (c & (k[6] ^ k[7]));
    u32 k0 = k00 ^ (b & (k00 ^ k01)), k1 = k10 ^ (b & (k10 ^ k11));
    return k0 ^ (a & (k0 ^ k1));
}

static inline u32 pick_byte(u64 both, u32 selector)
{
    u32 byte = (u32)(both >> (selector & 7) * 8) & 255;
    return selector & 8 ? (byte & 128 ? 255 : 0) : byte;
}

static inline u32 permute_bytes(u32 a, u32 b, u32 c)
{
    u64 both = a | (u64)b << 32;
    return pick_byte(both, c) | pick_byte(both, c >> 4) << 8 | pick_byte(both, c >> 8) << 16 |
           pick_byte(both, c >> 12) << 24;
}

/* The named modes of prmt: f4e b4e rc8 ecl ecr rc16, from 1. */
static inline u32 permute_mode(u32 a, u32 b, u32 c, u32 mode)
{
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123}, {0x0000, 0x1111, 0x2222, 0x3333},
        {0x3210, 0x3211, 0x3222, 0x3333}, {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232},
    };
    return permute_bytes(a, b, selectors[(mode - 1) % 6][c & 3]);
}

static inline u32 dot4(u32 a, u32 b, u32 c, int a_signed, int b_signed)
{
    for (int i = 0; i < 32; i += 8) {
        s32 x = (s32)(a >> i & 255), y = (s32)(b >> i & 255);
        x = a_signed ? (s8)x : x;
        y = b_signed ? (s8)y : y;
        c += (u32)(x * y);
    }
    return c;
}

static inline u32 dot2(u32 a, u32 b, u32 c, int a_signed, int b_signed, int high)
{
    for (int i = 0; i < 2; i++) {
        s32 x = (s32)(a >> i * 16 & 0xffff), y = (s32)(b >> ((high ? 16 : 0) + i * 8) & 255);
        x = a_signed ? (s16)x : x;
        y = b_signed ? (s8)y : y;
        c += (u32)x * (u32)y;
    }
    return c;
}

/* |a - b| of parts of `width` bits; k: bit 0 a is signed, bit 1 b; add: their sum and c, else one in each part. */
static inline u32 differences(u32 a, u32 b, u32 c, u32 width, u32 k, int add)
{
    u32 result = 0, mask = (1u << width) - 1;
    for (u32 at = 0; at < 32; at += width) {
        s32 x = (s32)(a >> at & mask), y = (s32)(b >> at & mask), top = 1 << (width - 1);
        x = k & 1 ? (x ^ top) - top : x;
        y = k & 2 ? (y ^ top) - top : y;
        u32 apart = (u32)(x > y ? x - y : y - x);
        result = add ? result + apart : result | (apart & mask) << at;
    }
    return add ? result + c : result;
}

#define low16(a)        ((u16)(a))
#define high16(a)       ((u16)((a) >> 16))
#define least(a, b)     ((a) < (b) ? (a) : (b))
#define most(a, b)      ((a) > (b) ? (a) : (b))
#define PAIR(low, high) ((u32)(u16)(low) | (u32)(u16)(high) << 16)

/* Saturating conversion to `bits` bits; kind: bit 0 the source is signed, bit 1 the result is. */
static inline u64 clamp_bits(u64 a, u32 bits, u32 kind)
{
    u64 top = low_ones(kind & 2 ? bits - 1 : bits);
    if (kind & 1 && (s64)a < 0)
        return kind & 2 ? ((s64)a < (s64)~top ? ~top : a) : 0;
    return a > top ? top : a;
}

static inline int in_space(const gm_warp *w, int space, u64 a)
{
    u64 window = space == GM_SPACE_SHARED  ? GM_SHARED_WINDOW
                 : space == GM_SPACE_LOCAL ? GM_LOCAL_WINDOW
                                           : GM_PARAM_WINDOW;
    (void)w;
    return space == GM_SPACE_GLOBAL ? a >= GM_GLOBAL_START || a < GM_SHARED_WINDOW : a - window < GM_WINDOW;
}

/* --- floats ---------------------------------------------------------------------------------------------------- */

static inline u32 bits_of(f32 a)
{
    u32 bits;
    memcpy(&bits, &a, 4);
    return bits;
}

static inline f32 float_of(u32 bits)
{
    f32 a;
    memcpy(&a, &bits, 4);
    return a;
}

static inline f32 one_nan(f32 a)
{
    return a != a ? float_of(0x7fffffffu) : a;
}

static inline u32 flush_bits(u32 a)
{
    return a & 0x7f800000u ? a : a & 0x80000000u;
}

/* Subnormal numbers become zeros of their sign. */
static inline f32 flush(f32 a)
{
    return float_of(flush_bits(bits_of(a)));
}

static inline f32 clip(f32 a, int flushes)
{
    a = flushes ? flush(a) : a;
    return a > 1 ? 1.0f : a > 0 ? a : 0.0f; /* NaN becomes 0 */
}

/* -0 is smaller than +0; a NaN loses to a number unless `keep`. */
static inline f32 smaller(f32 a, f32 b, int keep)
{
    f32 r = a < b || (a == b && bits_of(a) >> 31) ? a : b;
    r = a != a ? (keep ? a : b) : b != b ? (keep ? b : a) : r;
    return one_nan(r);
}

static inline f32 larger(f32 a, f32 b, int keep)
{
    f32 r = a > b || (a == b && bits_of(b) >> 31) ? a : b;
    r = a != a ? (keep ? a : b) : b != b ? (keep ? b : a) : r;
    return one_nan(r);
}

static inline f64 smaller_f64(f64 a, f64 b)
{
    f64 r = a < b || (a == b && signbit(a)) ? a : b;
    return a != a ? b : b != b ? a : r;
}

static inline f64 larger_f64(f64 a, f64 b)
{
    f64 r = a > b || (a == b && signbit(b)) ? a : b;
    return a != a ? b : b != b ? a : r;
}

static inline f64 inverse_root(f64 a)
{
    return 1 / sqrt(a);
}

#define approximate(f, a, flushes) one_nan((flushes) ? flush((f32)f((f64)flush(a))) : (f32)f((f64)(a)))

static inline f32 from_f16(u16 h)
{
    u32 sign = (u32)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    u32 normal = sign | ((exponent + 112) << 23) | mantissa << 13;
    u32 special = sign | 0x7f800000u | mantissa << 13;
    f32 small = (f32)mantissa * 0x1p-24f;
    u32 tiny = bits_of(small) | sign;
    return float_of(exponent == 31 ? special : exponent == 0 ? tiny : normal);
}

static inline u16 to_f16(f32 a)
{
    u32 x = bits_of(a), sign = x >> 16 & 0x8000, magnitude = x & 0x7fffffffu;
    /* The addition rounds to even at the place where a half's last bit lies. */
    u32 rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13;
    u32 normal = rounded - (112 << 10);
    u32 tiny = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u; /* 0.5 has its last bit at 2^-24 */
    u32 h = magnitude > 0x7f800000u    ? 0x7fff
            : magnitude >= 0x477ff000u ? 0x7c00
            : magnitude < 0x38800000u  ? tiny
                                       : normal;
    return (u16)(magnitude > 0x7f800000u ? 0x7fff : sign | h);
}

static inline f32 from_bf16(u16 h)
{
    return float_of((u32)h << 16);
}

static inline u16 to_bf16(f32 a)
{
    u32 x = bits_of(a);
    return (u16)((x & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (x + 0x7fff + (x >> 16 & 1)) >> 16);
}

static inline u32 tf32_away(u32 a)
{
    return (a & 0x7f800000u) == 0x7f800000u ? (a & 0x7fffffu ? 0x7fffffffu : a) : (a + 0x1000u) & ~0x1fffu;
}

static inline u32 tf32_even(u32 a)
{
    return (a & 0x7f800000u) == 0x7f800000u ? (a & 0x7fffffu ? 0x7fffffffu : a)
                                            : (a + 0xfffu + (a >> 13 & 1)) & ~0x1fffu;
}

/* Rounding modes, as the machine's own instructions name them. */
static inline f64 whole(f64 a, int rounding)
{
    return rounding == GM_ROUND_ZERO   ? trunc(a)
           : rounding == GM_ROUND_DOWN ? floor(a)
           : rounding == GM_ROUND_UP   ? ceil(a)
                                       : rint(a);
}

static inline s64 truncate_s32(f64 a)
{
    return a != a ? 0 : a >= 2147483647.0 ? INT32_MAX : a <= -2147483648.0 ? INT32_MIN : (s64)a;
}

/* NaN becomes 0, but where source or result has 64 bits the number with the top bit alone. */
static inline u64 integer_of(f64 a, int rounding, int kind, int wide)
{
    int bits = 8 << (kind & 15), is_signed = kind & 0x80;
    if (a != a)
        return wide || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
    a = whole(a, rounding);
    f64 top = is_signed ? ldexp(1, bits - 1) : ldexp(1, bits);
    if (a >= top)
        return low_ones((u32)(is_signed ? bits - 1 : bits));
    if (is_signed)
        return a < -top ? ~low_ones((u32)(bits - 1)) : (u64)(s64)a;
    return a <= 0 ? 0 : (u64)a;
}

/* 8-bit floats: e4m3 (448 the largest, no infinity) and e5m2; too large numbers saturate. */
static inline u8 to_f8(f32 a, int e5m2, int relu)
{
    u32 sign = bits_of(a) >> 31;
    if (a != a)
        return 0x7f;
    if (relu && sign)
        return 0;
    int mantissa = e5m2 ? 2 : 3, least_exponent = e5m2 ? -14 : -6;
    f64 size = fabs((f64)a), top = e5m2 ? 57344 : 448;
    if (size == 0)
        return (u8)(sign << 7);
    int exponent;
    frexp(size, &exponent);
    exponent = exponent - 1 < least_exponent ? least_exponent : exponent - 1;
    f64 steps = rint(ldexp(size, mantissa - exponent));
    f64 value = ldexp(steps, exponent - mantissa);
    if (value > top)
        return (u8)(sign << 7 | (e5m2 ? 0x7b : 0x7e));
    u32 bits = (u32)((exponent - least_exponent) << mantissa) + (u32)steps;
    return (u8)(sign << 7 | bits); /* steps carries the hidden bit into the exponent */
}

static inline f32 from_f8(u8 h, int e5m2)
{
    int mantissa = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7;
    int exponent = (h & 0x7f) >> mantissa, part = h & ((1 << mantissa) - 1);
    f32 sign = h & 0x80 ? -1.0f : 1.0f;
    if (e5m2 && exponent == 31)
        return part ? float_of(0x7fffffffu) : sign * INFINITY;
    if (!e5m2 && (h & 0x7f) == 0x7f)
        return float_of(0x7fffffffu);
    return sign * (f32)ldexp(exponent ? part + (1 << mantissa) : part, (exponent ? exponent : 1) - bias - mantissa);
}
