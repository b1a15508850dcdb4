/* Floating-point arithmetic in the rarer roundings, one lane at a time under the processor's own rounding mode. The
 * operations are functions that nothing inlines: the compiler may not carry one across the change of mode. */

static const int gm_modes[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

static __attribute__((noinline)) f64 arithmetic_f64(int what, f64 a, f64 b, f64 c)
{
    switch (what) {
    case GM_ADD:
        return a + b;
    case GM_SUB:
        return a - b;
    case GM_MUL:
        return a * b;
    case GM_FMA:
        return fma(a, b, c);
    case GM_DIV:
        return a / b;
    case GM_SQRT:
        return sqrt(a);
    case GM_RCP:
        return 1 / a;
    case GM_MIN:
        return smaller_f64(a, b);
    default:
        return larger_f64(a, b);
    }
}

static __attribute__((noinline)) f32 arithmetic_f32(int what, f32 a, f32 b, f32 c, int keep)
{
    switch (what) {
    case GM_ADD:
        return a + b;
    case GM_SUB:
        return a - b;
    case GM_MUL:
        return a * b;
    case GM_FMA:
        return fmaf(a, b, c);
    case GM_DIV:
        return a / b;
    case GM_SQRT:
        return sqrtf(a);
    case GM_RCP:
        return 1 / a;
    case GM_MIN:
        return smaller(a, b, keep);
    default:
        return larger(a, b, keep);
    }
}

/* The sum of two doubles with its last bit set if it is not exact ("rounded to odd"): rounding it again to a narrower
 * format gives what one rounding of the exact sum would. */
static f64 odd_sum(f64 a, f64 b)
{
    f64 s = a + b, t = s - a, lost = (a - (s - t)) + (b - t);
    u64 bits;
    memcpy(&bits, &s, 8);
    if (lost == lost && lost != 0 && isfinite(s) && !(bits & 1))
        bits = (lost > 0) == (s > 0) ? bits + 1 : bits - 1;
    memcpy(&s, &bits, 8);
    return s;
}

/* To the nearest float, to even, by way of odd: for halves, whose own rounding follows. */
static f32 odd_float(f64 a)
{
    f32 f = (f32)a;
    if (isfinite(a) && isfinite(f) && (f64)f != a) {
        u32 bits = bits_of(f);
        if (fabs((f64)f) > fabs(a))
            bits--; /* toward zero */
        f = float_of(bits | 1);
    }
    return f;
}

static f64 arithmetic_half(int what, f64 a, f64 b, f64 c, int keep)
{
    switch (what) {
    case GM_FMA:
        return odd_sum(a * b, c);
    case GM_MIN:
    case GM_MAX:
        if (a != a || b != b)
            return keep || (a != a && b != b) ? NAN : a != a ? b : a;
        return what == GM_MIN ? smaller_f64(a, b) : larger_f64(a, b);
    case GM_ADD:
        return odd_sum(a, b);
    case GM_SUB:
        return odd_sum(a, -b);
    default:
        return arithmetic_f64(what, a, b, c);
    }
}

#define NEEDS_C(in) ((in)->k == GM_FMA)

HANDLER(round_f32)
{
    TAKE_PART;
    f32 *d = SLOT(f32, in->d);
    const f32 *a = SLOT(f32, in->a), *b = SLOT(f32, in->b), *c = SLOT(f32, in->c);
    const int flushes = in->n & GM_FLUSH, keep = in->n & GM_KEEP_NAN;
    fesetround(gm_modes[in->n & 3]);
    for (int i = 0; i < GM_LANES; i++) {
        if (!(lanes >> i & 1))
            continue;
        f32 x = a[i], y = b[i], z = NEEDS_C(in) ? c[i] : 0;
        if (flushes)
            x = flush(x), y = flush(y), z = flush(z);
        f32 r = arithmetic_f32(in->k, x, y, z, keep);
        if (in->n & GM_SATURATE)
            r = clip(r, 0);
        if (in->n & GM_RELU)
            r = r != r ? r : r > 0 ? r : 0;
        d[i] = one_nan(flushes ? flush(r) : r);
    }
    fesetround(FE_TONEAREST);
    return in + 1;
}

HANDLER(round_f64)
{
    TAKE_PART;
    f64 *d = SLOT(f64, in->d);
    const f64 *a = SLOT(f64, in->a), *b = SLOT(f64, in->b), *c = SLOT(f64, in->c);
    fesetround(gm_modes[in->n & 3]);
    for (int i = 0; i < GM_LANES; i++)
        if (lanes >> i & 1)
            d[i] = arithmetic_f64(in->k, a[i], b[i], NEEDS_C(in) ? c[i] : 0);
    fesetround(FE_TONEAREST);
    return in + 1;
}

static u16 half_result(f64 r, const gm_insn *in, int brain)
{
    if (in->n & GM_SATURATE)
        r = r > 1 ? 1 : r > 0 ? r : 0;
    if (in->n & GM_RELU && r < 0)
        r = 0;
    u16 h = brain ? to_bf16(odd_float(r)) : to_f16(odd_float(r));
    return in->n & GM_FLUSH && !(h & (brain ? 0x7f80 : 0x7c00)) ? h & 0x8000 : h;
}

static f64 half_operand(u16 h, const gm_insn *in, int brain)
{
    if (in->n & GM_FLUSH && !(h & (brain ? 0x7f80 : 0x7c00)))
        h &= 0x8000;
    return (f64)(brain ? from_bf16(h) : from_f16(h));
}

#define HALF(a, b, c, brain)                                                                                           \
    half_result(arithmetic_half(in->k, half_operand(a, in, brain), half_operand(b, in, brain),                         \
                                half_operand(c, in, brain), in->n &GM_KEEP_NAN),                                       \
                in, brain)

#define HALVES(name, brain)                                                                                            \
    HANDLER(round_##name)                                                                                              \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        u16 *d = SLOT(u16, in->d);                                                                                     \
        const u16 *a = SLOT(u16, in->a), *b = SLOT(u16, in->b), *c = SLOT(u16, in->c);                                 \
        for (int i = 0; i < GM_LANES; i++)                                                                             \
            if (lanes >> i & 1)                                                                                        \
                d[i] = HALF(a[i], b[i], (u16)(NEEDS_C(in) ? c[i] : 0), brain);                                         \
        return in + 1;                                                                                                 \
    }                                                                                                                  \
    HANDLER(round_##name##x2)                                                                                          \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        u32 *d = SLOT(u32, in->d);                                                                                     \
        const u32 *a = SLOT(u32, in->a), *b = SLOT(u32, in->b), *c = SLOT(u32, in->c);                                 \
        for (int i = 0; i < GM_LANES; i++) {                                                                           \
            u32 z = NEEDS_C(in) ? c[i] : 0;                                                                            \
            if (lanes >> i & 1)                                                                                        \
                d[i] = PAIR(HALF(low16(a[i]), low16(b[i]), low16(z), brain),                                           \
                            HALF(high16(a[i]), high16(b[i]), high16(z), brain));                                       \
        }                                                                                                              \
        return in + 1;                                                                                                 \
    }
HALVES(f16, 0)
HALVES(bf16, 1)

#define ROUNDED(name, R, A, convert)                                                                                   \
    static __attribute__((noinline)) R convert_##name(A a)                                                             \
    {                                                                                                                  \
        return convert;                                                                                                \
    }                                                                                                                  \
    HANDLER(round_cvt_##name)                                                                                          \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        R *d = SLOT(R, in->d);                                                                                         \
        const A *a = SLOT(A, in->a);                                                                                   \
        fesetround(gm_modes[in->k & 3]);                                                                               \
        for (int i = 0; i < GM_LANES; i++)                                                                             \
            if (lanes >> i & 1)                                                                                        \
                d[i] = convert_##name(a[i]);                                                                           \
        fesetround(FE_TONEAREST);                                                                                      \
        return in + 1;                                                                                                 \
    }
ROUNDED(f32_f64, f32, f64, one_nan((f32)a))
ROUNDED(f32_s64, f32, s64, (f32)a)
ROUNDED(f32_u64, f32, u64, (f32)a)
ROUNDED(f64_s64, f64, s64, (f64)a)
ROUNDED(f64_u64, f64, u64, (f64)a)

/* Halves in any rounding: the neighbours of the value in the format, and which of them the mode takes. */
static u16 to_half(f64 a, int rounding, int brain)
{
    f32 nearest = odd_float(a);
    u16 h = brain ? to_bf16(nearest) : to_f16(nearest);
    if (a != a || rounding == GM_ROUND_EVEN || isinf(a))
        return h;
    f64 back = (f64)(brain ? from_bf16(h) : from_f16(h));
    int away = fabs(back) > fabs(a), toward = fabs(back) < fabs(a), negative = signbit(a) != 0;
    int wants_away = (rounding == GM_ROUND_UP && !negative) || (rounding == GM_ROUND_DOWN && negative);
    return (u16)(wants_away && toward ? h + 1 : !wants_away && away ? h - 1 : h);
}

#define ROUNDED_HALF(name, brain)                                                                                      \
    HANDLER(round_cvt_##name##_f64)                                                                                    \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        u16 *d = SLOT(u16, in->d);                                                                                     \
        const f64 *a = SLOT(f64, in->a);                                                                               \
        for (int i = 0; i < GM_LANES; i++)                                                                             \
            if (lanes >> i & 1) {                                                                                      \
                f64 x = in->n & GM_SATURATE ? (a[i] > 1 ? 1 : a[i] > 0 ? a[i] : 0) : a[i];                             \
                d[i] = to_half(in->n & GM_RELU && x < 0 ? 0 : x, in->k, brain);                                        \
            }                                                                                                          \
        return in + 1;                                                                                                 \
    }
ROUNDED_HALF(f16, 0)
ROUNDED_HALF(bf16, 1)
