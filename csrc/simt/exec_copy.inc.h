/* cp.async, and the matrices of 8 x 8 halves that a warp loads and stores together. Copies are carried out at once;
 * what a kernel may not rely on before its wait is the watch's business. */

/* d the shared address, a the global one (64 bits), b how many bytes are read (the rest is zeros) or GM_NOWHERE, c a
 * predicate that drops the source or GM_NOWHERE, k log2 of the bytes, f 0x200: d is 64 bits; e 1: .cg. */
HANDLER(cp_async)
{
    TAKE_PART;
    if (lanes == 0) {
        w->sites[in->x].idle++;
        return in + 1;
    }
    const u32 bytes = 1u << in->k;
    u64 source[GM_LANES], target[GM_LANES];
    u8 *from[GM_LANES], *to[GM_LANES];
    wide_addresses(in, regs, source);
    for (int i = 0; i < GM_LANES; i++)
        target[i] = (in->f & 0x200 ? (u32)SLOT(u64, in->d)[i] : SLOT(u32, in->d)[i]) + (u32)(s32)in->n;
    u32 reads = lanes;
    for (int i = 0; i < GM_LANES; i++)
        if (in->b != GM_NOWHERE && SLOT(u32, in->b)[i] == 0)
            reads &= ~bit_of[i];
    if (in->c != GM_NOWHERE)
        reads &= ~(WORD(in->c) ^ (in->e & 2 ? GM_FULL : 0));
    u32 found = gm_reach_copy(w, in, lanes, reads, source, target, bytes, from, to);
    for (int i = 0; i < GM_LANES; i++) {
        if (!(found >> i & 1))
            continue;
        u8 item[16] = {0};
        u32 length = in->b == GM_NOWHERE ? bytes : SLOT(u32, in->b)[i] < bytes ? SLOT(u32, in->b)[i] : bytes;
        if (reads >> i & 1)
            memcpy(item, from[i], length);
        memcpy(to[i], item, bytes);
    }
    return in + 1;
}

HANDLER(cp_async_commit)
{
    TAKE_PART;
    gm_copy_commit(w, lanes);
    return in + 1;
}

/* imm groups may be left, n: all copies */
HANDLER(cp_async_wait)
{
    TAKE_PART;
    gm_copy_wait(w, lanes, (u32)in->imm, in->n);
    return in + 1;
}

/* Matrices of 8 rows of 16 bytes: n of them, k transposed, registers in the list at d. Which rows are there, of those
 * that the first lanes name. */
static inline u32 matrix_rows(gm_warp *w, const gm_insn *in, uint8_t *regs, int writes, u8 *row[GM_LANES])
{
    u64 address[GM_LANES];
    wide_addresses(in, regs, address);
    return gm_reach(w, in, GM_SPACE_SHARED, in->n == 4 ? GM_FULL : (1u << 8 * in->n) - 1, address, 16, writes, row);
}

/* Lane l's half-word j of a matrix: the row's number, and where it is in the row: row l / 4, columns 2 (l % 4) and one
 * more, or the other way round. */
static inline u32 matrix_row(const gm_insn *in, int l, int j)
{
    return in->k ? 2 * (u32)(l % 4) + (u32)j : (u32)l / 4;
}

static inline u32 matrix_byte(const gm_insn *in, int l, int j)
{
    return 2 * (in->k ? (u32)l / 4 : 2 * (u32)(l % 4) + (u32)j);
}

HANDLER(ldmatrix)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    u8 *row[GM_LANES];
    u32 there = matrix_rows(w, in, regs, 0, row);
    for (u32 m = 0; m < in->n; m++) {
        u32 *d = SLOT(u32, w->lists[in->d + m]);
        for (int l = 0; l < GM_LANES; l++) {
            u16 half[2] = {0, 0};
            for (int j = 0; j < 2; j++) {
                u32 r = 8 * m + matrix_row(in, l, j);
                if (there >> r & 1)
                    memcpy(&half[j], row[r] + matrix_byte(in, l, j), 2);
            }
            if (lanes >> l & 1)
                d[l] = half[0] | (u32)half[1] << 16;
        }
    }
    return in + 1;
}

HANDLER(stmatrix)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    u8 *row[GM_LANES];
    u32 there = matrix_rows(w, in, regs, 1, row);
    for (u32 m = 0; m < in->n; m++) {
        const u32 *d = SLOT(u32, w->lists[in->d + m]);
        for (int l = 0; l < GM_LANES; l++)
            for (int j = 0; j < 2; j++) {
                u32 r = 8 * m + matrix_row(in, l, j);
                u16 half = (u16)(d[l] >> 16 * j);
                if (there >> r & 1 && lanes >> l & 1)
                    memcpy(row[r] + matrix_byte(in, l, j), &half, 2);
            }
    }
    return in + 1;
}

/* Transposes one matrix between the lanes' registers. */
HANDLER(movmatrix)
{
    TAKE_PART;
    u32 r[GM_LANES];
    const u32 *a = SLOT(u32, in->a);
    for (int l = 0; l < GM_LANES; l++) {
        u32 half[2];
        for (int j = 0; j < 2; j++) {
            int at = (2 * (l % 4) + j) * 4 + l / 4 / 2;
            half[j] = a[at] >> (l / 4 % 2 * 16) & 0xffff;
        }
        r[l] = half[0] | half[1] << 16;
    }
    u32 *d = SLOT(u32, in->d);
    BLEND(u32, d, r);
    return in + 1;
}
