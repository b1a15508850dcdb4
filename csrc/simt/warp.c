/* Lanes of a warp that go different ways.
 *
 * A divergent branch makes two splits, and a join where the ways meet again (the branch block's immediate
 * post-dominator). One split runs, the others wait; what comes to its join stays there until all lanes that the join
 * waits for have come or exited. When a split has had its turn, another goes on; if the one that runs keeps asking
 * memory for something (`polled`) while lanes wait at a join, those are let go: they may be the ones that it waits for.
 * So a lane can wait for another one of its warp, as on the hardware since Volta. */
#include "machine.h"
#include "../base/memory.h"
#include <string.h>

static void add_split(gm_warp *w, gm_split split)
{
    w->splits[w->split_count++] = split; /* at most 31 besides the one that runs: each has a lane of its own */
}

static int same_place(const gm_split *s, const gm_insn *pc, const gm_frame *frame)
{
    return s->pc == pc && s->frame == frame;
}

/* The split that runs waits, or ends. */
static void put_aside(gm_warp *w, const gm_insn *pc, gm_wait wait, uint32_t wanted)
{
    gm_split s = w->now;
    s.pc = pc, s.mask = w->active, s.wait = (uint8_t)wait, s.wanted = wanted;
    add_split(w, s);
    w->has_now = 0;
}

static void take(gm_warp *w, uint32_t index)
{
    w->now = w->splits[index];
    w->splits[index] = w->splits[--w->split_count];
    w->active = w->now.mask;
    w->has_now = 1;
}

/* The next split that can run: the one set aside last, unless `turn` asks for the one that has waited longest. */
static int pick(gm_warp *w)
{
    for (uint32_t i = w->split_count; i-- > 0;)
        if (w->splits[i].wait == GM_RUNS) {
            take(w, i);
            return 1;
        }
    return 0;
}

static gm_join *new_join(gm_warp *w)
{
    gm_join *j = w->joins_free;
    if (j)
        w->joins_free = j->outer;
    else if ((j = gm_alloc(sizeof *j)) != NULL) {
        j->all = w->joins_all;
        w->joins_all = j;
    }
    return j;
}

static void free_join(gm_warp *w, gm_join *j)
{
    j->outer = w->joins_free;
    w->joins_free = j;
}

static void no_memory(gm_warp *w)
{
    gm_stop(w->worker->run, GM_NO_MEMORY, "executing a kernel");
    w->has_now = 0;
}

/* All that the join waits for have come. */
static void complete(gm_warp *w, gm_join *j)
{
    add_split(w, (gm_split){.pc = j->at, .join = j->outer, .frame = j->frame, .mask = j->came});
    free_join(w, j);
}

const gm_insn *gm_warp_diverge(gm_warp *w, const gm_insn *in, uint32_t taken)
{
    const gm_insn *target = w->code + in->x, *meet = in->e == GM_NOWHERE ? NULL : w->code + in->e;
    uint32_t other = w->active & ~taken;
    gm_join *j = w->now.join;

    if (meet && !(j && j->at == meet && j->frame == w->now.frame)) {
        j = new_join(w);
        if (j == NULL) {
            no_memory(w);
            return NULL;
        }
        *j = (gm_join){.outer = w->now.join, .at = meet, .frame = w->now.frame, .lanes = w->active, .all = j->all};
        w->now.join = j;
    }
    if (meet == target) {
        j->came |= taken;
        w->active = other;
        return in + 1;
    }
    if (meet == in + 1) {
        j->came |= other;
        w->active = taken;
        return target;
    }
    add_split(w, (gm_split){.pc = target, .join = w->now.join, .frame = w->now.frame, .mask = taken});
    w->active = other;
    return in + 1;
}

const gm_insn *gm_warp_branch_table(gm_warp *w, const gm_insn *in, const uint32_t index[GM_LANES])
{
    uint32_t left = w->active;
    const gm_insn *meet = in->e == GM_NOWHERE ? NULL : w->code + in->e, *first = NULL;
    gm_join *j = w->now.join;
    int pushed = 0;

    for (uint32_t i = 0; i < GM_LANES; i++)
        if (left >> i & 1 && index[i] >= in->n) {
            gm_stop(w->worker->run, GM_LENS_LIMIT, "brx.idx with an index beyond its table");
            w->has_now = 0;
            return NULL;
        }
    uint32_t at = index[__builtin_ctz(left)], same = 0;
    for (uint32_t i = 0; i < GM_LANES; i++)
        same |= left >> i & 1 && index[i] == at ? 1u << i : 0;
    first = w->code + w->lists[in->x + at];
    if (same == left)
        return first;
    if (meet && !(j && j->at == meet && j->frame == w->now.frame)) {
        j = new_join(w);
        if (j == NULL) {
            no_memory(w);
            return NULL;
        }
        *j = (gm_join){.outer = w->now.join, .at = meet, .frame = w->now.frame, .lanes = w->active, .all = j->all};
        w->now.join = j;
    }
    w->has_now = 0;
    while (left) {
        at = index[__builtin_ctz(left)], same = 0;
        for (uint32_t i = 0; i < GM_LANES; i++)
            same |= left >> i & 1 && index[i] == at ? 1u << i : 0;
        left &= ~same;
        const gm_insn *to = w->code + w->lists[in->x + at];
        if (to == meet)
            j->came |= same;
        else
            add_split(w, (gm_split){.pc = to, .join = w->now.join, .frame = w->now.frame, .mask = same}), pushed = 1;
    }
    (void)pushed; /* two different targets: at most one of them is where the ways meet */
    return NULL;
}

const gm_insn *gm_warp_join(gm_warp *w, const gm_insn *in)
{
    gm_join *j = w->now.join;
    j->came |= w->active;
    w->has_now = 0;
    if (j->came == j->lanes)
        complete(w, j);
    (void)in;
    return NULL;
}

/* The split asks memory for something that somebody else may give. If it got the same answer time and again, it waits:
 * its turn gets short. What it does not use of it is not counted as executed. */
void gm_warp_asks(gm_warp *w, const gm_insn *in, uint64_t answer)
{
    if (w->asked_at != in || w->asked_answer != answer) {
        w->asked_at = in, w->asked_answer = answer, w->asked_times = 0;
        return;
    }
    if (++w->asked_times < GM_ASKS)
        return;
    w->polled = 1;
    if (w->budget > GM_SHORT_TURN) {
        w->skipped += (uint64_t)(w->budget - GM_SHORT_TURN);
        w->budget = GM_SHORT_TURN;
    }
}

/* Lets lanes that wait at the innermost join of any split go on without the others. */
static int let_go(gm_warp *w)
{
    for (uint32_t i = w->split_count; i-- > 0;)
        for (gm_join *j = w->splits[i].join; j; j = j->outer)
            if (j->came && !j->is_call) {
                add_split(w, (gm_split){.pc = j->at, .join = j->outer, .frame = j->frame, .mask = j->came});
                j->lanes &= ~j->came;
                j->came = 0;
                /* They are no longer this join's, but still those of the ones around it. */
                return 1;
            }
    return 0;
}

const gm_insn *gm_warp_turn(gm_warp *w, const gm_insn *in)
{
    /* To the front: the others come first. */
    put_aside(w, in, GM_RUNS, 0);
    gm_split last = w->splits[w->split_count - 1];
    memmove(w->splits + 1, w->splits, (w->split_count - 1) * sizeof *w->splits);
    w->splits[0] = last;
    if (w->polled)
        let_go(w);
    w->asked = w->polled;
    w->polled = 0;
    w->asked_times = 0;
    w->turn_over = 1;
    return NULL;
}

/* `lanes` of the split that runs are gone from the joins around it, up to (not including) `until`. */
static void leave_joins(gm_warp *w, gm_join *from, const gm_join *until, uint32_t lanes)
{
    gm_join *outer;
    for (gm_join *j = from; j && j != until; j = outer) {
        outer = j->outer;
        j->lanes &= ~lanes;
        if (j->lanes == 0)
            free_join(w, j);
        else if (j->came == j->lanes)
            complete(w, j);
    }
}

static void leave_frames(gm_warp *w, gm_frame *f, const gm_frame *until, uint32_t lanes)
{
    gm_frame *caller;
    for (; f && f != until; f = caller) {
        caller = f->caller;
        f->lanes &= ~lanes;
        if (f->lanes == 0 && f != &w->bottom)
            gm_frame_free(w, f);
    }
}

/* Lanes that wait for an exited one wait no longer. */
static void wake_syncs(gm_warp *w)
{
    for (uint32_t i = 0; i < w->split_count; i++)
        if (w->splits[i].wait == GM_AT_SYNC)
            w->splits[i].wait = GM_RUNS;
}

const gm_insn *gm_warp_exit(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    uint32_t rest = w->active & ~lanes;
    w->live &= ~lanes;
    gm_join *joins = w->now.join;
    gm_frame *frame = w->now.frame;
    w->active = rest;
    if (rest == 0)
        w->has_now = 0;
    leave_joins(w, joins, NULL, lanes);
    leave_frames(w, frame, NULL, lanes);
    wake_syncs(w);
    gm_barrier_left(w->block, (uint32_t)__builtin_popcount(lanes));
    return rest ? in + 1 : NULL;
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

/* Where lanes wait behind a call; those that its guard keeps out are there already. */
static gm_join *behind_call(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    gm_join *j = new_join(w);
    if (j == NULL) {
        no_memory(w);
        return NULL;
    }
    *j = (gm_join){.outer = w->now.join,
                   .at = in + 1,
                   .frame = w->now.frame,
                   .lanes = w->active,
                   .came = w->active & ~lanes,
                   .is_call = 1,
                   .all = j->all};
    return j;
}

/* The callee's frame, with its arguments; NULL: the run was stopped. */
static gm_frame *enter(gm_warp *w, uint32_t function, uint32_t arguments, uint32_t count, uint32_t lanes)
{
    gm_frame *caller = w->now.frame, *f = gm_frame_new(w, function, caller, lanes);
    const gm_argument *row = w->worker->run->program->arguments + arguments;
    for (uint32_t a = 0; f && a < count; a++)
        for (uint32_t i = 0; i < GM_LANES; i++)
            if (lanes >> i & 1)
                memcpy(f->regs + row[a].callee + i * row[a].bytes, caller->regs + row[a].caller + i * row[a].bytes,
                       row[a].bytes);
    return f;
}

const gm_insn *gm_warp_call(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    gm_join *j = behind_call(w, in, lanes);
    if (j == NULL)
        return NULL;
    gm_frame *f = enter(w, in->x, in->e, in->n, lanes);
    if (f == NULL) {
        free_join(w, j);
        w->has_now = 0;
        return NULL;
    }
    w->now.join = j;
    w->now.frame = f;
    w->now.pc = w->code + f->function->start;
    w->now.mask = w->active = lanes;
    return NULL;
}

/* The row (function, arguments) of a function in the list of a call through a pointer; NULL: it is not there. */
static const uint32_t *row_of(const gm_warp *w, const gm_insn *in, uint64_t function)
{
    for (uint32_t k = 0; k < in->f; k++)
        if (w->lists[in->x + 2 * k] == function)
            return &w->lists[in->x + 2 * k];
    return NULL;
}

const gm_insn *gm_warp_call_through(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    uint64_t to[GM_LANES];
    memcpy(to, w->now.frame->regs + in->a, sizeof to);
    gm_join *j = behind_call(w, in, lanes);
    if (j == NULL)
        return NULL;
    w->has_now = 0;
    while (lanes) {
        uint64_t target = to[__builtin_ctz(lanes)];
        uint32_t same = 0;
        for (uint32_t i = 0; i < GM_LANES; i++)
            same |= lanes >> i & 1 && to[i] == target ? 1u << i : 0;
        lanes &= ~same;
        const uint32_t *row = target % 16 ? NULL : row_of(w, in, (target - GM_CODE_START) / 16);
        gm_frame *f = row ? enter(w, row[0], row[1], in->n, same) : NULL;
        if (!row)
            gm_stop(w->worker->run, GM_LENS_LIMIT, "a call through a pointer to no function that takes its arguments");
        if (!f)
            return NULL;
        add_split(w, (gm_split){.pc = w->code + f->function->start, .join = j, .frame = f, .mask = same});
    }
    return NULL;
}

const gm_insn *gm_warp_return(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    gm_frame *f = w->now.frame;
    if (f == &w->bottom)
        return gm_warp_exit(w, in, lanes);
    gm_join *call = w->now.join;
    while (call && !(call->is_call && call->frame == f->caller))
        call = call->outer;
    if (call == NULL)
        return gm_warp_exit(w, in, lanes); /* cannot be: each call has its join */
    const gm_insn *from = call->at - 1;
    const gm_program *program = w->worker->run->program;
    uint32_t arguments =
        from->op == GM_DO_call ? from->e : row_of(w, from, (uint64_t)(f->function - program->functions))[1];
    const gm_argument *results = program->arguments + arguments + from->n;
    for (uint32_t a = 0; a < from->k; a++)
        for (uint32_t i = 0; i < GM_LANES; i++)
            if (lanes >> i & 1)
                memcpy(f->caller->regs + results[a].caller + i * results[a].bytes,
                       f->regs + results[a].callee + i * results[a].bytes, results[a].bytes);
    uint32_t rest = w->active & ~lanes;
    gm_join *joins = w->now.join;
    w->active = rest;
    if (rest == 0)
        w->has_now = 0;
    leave_joins(w, joins, call, lanes);
    call->came |= lanes;
    gm_frame *caller = f->caller;
    leave_frames(w, f, caller, lanes);
    if (call->came == call->lanes)
        complete(w, call);
    return rest ? in + 1 : NULL;
}

/* --- instructions that name lanes ------------------------------------------------------------------------------ */

static int is_barrier(const gm_insn *in)
{
    return in->op == GM_DO_bar_sync || in->op == GM_DO_bar_red || in->op == GM_DO_bar_arrive;
}

int gm_warp_sync(gm_warp *w, const gm_insn *in, uint32_t wanted)
{
    if (w->gathered)
        return 1;
    /* Who waits here already? All that are here must want nobody else. */
    uint32_t here = w->active, all = wanted;
    int any = in->op == GM_DO_warpsync; /* any bar.warp.sync meets any other */
    for (uint32_t i = 0; i < w->split_count; i++) {
        gm_split *s = &w->splits[i];
        if (s->wait == GM_AT_SYNC && (any ? s->pc->op == GM_DO_warpsync : same_place(s, in, w->now.frame)))
            here |= s->mask, all |= s->wanted;
    }
    if (all & w->live & ~here) {
        put_aside(w, in, GM_AT_SYNC, wanted);
        return 0;
    }
    if (any) {
        for (uint32_t i = 0; i < w->split_count; i++)
            if (w->splits[i].wait == GM_AT_SYNC && w->splits[i].pc->op == GM_DO_warpsync)
                w->splits[i].wait = GM_RUNS, w->splits[i].pc++;
        return 1;
    }
    /* Those with the same way before them go on together; the others for this one instruction, or, at a barrier of the
     * block, one after another. */
    uint32_t guests = 0;
    int barrier = is_barrier(in);
    for (uint32_t i = 0; i < w->split_count;) {
        gm_split *s = &w->splits[i];
        if (s->wait == GM_AT_SYNC && same_place(s, in, w->now.frame)) {
            if (s->join == w->now.join) {
                w->active |= s->mask;
                *s = w->splits[--w->split_count];
                continue;
            }
            s->wait = GM_RUNS;
            if (barrier)
                s->alone = 1;
            else
                guests |= s->mask, s->pc++;
        }
        i++;
    }
    if (guests) {
        uint32_t own = w->active;
        w->active |= guests;
        w->gathered = 1;
        const gm_insn *next = in->run(in, w, w->now.frame->regs);
        w->gathered = 0;
        w->active = own;
        w->now.pc = next ? next : in + 1;
        return 0; /* done: the loop goes on behind it */
    }
    return 1;
}

void gm_warp_met(gm_warp *w, uint32_t lanes)
{
    if (w->watch)
        gm_watch_warp_barrier(w->watch, w->index, lanes & w->live, w->live);
}

/* --- turns ----------------------------------------------------------------------------------------------------- */

/* Whoever is not at a join waits for lanes of this warp: none can come but from there. */
static int only_syncs(const gm_warp *w)
{
    for (uint32_t i = 0; i < w->split_count; i++)
        if (w->splits[i].wait != GM_AT_SYNC)
            return 0;
    return w->split_count != 0;
}

int gm_warp_run(gm_warp *w)
{
    int ran = 0;
    gm_run *run = w->worker->run;
    w->turn_over = w->asked = 0;
    w->overtaken = w->block->unit->number != w->worker->newest;
    w->budget = GM_TURN;
    while (!w->turn_over) {
        if (!w->has_now && !pick(w)) {
            if (!only_syncs(w) || !let_go(w))
                break;
            continue;
        }
        ran = 1;
        uint8_t *regs = w->now.frame->regs;
        const gm_insn *in = w->now.pc;
        if (w->step)
            in = w->step(in, w, regs);
        else
            do
                in = in->run(in, w, regs);
            while (in);
        if (atomic_load_explicit(&run->stop, memory_order_relaxed))
            break;
    }
    uint64_t spent = (uint64_t)(GM_TURN - w->budget) - w->skipped;
    w->skipped = 0;
    w->worker->instructions += spent;
    w->done = !w->has_now && w->split_count == 0;
    return ran;
}

/* Nothing in the unit can go on. Lanes at a join may be what others wait for. Lanes at an aligned barrier wait for the
 * rest of their warp in vain: they go there without it, and that is a finding. 1 if that was so. */
int gm_warp_unstick(gm_warp *w)
{
    int any = let_go(w);
    for (uint32_t i = 0; !any && i < w->split_count; i++) {
        gm_split *s = &w->splits[i];
        if (s->wait == GM_AT_SYNC && is_barrier(s->pc)) {
            gm_found(w, s->pc, GM_FINDING_DIVERGENT_BARRIER, s->mask, NULL);
            s->alone = 1;
            s->wait = GM_RUNS;
            any = 1;
        }
    }
    return any;
}
