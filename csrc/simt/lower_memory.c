/* Loads, stores, atomics and copies: addresses, data registers, and the sites that are counted. */
#include "lower_operand.h"
#include <string.h>

/* What an ADDRESS operand is relative to: a slot, and whether it has 64 bits (0x100). */
uint32_t gm_lower_base_slot(gm_lower *l, const gm_ptx_operand *o, gm_space space, uint32_t *wide)
{
    *wide = 0x100;
    if (o->base == GM_OPERAND_REG) {
        if (gm_register_bytes(&l->function->regs[o->index]) == 4)
            *wide = 0;
        return l->slot[o->index];
    }
    uint64_t value = 0;
    if (o->base == GM_OPERAND_VARIABLE) {
        value = variable_address(l, o->index);
        gm_space own = (gm_space)l->module->variables[o->index].space;
        if (space == GM_SPACE_GENERIC)
            value += window_of(own);
        if (own == GM_SPACE_LOCAL && l->number) {
            gm_insn *in = gm_lower_emit(l, GM_DO_add_b64);
            in->a = l->local_slot;
            in->b = bits_constant(l, 8, value);
            return in->d = gm_lower_temp(l, 8);
        }
    }
    if (space == GM_SPACE_SHARED) {
        *wide = 0;
        return bits_constant(l, 4, value);
    }
    return bits_constant(l, 8, value);
}

uint32_t gm_lower_address(gm_lower *l, const gm_ptx_operand *o, gm_space space)
{
    uint32_t wide, base = gm_lower_base_slot(l, o, space, &wide);
    if (!wide) {
        uint32_t t = gm_lower_temp(l, 8);
        with(gm_lower_named(l, "widen_b64_u32"), t, base, 0, 0);
        base = t;
    }
    if (o->offset) {
        uint32_t t = gm_lower_temp(l, 8);
        with(gm_lower_named(l, "add_b64"), t, base, bits_constant(l, 8, (uint64_t)o->offset), 0);
        base = t;
    }
    return base;
}

unsigned gm_lower_how_of(const gm_lower *l, int writes, int atomic)
{
    unsigned how = writes ? GM_HOW_WRITE : GM_HOW_READ;
    switch (l->inst->mod[GM_FIELD_SEM]) {
    case GM_MOD_ACQUIRE:
    case GM_MOD_RELEASE:
    case GM_MOD_ACQ_REL:
    case GM_MOD_SC:
        how |= GM_HOW_ATOMIC | GM_HOW_ORDERS;
        break;
    case GM_MOD_RELAXED:
    case GM_MOD_MMIO:
        how |= GM_HOW_ATOMIC;
        break;
    case GM_MOD_VOLATILE:
        how |= GM_HOW_VOLATILE;
        break;
    default:
        break;
    }
    return atomic ? how | GM_HOW_ATOMIC | GM_HOW_UPDATES : how;
}

static const char *space_word(gm_space space)
{
    return space == GM_SPACE_SHARED || space == GM_SPACE_SHARED_CLUSTER ? "shared"
           : space == GM_SPACE_LOCAL                                    ? "local"
           : space == GM_SPACE_GENERIC                                  ? "generic"
                                                                        : "global";
}

/* Blocks may talk through this. */
static void may_communicate(gm_lower *l, int is_volatile)
{
    gm_lens_kernel *k = &l->program->kernel;
    if (is_volatile && !k->listens) {
        k->listens = l->opcode;
        k->listens_line = l->inst->line;
    }
    if (!is_volatile && !k->communicates) {
        k->communicates = l->opcode;
        k->communicates_line = l->inst->line;
    }
}

/* The registers that an ld fills or an st empties: their slots and width. */
static uint32_t data_slots(gm_lower *l, const gm_ptx_operand *o, uint32_t n, uint32_t item, int reads, uint32_t *bytes)
{
    uint32_t slots[8], least = item < 2 ? 2 : item;
    *bytes = least;
    for (uint32_t k = 0; k < n && k < 8; k++) {
        const gm_ptx_operand *one = o->kind == GM_OPERAND_VECTOR ? &o->elements[k] : o;
        if (one->kind == GM_OPERAND_REG) {
            uint32_t own = gm_register_bytes(&l->function->regs[one->index]);
            if (own < least) { /* an 8-bit register in a 16-bit slot is as wide as the least */
                gm_lower_refuse(l, "a register narrower than the access");
                return 0;
            }
            *bytes = own > *bytes ? own : *bytes;
        }
    }
    for (uint32_t k = 0; k < n && k < 8; k++) {
        const gm_ptx_operand *one = o->kind == GM_OPERAND_VECTOR ? &o->elements[k] : o;
        uint32_t own = one->kind == GM_OPERAND_REG ? gm_register_bytes(&l->function->regs[one->index]) : *bytes;
        if (own != *bytes) {
            gm_lower_refuse(l, "a vector of registers of different widths");
            return 0;
        }
        slots[k] = reads ? gm_lower_source(l, one, *bytes) : gm_lower_destination(l, one, *bytes);
    }
    return n == 1 ? slots[0] : gm_lower_list(l, slots, n);
}

void gm_lower_load_or_store(gm_lower *l, int writes)
{
    const gm_ptx_inst *inst = l->inst;
    const gm_ptx_type_info *t = &gm_ptx_types[inst->type[0]];
    const gm_ptx_operand *address = operand(l, writes ? 0 : 1), *data = operand(l, writes ? 1 : 0);
    gm_space space = (gm_space)inst->space;
    uint32_t n = inst->vector, item = t->bits / 8, wide, width;
    int variable = address->base == GM_OPERAND_VARIABLE;

    if (inst->op == GM_OP_LDU)
        space = GM_SPACE_GLOBAL;
    if (!writes) { /* everything that it loads may be constants */
        int all = 1;
        for (uint32_t k = 0; k < n; k++) {
            const gm_ptx_operand *one = data->kind == GM_OPERAND_VECTOR ? &data->elements[k] : data;
            all &= one->kind == GM_OPERAND_REG ? l->aliased[one->index] : one->kind == GM_OPERAND_SINK;
        }
        if (all && space == GM_SPACE_PARAM)
            return;
    }
    if (space == GM_SPACE_PARAM && variable && is_argument(l, address->index)) {
        const gm_ptx_variable *v = &l->module->variables[address->index];
        if (address->offset < 0 || (uint64_t)address->offset > v->size ||
            item * n > v->size - (uint64_t)address->offset) {
            gm_lower_refuse(l, "an access beyond the parameter %s", v->name);
            return;
        }
        uint32_t slots = data_slots(l, data, n, item, writes, &width);
        gm_insn *in = gm_lower_emit(l, writes ? GM_DO_st_argument : GM_DO_ld_argument);
        in->c = (uint32_t)l->all->address[address->index];
        in->e = (uint32_t)v->size;
        in->imm = address->offset;
        in->d = slots, in->n = (uint8_t)n, in->k = (uint8_t)log2_of(item);
        in->f = width | (t->kind == GM_KIND_SINT ? 0x80 : 0);
        return;
    }
    if (space == GM_SPACE_PARAM && writes) {
        gm_lower_refuse(l, "a store to an entry's parameter");
        return;
    }
    uint32_t base = gm_lower_base_slot(l, address, space, &wide), slots = data_slots(l, data, n, item, writes, &width);
    if (!wide && space != GM_SPACE_SHARED && space != GM_SPACE_SHARED_CLUSTER) {
        uint32_t t64 = gm_lower_temp(l, 8);
        with(gm_lower_named(l, "widen_b64_u32"), t64, base, 0, 0);
        base = t64, wide = 0x100;
    }
    gm_insn *in;
    int fast = n == 1 && item == width && (item == 4 || item == 8);
    uint8_t sem = inst->mod[GM_FIELD_SEM];
    int strong = sem != GM_MOD_NONE && sem != GM_MOD_WEAK;
    if (space == GM_SPACE_PARAM)
        in = gm_lower_emit(l, GM_DO_ld_param);
    else if (space == GM_SPACE_CONST)
        in = gm_lower_emit(l, GM_DO_ld_const);
    else if (fast && !strong && space == GM_SPACE_GLOBAL)
        in = gm_lower_named(l, "%s_global_b%u", writes ? "st" : "ld", item * 8);
    else if (fast && !strong && space == GM_SPACE_SHARED && !wide)
        in = gm_lower_named(l, "%s_shared_b%u", writes ? "st" : "ld", item * 8);
    else
        in = gm_lower_named(l, "%s_%s", writes ? "st" : "ld", space_word(space));
    in->a = base, in->imm = address->offset;
    in->d = slots, in->n = (uint8_t)n, in->k = (uint8_t)log2_of(item);
    in->f = width | wide | (t->kind == GM_KIND_SINT ? 0x80 : 0);
    in->b = strong && !writes;
    if (space != GM_SPACE_PARAM)
        in->x = gm_lower_site(l, writes ? GM_SITE_STORE : GM_SITE_LOAD, space,
                              writes ? GM_ACCESS_STORE : GM_ACCESS_LOAD, gm_lower_how_of(l, writes, 0), item * n);
    if (strong && !writes && (space == GM_SPACE_GLOBAL || space == GM_SPACE_GENERIC))
        may_communicate(l, sem == GM_MOD_VOLATILE);
}

/* st.async, red.async: into the shared memory of a block of the cluster, whose barrier learns of the bytes. */
void gm_lower_store_async(gm_lower *l, int reduces)
{
    const gm_ptx_inst *inst = l->inst;
    uint32_t n = inst->vector, item = gm_ptx_types[inst->type[0]].bits / 8, width;
    uint32_t to = gm_lower_address(l, operand(l, 0), GM_SPACE_SHARED);
    uint32_t values = data_slots(l, operand(l, 1), n, item, 1, &width);
    uint32_t barrier = gm_lower_address(l, operand(l, 2), GM_SPACE_SHARED);
    gm_insn *in = gm_lower_emit(l, reduces ? GM_DO_reduce_async : GM_DO_store_async);
    in->d = to, in->a = values, in->c = barrier, in->e = width;
    in->n = (uint8_t)n, in->k = (uint8_t)item;
    if (reduces)
        in->f = gm_lower_atom(inst) | gm_lower_atom_type(inst->type[0]) << 8 | item << 16;
    in->x = gm_lower_site(l, GM_SITE_BULK, GM_SPACE_SHARED, GM_ACCESS_LOAD, GM_HOW_WRITE, item * n);
}

uint32_t gm_lower_atom(const gm_ptx_inst *inst)
{
    static const struct {
        uint8_t mod, what;
    } kinds[] = {{GM_MOD_ADD, GM_ATOM_ADD}, {GM_MOD_MIN, GM_ATOM_MIN}, {GM_MOD_MAX, GM_ATOM_MAX},
                 {GM_MOD_INC, GM_ATOM_INC}, {GM_MOD_DEC, GM_ATOM_DEC}, {GM_MOD_AND, GM_ATOM_AND},
                 {GM_MOD_OR, GM_ATOM_OR},   {GM_MOD_XOR, GM_ATOM_XOR}, {GM_MOD_EXCH, GM_ATOM_EXCH},
                 {GM_MOD_CAS, GM_ATOM_CAS}};
    uint8_t mod = inst->mod[GM_FIELD_OP] ? inst->mod[GM_FIELD_OP] : inst->mod[GM_FIELD_BOOL];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k].mod == mod)
            return kinds[k].what;
    return GM_ATOM_ADD;
}

uint32_t gm_lower_atom_type(uint8_t type)
{
    return type == GM_PTX_S32      ? GM_ATOM_S32
           : type == GM_PTX_S64    ? GM_ATOM_S64
           : type == GM_PTX_F32    ? GM_ATOM_F32
           : type == GM_PTX_F64    ? GM_ATOM_F64
           : type == GM_PTX_F16    ? GM_ATOM_F16
           : type == GM_PTX_BF16   ? GM_ATOM_BF16
           : type == GM_PTX_F16X2  ? GM_ATOM_F16X2
           : type == GM_PTX_BF16X2 ? GM_ATOM_BF16X2
                                   : GM_ATOM_BITS;
}

/* The register lives here alone: what is written to it is never read. */
static int never_read(const gm_lower *l, const gm_ptx_operand *d)
{
    uint32_t here = (uint32_t)(l->inst - l->function->insts);
    return d->kind == GM_OPERAND_REG && l->flow.from[d->index] == here && l->flow.to[d->index] == here;
}

void gm_lower_atomics(gm_lower *l, int gives)
{
    const gm_ptx_inst *inst = l->inst;
    uint8_t type = inst->type[0];
    uint32_t n = inst->vector, item = gm_ptx_types[type].bits / 8, wide, width, at = gives ? 1 : 0;
    uint32_t what = gm_lower_atom(inst);
    gm_space space = (gm_space)inst->space;
    const gm_ptx_operand *address = operand(l, at), *value = operand(l, at + 1), *d = operand(l, 0);
    int compares = what == GM_ATOM_CAS;
    uint32_t base = gm_lower_base_slot(l, address, space, &wide);
    if (!wide && space != GM_SPACE_SHARED && space != GM_SPACE_SHARED_CLUSTER) {
        uint32_t t64 = gm_lower_temp(l, 8);
        with(gm_lower_named(l, "widen_b64_u32"), t64, base, 0, 0);
        base = t64, wide = 0x100;
    }
    /* As ptxas, which makes a reduction of an atom without a use, where there is one of the kind. */
    int reduces = !compares && what != GM_ATOM_EXCH;
    int wanted = gives && d->kind != GM_OPERAND_SINK && !(reduces && never_read(l, d));
    uint32_t compare = compares ? gm_lower_source(l, value, item) : 0;
    uint32_t values = data_slots(l, compares ? operand(l, at + 2) : value, n, item, 1, &width);
    uint32_t results = wanted ? data_slots(l, d, n, item, 0, &width) : GM_NOWHERE;
    gm_insn *in = gm_lower_named(l, "atom_%s", space_word(space));
    uint32_t atom_type = gm_lower_atom_type(type);
    in->a = base, in->imm = address->offset, in->b = values, in->c = compare, in->d = results;
    in->k = (uint8_t)what, in->n = (uint8_t)n, in->e = atom_type | item << 8, in->f = wide | width;
    int increments = !wanted && what == GM_ATOM_ADD && value->kind == GM_OPERAND_IMM && value->bits == 1 &&
                     space == GM_SPACE_SHARED && item == 4;
    in->x = gm_lower_site(l, wanted ? GM_SITE_ATOM : GM_SITE_RED, space,
                          compares     ? GM_ACCESS_CAS
                          : increments ? GM_ACCESS_INC
                                       : GM_ACCESS_ATOM,
                          gm_lower_how_of(l, 1, 1), item * n);
    if (space != GM_SPACE_SHARED && (wanted || what == GM_ATOM_EXCH || compares || (atom_type >= GM_ATOM_F32)))
        may_communicate(l, 0);
}

void gm_lower_copy_async(gm_lower *l)
{
    const gm_ptx_operand *to = operand(l, 0), *from = operand(l, 1), *size = operand(l, 2), *length = operand(l, 3);
    uint32_t to_wide, from_wide, bytes = (uint32_t)size->bits;
    uint32_t target = gm_lower_base_slot(l, to, GM_SPACE_SHARED, &to_wide),
             origin = gm_lower_base_slot(l, from, GM_SPACE_GLOBAL, &from_wide);
    if (size->kind != GM_OPERAND_IMM || (bytes != 4 && bytes != 8 && bytes != 16)) {
        gm_lower_refuse(l, "cp.async of a size other than 4, 8 or 16");
        return;
    }
    uint32_t partial = length->kind == GM_OPERAND_NONE ? GM_NOWHERE : gm_lower_source(l, length, 4);
    gm_insn *in;
    if (to->offset) { /* the instruction has room for one offset */
        uint32_t t = gm_lower_temp(l, to_wide ? 8 : 4);
        in = gm_lower_named(l, to_wide ? "add_b64" : "add_b32");
        in->a = target, in->b = bits_constant(l, to_wide ? 8 : 4, (uint64_t)to->offset);
        target = in->d = t;
    }
    in = gm_lower_emit(l, GM_DO_cp_async);
    in->a = origin, in->imm = from->offset, in->d = target, in->b = partial, in->c = GM_NOWHERE;
    in->k = (uint8_t)log2_of(bytes);
    in->f = from_wide | (to_wide ? 0x200 : 0);
    in->e = has(l, GM_FIELD_CACHE, GM_MOD_CG);
    in->x = gm_lower_site(l, GM_SITE_COPY, GM_SPACE_GLOBAL, GM_ACCESS_LOAD, GM_HOW_READ, bytes);
    l->program->shared_grain = l->program->shared_grain < 4 ? l->program->shared_grain : 4;
}

void gm_lower_matrices(gm_lower *l, int writes)
{
    const gm_ptx_operand *address = operand(l, writes ? 0 : 1), *data = operand(l, writes ? 1 : 0);
    uint32_t n = data->kind == GM_OPERAND_VECTOR ? data->n : 1, slots[4], wide;
    uint32_t base = gm_lower_base_slot(l, address, GM_SPACE_SHARED, &wide);
    for (uint32_t k = 0; k < n && k < 4; k++) {
        const gm_ptx_operand *one = data->kind == GM_OPERAND_VECTOR ? &data->elements[k] : data;
        slots[k] = writes ? gm_lower_source(l, one, 4) : gm_lower_destination(l, one, 4);
    }
    gm_insn *in = gm_lower_emit(l, writes ? GM_DO_stmatrix : GM_DO_ldmatrix);
    in->a = base, in->imm = address->offset, in->n = (uint8_t)n, in->k = l->inst->mod[GM_FIELD_TRANS] != 0;
    in->d = gm_lower_list(l, slots, n);
    in->f = wide | 4;
    in->x = gm_lower_site(l, writes ? GM_SITE_STMATRIX : GM_SITE_LDMATRIX, GM_SPACE_SHARED,
                          writes ? GM_ACCESS_STORE : GM_ACCESS_LOAD, gm_lower_how_of(l, writes, 0), 16);
}
