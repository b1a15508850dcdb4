/* atom and red: lane by lane in order, so that one thread's results are always the same. */

static inline u64 atomic_result(int what, int type, u64 old, u64 value, u64 compare, int flushes)
{
    switch (what) {
    case GM_ATOM_EXCH:
        return value;
    case GM_ATOM_CAS:
        return old == compare ? value : old;
    case GM_ATOM_AND:
        return old & value;
    case GM_ATOM_OR:
        return old | value;
    case GM_ATOM_XOR:
        return old ^ value;
    case GM_ATOM_INC:
        return old >= value ? 0 : old + 1;
    case GM_ATOM_DEC:
        return old == 0 || old > value ? value : old - 1;
    default:
        break;
    }
    const int least_of = what == GM_ATOM_MIN;
    switch (type) {
    case GM_ATOM_S32:
        if (what != GM_ATOM_ADD)
            return ((s32)old < (s32)value) == least_of ? old : value;
        return (u32)(old + value);
    case GM_ATOM_S64:
        if (what != GM_ATOM_ADD)
            return ((s64)old < (s64)value) == least_of ? old : value;
        return old + value;
    case GM_ATOM_F32: {
        f32 a = float_of((u32)old), b = float_of((u32)value);
        if (what == GM_ATOM_ADD)
            return bits_of(one_nan(flushes ? flush(flush(a) + flush(b)) : a + b));
        return bits_of(least_of ? smaller(a, b, 0) : larger(a, b, 0));
    }
    case GM_ATOM_F64: {
        f64 a, b, r;
        memcpy(&a, &old, 8);
        memcpy(&b, &value, 8);
        r = what == GM_ATOM_ADD ? a + b : least_of ? smaller_f64(a, b) : larger_f64(a, b);
        u64 bits;
        memcpy(&bits, &r, 8);
        return bits;
    }
    case GM_ATOM_F16:
    case GM_ATOM_BF16:
    case GM_ATOM_F16X2:
    case GM_ATOM_BF16X2: {
        const int brain = type == GM_ATOM_BF16 || type == GM_ATOM_BF16X2;
        const gm_insn plain = {.k = (uint8_t)(what == GM_ATOM_ADD ? GM_ADD : least_of ? GM_MIN : GM_MAX)};
        const gm_insn *in = &plain;
        u16 low = HALF(low16(old), low16(value), 0, brain);
        if (type == GM_ATOM_F16 || type == GM_ATOM_BF16)
            return low;
        return PAIR(low, HALF((u16)(old >> 16), (u16)(value >> 16), 0, brain));
    }
    default: /* unsigned */
        if (what != GM_ATOM_ADD)
            return (old < value) == least_of ? old : value;
        return old + value;
    }
}

static inline u64 slot_item(uint8_t *regs, u32 at, u32 bytes, int i)
{
    return bytes == 2 ? SLOT(u16, at)[i] : bytes == 4 ? SLOT(u32, at)[i] : SLOT(u64, at)[i];
}

/* k what, e its type (low byte) and the bytes of an item (next), n items; b value(s), c what is compared; d the old
 * value(s), or GM_NOWHERE. */
static inline const gm_insn *atomic(const gm_insn *in, gm_warp *w, uint8_t *regs, gm_space space)
{
    TAKE_PART;
    if (lanes == 0) {
        w->sites[in->x].idle++;
        return in + 1;
    }
    const u32 item = in->e >> 8 & 0xff, bytes = item * in->n;
    const int type = in->e & 0xff, gives = in->d != GM_NOWHERE, many = w->worker->run->many;
    u8 *where[GM_LANES];
    places(w, in, regs, space, lanes, bytes, 1, where);
    if (gives) {
        u64 answer = 0;
        memcpy(&answer, where[__builtin_ctz(lanes)], item < 8 ? item : 8);
        gm_warp_asks(w, in, answer);
    }
    for (u32 left = lanes; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        u8 *at = where[i];
        if (many)
            gm_lock(at);
        if (item == 16) {
            u64 old[2];
            memcpy(old, at, 16);
            u64 value[2] = {SLOT(u64, in->b)[i], SLOT(u64, in->b + 256)[i]};
            if (in->k == GM_ATOM_EXCH || (old[0] == SLOT(u64, in->c)[i] && old[1] == SLOT(u64, in->c + 256)[i]))
                memcpy(at, value, 16);
            if (gives)
                SLOT(u64, in->d)[i] = old[0], SLOT(u64, in->d + 256)[i] = old[1];
        } else {
            for (u32 j = 0; j < in->n; j++) {
                u64 old = 0;
                const u32 from = in->n == 1 ? in->b : w->lists[in->b + j];
                memcpy(&old, at + j * item, item);
                const u64 compare = in->k == GM_ATOM_CAS ? slot_item(regs, in->c, item, i) : 0;
                const u64 r =
                    atomic_result(in->k, type, old, slot_item(regs, from, item, i), compare, space == GM_SPACE_GLOBAL);
                memcpy(at + j * item, &r, item);
                if (gives) {
                    const u32 to = in->n == 1 ? in->d : w->lists[in->d + j];
                    if (item == 2)
                        SLOT(u16, to)[i] = (u16)old;
                    else if (item == 4)
                        SLOT(u32, to)[i] = (u32)old;
                    else
                        SLOT(u64, to)[i] = old;
                }
            }
        }
        if (many)
            gm_unlock(at);
    }
    return in + 1;
}

HANDLER(atom_generic)
{
    return atomic(in, w, regs, GM_SPACE_GENERIC);
}

HANDLER(atom_global)
{
    return atomic(in, w, regs, GM_SPACE_GLOBAL);
}

HANDLER(atom_shared)
{
    return atomic(in, w, regs, GM_SPACE_SHARED);
}
