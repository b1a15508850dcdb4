/* Where a function's values live: a slot for each register, constant and passing value of an instruction. Registers
 * whose lives do not overlap share one, so that a frame stays in the first-level cache. */
#include "lower.h"
#include "../base/memory.h"
#include <stdlib.h>
#include <string.h>

uint32_t gm_register_bytes(const gm_ptx_reg *reg)
{
    uint32_t bits = gm_ptx_types[reg->type].bits;
    return bits == 1 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : bits <= 64 ? 8 : 16;
}

static uint32_t slot_bytes(uint32_t bytes)
{
    return bytes == 1 ? 4 : bytes * GM_LANES;
}

uint32_t gm_lower_new_slot(gm_lower *l, uint32_t bytes)
{
    uint32_t at = l->frame;
    if (l->frame > GM_MOST_FRAME) {
        gm_lower_refuse(l, "%s has more registers than 64 MiB hold for a warp", l->function->name);
        return 64;
    }
    l->frame += slot_bytes(bytes);
    return at;
}

uint32_t gm_lower_temp(gm_lower *l, uint32_t bytes)
{
    if (bytes == 1)
        return l->pred_temps + 4 * (l->used_pred_temps++ % GM_TEMPS);
    uint32_t class = bytes == 2 ? 0 : bytes == 4 ? 1 : bytes == 8 ? 2 : 3;
    return l->temps[class] + (l->used_temps++ % GM_TEMPS) * slot_bytes(bytes);
}

static uint32_t hash_constant(const gm_constant *c, uint32_t size)
{
    uint64_t h = c->value * UINT64_C(0x9e3779b97f4a7c15) ^ c->high ^ ((uint64_t)c->bytes << 8 | c->filler);
    h ^= h >> 29;
    return (uint32_t)(h * UINT64_C(0xbf58476d1ce4e5b9) >> 32) & (size - 1);
}

uint32_t gm_lower_constant(gm_lower *l, gm_filler filler, uint32_t bytes, uint64_t value, uint64_t high)
{
    gm_constant c = {.value = value, .high = high, .bytes = (uint8_t)bytes, .filler = (uint8_t)filler};
    if (filler == GM_FILL_BITS && bytes < 8)
        c.value &= (UINT64_C(1) << 8 * bytes) - 1;
    if (l->hash_size < 2 * (l->constant_count + 1)) {
        uint32_t size = l->hash_size ? l->hash_size * 2 : 256;
        uint32_t *hash = gm_alloc(size * sizeof *hash);
        if (!hash) {
            gm_lower_no_memory(l);
            return 64;
        }
        memset(hash, 0xff, size * sizeof *hash);
        for (size_t i = 0; i < l->constant_count; i++) {
            uint32_t at = hash_constant(&l->constants[i], size);
            while (hash[at] != GM_NOWHERE)
                at = (at + 1) & (size - 1);
            hash[at] = (uint32_t)i;
        }
        gm_free(l->constant_hash);
        l->constant_hash = hash, l->hash_size = size;
    }
    uint32_t at = hash_constant(&c, l->hash_size);
    for (; l->constant_hash[at] != GM_NOWHERE; at = (at + 1) & (l->hash_size - 1)) {
        const gm_constant *o = &l->constants[l->constant_hash[at]];
        if (o->value == c.value && o->high == c.high && o->bytes == c.bytes && o->filler == c.filler)
            return o->slot;
    }
    if (!gm_lower_room(&l->constants, &l->constant_room, l->constant_count + 1, sizeof c)) {
        gm_lower_no_memory(l);
        return 64;
    }
    c.slot = gm_lower_new_slot(l, filler == GM_FILL_PREDICATE ? 1 : bytes);
    l->frame = (l->frame + 63) / 64 * 64;
    l->constant_hash[at] = (uint32_t)l->constant_count;
    l->constants[l->constant_count++] = c;
    return c.slot;
}

/* Registers by where they begin to live. */
typedef struct life {
    uint32_t from, to, reg;
} life;

static int by_start(const void *a, const void *b)
{
    const life *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->reg < y->reg ? -1 : x->reg > y->reg;
}

static void count_writes(void *context, uint32_t reg, int writes)
{
    uint8_t *count = context;
    if (writes && count[reg] < 2)
        count[reg]++;
}

/* Registers that only ever hold a constant stand for its slot. */
void gm_lower_alias_registers(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    uint8_t *count = gm_alloc(f->nregs + 1);
    if (!count) {
        gm_lower_no_memory(l);
        return;
    }
    memset(count, 0, f->nregs + 1);
    for (uint32_t i = 0; i < f->ninsts; i++)
        gm_flow_registers(&f->insts[i], count_writes, count);
    for (uint32_t k = 0; k < f->nparameters; k++)
        if (f->parameter_regs && f->parameter_regs[k] != GM_PTX_NO_REG)
            count[f->parameter_regs[k]] = 2;
    for (uint32_t k = 0; k < f->nresults; k++)
        if (f->result_regs && f->result_regs[k] != GM_PTX_NO_REG)
            count[f->result_regs[k]] = 2;
    for (uint32_t i = 0; i < f->ninsts && !l->status; i++) {
        const gm_ptx_inst *inst = &f->insts[i];
        if (inst->noperands == 0 || inst->guard != GM_PTX_NO_REG)
            continue;
        const gm_ptx_operand *d = &inst->operands[0];
        uint32_t n = d->kind == GM_OPERAND_VECTOR ? d->n : 1;
        l->inst = inst;
        for (uint32_t k = 0; k < n; k++) {
            const gm_ptx_operand *one = d->kind == GM_OPERAND_VECTOR ? &d->elements[k] : d;
            if (one->kind != GM_OPERAND_REG || count[one->index] != 1 || l->slot[one->index])
                continue;
            uint32_t slot = gm_lower_alias(l, inst, k);
            if (slot)
                l->slot[one->index] = slot, l->aliased[one->index] = 1;
        }
    }
    l->inst = NULL;
    gm_free(count);
}

/* Word 0 is true in every lane, word 1 the carry, and predicates follow. */
void gm_lower_place_predicates(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    l->frame = 8;
    for (uint32_t r = 0; r < f->nregs; r++)
        if (gm_register_bytes(&f->regs[r]) == 1)
            l->slot[r] = gm_lower_new_slot(l, 1);
    l->pred_temps = l->frame;
    l->frame += 4 * GM_TEMPS;
    l->frame = (l->frame + 63) / 64 * 64;
    l->pred_bytes = l->frame - GM_CARRY_SLOT;
}

void gm_lower_place_registers(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    size_t count = 0;
    life *order = gm_alloc((f->nregs + 1) * sizeof *order);
    uint32_t *ends = gm_alloc((f->nregs + 1) * 2 * sizeof *ends); /* of slots: when free, and where; by class */
    if (!order || !ends) {
        gm_free(order);
        gm_free(ends);
        gm_lower_no_memory(l);
        return;
    }
    l->zero_from = l->frame;
    for (uint32_t bytes = 2; bytes <= 16; bytes *= 2)
        for (uint32_t r = 0; r < f->nregs && !l->status; r++)
            if (!l->slot[r] && l->flow.early[r] && gm_register_bytes(&f->regs[r]) == bytes)
                l->slot[r] = gm_lower_new_slot(l, bytes);
    l->zero_bytes = l->frame - l->zero_from;
    for (uint32_t bytes = 2; bytes <= 16 && !l->status; bytes *= 2) {
        l->temps[bytes == 2 ? 0 : bytes == 4 ? 1 : bytes == 8 ? 2 : 3] = l->frame;
        l->frame += GM_TEMPS * slot_bytes(bytes);
        count = 0;
        for (uint32_t r = 0; r < f->nregs; r++)
            if (!l->slot[r] && l->flow.from[r] <= l->flow.to[r] && gm_register_bytes(&f->regs[r]) == bytes)
                order[count++] = (life){l->flow.from[r], l->flow.to[r], r};
        qsort(order, count, sizeof *order, by_start);
        /* A heap of slots by the end of the life in it: ends[2 k], ends[2 k + 1] = end, slot. */
        size_t slots = 0;
        for (size_t i = 0; i < count && !l->status; i++) {
            uint32_t slot;
            size_t at;
            if (!l->private_slots && slots && ends[0] < order[i].from) {
                slot = ends[1];
                at = 0;
                for (;;) {
                    size_t child = 2 * at + 1;
                    if (child < slots && child + 1 < slots && ends[2 * child + 2] < ends[2 * child])
                        child++;
                    if (child >= slots || ends[2 * child] >= order[i].to)
                        break;
                    ends[2 * at] = ends[2 * child], ends[2 * at + 1] = ends[2 * child + 1];
                    at = child;
                }
            } else {
                slot = gm_lower_new_slot(l, bytes);
                at = slots++;
                while (at && ends[2 * ((at - 1) / 2)] > order[i].to) {
                    ends[2 * at] = ends[2 * ((at - 1) / 2)], ends[2 * at + 1] = ends[2 * ((at - 1) / 2) + 1];
                    at = (at - 1) / 2;
                }
            }
            ends[2 * at] = order[i].to, ends[2 * at + 1] = slot;
            l->slot[order[i].reg] = slot;
        }
    }
    gm_free(order);
    gm_free(ends);
}
