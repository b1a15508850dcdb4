/* Memory instructions. Lanes nearly always lie to one another as they did the last time the site ran, so that is what
 * is asked first: one comparison of 32 relative addresses tells that they are within bounds (the two outermost are),
 * aligned and already counted for. What is new goes the long way: lane by lane through gm_reach. */

/* Where lanes that take no part, or may not, read and write instead. */
static const u8 nothing[64] __attribute__((aligned(64)));

static inline int same_wide(const gm_pattern *p, u32 lanes, const u64 *address, u64 first)
{
    u64 differ = 0;
    if (__builtin_expect(lanes == GM_FULL, 1))
        EACH_LANE differ |= (address[i] - first) ^ p->wide[i];
    else
        EACH_LANE differ |= lanes >> i & 1 ? (address[i] - first) ^ p->wide[i] : 0;
    return differ == 0;
}

static inline int same_narrow(const gm_pattern *p, u32 lanes, const u32 *address, u32 first)
{
    u32 differ = 0;
    if (__builtin_expect(lanes == GM_FULL, 1))
        EACH_LANE differ |= (address[i] - first) ^ p->narrow[i];
    else
        EACH_LANE differ |= lanes >> i & 1 ? (address[i] - first) ^ p->narrow[i] : 0;
    return differ == 0;
}

/* The host memory of the first active lane, if the lanes lie as in a known pattern *found and wholly inside the segment
 * that the site touched last; NULL: the long way. */
static inline u8 *known_wide(gm_warp *w, gm_site_state *s, u32 lanes, const u64 *address, s64 imm, u32 bytes,
                             gm_pattern **found)
{
    gm_pattern *p = s->last;
    if (p == NULL)
        return NULL;
    const u64 first = address[__builtin_ctz(lanes)];
    if (p->mask != lanes || !same_wide(p, lanes, address, first)) {
        for (int k = 0;; k++) {
            if (k == s->used)
                return NULL;
            p = s->patterns[k];
            if (p != s->last && p->mask == lanes && p->space == GM_SPACE_GLOBAL && same_wide(p, lanes, address, first))
                break;
        }
    }
    const u64 here = first + (u64)imm, at = here + (u64)p->low - s->segment.start;
    const u64 size = s->segment.end - s->segment.start;
    if (at >= size || p->span > size - at || ((here | p->low_bits) & (bytes - 1)))
        return NULL;
    s->last = p;
    if (__builtin_expect((p->hits[here % GM_PHASES]++ == 0) | w->overtaken, 0))
        gm_pattern_met(w, p, here);
    *found = p;
    return s->segment.host + (here - s->segment.start);
}

static inline u8 *known_narrow(gm_warp *w, const gm_insn *in, u32 lanes, const u32 *address, u32 bytes,
                               gm_pattern **found)
{
    gm_site_state *s = &w->sites[in->x];
    gm_pattern *p = s->last;
    if (p == NULL)
        return NULL;
    const u32 first = address[__builtin_ctz(lanes)];
    if (p->mask != lanes || !same_narrow(p, lanes, address, first)) {
        for (int k = 0;; k++) {
            if (k == s->used)
                return NULL;
            p = s->patterns[k];
            if (p != s->last && p->mask == lanes && p->space == GM_SPACE_SHARED &&
                same_narrow(p, lanes, address, first))
                break;
        }
    }
    const u32 here = first + (u32)in->imm, low = here + (u32)p->low;
    if (low >= w->shared_bytes || p->span > w->shared_bytes - low || ((here | p->low_bits) & (bytes - 1)))
        return NULL;
    s->last = p;
    if (__builtin_expect((p->hits[here % GM_PHASES]++ == 0) | w->overtaken, 0))
        gm_pattern_met(w, p, here);
    *found = p;
    if (__builtin_expect(w->watch != NULL, 0))
        gm_watch_pattern(w, in, p, here, bytes);
    return w->shared + here;
}

/* The address operand: 64-bit, or 32-bit registers for the shared window (f & 0x100: 64 bits). */
static inline void wide_addresses(const gm_insn *in, uint8_t *regs, u64 address[GM_LANES])
{
    if (in->f & 0x100) {
        const u64 *a = SLOT(u64, in->a);
        EACH_LANE address[i] = a[i] + (u64)in->imm;
    } else {
        const u32 *a = SLOT(u32, in->a);
        EACH_LANE address[i] = a[i] + (u32)in->imm;
    }
}

static inline const u32 *narrow_addresses(const gm_insn *in, uint8_t *regs, u32 address[GM_LANES])
{
    if (!(in->f & 0x100))
        return SLOT(u32, in->a);
    const u64 *a = SLOT(u64, in->a);
    EACH_LANE address[i] = (u32)a[i];
    return address;
}

/* Each lane's place in host memory, or `nothing` where it has none. */
static void long_way(gm_warp *w, const gm_insn *in, uint8_t *regs, gm_space space, u32 lanes, u32 bytes, int writes,
                     u8 *where[GM_LANES])
{
    u64 address[GM_LANES];
    wide_addresses(in, regs, address);
    u32 there = gm_reach(w, in, space, lanes, address, bytes, writes, where);
    for (int i = 0; i < GM_LANES; i++)
        if (!(there >> i & 1))
            where[i] = writes ? w->worker->sink : (u8 *)(uintptr_t)nothing;
}

static inline void places(gm_warp *w, const gm_insn *in, uint8_t *regs, gm_space space, u32 lanes, u32 bytes,
                          int writes, u8 *where[GM_LANES])
{
    gm_pattern *p;
    u8 *base = NULL;
    if (space == GM_SPACE_SHARED) {
        u32 buffer[GM_LANES];
        base = known_narrow(w, in, lanes, narrow_addresses(in, regs, buffer), bytes, &p);
        if (base)
            EACH_LANE where[i] = base + (s32)p->narrow[i];
    } else if (space != GM_SPACE_LOCAL && space != GM_SPACE_CONST && in->f & 0x100) {
        base = known_wide(w, &w->sites[in->x], lanes, SLOT(u64, in->a), in->imm, bytes, &p);
        if (base)
            EACH_LANE where[i] = base + p->wide[i];
    }
    if (base == NULL)
        long_way(w, in, regs, space, lanes, bytes, writes, where);
    else if (lanes != GM_FULL)
        for (int i = 0; i < GM_LANES; i++)
            if (!(lanes >> i & 1))
                where[i] = writes ? w->worker->sink : (u8 *)(uintptr_t)nothing;
}

#define READ_ITEMS(T, v, at)                                                                                           \
    for (int i = 0; i < GM_LANES; i++) {                                                                               \
        T item;                                                                                                        \
        memcpy(&item, where[i] + (at), sizeof item);                                                                   \
        (v)[i] = (u64)item;                                                                                            \
    }

/* f: the register's bytes, 0x80 where the item's sign extends it. */
static inline void read_item(u8 *const where[GM_LANES], u32 at, int k, u32 f, uint8_t *regs, u32 d, u32 lanes)
{
    if (k == 2 && (f & 0x1f) == 4) {
        u32 r[GM_LANES];
        for (int i = 0; i < GM_LANES; i++)
            memcpy(&r[i], where[i] + at, 4);
        BLEND(u32, SLOT(u32, d), r);
        return;
    }
    u64 v[GM_LANES];
    switch (k | (f & 0x80)) {
    case 0:
        READ_ITEMS(uint8_t, v, at)
        break;
    case 0x80:
        READ_ITEMS(int8_t, v, at)
        break;
    case 1:
        READ_ITEMS(uint16_t, v, at)
        break;
    case 0x81:
        READ_ITEMS(int16_t, v, at)
        break;
    case 2:
        READ_ITEMS(uint32_t, v, at)
        break;
    case 0x82:
        READ_ITEMS(int32_t, v, at)
        break;
    default:
        READ_ITEMS(uint64_t, v, at)
        break;
    }
    if ((f & 0x1f) == 2)
        BLEND(u16, SLOT(u16, d), v);
    else if ((f & 0x1f) == 4)
        BLEND(u32, SLOT(u32, d), v);
    else
        BLEND(u64, SLOT(u64, d), v);
    if (k == 4) {
        READ_ITEMS(uint64_t, v, at + 8)
        BLEND(u64, SLOT(u64, d + 256), v);
    }
}

#define WRITE_ITEMS(T, value)                                                                                          \
    for (int i = 0; i < GM_LANES; i++) {                                                                               \
        T item = (T)(value);                                                                                           \
        memcpy(where[i] + at, &item, sizeof item);                                                                     \
    }
#define WRITE_AS(T)                                                                                                    \
    switch (f & 0x1f) {                                                                                                \
    case 2:                                                                                                            \
        WRITE_ITEMS(T, SLOT(u16, b)[i])                                                                                \
        break;                                                                                                         \
    case 4:                                                                                                            \
        WRITE_ITEMS(T, SLOT(u32, b)[i])                                                                                \
        break;                                                                                                         \
    default:                                                                                                           \
        WRITE_ITEMS(T, SLOT(u64, b)[i])                                                                                \
        break;                                                                                                         \
    }

static inline void write_item(u8 *const where[GM_LANES], u32 at, int k, u32 f, uint8_t *regs, u32 b)
{
    switch (k) {
    case 0:
        WRITE_AS(uint8_t)
        break;
    case 1:
        WRITE_AS(uint16_t)
        break;
    case 2:
        WRITE_AS(uint32_t)
        break;
    default:
        WRITE_AS(uint64_t)
        break;
    }
    if (k == 4)
        for (int i = 0; i < GM_LANES; i++)
            memcpy(where[i] + at + 8, &SLOT(u64, b + 256)[i], 8);
}

static inline const gm_insn *load(const gm_insn *in, gm_warp *w, uint8_t *regs, gm_space space)
{
    TAKE_PART;
    if (lanes == 0) {
        w->sites[in->x].idle++;
        return in + 1;
    }
    u8 *where[GM_LANES];
    const u32 bytes = (u32)in->n << in->k;
    places(w, in, regs, space, lanes, bytes, 0, where);
    if (in->n == 1)
        read_item(where, 0, in->k, in->f, regs, in->d, lanes);
    else
        for (u32 j = 0; j < in->n; j++)
            read_item(where, j << in->k, in->k, in->f, regs, w->lists[in->d + j], lanes);
    if (in->b) {
        u64 answer = 0;
        memcpy(&answer, where[__builtin_ctz(lanes)], bytes < 8 ? bytes : 8);
        gm_warp_asks(w, in, answer);
    }
    return in + 1;
}

static inline const gm_insn *store(const gm_insn *in, gm_warp *w, uint8_t *regs, gm_space space)
{
    TAKE_PART;
    if (lanes == 0) {
        w->sites[in->x].idle++;
        return in + 1;
    }
    u8 *where[GM_LANES];
    const u32 bytes = (u32)in->n << in->k;
    places(w, in, regs, space, lanes, bytes, 1, where);
    if (in->n == 1)
        write_item(where, 0, in->k, in->f, regs, in->d);
    else
        for (u32 j = 0; j < in->n; j++)
            write_item(where, j << in->k, in->k, in->f, regs, w->lists[in->d + j]);
    return in + 1;
}

#define EACH_SPACE(what, does)                                                                                         \
    HANDLER(what##_generic)                                                                                            \
    {                                                                                                                  \
        return does(in, w, regs, GM_SPACE_GENERIC);                                                                    \
    }                                                                                                                  \
    HANDLER(what##_global)                                                                                             \
    {                                                                                                                  \
        return does(in, w, regs, GM_SPACE_GLOBAL);                                                                     \
    }                                                                                                                  \
    HANDLER(what##_shared)                                                                                             \
    {                                                                                                                  \
        return does(in, w, regs, GM_SPACE_SHARED);                                                                     \
    }                                                                                                                  \
    HANDLER(what##_local)                                                                                              \
    {                                                                                                                  \
        return does(in, w, regs, GM_SPACE_LOCAL);                                                                      \
    }
EACH_SPACE(ld, load)
EACH_SPACE(st, store)

/* One item of a register's width, the most frequent accesses: all of it inline. */
#define LOAD_FAST(name, T, base_of, distance, otherwise)                                                               \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        gm_pattern *p;                                                                                                 \
        const u8 *base = lanes ? base_of : NULL;                                                                       \
        if (base == NULL)                                                                                              \
            return otherwise(in, w, regs);                                                                             \
        T *d = SLOT(T, in->d);                                                                                         \
        if (lanes == GM_FULL) {                                                                                        \
            if (p->shape == GM_SHAPE_ROW) {                                                                            \
                memcpy(d, base, sizeof(T) * GM_LANES);                                                                 \
            } else if (p->shape == GM_SHAPE_SAME) {                                                                    \
                T item;                                                                                                \
                memcpy(&item, base, sizeof item);                                                                      \
                EACH_LANE d[i] = item;                                                                                 \
            } else {                                                                                                   \
                for (int i = 0; i < GM_LANES; i++)                                                                     \
                    memcpy(&d[i], base + distance, sizeof(T));                                                         \
            }                                                                                                          \
        } else {                                                                                                       \
            for (u32 left = lanes; left; left &= left - 1) {                                                           \
                int i = __builtin_ctz(left);                                                                           \
                memcpy(&d[i], base + distance, sizeof(T));                                                             \
            }                                                                                                          \
        }                                                                                                              \
        return in + 1;                                                                                                 \
    }
#define STORE_FAST(name, T, base_of, distance, otherwise)                                                              \
    HANDLER(name)                                                                                                      \
    {                                                                                                                  \
        TAKE_PART;                                                                                                     \
        gm_pattern *p;                                                                                                 \
        u8 *base = lanes ? base_of : NULL;                                                                             \
        if (base == NULL)                                                                                              \
            return otherwise(in, w, regs);                                                                             \
        const T *d = SLOT(T, in->d);                                                                                   \
        if (lanes == GM_FULL && p->shape == GM_SHAPE_ROW)                                                              \
            memcpy(base, d, sizeof(T) * GM_LANES);                                                                     \
        else if (lanes == GM_FULL)                                                                                     \
            for (int i = 0; i < GM_LANES; i++)                                                                         \
                memcpy(base + distance, &d[i], sizeof(T));                                                             \
        else                                                                                                           \
            for (u32 left = lanes; left; left &= left - 1) {                                                           \
                int i = __builtin_ctz(left);                                                                           \
                memcpy(base + distance, &d[i], sizeof(T));                                                             \
            }                                                                                                          \
        return in + 1;                                                                                                 \
    }
#define IN_GLOBAL(T) known_wide(w, &w->sites[in->x], lanes, SLOT(u64, in->a), in->imm, sizeof(T), &p)
#define IN_SHARED(T) known_narrow(w, in, lanes, SLOT(u32, in->a), sizeof(T), &p)
LOAD_FAST(ld_global_b32, u32, IN_GLOBAL(u32), p->wide[i], gm_do_ld_global)
LOAD_FAST(ld_global_b64, u64, IN_GLOBAL(u64), p->wide[i], gm_do_ld_global)
LOAD_FAST(ld_shared_b32, u32, IN_SHARED(u32), (s32)p->narrow[i], gm_do_ld_shared)
LOAD_FAST(ld_shared_b64, u64, IN_SHARED(u64), (s32)p->narrow[i], gm_do_ld_shared)
STORE_FAST(st_global_b32, u32, IN_GLOBAL(u32), p->wide[i], gm_do_st_global)
STORE_FAST(st_global_b64, u64, IN_GLOBAL(u64), p->wide[i], gm_do_st_global)
STORE_FAST(st_shared_b32, u32, IN_SHARED(u32), (s32)p->narrow[i], gm_do_st_shared)
STORE_FAST(st_shared_b64, u64, IN_SHARED(u64), (s32)p->narrow[i], gm_do_st_shared)

/* The entry's parameters, at an address. */
HANDLER(ld_param)
{
    TAKE_PART;
    if (lanes == 0)
        return in + 1;
    u8 *where[GM_LANES];
    long_way(w, in, regs, GM_SPACE_PARAM, lanes, (u32)in->n << in->k, 0, where);
    for (u32 j = 0; j < in->n; j++)
        read_item(where, j << in->k, in->k, in->f, regs, in->n == 1 ? in->d : w->lists[in->d + j], lanes);
    return in + 1;
}

/* .param variables of a call: c a slot of 32 lanes of `e` bytes, imm a place in it. */
static inline void argument_places(const gm_insn *in, uint8_t *regs, u8 *where[GM_LANES])
{
    for (int i = 0; i < GM_LANES; i++)
        where[i] = regs + in->c + (u32)i * in->e + in->imm;
}

HANDLER(ld_argument)
{
    TAKE_PART;
    u8 *where[GM_LANES];
    argument_places(in, regs, where);
    for (u32 j = 0; j < in->n; j++)
        read_item(where, j << in->k, in->k, in->f, regs, in->n == 1 ? in->d : w->lists[in->d + j], lanes);
    return in + 1;
}

HANDLER(st_argument)
{
    TAKE_PART;
    u8 *where[GM_LANES];
    argument_places(in, regs, where);
    for (int i = 0; i < GM_LANES; i++)
        if (!(lanes >> i & 1))
            where[i] = w->worker->sink;
    for (u32 j = 0; j < in->n; j++)
        write_item(where, j << in->k, in->k, in->f, regs, in->n == 1 ? in->d : w->lists[in->d + j]);
    return in + 1;
}

/* .const variables lie among the global ones. */
HANDLER(ld_const)
{
    return load(in, w, regs, GM_SPACE_CONST);
}

HANDLER(fence)
{
    TAKE_PART;
    gm_fence(w, lanes);
    return in + 1;
}

#include "exec_atomic.inc.h"
#include "exec_copy.inc.h"
