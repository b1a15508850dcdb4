/* Lanes of a warp together: exchanges, votes, barriers. Each names the lanes that must be there; the instruction waits
 * for those that are elsewhere (gm_warp_sync). Lanes in the mask that have exited are nobody's concern. */

/* The lanes that the active ones name (operand e, one mask a lane); reports those that don't name themselves. */
static inline u32 members(gm_warp *w, const gm_insn *in, uint8_t *regs, u32 lanes)
{
    const u32 *mask = SLOT(u32, in->e);
    u32 all = 0, strangers = 0;
    for (u32 left = lanes; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        all |= mask[i];
        strangers |= mask[i] >> i & 1 ? 0 : bit_of[i];
    }
    if (__builtin_expect(strangers != 0, 0) && !w->gathered)
        gm_found(w, in, GM_FINDING_BAD_MASK, strangers, NULL);
    return all;
}

#define GATHER(wanted)                                                                                                 \
    if (__builtin_expect((wanted)&w->live & ~w->active, 0) && !gm_warp_sync(w, in, wanted))                            \
    return NULL

/* k: 0 idx 1 up 2 down 3 bfly; a the value, b which lane, c clamp and segment mask, e members, f the predicate that
 * says whether the lane was in range, or GM_NOWHERE. */
HANDLER(shfl)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    GATHER(members(w, in, regs, lanes));
    const u32 now = w->active & (WORD(in->guard) ^ in->invert);
    const u32 *a = SLOT(u32, in->a), *b = SLOT(u32, in->b), *c = SLOT(u32, in->c);
    u32 r[GM_LANES], from[GM_LANES], inside = 0, absent = 0;
    EACH_LANE
    {
        const u32 lane = (u32)i, bound = c[i] & 31, segment = c[i] >> 8 & 31,
                  most_lane = (lane & segment) | (bound & ~segment);
        const u32 least_lane = lane & segment, by = b[i] & 31;
        u32 j = in->k == 0 ? least_lane | (by & ~segment) : in->k == 1 ? lane - by : in->k == 2 ? lane + by : lane ^ by;
        u32 fits = in->k == 1 ? (s32)j >= (s32)most_lane : j <= most_lane;
        from[i] = fits ? j & 31 : lane;
        inside |= fits ? bit_of[i] : 0;
    }
    for (int i = 0; i < GM_LANES; i++) {
        /* What a lane that is not there would give is nobody's: 0, the same every time. */
        const u32 here = now >> from[i] & 1;
        r[i] = here ? a[from[i]] : 0;
        absent |= here ? 0 : bit_of[i];
    }
    u32 *d = SLOT(u32, in->d);
    if (now == GM_FULL) {
        memcpy(d, r, sizeof r);
    } else {
        for (int i = 0; i < GM_LANES; i++)
            d[i] = now >> i & 1 ? r[i] : d[i];
    }
    if (in->f != GM_NOWHERE)
        WORD(in->f) = (WORD(in->f) & ~now) | (inside & now);
    if (w->step) {
        w->absent = absent & now;
        for (int i = 0; i < GM_LANES; i++)
            w->from[i] = (u8)from[i];
    }
    return in + 1;
}

/* k: 0 all 1 any 2 uni 3 ballot; a the predicate, imm what it is xored with */
HANDLER(vote)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    GATHER(members(w, in, regs, lanes));
    const u32 now = w->active & (WORD(in->guard) ^ in->invert), truth = WORD(in->a) ^ (u32)in->imm;
    const u32 *mask = SLOT(u32, in->e);
    u32 r[GM_LANES], word = 0;
    for (int i = 0; i < GM_LANES; i++) {
        const u32 who = mask[i] & now, yes = truth & who;
        r[i] = yes;
        int holds = in->k == 0 ? yes == who : in->k == 1 ? yes != 0 : yes == 0 || yes == who;
        word |= holds ? bit_of[i] : 0;
    }
    if (in->k == 3) {
        u32 *d = SLOT(u32, in->d);
        for (int i = 0; i < GM_LANES; i++)
            d[i] = now >> i & 1 ? r[i] : d[i];
    } else {
        WORD(in->d) = (WORD(in->d) & ~now) | (word & now);
    }
    return in + 1;
}

#define MATCH(T, width)                                                                                                \
    HANDLER(match_any_##width)                                                                                         \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        if (lanes == 0)                                                                                                \
            return in + 1;                                                                                             \
        GATHER(members(w, in, regs, lanes));                                                                           \
        const u32 now = w->active & (WORD(in->guard) ^ in->invert);                                                    \
        const T *a = SLOT(T, in->a);                                                                                   \
        const u32 *mask = SLOT(u32, in->e);                                                                            \
        u32 r[GM_LANES] = {0};                                                                                         \
        for (int i = 0; i < GM_LANES; i++)                                                                             \
            for (int j = 0; j < GM_LANES; j++)                                                                         \
                r[i] |= (now & mask[i]) >> j & 1 && a[i] == a[j] ? bit_of[j] : 0;                                      \
        u32 *d = SLOT(u32, in->d);                                                                                     \
        for (int i = 0; i < GM_LANES; i++)                                                                             \
            d[i] = now >> i & 1 ? r[i] : d[i];                                                                         \
        return in + 1;                                                                                                 \
    }                                                                                                                  \
    HANDLER(match_all_##width)                                                                                         \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        if (lanes == 0)                                                                                                \
            return in + 1;                                                                                             \
        GATHER(members(w, in, regs, lanes));                                                                           \
        const u32 now = w->active & (WORD(in->guard) ^ in->invert);                                                    \
        const T *a = SLOT(T, in->a);                                                                                   \
        const u32 *mask = SLOT(u32, in->e);                                                                            \
        u32 r[GM_LANES], all = 0;                                                                                      \
        for (int i = 0; i < GM_LANES; i++) {                                                                           \
            u32 same = 0;                                                                                              \
            for (int j = 0; j < GM_LANES; j++)                                                                         \
                same |= (now & mask[i]) >> j & 1 && a[i] == a[j] ? bit_of[j] : 0;                                      \
            r[i] = same == (now & mask[i]) ? same : 0;                                                                 \
            all |= r[i] ? bit_of[i] : 0;                                                                               \
        }                                                                                                              \
        u32 *d = SLOT(u32, in->d);                                                                                     \
        for (int i = 0; i < GM_LANES; i++)                                                                             \
            d[i] = now >> i & 1 ? r[i] : d[i];                                                                         \
        if (in->f != GM_NOWHERE)                                                                                       \
            WORD(in->f) = (WORD(in->f) & ~now) | (all & now);                                                          \
        return in + 1;                                                                                                 \
    }
MATCH(u32, b32)
MATCH(u64, b64)

/* k a gm_atom, n its gm_atom_type */
HANDLER(redux_b32)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    GATHER(members(w, in, regs, lanes));
    const u32 now = w->active & (WORD(in->guard) ^ in->invert);
    const u32 *a = SLOT(u32, in->a), *mask = SLOT(u32, in->e);
    u32 r[GM_LANES];
    for (int i = 0; i < GM_LANES; i++) {
        u32 who = mask[i] & now;
        r[i] = who ? a[__builtin_ctz(who)] : 0;
        for (u32 left = who & (who - 1); who && left; left &= left - 1)
            r[i] = (u32)atomic_result(in->k, in->n, r[i], a[__builtin_ctz(left)], 0, 0);
    }
    u32 *d = SLOT(u32, in->d);
    for (int i = 0; i < GM_LANES; i++)
        d[i] = now >> i & 1 ? r[i] : d[i];
    return in + 1;
}

HANDLER(activemask)
{
    TAKE_PART;
    u32 *d = SLOT(u32, in->d);
    const u32 all = w->active;
    EACH_LANE d[i] = lanes >> i & 1 ? all : d[i];
    return in + 1;
}

/* f: the predicate that is true for the one chosen */
HANDLER(elect)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    GATHER(members(w, in, regs, lanes));
    const u32 now = w->active & (WORD(in->guard) ^ in->invert), first = (u32)__builtin_ctz(now);
    u32 *d = SLOT(u32, in->d);
    EACH_LANE d[i] = now >> i & 1 ? first : d[i];
    WORD(in->f) = (WORD(in->f) & ~now) | (1u << first);
    return in + 1;
}

HANDLER(warpsync)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    const u32 all = members(w, in, regs, lanes);
    GATHER(all);
    gm_warp_met(w, all);
    return in + 1;
}

/* a the barrier, b how many threads or GM_NOWHERE, k aligned; bar_red: c the predicate, imm xored, n 0 popc 1 and 2 or
 */
HANDED_ON(bar_sync, gm_barrier_come(w, in, lanes))
HANDED_ON(bar_arrive, gm_barrier_come(w, in, lanes))
HANDED_ON(bar_red, gm_barrier_come(w, in, lanes))
HANDED_ON(cluster_arrive, gm_cluster_come(w, in, lanes))
HANDED_ON(cluster_wait, gm_cluster_wait(w, in, lanes))

/* Time is the number of instructions executed so far, at one a nanosecond; k: 1 the high half, 2 all 64 bits */
HANDLER(clock)
{
    TAKE_PART;
    const u64 now = w->worker->instructions + (u64)(GM_TURN - w->budget) - w->skipped;
    if (in->k == 2) {
        u64 *d = SLOT(u64, in->d);
        EACH_LANE d[i] = lanes >> i & 1 ? now : d[i];
    } else {
        u32 *d = SLOT(u32, in->d);
        EACH_LANE d[i] = lanes >> i & 1 ? (u32)(now >> (in->k == 1 ? 32 : 0)) : d[i];
    }
    return in + 1;
}

/* Somebody else's turn. */
HANDLER(nanosleep)
{
    w->polled = 1;
    return gm_warp_turn(w, in + 1);
}

/* The address that a block of the cluster has for a shared address: k 1 generic, a the address, b the rank. */
HANDLER(mapa)
{
    TAKE_PART;
    if (in->n == 8) {
        u64 *d = SLOT(u64, in->d);
        const u64 *a = SLOT(u64, in->a);
        const u32 *b = SLOT(u32, in->b);
        EACH_LANE
        {
            const u64 to = (a[i] & ~(u64)0xff000000u) | (u64)(((b[i] & 63) + 1) << GM_RANK_SHIFT);
            d[i] = lanes >> i & 1 ? to : d[i];
        }
    } else {
        u32 *d = SLOT(u32, in->d);
        const u32 *a = SLOT(u32, in->a), *b = SLOT(u32, in->b);
        EACH_LANE
        {
            const u32 to = (a[i] & 0xffffffu) | ((b[i] & 63) + 1) << GM_RANK_SHIFT;
            d[i] = lanes >> i & 1 ? to : d[i];
        }
    }
    return in + 1;
}

HANDLER(getctarank)
{
    TAKE_PART;
    u32 *d = SLOT(u32, in->d);
    for (int i = 0; i < GM_LANES; i++) {
        const u32 a = in->n == 8 ? (u32)SLOT(u64, in->a)[i] : SLOT(u32, in->a)[i], rank = a >> GM_RANK_SHIFT;
        if (lanes >> i & 1)
            d[i] = rank ? rank - 1 : w->block->rank;
    }
    return in + 1;
}
