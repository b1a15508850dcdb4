/* Follows values that nobody gave: of registers, local and shared memory that were never written, and of shuffles from
 * lanes that were not there. Such a value may be computed with, kept in shared memory and thrown away; it is a finding
 * where it decides a branch, makes an address or reaches memory that others see.
 *
 * Each slot has words behind the frame, one bit a lane: never written, from an absent lane, from shared memory that was
 * never written. They are carried along by what an instruction reads and writes; where a choice discards an operand,
 * its bits are discarded too. A last word says which load of shared memory it was (gm_watch_keep): the latest one,
 * where several meet in a slot. */
#include "machine.h"
#include <string.h>

enum { UNWRITTEN, ABSENT, SHARED, PLANES, LOAD = PLANES };
_Static_assert(LOAD + 1 == GM_VALUE_WORDS, "what a frame has room for");

/* The forms of handlers.def, but HAND. */
typedef enum form { HAND, UNARY, BINARY, TERNARY, SELECT, COMPARE, COMPARE_HALF, COMPARE_FLUSHED, WORD } form;

static const uint8_t forms[GM_DO_COUNT] = {
#define GM_HANDLER(name, kind, ...) kind,
#include "handlers.def"
#undef GM_HANDLER
};

typedef struct shadow {
    uint8_t *regs;
    uint32_t bytes; /* of a frame: a plane's distance */
} shadow;

static uint32_t get(shadow s, int plane, uint32_t slot)
{
    uint32_t word;
    memcpy(&word, s.regs + (uint32_t)(plane + 1) * s.bytes + slot, 4);
    return word;
}

static void put(shadow s, int plane, uint32_t slot, uint32_t lanes, uint32_t word)
{
    word = (get(s, plane, slot) & ~lanes) | (word & lanes);
    memcpy(s.regs + (uint32_t)(plane + 1) * s.bytes + slot, &word, 4);
}

static uint32_t predicate(shadow s, uint32_t slot)
{
    uint32_t word;
    memcpy(&word, s.regs + slot, 4);
    return word;
}

/* The use of such a value that cannot be taken back. */
static void used(gm_warp *w, const gm_insn *in, shadow s, uint32_t slot, uint32_t lanes)
{
    uint32_t never = get(s, UNWRITTEN, slot) & lanes, absent = get(s, ABSENT, slot) & lanes;
    uint32_t shared = get(s, SHARED, slot) & lanes;
    if (never)
        gm_found(w, in, GM_FINDING_UNWRITTEN_REGISTER, never, NULL);
    if (absent)
        gm_found(w, in, GM_FINDING_ABSENT_LANE, absent, NULL);
    if (shared && !gm_watch_used(w->watch, get(s, LOAD, slot), shared))
        gm_found(w, in, GM_FINDING_UNWRITTEN_SHARED, shared, NULL);
}

/* What is bad about a slot becomes bad about a result. */
static void carry(shadow s, uint32_t slot, uint32_t bad[PLANES + 1])
{
    for (int plane = 0; plane < PLANES; plane++)
        bad[plane] |= get(s, plane, slot);
    if (get(s, SHARED, slot))
        bad[LOAD] = get(s, LOAD, slot);
}

static void put_all(shadow s, uint32_t slot, uint32_t lanes, const uint32_t bad[PLANES + 1])
{
    for (int plane = 0; plane < PLANES; plane++)
        put(s, plane, slot, lanes, bad[plane]);
    if (bad[SHARED] & lanes)
        put(s, LOAD, slot, GM_FULL, bad[LOAD]);
}

static void used_list(gm_warp *w, const gm_insn *in, shadow s, uint32_t at, uint32_t n, uint32_t lanes)
{
    for (uint32_t k = 0; k < n; k++)
        used(w, in, s, n == 1 ? at : w->lists[at + k], lanes);
}

static void defined_list(const gm_warp *w, shadow s, uint32_t at, uint32_t n, uint32_t lanes)
{
    for (uint32_t k = 0; k < n; k++)
        for (int plane = 0; plane < PLANES; plane++)
            put(s, plane, n == 1 ? at : w->lists[at + k], lanes, 0);
}

/* Where each lane of an access to local memory finds whether its bytes were written; NULL: it goes elsewhere. */
static uint8_t *written_at(const gm_warp *w, const gm_insn *in, shadow s, uint32_t lane, uint32_t bytes)
{
    uint64_t address = 0;
    uint32_t wide = in->f & 0x100 ? 8 : 4;
    memcpy(&address, s.regs + in->a + wide * lane, wide);
    address += (uint64_t)in->imm;
    if (in->op == GM_DO_ld_generic || in->op == GM_DO_st_generic)
        address -= GM_LOCAL_WINDOW;
    if (address >= w->local_bytes || bytes > w->local_bytes - address)
        return NULL;
    return w->local + (GM_LANES + lane) * w->local_bytes + address;
}

static uint32_t local_lanes(const gm_warp *w, const gm_insn *in, shadow s, uint32_t lanes)
{
    uint32_t local = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        local |= written_at(w, in, s, (uint32_t)__builtin_ctz(rest), 1) ? rest & (0 - rest) : 0;
    return local;
}

static uint32_t item_slot(const gm_warp *w, const gm_insn *in, uint32_t item)
{
    return in->n == 1 ? in->d : w->lists[in->d + item];
}

/* A load of bytes none of which was written gives what nobody gave. Items that are written in part may be copies of
 * structs with gaps: no more is asked of them. */
static void loaded_local(gm_warp *w, const gm_insn *in, shadow s, uint32_t lanes)
{
    static const uint8_t never[16];
    uint32_t bytes = 1u << in->k;
    for (uint32_t item = 0; item < in->n; item++) {
        uint32_t word = 0;
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            const uint8_t *written = written_at(w, in, s, lane, bytes * in->n);
            if (written && memcmp(written + item * bytes, never, bytes) == 0)
                word |= 1u << lane;
        }
        put_all(s, item_slot(w, in, item), lanes, (uint32_t[PLANES + 1]){[UNWRITTEN] = word});
    }
}

static uint32_t unknown(shadow s, uint32_t slot)
{
    return get(s, UNWRITTEN, slot) | get(s, SHARED, slot);
}

static void stored_local(gm_warp *w, const gm_insn *in, shadow s, uint32_t lanes)
{
    uint32_t bytes = 1u << in->k;
    for (uint32_t item = 0; item < in->n; item++) {
        uint32_t never = unknown(s, item_slot(w, in, item));
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            uint8_t *written = written_at(w, in, s, lane, bytes * in->n);
            if (written)
                memset(written + item * bytes, !(never >> lane & 1), bytes);
        }
    }
}

/* The lanes' item of a vector. */
static void at_item(uint32_t at[GM_LANES], const uint32_t address[GM_LANES], uint32_t offset)
{
    for (uint32_t i = 0; i < GM_LANES; i++)
        at[i] = address[i] + offset;
}

/* An access to shared memory that the watch has noted: `unwritten` lanes of a load got a place that holds no value. A
 * store of what is none leaves none. */
void gm_values_shared(gm_warp *w, const gm_insn *in, const uint32_t address[GM_LANES], uint32_t lanes, uint32_t bytes,
                      uint32_t unwritten)
{
    gm_frame *frame = w->now.frame;
    shadow s = {frame->regs, frame->function->frame_bytes};
    uint32_t at[GM_LANES], load, each;
    switch (in->op) {
    case GM_DO_ld_generic:
    case GM_DO_ld_shared:
    case GM_DO_ld_shared_b32:
    case GM_DO_ld_shared_b64:
        if (!unwritten)
            break;
        load = gm_watch_keep(w->watch, in->x, w->index, address, unwritten, bytes);
        each = 1u << in->k;
        for (uint32_t item = 0; item < in->n; item++) {
            at_item(at, address, item * each);
            put(s, SHARED, item_slot(w, in, item), lanes, gm_watch_never(w->watch, at, unwritten, each));
            put(s, LOAD, item_slot(w, in, item), GM_FULL, load);
        }
        break;
    case GM_DO_st_generic:
    case GM_DO_st_shared:
    case GM_DO_st_shared_b32:
    case GM_DO_st_shared_b64:
        each = 1u << in->k;
        for (uint32_t item = 0; item < in->n; item++) {
            uint32_t never = lanes & unknown(s, item_slot(w, in, item));
            if (!never)
                continue;
            at_item(at, address, item * each);
            gm_watch_unknown(w->watch, at, never, each);
        }
        break;
    default:
        if (unwritten)
            gm_watch_unwritten(w->watch, in->x, w->index, address, unwritten, bytes);
    }
}

/* What is bad about the result of an instruction of a regular form. A register that is put together of several values
 * has none where none of them is one: its parts may be taken out again and some thrown away. */
static uint32_t result(const gm_insn *in, shadow s, int plane)
{
    uint32_t a = get(s, plane, in->a), b = get(s, plane, in->b), c = get(s, plane, in->c);
    switch (in->op) {
    case GM_DO_pack_b32_b16:
    case GM_DO_pack_b64_b32:
        return a & b;
    case GM_DO_shf_l_wrap_b32:
    case GM_DO_shf_l_clamp_b32:
    case GM_DO_shf_r_wrap_b32:
    case GM_DO_shf_r_clamp_b32:
        return (a & b) | c;
    case GM_DO_prmt_b32: { /* the selector's nibbles: 0 to 3 are a's bytes, 4 to 7 b's */
        uint32_t high = predicate(s, in->c) & 0x4444;
        return (high == 0 ? a : high == 0x4444 ? b : a & b) | c;
    }
    default:
        break;
    }
    switch (forms[in->op]) {
    case UNARY:
        return a;
    case TERNARY:
        return a | b | c;
    case SELECT: {
        uint32_t which = predicate(s, in->c) ^ (uint32_t)in->imm;
        return (which & a) | (~which & b) | c;
    }
    case WORD: {
        uint32_t x = predicate(s, in->a), y = predicate(s, in->b);
        if (in->op == GM_DO_and_pred)
            return (a & b) | (a & y) | (b & x);
        if (in->op == GM_DO_or_pred)
            return (a & b) | (a & ~y) | (b & ~x);
        return in->op == GM_DO_mov_pred || in->op == GM_DO_not_pred ? a : a | b | (in->op == GM_DO_selp_pred ? c : 0);
    }
    default:
        return a | b;
    }
}

/* Which load of shared memory an operand comes from. */
static uint32_t latest(const gm_insn *in, shadow s, uint32_t load)
{
    const uint32_t slots[] = {in->a, in->b, in->c};
    for (uint32_t k = 0; k < (forms[in->op] == UNARY ? 1u : 3u); k++)
        if (get(s, SHARED, slots[k]))
            load = get(s, LOAD, slots[k]);
    return load;
}

/* The registers of one operand of a product. */
static void fragment(shadow s, const uint32_t **list, uint32_t count, uint32_t bad[PLANES + 1])
{
    memset(bad, 0, (PLANES + 1) * sizeof *bad);
    for (uint32_t r = 0; r < count; r++)
        carry(s, *(*list)++, bad);
}

/* mma: lane l holds row l / 4 of A and D (and that row + 8), column l / 4 of B, columns 2 (l % 4) and the next of D. */
static void product(const gm_warp *w, const gm_insn *in, shadow s)
{
    const uint32_t *list = w->lists + in->a;
    uint32_t a[PLANES + 1], b[PLANES + 1], d[PLANES + 1];
    fragment(s, &list, in->e & 0xff, a);
    fragment(s, &list, in->e >> 8 & 0xff, b);
    fragment(s, &list, in->e >> 16 & 0xff, d);
    for (int plane = 0; plane < PLANES; plane++)
        for (uint32_t l = 0; l < GM_LANES; l++) {
            d[plane] |= a[plane] >> l & 1 ? 0xfu << (l & ~3u) : 0;
            d[plane] |= b[plane] >> l & 1 ? 0x11111111u << l / 8 : 0;
        }
    d[LOAD] = a[SHARED] ? a[LOAD] : b[SHARED] ? b[LOAD] : d[LOAD];
    for (uint32_t r = 0; r < in->e >> 24; r++)
        put_all(s, list[r], GM_FULL, d);
}

/* Before an instruction is executed: uses, and what its result will carry. 1 where `bad` is for slot d. */
static int before(gm_warp *w, const gm_insn *in, shadow s, uint32_t lanes, uint32_t bad[PLANES + 1])
{
    memset(bad, 0, (PLANES + 1) * sizeof *bad);
    carry(s, in->guard, bad);
    if (forms[in->op] != HAND) {
        for (int plane = 0; plane < PLANES; plane++)
            bad[plane] |= result(in, s, plane);
        if (bad[SHARED])
            bad[LOAD] = latest(in, s, bad[LOAD]);
        return 1;
    }
    switch (in->op) {
    case GM_DO_bra:
    case GM_DO_exit:
    case GM_DO_ret:
        used(w, in, s, in->guard, w->active);
        return 0;
    case GM_DO_brx:
    case GM_DO_call_through:
        used(w, in, s, in->a, lanes);
        return 0;
    case GM_DO_mov_b128:
    case GM_DO_round_cvt_f32_f64:
    case GM_DO_round_cvt_f32_s64:
    case GM_DO_round_cvt_f32_u64:
    case GM_DO_round_cvt_f64_s64:
    case GM_DO_round_cvt_f64_u64:
    case GM_DO_round_cvt_f16_f64:
    case GM_DO_round_cvt_bf16_f64:
        carry(s, in->a, bad);
        return 1;
    case GM_DO_bfi_b32:
    case GM_DO_bfi_b64:
        carry(s, in->a, bad);
        carry(s, in->b, bad);
        carry(s, in->c, bad);
        carry(s, in->e, bad);
        return 1;
    case GM_DO_carry_add_b32:
    case GM_DO_carry_add_b64:
    case GM_DO_carry_sub_b32:
    case GM_DO_carry_sub_b64:
        carry(s, in->a, bad);
        carry(s, in->b, bad);
        if (in->k)
            carry(s, in->c, bad);
        if (in->n)
            put_all(s, in->e, lanes, bad);
        return 1;
    case GM_DO_round_f32:
    case GM_DO_round_f64:
    case GM_DO_round_f16:
    case GM_DO_round_bf16:
    case GM_DO_round_f16x2:
    case GM_DO_round_bf16x2:
        carry(s, in->a, bad);
        carry(s, in->b, bad);
        carry(s, in->c, bad);
        return 1;
    case GM_DO_mma:
        product(w, in, s);
        return 0;
    case GM_DO_ld_generic:
    case GM_DO_ld_local:
        used(w, in, s, in->a, lanes);
        loaded_local(w, in, s, lanes);
        return 0;
    case GM_DO_ld_global:
    case GM_DO_ld_shared:
    case GM_DO_ld_global_b32:
    case GM_DO_ld_global_b64:
    case GM_DO_ld_shared_b32:
    case GM_DO_ld_shared_b64:
    case GM_DO_ld_param:
    case GM_DO_ld_const:
        used(w, in, s, in->a, lanes);
        defined_list(w, s, in->d, in->n, lanes);
        return 0;
    case GM_DO_ld_argument:
        defined_list(w, s, in->d, in->n, lanes);
        return 0;
    case GM_DO_st_shared:
    case GM_DO_st_shared_b32:
    case GM_DO_st_shared_b64:
        used(w, in, s, in->a, lanes);
        return 0;
    case GM_DO_st_local:
        used(w, in, s, in->a, lanes);
        stored_local(w, in, s, lanes);
        return 0;
    case GM_DO_st_generic:
        used(w, in, s, in->a, lanes);
        used_list(w, in, s, in->d, in->n, lanes & ~local_lanes(w, in, s, lanes));
        stored_local(w, in, s, lanes);
        return 0;
    case GM_DO_st_global:
    case GM_DO_st_global_b32:
    case GM_DO_st_global_b64:
        used(w, in, s, in->a, lanes);
        used_list(w, in, s, in->d, in->n, lanes);
        return 0;
    case GM_DO_atom_generic:
    case GM_DO_atom_global:
    case GM_DO_atom_shared:
        used(w, in, s, in->a, lanes);
        used_list(w, in, s, in->b, in->n, lanes);
        if (in->d != GM_NOWHERE)
            defined_list(w, s, in->d, in->n, lanes);
        return 0;
    case GM_DO_ldmatrix:
        used(w, in, s, in->a, in->n == 4 ? GM_FULL : (1u << 8 * in->n) - 1);
        for (uint32_t k = 0; k < in->n; k++)
            defined_list(w, s, w->lists[in->d + k], 1, lanes);
        return 0;
    case GM_DO_vote:
    case GM_DO_redux_b32:
    case GM_DO_match_any_b32:
    case GM_DO_match_any_b64:
    case GM_DO_match_all_b32:
    case GM_DO_match_all_b64:
        for (int plane = 0; plane < PLANES; plane++)
            bad[plane] |= get(s, plane, in->a) & lanes ? lanes : 0;
        if (get(s, SHARED, in->a) & lanes)
            bad[LOAD] = get(s, LOAD, in->a);
        return 1;
    case GM_DO_movmatrix:
    case GM_DO_activemask:
    case GM_DO_elect:
    case GM_DO_clock:
    case GM_DO_mapa:
    case GM_DO_getctarank:
        bad[UNWRITTEN] = bad[ABSENT] = bad[SHARED] = 0;
        return 1;
    case GM_DO_bar_red:
        for (int plane = 0; plane < PLANES; plane++)
            put(s, plane, in->d, lanes, 0);
        return 0;
    case GM_DO_mbarrier:
        if (in->d != GM_NOWHERE)
            for (int plane = 0; plane < PLANES; plane++)
                put(s, plane, in->d, lanes, 0);
        return 0;
    default:
        return 0;
    }
}

/* What comes from another lane carries what is bad about that lane's. */
static void shuffled(gm_warp *w, const gm_insn *in, shadow s, uint32_t lanes, const uint32_t was[PLANES + 1])
{
    for (int plane = 0; plane < PLANES; plane++) {
        uint32_t word = 0;
        for (uint32_t i = 0; i < GM_LANES; i++)
            word |= was[plane] >> w->from[i] & 1 ? 1u << i : 0;
        put(s, plane, in->d, lanes, word | (plane == ABSENT ? w->absent : 0));
        if (in->f != GM_NOWHERE)
            put(s, plane, in->f, lanes, 0);
    }
    if (was[SHARED])
        put(s, LOAD, in->d, GM_FULL, was[LOAD]);
}

const gm_insn *gm_values_loop(const gm_insn *in, gm_warp *w, uint8_t *regs)
{
    shadow s = {regs, w->now.frame->function->frame_bytes};
    while (in) {
        uint32_t lanes = w->active & (predicate(s, in->guard) ^ in->invert), bad[PLANES + 1], was[PLANES + 1];
        int writes = before(w, in, s, lanes, bad), shuffles = in->op == GM_DO_shfl;
        for (int plane = 0; plane <= LOAD && shuffles; plane++)
            was[plane] = get(s, plane, in->a);
        const gm_insn *next = in->run(in, w, regs);
        if (writes)
            put_all(s, in->d, lanes, bad);
        if (shuffles && next)
            shuffled(w, in, s, w->active & lanes, was);
        in = next;
    }
    return NULL;
}

void gm_values_begin(gm_frame *frame)
{
    const gm_function *f = frame->function;
    shadow s = {frame->regs, f->frame_bytes};
    memset(frame->regs + f->frame_bytes, 0, (size_t)GM_VALUE_WORDS * f->frame_bytes);
    for (int z = 0; z < 2; z++)
        memset(frame->regs + f->frame_bytes + f->zero[z].from, 0xff, f->zero[z].bytes);
    put(s, UNWRITTEN, 4, GM_FULL, 0); /* the carry */
}
