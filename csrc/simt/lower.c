/* A kernel made ready: variables get addresses, registers slots, immediates and parameters constant slots, instructions
 * handlers. Registers whose lives do not overlap share a slot, so that a frame stays in the first-level cache. */
#include "lower.h"
#include "../base/integers.h"
#include "../base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FRAME = 1 << 26, MOST_ARGUMENT = 4096 };

/* --- growing arrays -------------------------------------------------------------------------------------------- */

/* Room for `count` items; 0 where there is no memory. */
static int room(void *array, size_t *capacity, size_t count, size_t size)
{
    void *old, *larger;
    if (count <= *capacity)
        return 1;
    size_t more = *capacity ? *capacity * 2 : 64;
    more = more < count ? count : more;
    larger = gm_alloc(more * size);
    if (larger == NULL)
        return 0;
    memcpy(&old, array, sizeof old);
    if (old)
        memcpy(larger, old, *capacity * size);
    gm_free(old);
    memcpy(array, &larger, sizeof larger);
    *capacity = more;
    return 1;
}

static void out_of_memory(gm_lower *l)
{
    if (!l->status) {
        l->status = l->failure->status = GM_NO_MEMORY;
        snprintf(l->failure->text, sizeof l->failure->text, "decoding a kernel");
    }
}

void gm_lower_refuse(gm_lower *l, const char *format, ...)
{
    if (l->status)
        return;
    l->status = l->failure->status = GM_LENS_UNSUPPORTED;
    int at = snprintf(l->failure->text, sizeof l->failure->text, "%s:%u: ", l->module->name,
                      l->inst ? l->inst->line : l->function->line);
    va_list arguments;
    va_start(arguments, format);
    if (at > 0 && at < (int)sizeof l->failure->text)
        vsnprintf(l->failure->text + at, sizeof l->failure->text - (size_t)at, format, arguments);
    va_end(arguments);
}

/* --- handlers by name ------------------------------------------------------------------------------------------ */

static const char *const handler_names[GM_DO_COUNT] = {
#define GM_HANDLER(name, ...) #name,
#include "handlers.def"
#undef GM_HANDLER
};

enum { NAME_HASH = 2048 };

static uint32_t hash_name(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h % NAME_HASH;
}

static int make_names(gm_lower_all *all)
{
    all->names = gm_alloc(NAME_HASH * sizeof *all->names);
    if (!all->names)
        return 0;
    for (int i = 0; i < NAME_HASH; i++)
        all->names[i] = GM_DO_COUNT;
    for (int i = 0; i < GM_DO_COUNT; i++) {
        uint32_t at = hash_name(handler_names[i]);
        while (all->names[at] != GM_DO_COUNT)
            at = (at + 1) % NAME_HASH;
        all->names[at] = (uint16_t)i;
    }
    return 1;
}

gm_insn *gm_lower_named(gm_lower *l, const char *format, ...)
{
    char name[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    for (uint32_t at = hash_name(name); l->all->names[at] != GM_DO_COUNT; at = (at + 1) % NAME_HASH)
        if (strcmp(handler_names[l->all->names[at]], name) == 0)
            return gm_lower_emit(l, (gm_do)l->all->names[at]);
    char text[200];
    gm_ptx_print_inst(l->module, l->function, l->inst, text, sizeof text);
    gm_lower_refuse(l, "%s is read, but not executed yet", text);
    return gm_lower_emit(l, GM_DO_nop);
}

/* --- code ------------------------------------------------------------------------------------------------------ */

/* The opcode with its modifiers: what stands before the operands. */
static const char *opcode_of(gm_lower *l)
{
    char text[256];
    gm_ptx_print_opcode(l->inst, text, sizeof text);
    const char *from = text;
    size_t length = strlen(text);
    gm_program *p = l->program;
    /* The same words once. */
    const char *last = p->count ? p->places[p->count - 1].opcode : NULL;
    if (last && strlen(last) == length && memcmp(last, from, length) == 0)
        return last;
    gm_words *words = p->words;
    if (!words || words->used + length + 1 > sizeof words->text) {
        words = gm_alloc(sizeof *words);
        if (!words) {
            out_of_memory(l);
            return "";
        }
        words->next = p->words;
        words->used = 0;
        p->words = words;
    }
    char *to = words->text + words->used;
    memcpy(to, from, length);
    to[length] = 0;
    words->used += length + 1;
    return to;
}

static gm_place place_now(gm_lower *l)
{
    gm_place place = {"", NULL, 0, 0};
    if (!l->inst)
        return place;
    const gm_ptx_loc *loc = l->inst->loc && l->inst->loc < l->module->nlocs ? &l->module->locs[l->inst->loc] : NULL;
    place.line = l->inst->line;
    if (loc && loc->line) {
        place.file = loc->file < l->module->nfiles ? l->module->files[loc->file] : NULL;
        place.file_line = loc->line;
    }
    place.opcode = l->opcode;
    return place;
}

gm_insn *gm_lower_emit(gm_lower *l, gm_do what)
{
    static _Thread_local gm_insn nowhere; /* what is written to after memory ran out */
    gm_program *p = l->program;
    if (!room(&p->code, &l->all->code_room, p->count + 1, sizeof *p->code) ||
        !room(&p->places, &l->all->place_room, p->count + 1, sizeof *p->places)) {
        out_of_memory(l);
        return &nowhere;
    }
    gm_insn *in = &p->code[p->count];
    memset(in, 0, sizeof *in);
    in->op = (uint16_t)what;
    in->x = GM_NOWHERE;
    if (l->inst && l->inst->guard != GM_PTX_NO_REG) {
        in->guard = l->slot[l->inst->guard];
        in->invert = l->inst->guard_negated ? GM_FULL : 0;
    }
    p->places[p->count++] = place_now(l);
    return in;
}

uint32_t gm_lower_list(gm_lower *l, const uint32_t *slots, uint32_t count)
{
    gm_program *p = l->program;
    if (!room(&p->lists, &l->all->list_room, p->list_count + count, sizeof *p->lists)) {
        out_of_memory(l);
        return 0;
    }
    memcpy(p->lists + p->list_count, slots, count * sizeof *slots);
    p->list_count += count;
    return (uint32_t)(p->list_count - count);
}

uint32_t gm_lower_argument(gm_lower *l, gm_argument argument)
{
    gm_program *p = l->program;
    if (!room(&p->arguments, &l->all->argument_room, p->argument_count + 1, sizeof *p->arguments)) {
        out_of_memory(l);
        return 0;
    }
    p->arguments[p->argument_count] = argument;
    return (uint32_t)p->argument_count++;
}

uint32_t gm_lower_site(gm_lower *l, gm_site_kind kind, gm_space space, gm_access access, unsigned how, uint32_t bytes)
{
    gm_program *p = l->program;
    size_t rooms[5];
    for (int i = 0; i < 5; i++)
        rooms[i] = l->all->site_room;
    gm_lens_site *sites = (gm_lens_site *)(uintptr_t)p->kernel.sites;
    size_t n = p->kernel.site_count;
    int ok = room(&sites, &rooms[0], n + 1, sizeof *sites);
    p->kernel.sites = sites;
    ok = ok && room(&p->site_places, &rooms[1], n + 1, sizeof *p->site_places) &&
         room(&p->site_access, &rooms[2], n + 1, 1) && room(&p->site_how, &rooms[3], n + 1, 1) &&
         room(&p->site_nc, &rooms[4], n + 1, 1);
    if (!ok) {
        out_of_memory(l);
        return 0;
    }
    l->all->site_room = rooms[4];
    gm_place place = place_now(l);
    sites[n] = (gm_lens_site){.opcode = place.opcode,
                              .file = place.file,
                              .line = place.line,
                              .file_line = place.file_line,
                              .kind = (uint8_t)kind,
                              .space = (uint8_t)space,
                              .lane_bytes = (uint16_t)bytes};
    p->site_places[n] = place;
    p->site_access[n] = (uint8_t)access;
    p->site_how[n] = (uint8_t)how;
    p->site_nc[n] = l->inst->mod[GM_FIELD_NC] != GM_MOD_NONE;
    p->kernel.site_count = n + 1;
    p->fences |= (how & GM_HOW_ORDERS) != 0;
    uint32_t least = bytes < 4 ? bytes : 4;
    if (space == GM_SPACE_SHARED || space == GM_SPACE_GENERIC || space == GM_SPACE_SHARED_CLUSTER)
        p->shared_grain = least < p->shared_grain ? least : p->shared_grain;
    if (space == GM_SPACE_GLOBAL || space == GM_SPACE_GENERIC)
        p->global_grain = least < p->global_grain ? least : p->global_grain;
    return (uint32_t)n;
}

/* --- slots ----------------------------------------------------------------------------------------------------- */

uint32_t gm_register_bytes(const gm_ptx_reg *reg)
{
    uint32_t bits = gm_ptx_types[reg->type].bits;
    return bits == 1 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : bits <= 64 ? 8 : 16;
}

static uint32_t slot_bytes(uint32_t bytes)
{
    return bytes == 1 ? 4 : bytes * GM_LANES;
}

static uint32_t new_slot(gm_lower *l, uint32_t bytes)
{
    uint32_t at = l->frame;
    if (l->frame > MOST_FRAME) {
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
            out_of_memory(l);
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
    if (!room(&l->constants, &l->constant_room, l->constant_count + 1, sizeof c)) {
        out_of_memory(l);
        return 64;
    }
    c.slot = new_slot(l, filler == GM_FILL_PREDICATE ? 1 : bytes);
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
static void alias_registers(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    uint8_t *count = gm_alloc(f->nregs + 1);
    if (!count) {
        out_of_memory(l);
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
static void place_predicates(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    l->frame = 8;
    for (uint32_t r = 0; r < f->nregs; r++)
        if (gm_register_bytes(&f->regs[r]) == 1)
            l->slot[r] = new_slot(l, 1);
    l->pred_temps = l->frame;
    l->frame += 4 * GM_TEMPS;
    l->frame = (l->frame + 63) / 64 * 64;
    l->pred_bytes = l->frame - GM_CARRY_SLOT;
}

static void place_registers(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    size_t count = 0;
    life *order = gm_alloc((f->nregs + 1) * sizeof *order);
    uint32_t *ends = gm_alloc((f->nregs + 1) * 2 * sizeof *ends); /* of slots: when free, and where; by class */
    if (!order || !ends) {
        gm_free(order);
        gm_free(ends);
        out_of_memory(l);
        return;
    }
    l->zero_from = l->frame;
    for (uint32_t bytes = 2; bytes <= 16; bytes *= 2)
        for (uint32_t r = 0; r < f->nregs && !l->status; r++)
            if (!l->slot[r] && l->flow.early[r] && gm_register_bytes(&f->regs[r]) == bytes)
                l->slot[r] = new_slot(l, bytes);
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
                slot = new_slot(l, bytes);
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

/* --- a function ------------------------------------------------------------------------------------------------ */

/* .param variables that are no entry's parameters: 32 lanes of bytes each. */
static void place_arguments(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    for (uint32_t v = 0; v < l->module->nvariables; v++) {
        const gm_ptx_variable *variable = &l->module->variables[v];
        if (variable->space != GM_SPACE_PARAM || variable->function != (int32_t)(f - l->module->functions) ||
            (f->is_entry && v >= f->first_parameter && v < f->first_parameter + f->nparameters))
            continue;
        if (variable->size > MOST_ARGUMENT)
            gm_lower_refuse(l, "the parameter %s of a call has more than %d bytes", variable->name, MOST_ARGUMENT);
        l->frame = (l->frame + 63) / 64 * 64;
        l->all->address[v] = l->frame;
        l->frame += (uint32_t)variable->size * GM_LANES;
        if (l->frame > MOST_FRAME)
            gm_lower_refuse(l, "%s has more parameters than fit", f->name);
    }
    l->frame = (l->frame + 63) / 64 * 64;
}

/* A stretch without its opcodes: they move while there come more. */
static uint32_t new_stretch(gm_lower *l, uint32_t count)
{
    gm_lens_kernel *k = &l->program->kernel;
    gm_lens_stretch *stretches = (gm_lens_stretch *)(uintptr_t)k->stretches;
    int ok = room(&stretches, &l->all->stretch_room, k->stretch_count + 1, sizeof *stretches);
    k->stretches = stretches;
    if (!ok) {
        out_of_memory(l);
        return 0;
    }
    stretches[k->stretch_count] = (gm_lens_stretch){NULL, count};
    return (uint32_t)k->stretch_count++;
}

static void add_opcode(gm_lower *l)
{
    gm_program *p = l->program;
    if (!room(&p->opcodes, &l->all->opcode_room, p->opcode_count + 1, sizeof *p->opcodes)) {
        out_of_memory(l);
        return;
    }
    p->opcodes[p->opcode_count++] = l->opcode;
}

static void write_code(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    gm_program *p = l->program;
    uint32_t start = (uint32_t)p->count;
    for (uint32_t b = 0; b < l->flow.count && !l->status; b++) {
        gm_flow_block *block = &l->flow.blocks[b];
        l->inst = NULL;
        l->opcode = "";
        l->block = b;
        block->code = (uint32_t)p->count;
        gm_insn *in = gm_lower_emit(l, block->is_meet ? GM_DO_join_block : GM_DO_block);
        in->imm = block->end - block->first;
        in->x = new_stretch(l, block->end - block->first);
        for (uint32_t i = block->first; i < block->end && !l->status; i++) {
            l->inst = &f->insts[i];
            l->opcode = opcode_of(l);
            add_opcode(l);
            l->used_temps = l->used_pred_temps = 0;
            gm_lower_inst(l);
        }
        if (block->first == f->ninsts) {
            l->inst = NULL;
            gm_lower_emit(l, GM_DO_ret); /* falls off the end */
        }
    }
    if (l->status)
        return;
    /* Branches name blocks until now. */
    for (uint32_t i = start; i < p->count; i++) {
        gm_insn *in = &p->code[i];
        if (in->op == GM_DO_bra || in->op == GM_DO_bra_uni || in->op == GM_DO_brx) {
            if (in->op == GM_DO_brx)
                for (uint32_t k = 0; k < in->n; k++)
                    p->lists[in->x + k] = l->flow.blocks[p->lists[in->x + k]].code;
            else
                in->x = l->flow.blocks[in->x].code;
            in->e = in->e == GM_NOWHERE ? GM_NOWHERE : l->flow.blocks[in->e].code;
        }
    }
}

static gm_status lower_function(gm_lower_all *all, uint32_t number)
{
    const gm_ptx_function *f = &all->module->functions[all->functions[number]];
    gm_program *p = all->program;
    gm_lower l = {.module = all->module,
                  .function = f,
                  .program = p,
                  .failure = all->failure,
                  .number = number,
                  .all = all,
                  .opcode = ""};
    gm_status status = gm_flow_make(&l.flow, all->module, f);
    if (status) {
        all->failure->status = status;
        snprintf(all->failure->text, sizeof all->failure->text, "decoding %s", f->name);
        gm_flow_free(&l.flow);
        return status;
    }
    l.slot = gm_alloc((f->nregs + 1) * sizeof *l.slot);
    l.aliased = gm_alloc(f->nregs + 1);
    if (!l.slot || !l.aliased)
        out_of_memory(&l);
    if (!l.status) {
        memset(l.slot, 0, (f->nregs + 1) * sizeof *l.slot);
        memset(l.aliased, 0, f->nregs + 1);
        place_predicates(&l);
        place_arguments(&l);
        if (number && all->local_bytes[number])
            l.local_slot = new_slot(&l, 8);
        uint32_t truth = gm_lower_constant(&l, GM_FILL_PREDICATE, 1, GM_FULL, 0);
        if (!l.status)
            l.constants[0].slot = 0; /* not `truth`: the word that instructions without a guard name */
        (void)truth;
        alias_registers(&l);
        place_registers(&l);
    }
    gm_function *done = &p->functions[number];
    done->name = f->name;
    done->start = (uint32_t)p->count;
    if (!l.status) {
        for (uint32_t r = 0; r < f->nregs; r++)
            if (!l.slot[r])
                l.slot[r] = 64; /* never used */
        write_code(&l);
        done->frame_bytes = (l.frame + 63) / 64 * 64;
        done->zero[0] = (gm_range){GM_CARRY_SLOT, l.pred_bytes};
        done->zero[1] = (gm_range){l.zero_from, l.zero_bytes};
        done->local_bytes = (uint32_t)all->local_bytes[number];
        done->local_slot = l.local_slot;
        done->constants = l.constants;
        done->constant_count = l.constant_count;
        l.constants = NULL;
    }
    status = l.status;
    gm_free(l.slot);
    gm_free(l.aliased);
    gm_free(l.constants);
    gm_free(l.constant_hash);
    gm_flow_free(&l.flow);
    return status;
}

/* --- a kernel -------------------------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t at, uint64_t align)
{
    return align > 1 ? (at + align - 1) / align * align : at;
}

/* Marks the functions that `inst` calls and the variables that it names. */
typedef struct reach {
    gm_lower_all *all;
    uint8_t *used; /* variables */
} reach;

static void reach_function(gm_lower_all *all, uint32_t function)
{
    if (all->function_of[function] == GM_NOWHERE && all->module->functions[function].has_body) {
        all->function_of[function] = all->function_count;
        all->functions[all->function_count++] = function;
    }
}

static void reach_operand(reach *r, const gm_ptx_operand *o)
{
    if (o->kind == GM_OPERAND_VARIABLE || (o->kind == GM_OPERAND_ADDRESS && o->base == GM_OPERAND_VARIABLE))
        r->used[o->index] = 1;
    if (o->kind == GM_OPERAND_VECTOR)
        for (uint32_t i = 0; i < o->n; i++)
            reach_operand(r, &o->elements[i]);
    if (o->kind == GM_OPERAND_FUNCTION)
        reach_function(r->all, o->index);
}

/* Functions whose addresses are in variables: tables of virtual functions. */
static void reach_tables(gm_lower_all *all)
{
    for (uint32_t v = 0; v < all->module->nvariables; v++)
        for (uint32_t k = 0; k < all->module->variables[v].nfixups; k++)
            if (all->module->variables[v].fixups[k].is_function)
                reach_function(all, all->module->variables[v].fixups[k].index);
}

/* A call through a pointer: 1; the functions that it names are reached. */
static int reach_call(reach *r, const gm_ptx_function *f, const gm_ptx_inst *inst)
{
    if (inst->op != GM_OP_CALL || inst->operands[1].kind == GM_OPERAND_FUNCTION)
        return 0;
    const gm_ptx_table *table = &f->tables[inst->operands[3].index];
    for (uint32_t k = 0; table->kind == GM_TABLE_CALL && k < table->n; k++)
        reach_function(r->all, table->targets[k]);
    return 1;
}

static void reach_all(reach *r)
{
    int through = 0;
    for (uint32_t k = 0; k < r->all->function_count; k++) {
        const gm_ptx_function *f = &r->all->module->functions[r->all->functions[k]];
        for (uint32_t i = 0; i < f->ninsts; i++) {
            for (uint32_t o = 0; o < f->insts[i].noperands; o++)
                reach_operand(r, &f->insts[i].operands[o]);
            if (reach_call(r, f, &f->insts[i]) && !through++)
                reach_tables(r->all);
        }
    }
}

/* Addresses of all variables that the kernel can name. Shared memory: those of fixed size in order, then the launch's.
 */
static gm_status place_variables(gm_lower_all *all, const uint8_t *used)
{
    const gm_ptx *module = all->module;
    gm_program *p = all->program;
    uint64_t shared = 0, global = GM_VARIABLES_START, dynamic_align = 16;
    size_t segments = 0;
    for (uint32_t v = 0; v < module->nvariables; v++) {
        const gm_ptx_variable *variable = &module->variables[v];
        uint32_t function = variable->function >= 0 ? all->function_of[variable->function] : GM_NOWHERE;
        if (variable->space == GM_SPACE_SHARED && used[v]) {
            if (variable->unsized) {
                dynamic_align = variable->align > dynamic_align ? variable->align : dynamic_align;
            } else {
                shared = round_up(shared, variable->align);
                all->address[v] = shared;
                shared += variable->size;
            }
        } else if (variable->space == GM_SPACE_LOCAL && function != GM_NOWHERE) {
            uint64_t at = round_up(all->local_bytes[function], variable->align);
            all->address[v] = at;
            all->local_bytes[function] = at + variable->size;
        } else if (variable->space == GM_SPACE_GLOBAL || variable->space == GM_SPACE_CONST) {
            global = round_up(global, variable->align > 256 ? variable->align : 256);
            all->address[v] = global;
            global += variable->size + 4096;
            segments++;
        }
        if (shared > UINT32_MAX || global - GM_VARIABLES_START > (UINT64_C(1) << 40) ||
            (function != GM_NOWHERE && all->local_bytes[function] > (1u << 24))) {
            all->failure->status = GM_LENS_UNSUPPORTED;
            snprintf(all->failure->text, sizeof all->failure->text, "%s:%u: %s is larger than any GPU's memory",
                     module->name, variable->line, variable->name);
            return GM_LENS_UNSUPPORTED;
        }
    }
    p->kernel.static_shared = (uint32_t)shared;
    p->dynamic_offset = (uint32_t)round_up(shared, dynamic_align);
    for (uint32_t f = 0; f < all->function_count; f++)
        all->local_bytes[f] = round_up(all->local_bytes[f], 16);
    p->kernel.local_bytes = (uint32_t)all->local_bytes[0];
    for (uint32_t v = 0; v < module->nvariables; v++)
        if (module->variables[v].space == GM_SPACE_SHARED && module->variables[v].unsized)
            all->address[v] = p->dynamic_offset;
    p->variables = gm_alloc((segments + 1) * sizeof *p->variables);
    if (!p->variables)
        return GM_NO_MEMORY;
    for (uint32_t v = 0; v < module->nvariables; v++) {
        const gm_ptx_variable *variable = &module->variables[v];
        if (variable->space == GM_SPACE_GLOBAL || variable->space == GM_SPACE_CONST)
            p->variables[p->variable_count++] = (gm_program_variable){variable, all->address[v]};
    }
    return GM_OK;
}

static gm_status describe(gm_program *p, const gm_ptx *module, const gm_ptx_function *entry)
{
    gm_lens_kernel *k = &p->kernel;
    gm_lens_parameter *parameters = gm_alloc((entry->nparameters + 1) * sizeof *parameters);
    if (!parameters)
        return GM_NO_MEMORY;
    k->name = entry->name;
    k->parameters = parameters;
    k->parameter_count = entry->nparameters;
    k->parameter_bytes = (uint32_t)entry->parameter_bytes;
    for (uint32_t i = 0; i < entry->nparameters; i++) {
        const gm_ptx_variable *v = &module->variables[entry->first_parameter + i];
        const gm_ptx_type_info *type = &gm_ptx_types[v->type];
        parameters[i] = (gm_lens_parameter){.name = v->name,
                                            .offset = (uint32_t)v->offset,
                                            .size = (uint32_t)v->size,
                                            .align = v->align,
                                            .bits = type->bits,
                                            .kind = type->kind == GM_KIND_FLOAT  ? 'f'
                                                    : type->kind == GM_KIND_SINT ? 's'
                                                    : type->kind == GM_KIND_UINT ? 'u'
                                                                                 : 'b',
                                            .is_array = v->size * 8 != type->bits,
                                            .is_pointer = v->pointer};
    }
    for (int i = 0; i < 3; i++) {
        k->reqntid[i] = entry->reqntid[i];
        k->maxntid[i] = entry->maxntid[i];
        k->cluster[i] = entry->reqnctapercluster[i];
    }
    return GM_OK;
}

gm_status gm_lower_kernel(gm_program *program, const gm_ptx *module, const gm_ptx_function *entry, gm_failure *failure)
{
    gm_lower_all all = {.module = module, .program = program, .failure = failure};
    uint32_t nv = module->nvariables, nf = module->nfunctions;
    uint8_t *used = gm_alloc(nv + 1);
    gm_status status = GM_NO_MEMORY;
    all.address = gm_alloc((nv + 1) * sizeof *all.address);
    all.function_of = gm_alloc((nf + 1) * sizeof *all.function_of);
    all.functions = gm_alloc((nf + 1) * sizeof *all.functions);
    all.local_bytes = gm_alloc((nf + 1) * sizeof *all.local_bytes);
    if (!used || !all.address || !all.function_of || !all.functions || !all.local_bytes || !make_names(&all))
        goto done;
    memset(used, 0, nv + 1);
    memset(all.address, 0, (nv + 1) * sizeof *all.address);
    memset(all.function_of, 0xff, (nf + 1) * sizeof *all.function_of);
    memset(all.local_bytes, 0, (nf + 1) * sizeof *all.local_bytes);
    program->shared_grain = program->global_grain = 4;
    all.functions[0] = (uint32_t)(entry - module->functions);
    all.function_of[all.functions[0]] = 0;
    all.function_count = 1;
    reach_all(&(reach){&all, used});
    program->functions = gm_alloc(all.function_count * sizeof *program->functions);
    if (!program->functions)
        goto done;
    memset(program->functions, 0, all.function_count * sizeof *program->functions);
    program->function_count = all.function_count;
    if (module->address_bits != 64) {
        failure->status = status = GM_LENS_UNSUPPORTED;
        snprintf(failure->text, sizeof failure->text, "%s: 32-bit addresses (.address_size 32)", module->name);
        goto done;
    }
    status = describe(program, module, entry);
    if (!status)
        status = place_variables(&all, used);
    for (uint32_t f = 0; f < all.function_count && !status; f++)
        status = lower_function(&all, f);
    gm_lens_stretch *stretches = (gm_lens_stretch *)(uintptr_t)program->kernel.stretches;
    for (size_t s = 0, at = 0; s < program->kernel.stretch_count && !status; at += stretches[s++].count)
        stretches[s].opcodes = program->opcodes + at;
    /* Calls name the callee's parameters as variables until all slots are known. */
    for (size_t i = 0; i < program->argument_count && !status; i++)
        program->arguments[i].callee = (uint32_t)all.address[program->arguments[i].callee];
done:
    if (status == GM_NO_MEMORY) {
        failure->status = status;
        snprintf(failure->text, sizeof failure->text, "decoding a kernel");
    }
    program->addresses = all.address;
    program->function_of = all.function_of;
    gm_free(used);
    gm_free(all.functions);
    gm_free(all.local_bytes);
    gm_free(all.names);
    return status;
}

void gm_program_free(gm_program *program)
{
    for (size_t i = 0; i < program->function_count && program->functions; i++)
        gm_free((void *)(uintptr_t)program->functions[i].constants);
    for (gm_words *w = program->words, *next; w; w = next) {
        next = w->next;
        gm_free(w);
    }
    gm_free(program->code);
    gm_free(program->places);
    gm_free(program->lists);
    gm_free(program->functions);
    gm_free(program->function_of);
    gm_free(program->arguments);
    gm_free(program->variables);
    gm_free(program->addresses);
    gm_free(program->site_places);
    gm_free(program->site_access);
    gm_free(program->site_how);
    gm_free(program->site_nc);
    gm_free(program->opcodes);
    gm_free((void *)(uintptr_t)program->kernel.stretches);
    gm_free((void *)(uintptr_t)program->kernel.sites);
    gm_free((void *)(uintptr_t)program->kernel.parameters);
}
