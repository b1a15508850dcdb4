/* Barriers that live in 8 bytes of shared memory. The hardware keeps their layout to itself; ours: bits 0-19 arrivals
 * of a phase, 20-39 those still missing, 40-62 bytes still expected (signed), 63 the phase's parity. */
#include "machine.h"
#include "../base/integers.h"
#include <string.h>

enum { COUNT_BITS = 20, TX_BITS = 23 };
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)
#define TX_MASK    ((UINT64_C(1) << TX_BITS) - 1)

typedef struct state {
    uint64_t expected, pending, tx, phase;
} state;

static state unpack(uint64_t word)
{
    return (state){word & COUNT_MASK, word >> COUNT_BITS & COUNT_MASK, word >> 2 * COUNT_BITS & TX_MASK, word >> 63};
}

static uint64_t pack(state s)
{
    if (s.pending == 0 && s.tx == 0) {
        s.phase ^= 1;
        s.pending = s.expected;
    }
    return s.expected | s.pending << COUNT_BITS | s.tx << 2 * COUNT_BITS | s.phase << 63;
}

void gm_mbarrier_complete(uint8_t *at, uint64_t bytes)
{
    uint64_t word;
    memcpy(&word, at, 8);
    state s = unpack(word);
    s.tx = (s.tx - bytes) & TX_MASK;
    word = pack(s);
    memcpy(at, &word, 8);
}

static uint64_t operand_at(const gm_warp *w, uint32_t slot, uint32_t bytes, uint32_t lane)
{
    uint64_t value = 0;
    memcpy(&value, w->now.frame->regs + slot + bytes * lane, bytes);
    return value;
}

/* Arrivals, expectations and the like, by one lane after another. k says which; b a count, bytes, parity or state; e
 * its width; d where the state or the answer goes, or GM_NOWHERE. */
const gm_insn *gm_mbarrier(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    uint8_t *regs = w->now.frame->regs;
    uint32_t yes = 0;
    int tries = in->k == GM_MBARRIER_TRY || in->k == GM_MBARRIER_TEST;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t b = in->b == GM_NOWHERE ? 1 : operand_at(w, in->b, in->e, lane), word = 0, old;
        if (in->k == GM_MBARRIER_PENDING) {
            uint32_t pending = (uint32_t)unpack(b).pending;
            memcpy(regs + in->d + 4 * lane, &pending, 4);
            continue;
        }
        uint64_t address = operand_at(w, in->a, 8, lane) + (uint64_t)in->imm;
        uint8_t *at = gm_reach_bytes(w, in, lane, (gm_space)in->n, address, 8, 8, 1);
        if (at == NULL)
            continue;
        memcpy(&word, at, 8);
        old = word;
        state s = unpack(word);
        switch (in->k) {
        case GM_MBARRIER_INIT:
            s = (state){b & COUNT_MASK, b & COUNT_MASK, 0, 0};
            break;
        case GM_MBARRIER_INVAL:
            s = (state){0, 1, 0, 0};
            break;
        case GM_MBARRIER_EXPECT:
            s.tx = (s.tx + b) & TX_MASK;
            break;
        case GM_MBARRIER_COMPLETE:
            s.tx = (s.tx - b) & TX_MASK;
            break;
        case GM_MBARRIER_ARRIVE_EXPECT:
            s.tx = (s.tx + b) & TX_MASK;
            s.pending -= s.pending > 0;
            break;
        case GM_MBARRIER_DROP:
            s.expected -= (uint64_t)gm_least((int64_t)b, (int64_t)s.expected);
            s.pending -= (uint64_t)gm_least((int64_t)b, (int64_t)s.pending);
            break;
        case GM_MBARRIER_ARRIVE:
            s.pending -= (uint64_t)gm_least((int64_t)b, (int64_t)s.pending);
            break;
        case GM_MBARRIER_TEST:
        case GM_MBARRIER_TRY:
            /* by parity (imm2 in f): of the phase that is to have ended; else by the state that an arrival gave */
            yes |= (in->f ? (b & 1) : b >> 63) != s.phase ? 1u << lane : 0;
            break;
        default:
            break;
        }
        if (!tries) {
            word = pack(s);
            memcpy(at, &word, 8);
        }
        if (in->d != GM_NOWHERE && !tries)
            memcpy(regs + in->d + 8 * lane, &old, 8);
        if (w->watch) {
            uint64_t key = address & ~(uint64_t)7;
            if (!tries)
                gm_watch_release(w->watch, key, w->index);
            else if (yes >> lane & 1)
                gm_watch_acquire(w->watch, key, w->index);
        }
    }
    if (w->watch && !tries)
        gm_watch_hand_over(w->watch, w->index, lanes);
    else if (w->watch)
        gm_watch_take_over(w->watch, w->index, yes);
    if (!tries)
        return in + 1;
    uint32_t word;
    memcpy(&word, regs + in->d, 4);
    word = (word & ~lanes) | yes;
    memcpy(regs + in->d, &word, 4);
    if (yes == lanes)
        return in + 1;
    w->polled = 1; /* somebody else must come first */
    return gm_warp_turn(w, in + 1);
}
