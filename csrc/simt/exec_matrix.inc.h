/* mma: D = A B + C by all lanes of a warp. With g = lane / 4 and t = lane % 4, register r of A holds row g + 8 (r % 2)
 * (row g alone where there are 8 rows) and, of each group of 4 words along k, word t; register r of B column g
 * likewise; C and D row g + 8 (r / 2), columns 2 t and 2 t + 1. Products are exact and summed in double precision, then
 * rounded once; the hardware sums in an order and a precision that are not published. */

typedef struct matrix_shape {
    u32 m, n, k;
} matrix_shape;

static f64 matrix_item(u64 word, int type, u32 i)
{
    switch (type) {
    case GM_MATRIX_F16:
        return (f64)from_f16((u16)(word >> 16 * i));
    case GM_MATRIX_BF16:
        return (f64)from_bf16((u16)(word >> 16 * i));
    case GM_MATRIX_TF32:
        return (f64)float_of((u32)word & 0xffffe000u);
    case GM_MATRIX_E4M3:
        return (f64)from_f8((u8)(word >> 8 * i), 0);
    case GM_MATRIX_E5M2:
        return (f64)from_f8((u8)(word >> 8 * i), 1);
    case GM_MATRIX_U8:
        return (f64)(u8)(word >> 8 * i);
    case GM_MATRIX_S8:
        return (f64)(s8)(word >> 8 * i);
    case GM_MATRIX_U4:
        return (f64)(word >> 4 * i & 15);
    case GM_MATRIX_S4:
        return (f64)((s32)((u32)(word >> 4 * i) << 28) >> 28);
    case GM_MATRIX_B1:
        return (f64)(word >> i & 1);
    default: {
        f64 value;
        memcpy(&value, &word, 8);
        return value;
    }
    }
}

static u32 matrix_bits(int type)
{
    static const u8 bits[] = {16, 16, 32, 8, 8, 8, 8, 4, 4, 1, 64};
    return bits[type];
}

/* The list at a: registers of A, B, C, D; k the shape (rows 16 or 8), imm k's length; b the types of A and of B, c that
 * of C and D: 0 f32, 1 f16, 2 s32, 3 f64; n 1 and, 2 xor of bits, 4 saturate; e how many registers each has, a byte
 * each. */
HANDLER(mma)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    GATHER(w->live);
    const u32 rows = in->k, depth = (u32)in->imm, *list = w->lists + in->a;
    const int ta = (int)(in->b & 0xff), tb = (int)(in->b >> 8 & 0xff), tc = (int)in->c;
    const u32 bits = matrix_bits(ta), word_items = bits == 64 ? 1 : 32 / bits, high = rows == 16 ? 2 : 1;
    const u32 words = depth / word_items / 4; /* of a lane, along k */
    const u32 *ra = list, *rb = ra + words * high, *rc = rb + words;
    const u32 c_regs = tc == 1 ? high : 2 * high;
    const u32 *rd = rc + c_regs;
    static _Thread_local f64 a[16][256], b[256][8], c[16][8];
    for (u32 l = 0; l < GM_LANES; l++) {
        const u32 g = l / 4, t = l % 4;
        for (u32 r = 0; r < words * high; r++) {
            const u64 word = bits == 64 ? SLOT(u64, ra[r])[l] : SLOT(u32, ra[r])[l];
            for (u32 i = 0; i < word_items; i++)
                a[g + 8 * (r % high)][(r / high * 4 + t) * word_items + i] = matrix_item(word, ta, i);
        }
        for (u32 r = 0; r < words; r++) {
            const u64 word = bits == 64 ? SLOT(u64, rb[r])[l] : SLOT(u32, rb[r])[l];
            for (u32 i = 0; i < word_items; i++)
                b[(r * 4 + t) * word_items + i][g] = matrix_item(word, tb, i);
        }
        for (u32 r = 0; r < c_regs; r++)
            for (u32 i = 0; i < (tc == 1 ? 2 : 1); i++) {
                const u32 row = tc == 1 ? g + 8 * r : g + 8 * (r / 2), column = 2 * t + (tc == 1 ? i : r % 2);
                c[row][column] = tc == 0   ? (f64)SLOT(f32, rc[r])[l]
                                 : tc == 1 ? (f64)from_f16((u16)(SLOT(u32, rc[r])[l] >> 16 * i))
                                 : tc == 2 ? (f64)SLOT(s32, rc[r])[l]
                                           : SLOT(f64, rc[r])[l];
            }
    }
    for (u32 i = 0; i < rows; i++)
        for (u32 j = 0; j < 8; j++) {
            f64 sum = tc == 3 ? c[i][j] : 0;
            for (u32 k = 0; k < depth; k++)
                sum = in->n & 3 ? sum + (in->n & 1 ? a[i][k] * b[k][j] : (a[i][k] != b[k][j]))
                      : tc == 3 ? fma(a[i][k], b[k][j], sum)
                                : sum + a[i][k] * b[k][j];
            c[i][j] = tc == 3 ? sum : sum + c[i][j];
        }
    for (u32 l = 0; l < GM_LANES; l++) {
        const u32 g = l / 4, t = l % 4;
        if (!(lanes >> l & 1))
            continue;
        for (u32 r = 0; r < c_regs; r++) {
            const u32 row = tc == 1 ? g + 8 * r : g + 8 * (r / 2), column = 2 * t + r % 2;
            if (tc == 0)
                SLOT(f32, rd[r])[l] = one_nan((f32)c[row][column]);
            else if (tc == 1)
                SLOT(u32, rd[r])[l] = PAIR(to_f16(odd_float(c[row][2 * t])), to_f16(odd_float(c[row][2 * t + 1])));
            else if (tc == 2)
                SLOT(u32, rd[r])[l] = (u32)(in->n & 4 ? clamp_s32((s64)c[row][column]) : (s64)c[row][column]);
            else
                SLOT(f64, rd[r])[l] = c[row][column];
        }
    }
    return in + 1;
}

/* --- wmma: fragments whose layout is nobody's business ----------------------------------------------------------- */

/* Item q of a fragment, counted over lanes and their registers, is item q of the matrix, row by row; what is left over
 * repeats it. `items` are held by a register. */
static inline u32 fragment_item(u32 lane, u32 r, u32 i, u32 registers, u32 items, u32 all)
{
    return (lane * registers * items + r * items + i) % all;
}

/* a the address, b the leading dimension or GM_NOWHERE, the list at d: n registers; c rows, columns, layout (1: columns
 * lie together), a byte each; e the bytes of an item; f the space; k 1 stores. */
HANDLER(wmma_move)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    GATHER(w->live);
    const u32 rows = in->c & 0xff, columns = in->c >> 8 & 0xff, by_column = in->c >> 16 & 1, bytes = in->e;
    const u32 word = bytes == 8 ? 8 : 4, items = word / bytes;
    gm_site_state *site = &w->sites[in->x];
    site->counts.executions++;
    site->counts.lanes += (u32)__builtin_popcount(lanes);
    for (u32 left = lanes; left; left &= left - 1) {
        const u32 l = (u32)__builtin_ctz(left);
        const u64 base = SLOT(u64, in->a)[l];
        const u64 stride = in->b == GM_NOWHERE ? (by_column ? rows : columns) : SLOT(u32, in->b)[l];
        for (u32 r = 0; r < in->n; r++)
            for (u32 i = 0; i < items; i++) {
                const u32 q = fragment_item(l, r, i, in->n, items, rows * columns), row = q / columns,
                          column = q % columns;
                const u64 at = base + (by_column ? column * stride + row : row * stride + column) * bytes;
                u8 *slot = regs + w->lists[in->d + r] + l * word + i * bytes;
                u8 *memory = gm_reach_bytes(w, in, l, (gm_space)in->f, at, bytes, bytes, in->k);
                if (in->k && memory)
                    memcpy(memory, slot, bytes);
                else if (memory)
                    memcpy(slot, memory, bytes);
                else if (!in->k)
                    memset(slot, 0, bytes);
            }
    }
    return in + 1;
}

/* The list at a: registers of A, B, C, D, as many as the bytes of imm say; c m, n, k; b types of A (B alike), C and D;
 * n 4 saturate */
HANDLER(wmma_product)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    GATHER(w->live);
    const u32 m = in->c & 0xff, n = in->c >> 8 & 0xff, depth = in->c >> 16;
    const int type = (int)(in->b & 0xff), types[2] = {(int)(in->b >> 8 & 0xff), (int)(in->b >> 16 & 0xff)};
    const u32 bits = matrix_bits(type), word = bits == 64 ? 8 : 4, items = word * 8 / bits;
    static _Thread_local f64 a[32 * 16], b[16 * 32], c[32 * 32];
    const u32 *list = w->lists + in->a;
    for (int which = 0; which < 3; which++) {
        const u32 count = (u32)(in->imm >> 8 * which & 0xff);
        const int own = which < 2 ? type : types[0];
        const u32 own_items = which < 2 ? items : own == GM_MATRIX_F16 ? 2 : 1, own_word = own == GM_MATRIX_F64 ? 8 : 4;
        const u32 all = which == 0 ? m * depth : which == 1 ? depth * n : m * n;
        f64 *to = which == 0 ? a : which == 1 ? b : c;
        for (u32 l = 0; l < GM_LANES; l++)
            for (u32 r = 0; r < count; r++) {
                u64 bits_here = 0;
                memcpy(&bits_here, regs + list[r] + l * own_word, own_word);
                for (u32 i = 0; i < own_items; i++)
                    to[fragment_item(l, r, i, count, own_items, all)] =
                        which == 2 && own == GM_MATRIX_F32   ? (f64)float_of((u32)bits_here)
                        : which == 2 && own == GM_MATRIX_S32 ? (f64)(s32)bits_here
                                                             : matrix_item(bits_here, own, i);
            }
        list += count;
    }
    for (u32 i = 0; i < m; i++)
        for (u32 j = 0; j < n; j++) {
            f64 sum = type == GM_MATRIX_F64 ? c[i * n + j] : 0;
            for (u32 k = 0; k < depth; k++)
                sum = type == GM_MATRIX_F64 ? fma(a[i * depth + k], b[k * n + j], sum)
                                            : sum + a[i * depth + k] * b[k * n + j];
            c[i * n + j] = type == GM_MATRIX_F64 ? sum : sum + c[i * n + j];
        }
    const u32 count = (u32)(in->imm >> 24 & 0xff);
    for (u32 l = 0; l < GM_LANES; l++)
        for (u32 r = 0; r < count && lanes >> l & 1; r++) {
            const f64 *x = &c[fragment_item(l, r, 0, count, types[1] == GM_MATRIX_F16 ? 2 : 1, m * n)];
            if (types[1] == GM_MATRIX_F16)
                SLOT(u32, list[r])[l] = PAIR(to_f16(odd_float(x[0])), to_f16(odd_float(x[1])));
            else if (types[1] == GM_MATRIX_F32)
                SLOT(f32, list[r])[l] = one_nan((f32)x[0]);
            else if (types[1] == GM_MATRIX_S32)
                SLOT(u32, list[r])[l] = (u32)(in->n & 4 ? clamp_s32((s64)x[0]) : (s64)x[0]);
            else
                SLOT(f64, list[r])[l] = x[0];
        }
    return in + 1;
}

/* --- bulk copies, barriers in memory --------------------------------------------------------------------------- */

HANDED_ON(mbarrier, gm_mbarrier(w, in, lanes))
HANDED_ON(bulk_copy, gm_bulk_copy(w, in, lanes, NULL))

/* f: what, its type, the bytes of an item */
static void reduce_bulk(const gm_insn *in, u8 *target, const u8 *source, u64 bytes)
{
    const u32 item = in->f >> 16, type = in->f >> 8 & 0xff;
    for (u64 at = 0; at + item <= bytes; at += item) {
        u64 old = 0, value = 0;
        memcpy(&old, target + at, item);
        memcpy(&value, source + at, item);
        old = atomic_result((int)(in->f & 0xff), (int)type, old, value, 0, 0);
        memcpy(target + at, &old, item);
    }
}

HANDED_ON(bulk_reduce, gm_bulk_copy(w, in, lanes, reduce_bulk))
HANDED_ON(store_async, gm_store_async(w, in, lanes, NULL))
HANDED_ON(reduce_async, gm_store_async(w, in, lanes, reduce_bulk))
HANDED_ON(bulk_tensor, gm_bulk_tensor(w, in, lanes))
