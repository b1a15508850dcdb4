/* The shape of a function: basic blocks, immediate post-dominators, the lives of registers. */
#include "lower.h"
#include "../base/memory.h"
#include <string.h>

int gm_flow_ends(const gm_ptx_inst *inst)
{
    return inst->op == GM_OP_BRA || inst->op == GM_OP_BRX || inst->op == GM_OP_RET || inst->op == GM_OP_EXIT ||
           inst->op == GM_OP_TRAP;
}

static void see_operand(const gm_ptx_operand *o, int writes, void (*see)(void *, uint32_t, int), void *context)
{
    if (o->kind == GM_OPERAND_REG) {
        see(context, o->index, writes);
    } else if (o->kind == GM_OPERAND_ADDRESS) {
        if (o->base == GM_OPERAND_REG)
            see(context, o->index, 0);
        for (uint32_t i = 0; o->coordinates && i < o->n; i++)
            see_operand(&o->coordinates[i], 0, see, context);
    } else if (o->kind == GM_OPERAND_VECTOR) {
        for (uint32_t i = 0; i < o->n; i++)
            see_operand(&o->elements[i], writes, see, context);
    }
}

/* How many of the first operands an instruction writes. */
static uint32_t written(const gm_ptx_inst *inst)
{
    switch (inst->op) {
    case GM_OP_ST:
    case GM_OP_ST_ASYNC:
    case GM_OP_ST_BULK:
    case GM_OP_RED:
    case GM_OP_RED_ASYNC:
    case GM_OP_BRA:
    case GM_OP_BRX:
    case GM_OP_RET:
    case GM_OP_EXIT:
    case GM_OP_TRAP:
    case GM_OP_BRKPT:
    case GM_OP_NANOSLEEP:
    case GM_OP_PMEVENT:
    case GM_OP_BAR_SYNC:
    case GM_OP_BAR_ARRIVE:
    case GM_OP_BARRIER_SYNC:
    case GM_OP_BARRIER_ARRIVE:
    case GM_OP_BAR_WARP_SYNC:
    case GM_OP_PREFETCH:
    case GM_OP_PREFETCHU:
    case GM_OP_APPLYPRIORITY:
    case GM_OP_DISCARD:
    case GM_OP_STMATRIX:
    case GM_OP_WMMA_STORE_D:
    case GM_OP_CP_ASYNC:
    case GM_OP_CP_ASYNC_WAIT:
    case GM_OP_CP_ASYNC_BULK:
    case GM_OP_CP_ASYNC_BULK_TENSOR:
    case GM_OP_CP_ASYNC_BULK_PREFETCH:
    case GM_OP_CP_ASYNC_BULK_PREFETCH_TENSOR:
    case GM_OP_CP_REDUCE_ASYNC_BULK:
    case GM_OP_CP_REDUCE_ASYNC_BULK_TENSOR:
    case GM_OP_CP_ASYNC_BULK_WAIT:
    case GM_OP_CP_ASYNC_MBARRIER_ARRIVE:
    case GM_OP_MBARRIER_INIT:
    case GM_OP_MBARRIER_INVAL:
    case GM_OP_MBARRIER_EXPECT_TX:
    case GM_OP_MBARRIER_COMPLETE_TX:
    case GM_OP_FENCE_PROXY_TENSORMAP:
    case GM_OP_STACKRESTORE:
    case GM_OP_SETMAXNREG:
        return 0;
    case GM_OP_SETP:
        return inst->noperands > 4 ? 2 : 1;
    case GM_OP_SHFL:
    case GM_OP_ELECT:
        return 2;
    case GM_OP_MATCH:
        return inst->mod[GM_FIELD_OP] == GM_MOD_ALL ? 2 : 1;
    case GM_OP_LOP3:
        return inst->mod[GM_FIELD_BOOL] ? 2 : 1;
    case GM_OP_CALL:
        return 1; /* results */
    default:
        return 1;
    }
}

void gm_flow_registers(const gm_ptx_inst *inst, void (*see)(void *, uint32_t, int), void *context)
{
    uint32_t writes = written(inst);
    for (uint32_t i = writes; i < inst->noperands; i++)
        see_operand(&inst->operands[i], 0, see, context);
    if (inst->guard != GM_PTX_NO_REG)
        see(context, (uint32_t)inst->guard, 0);
    for (uint32_t i = 0; i < writes && i < inst->noperands; i++)
        see_operand(&inst->operands[i], 1, see, context);
}

/* --- blocks ---------------------------------------------------------------------------------------------------- */

static gm_status make_blocks(gm_flow *flow, const gm_ptx_function *f)
{
    uint32_t n = f->ninsts;
    flow->block_of = gm_alloc((n + 2) * sizeof *flow->block_of);
    if (!flow->block_of)
        return GM_NO_MEMORY;
    memset(flow->block_of, 0, (n + 2) * sizeof *flow->block_of);
    uint32_t *leads = flow->block_of;
    leads[0] = 1;
    for (uint32_t i = 0; i < n; i++) {
        const gm_ptx_inst *inst = &f->insts[i];
        if (!gm_flow_ends(inst))
            continue;
        leads[i + 1] = 1;
        if (inst->op == GM_OP_BRA)
            leads[inst->operands[0].index] = 1;
        if (inst->op == GM_OP_BRX) {
            const gm_ptx_table *table = &f->tables[inst->operands[1].index];
            for (uint32_t k = 0; k < table->n; k++)
                leads[table->targets[k]] = 1;
        }
    }
    leads[n] = 1; /* falling off the end is a return: a block of its own */
    uint32_t count = 0;
    for (uint32_t i = 0; i <= n; i++)
        count += leads[i];
    flow->blocks = gm_alloc(count * sizeof *flow->blocks);
    if (!flow->blocks)
        return GM_NO_MEMORY;
    flow->count = 0;
    for (uint32_t i = 0; i <= n; i++) {
        if (leads[i]) {
            gm_flow_block *b = &flow->blocks[flow->count++];
            *b = (gm_flow_block){i, i, GM_NOWHERE, GM_NOWHERE, -1, GM_NOWHERE, 0, 0};
        }
        flow->block_of[i] = flow->count - 1;
        flow->blocks[flow->count - 1].end = i < n ? i + 1 : n;
    }
    for (uint32_t b = 0; b < flow->count; b++) {
        gm_flow_block *block = &flow->blocks[b];
        if (block->first == n)
            continue; /* the end */
        const gm_ptx_inst *last = &f->insts[block->end - 1];
        int always = last->guard == GM_PTX_NO_REG;
        if (last->op == GM_OP_BRA)
            block->target = flow->block_of[last->operands[0].index];
        if (last->op == GM_OP_BRX)
            block->table = (int32_t)last->operands[1].index;
        if (!gm_flow_ends(last) || !always)
            block->next = b + 1;
    }
    return GM_OK;
}

/* --- where ways meet ------------------------------------------------------------------------------------------- */

typedef struct edges {
    uint32_t *start, *to; /* the blocks before b: to[start[b]] ... to[start[b + 1] - 1] */
} edges;

static uint32_t successors(const gm_flow *flow, const gm_ptx_function *f, uint32_t b, uint32_t k)
{
    const gm_flow_block *block = &flow->blocks[b];
    if (block->table >= 0) {
        const gm_ptx_table *table = &f->tables[block->table];
        if (k < table->n)
            return flow->block_of[table->targets[k]];
        k -= table->n;
    } else if (block->target != GM_NOWHERE) {
        if (k == 0)
            return block->target;
        k--;
    }
    return k == 0 ? block->next : GM_NOWHERE;
}

/* Whether lanes may leave the function at the block's end. */
static int leaves(const gm_flow *flow, const gm_ptx_function *f, uint32_t b)
{
    const gm_flow_block *block = &flow->blocks[b];
    if (block->first == f->ninsts)
        return 1;
    uint16_t op = f->insts[block->end - 1].op;
    return op == GM_OP_RET || op == GM_OP_EXIT || op == GM_OP_TRAP;
}

/* A block that does nothing but leave. */
static int only_leaves(const gm_flow *flow, const gm_ptx_function *f, uint32_t b)
{
    const gm_flow_block *block = &flow->blocks[b];
    return leaves(flow, f, b) && block->end - block->first <= 1 && block->next == GM_NOWHERE;
}

/* The k-th block that may follow b as far as meeting is concerned; `count` stands for the function's exit. Lanes that
 * leave are waited for by nobody, so that ways meet as if they were not there (cut): an early return inside an if does
 * not keep the lanes that stay from meeting behind it. */
static uint32_t follows(const gm_flow *flow, const gm_ptx_function *f, const uint8_t *cut, uint32_t b, uint32_t k)
{
    uint32_t s, at = 0;
    for (uint32_t i = 0; (s = successors(flow, f, b, i)) != GM_NOWHERE; i++) {
        if (cut[b] && only_leaves(flow, f, s))
            continue;
        if (at++ == k)
            return s;
    }
    return leaves(flow, f, b) && !cut[b] && at == k ? flow->count : GM_NOWHERE;
}

static gm_status make_edges(edges *e, const gm_flow *flow, const gm_ptx_function *f, const uint8_t *cut)
{
    uint32_t n = flow->count, s;
    size_t total = 0;
    memset(e->start, 0, (n + 2) * sizeof *e->start);
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t k = 0; (s = follows(flow, f, cut, b, k)) != GM_NOWHERE; k++)
            e->start[s + 1]++, total++;
    gm_free(e->to);
    e->to = gm_alloc((total + 1) * sizeof *e->to);
    if (!e->to)
        return GM_NO_MEMORY;
    for (uint32_t b = 0; b <= n; b++)
        e->start[b + 1] += e->start[b];
    for (uint32_t b = n; b-- > 0;)
        for (uint32_t k = 0; (s = follows(flow, f, cut, b, k)) != GM_NOWHERE; k++)
            e->to[--e->start[s + 1]] = b;
    /* start[s + 1] has moved down to where s's predecessors begin. */
    for (uint32_t b = 0; b <= n; b++)
        e->start[b] = e->start[b + 1];
    e->start[n + 1] = (uint32_t)total;
    return GM_OK;
}

/* Postorder of the reversed graph from the exit: order[0 .. result), rank of each, GM_NOWHERE where it cannot leave. */
static uint32_t reverse_order(const edges *e, uint32_t n, uint32_t *order, uint32_t *rank, uint32_t *stack,
                              uint32_t *edge)
{
    uint32_t depth = 1, seen = 0;
    for (uint32_t b = 0; b <= n; b++)
        rank[b] = GM_NOWHERE;
    stack[0] = n, edge[n] = e->start[n], rank[n] = 0;
    while (depth) {
        uint32_t b = stack[depth - 1];
        if (edge[b] == e->start[b + 1]) {
            order[seen++] = b;
            depth--;
            continue;
        }
        uint32_t p = e->to[edge[b]++];
        if (rank[p] == GM_NOWHERE) {
            rank[p] = 0, edge[p] = e->start[p];
            stack[depth++] = p;
        }
    }
    for (uint32_t i = 0; i < seen; i++)
        rank[order[i]] = i;
    return seen;
}

/* Immediate post-dominators, by Cooper, Harvey and Kennedy's iteration over the reversed graph. */
static gm_status meet_points(gm_flow *flow, const gm_ptx_function *f)
{
    uint32_t n = flow->count, seen = 0;
    edges e = {gm_alloc((size_t)(n + 2) * sizeof(uint32_t)), NULL};
    uint32_t *memory = gm_alloc((size_t)(n + 1) * 5 * sizeof *memory);
    uint8_t *cut = gm_alloc(n + 1);
    gm_status status = memory && cut && e.start ? GM_OK : GM_NO_MEMORY;
    if (status)
        goto done;
    uint32_t *order = memory, *rank = order + n + 1, *meet = rank + n + 1, *stack = meet + n + 1, *edge = stack + n + 1;
    for (uint32_t b = 0; b < n; b++) {
        uint32_t s;
        cut[b] = 0;
        for (uint32_t k = 0; (s = successors(flow, f, b, k)) != GM_NOWHERE; k++)
            cut[b] |= !only_leaves(flow, f, s);
    }
    for (int round = 0; round < 2; round++) {
        status = make_edges(&e, flow, f, cut);
        if (status)
            goto done;
        seen = reverse_order(&e, n, order, rank, stack, edge);
        for (uint32_t b = 0; b < n; b++)
            if (rank[b] == GM_NOWHERE)
                cut[b] = 0; /* a loop that ends only so: its way out counts after all */
    }
    for (uint32_t b = 0; b <= n; b++)
        meet[b] = GM_NOWHERE;
    meet[n] = n;
    for (int changed = 1; changed;) {
        changed = 0;
        for (uint32_t i = seen - 1; i-- > 0;) {
            uint32_t b = order[i], found = GM_NOWHERE, s;
            for (uint32_t k = 0; (s = follows(flow, f, cut, b, k)) != GM_NOWHERE; k++) {
                if (rank[s] == GM_NOWHERE || meet[s] == GM_NOWHERE)
                    continue;
                if (found == GM_NOWHERE)
                    found = s;
                while (s != found) {
                    while (rank[s] < rank[found])
                        s = meet[s];
                    while (rank[found] < rank[s])
                        found = meet[found];
                }
            }
            if (meet[b] != found)
                meet[b] = found, changed = 1;
        }
    }
    for (uint32_t b = 0; b < n; b++) {
        flow->blocks[b].meet = rank[b] == GM_NOWHERE || meet[b] == n ? GM_NOWHERE : meet[b];
        if (successors(flow, f, b, 1) != GM_NOWHERE && flow->blocks[b].meet != GM_NOWHERE)
            flow->blocks[flow->blocks[b].meet].is_meet = 1;
    }
done:
    gm_free(e.start);
    gm_free(e.to);
    gm_free(memory);
    gm_free(cut);
    return status;
}

/* --- the lives of registers ------------------------------------------------------------------------------------ */

typedef struct scan {
    uint64_t *gen, *kill;
    gm_flow *flow;
    uint32_t at;
    int sure; /* the instruction has no guard */
} scan;

static void widen(gm_flow *flow, uint32_t reg, uint32_t at)
{
    flow->from[reg] = at < flow->from[reg] || flow->from[reg] > flow->to[reg] ? at : flow->from[reg];
    flow->to[reg] = at > flow->to[reg] || flow->to[reg] == GM_NOWHERE ? at : flow->to[reg];
}

static void scan_register(void *context, uint32_t reg, int writes)
{
    scan *s = context;
    uint64_t bit = UINT64_C(1) << reg % 64;
    if (s->gen) {
        if (writes && s->sure)
            s->kill[reg / 64] |= bit;
        else if (!(s->kill[reg / 64] & bit))
            s->gen[reg / 64] |= bit;
    }
    widen(s->flow, reg, s->at);
}

/* Lives as hulls in the order of the text. Too large a function is not looked at: all its registers live throughout. */
static gm_status lives(gm_flow *flow, const gm_ptx_function *f)
{
    uint32_t n = flow->count, regs = f->nregs;
    size_t words = ((size_t)regs + 63) / 64, all = words * n;
    flow->from = gm_alloc((regs + 1) * sizeof *flow->from);
    flow->to = gm_alloc((regs + 1) * sizeof *flow->to);
    flow->early = gm_alloc(regs + 1);
    if (!flow->from || !flow->to || !flow->early)
        return GM_NO_MEMORY;
    memset(flow->early, 0, regs + 1);
    for (uint32_t r = 0; r < regs; r++)
        flow->from[r] = 1, flow->to[r] = 0;
    if (all > (size_t)1 << 22) {
        for (uint32_t r = 0; r < regs; r++)
            flow->from[r] = 0, flow->to[r] = f->ninsts, flow->early[r] = 1;
        return GM_OK;
    }
    uint64_t *bits = gm_alloc(all * 3 * sizeof *bits + 8);
    if (!bits)
        return GM_NO_MEMORY;
    memset(bits, 0, all * 3 * sizeof *bits);
    uint64_t *gen = bits, *kill = bits + all, *in = bits + 2 * all;
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t i = flow->blocks[b].first; i < flow->blocks[b].end; i++) {
            scan s = {gen + b * words, kill + b * words, flow, i, f->insts[i].guard == GM_PTX_NO_REG};
            gm_flow_registers(&f->insts[i], scan_register, &s);
        }
    /* A function's results are read where it returns. */
    for (uint32_t b = 0; b < n; b++) {
        const gm_flow_block *block = &flow->blocks[b];
        int returns =
            block->first == f->ninsts || (block->end > block->first && f->insts[block->end - 1].op == GM_OP_RET);
        for (uint32_t k = 0; returns && k < f->nresults; k++)
            if (f->result_regs && f->result_regs[k] != GM_PTX_NO_REG) {
                uint32_t r = (uint32_t)f->result_regs[k];
                if (!(kill[b * words + r / 64] >> r % 64 & 1))
                    gen[b * words + r / 64] |= UINT64_C(1) << r % 64;
                widen(flow, r, block->end);
            }
    }
    for (int changed = 1; changed;) {
        changed = 0;
        for (uint32_t b = n; b-- > 0;) {
            uint64_t *own = in + b * words;
            for (size_t w = 0; w < words; w++) {
                uint64_t out = 0;
                uint32_t s, k = 0;
                while ((s = successors(flow, f, b, k++)) != GM_NOWHERE)
                    out |= in[s * words + w];
                uint64_t now = gen[b * words + w] | (out & ~kill[b * words + w]);
                changed |= now != own[w];
                own[w] = now;
            }
        }
    }
    for (uint32_t b = 0; b < n; b++) {
        const gm_flow_block *block = &flow->blocks[b];
        for (size_t w = 0; w < words; w++) {
            uint64_t out = 0;
            uint32_t s, k = 0;
            while ((s = successors(flow, f, b, k++)) != GM_NOWHERE)
                out |= in[s * words + w];
            for (uint64_t left = in [b * words + w]; left; left &= left - 1)
                widen(flow, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(left), block->first);
            for (uint64_t left = out; left; left &= left - 1)
                widen(flow, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(left), block->end ? block->end - 1 : 0);
        }
    }
    for (uint32_t r = 0; r < regs; r++)
        flow->early[r] = in[r / 64] >> r % 64 & 1;
    gm_free(bits);
    return GM_OK;
}

gm_status gm_flow_make(gm_flow *flow, const gm_ptx *module, const gm_ptx_function *function)
{
    (void)module;
    memset(flow, 0, sizeof *flow);
    gm_status status = make_blocks(flow, function);
    if (!status)
        status = meet_points(flow, function);
    if (!status)
        status = lives(flow, function);
    return status;
}

void gm_flow_free(gm_flow *flow)
{
    gm_free(flow->blocks);
    gm_free(flow->block_of);
    gm_free(flow->from);
    gm_free(flow->to);
    gm_free(flow->early);
    memset(flow, 0, sizeof *flow);
}
