/* Integer instructions that are no function of one lane's three operands: bit fields inserted, carries, 128 bits. */

#define INSERT(name, T, width)                                                                                         \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        T *d = SLOT(T, in->d);                                                                                         \
        const T *a = SLOT(T, in->a), *b = SLOT(T, in->b);                                                              \
        const u32 *at = SLOT(u32, in->c), *count = SLOT(u32, in->e);                                                   \
        T r[GM_LANES];                                                                                                 \
        EACH_LANE r[i] = (T)insert_bits(a[i], b[i], width, at[i], count[i]);                                           \
        BLEND(T, d, r);                                                                                                \
        return in + 1;                                                                                                 \
    }
INSERT(bfi_b32, u32, 32)
INSERT(bfi_b64, u64, 64)

/* A carry is a predicate: at `c` the one that comes in (if k), at `e` the one that goes out (if n). */
#define CARRY(name, T, sum, out)                                                                                       \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        T *d = SLOT(T, in->d);                                                                                         \
        const T *pa = SLOT(T, in->a), *pb = SLOT(T, in->b);                                                            \
        const u32 carry = in->k ? WORD(in->c) : 0;                                                                     \
        u32 carried = 0;                                                                                               \
        for (int i = 0; i < GM_LANES; i++) {                                                                           \
            const T a = pa[i], b = pb[i], c = carry >> i & 1, r = sum;                                                 \
            carried |= (out) ? bit_of[i] : 0;                                                                          \
            if (lanes >> i & 1)                                                                                        \
                d[i] = r;                                                                                              \
        }                                                                                                              \
        if (in->n)                                                                                                     \
            WORD(in->e) = (WORD(in->e) & ~lanes) | (carried & lanes);                                                  \
        return in + 1;                                                                                                 \
    }
CARRY(carry_add_b32, u32, a + b + c, r < a || (c && r == a))
CARRY(carry_add_b64, u64, a + b + c, r < a || (c && r == a))
CARRY(carry_sub_b32, u32, a - b - c, a < b || (c && a == b))
CARRY(carry_sub_b64, u64, a - b - c, a < b || (c && a == b))

HANDLER(mov_b128)
{
    TAKE_PART;
    for (int plane = 0; plane < 2; plane++) {
        u64 *d = SLOT(u64, in->d + plane * 256);
        const u64 *a = SLOT(u64, in->a + plane * 256);
        BLEND(u64, d, a);
    }
    return in + 1;
}
