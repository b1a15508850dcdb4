/* Barriers of a block and of a cluster. Threads that have exited are not waited for; a barrier with a count waits for
 * as many threads, whole warps counted as 32. An aligned barrier is for whole warps: lanes that come there first wait
 * for the others of their warp (gm_warp_sync), and go in without them only when nothing else can move. */
#include "machine.h"
#include <string.h>

static uint32_t word_at(const gm_warp *w, uint32_t slot, uint32_t lane)
{
    uint32_t value;
    memcpy(&value, w->now.frame->regs + slot + 4 * lane, 4);
    return value;
}

static uint32_t predicate_at(const gm_frame *frame, uint32_t slot)
{
    uint32_t value;
    memcpy(&value, frame->regs + slot, 4);
    return value;
}

/* Everybody has come: those that wait go on, with what a reduction gives. */
static void release(gm_block *block, uint32_t id)
{
    gm_barrier *b = &block->barriers[id];
    uint32_t warps[2] = {b->warps, 0};
    for (uint32_t i = 0; i < block->warp_count; i++) {
        gm_warp *w = &block->warps[i];
        for (uint32_t k = 0; k < w->split_count; k++) {
            gm_split *s = &w->splits[k];
            if (s->wait != GM_AT_BARRIER || s->barrier != id)
                continue;
            const gm_insn *in = s->pc - 1;
            if (in->op == GM_DO_bar_red) {
                uint8_t *at = s->frame->regs + in->d;
                uint32_t truth = in->n == 1 ? b->sum == b->came : b->sum != 0;
                if (in->n == 0) {
                    for (uint32_t lane = 0; lane < GM_LANES; lane++)
                        if (s->mask >> lane & 1)
                            memcpy(at + 4 * lane, &b->sum, 4);
                } else {
                    uint32_t word;
                    memcpy(&word, at, 4);
                    word = (word & ~s->mask) | (truth ? s->mask : 0);
                    memcpy(at, &word, 4);
                }
            }
            s->wait = GM_RUNS;
        }
    }
    if (block->watch)
        gm_watch_barrier(block->watch, warps[0]);
    memset(b, 0, sizeof *b);
}

static void check(gm_block *block, uint32_t id)
{
    gm_barrier *b = &block->barriers[id];
    if (b->here && b->came >= (b->expected ? b->expected : block->live))
        release(block, id);
}

const gm_insn *gm_barrier_come(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    gm_block *block = w->block;
    if (in->k && !w->now.alone && (w->live & ~w->active)) {
        /* aligned: the whole warp, but for what a guard keeps out */
        if (!gm_warp_sync(w, in, w->live))
            return NULL;
        lanes = w->active & (predicate_at(w->now.frame, in->guard) ^ in->invert);
    }
    if (in->k && !w->now.alone && lanes != w->active)
        gm_found(w, in, GM_FINDING_DIVERGENT_BARRIER, lanes, NULL); /* its guard lets a part of the warp through */
    w->now.alone = 0;
    uint32_t left = w->active & ~lanes, first = (uint32_t)__builtin_ctz(lanes);
    uint32_t id = word_at(w, in->a, first) % GM_BARRIERS;
    uint32_t count = in->b == GM_NOWHERE ? 0 : word_at(w, in->b, first);
    gm_barrier *b = &block->barriers[id];

    if (count)
        b->expected = count;
    b->came += count && left == 0 && lanes == w->live ? GM_LANES : (uint32_t)__builtin_popcount(lanes);
    b->here = 1;
    b->warps |= 1u << w->index;
    if (in->op == GM_DO_bar_red)
        b->sum += (uint32_t)__builtin_popcount((predicate_at(w->now.frame, in->c) ^ (uint32_t)in->imm) & lanes);
    if (in->op == GM_DO_bar_arrive) {
        check(block, id);
        return in + 1;
    }
    /* Lanes that the guard keeps out go on. */
    gm_split s = w->now;
    s.pc = in + 1, s.mask = lanes, s.wait = GM_AT_BARRIER, s.barrier = (uint8_t)id;
    w->splits[w->split_count++] = s;
    w->active = left;
    if (left == 0)
        w->has_now = 0;
    check(block, id);
    return left ? in + 1 : NULL;
}

void gm_barrier_left(gm_block *block, uint32_t threads)
{
    block->live -= threads;
    for (uint32_t id = 0; id < GM_BARRIERS; id++)
        if (block->barriers[id].here && !block->barriers[id].expected)
            check(block, id);
    gm_cluster_check(block->unit, threads);
}

/* --- clusters -------------------------------------------------------------------------------------------------- */

void gm_cluster_check(gm_unit *unit, uint32_t exited)
{
    unit->threads -= exited;
    if (unit->barrier_came < unit->threads || unit->barrier_came == 0)
        return;
    unit->barrier_came = 0;
    unit->barrier_turn++;
    for (uint32_t b = 0; b < unit->block_count; b++)
        if (unit->blocks[b].watch)
            gm_watch_barrier(unit->blocks[b].watch, UINT32_MAX >> (GM_LANES - unit->blocks[b].warp_count));
    for (uint32_t i = 0; i < unit->warp_count; i++)
        for (uint32_t k = 0; k < unit->warps[i].split_count; k++)
            if (unit->warps[i].splits[k].wait == GM_AT_CLUSTER)
                unit->warps[i].splits[k].wait = GM_RUNS;
}

const gm_insn *gm_cluster_come(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    gm_unit *unit = w->block->unit;
    for (uint32_t left = lanes; left; left &= left - 1)
        w->cluster_turn[__builtin_ctz(left)] = unit->barrier_turn + 1;
    unit->barrier_came += (uint32_t)__builtin_popcount(lanes);
    gm_cluster_check(unit, 0);
    return in + 1;
}

const gm_insn *gm_cluster_wait(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    uint64_t turn = w->block->unit->barrier_turn;
    uint32_t waits = 0;
    for (uint32_t left = lanes; left; left &= left - 1)
        if (w->cluster_turn[__builtin_ctz(left)] > turn)
            waits |= left & -left;
    if (waits == 0)
        return in + 1;
    gm_split s = w->now;
    s.pc = in + 1, s.mask = waits, s.wait = GM_AT_CLUSTER;
    w->splits[w->split_count++] = s;
    w->active &= ~waits;
    if (w->active == 0)
        w->has_now = 0;
    return w->active ? in + 1 : NULL;
}
