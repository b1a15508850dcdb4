/* Operands of an instruction as slots: registers, constants, addresses. */
#include "lower_operand.h"
#include <string.h>

/* A slot of `bytes` that holds the operand's value; 1: a predicate. Wider registers are cut. */
uint32_t gm_lower_source(gm_lower *l, const gm_ptx_operand *o, uint32_t bytes)
{
    switch (o->kind) {
    case GM_OPERAND_REG: {
        uint32_t slot = l->slot[o->index], own = gm_register_bytes(&l->function->regs[o->index]);
        if (o->negated) {
            gm_insn *in = gm_lower_named(l, "not_pred");
            in->a = slot;
            in->guard = 0, in->invert = 0;
            return in->d = gm_lower_temp(l, 1);
        }
        if (own == bytes || own < bytes || bytes == 1)
            return slot;
        gm_insn *in = gm_lower_named(l, "narrow_b%u_b%u", bytes * 8, own * 8);
        in->a = slot;
        return in->d = gm_lower_temp(l, bytes);
    }
    case GM_OPERAND_IMM:
        return bits_constant(l, bytes, bytes == 1 ? (o->bits != 0) != o->negated : o->bits);
    case GM_OPERAND_SPECIAL: {
        uint32_t own = type_bytes((uint8_t)gm_ptx_special_type((gm_ptx_special)o->index));
        switch (o->index) {
        case GM_SPECIAL_CLOCK:
        case GM_SPECIAL_CLOCK_HI:
        case GM_SPECIAL_CLOCK64:
        case GM_SPECIAL_GLOBALTIMER:
        case GM_SPECIAL_GLOBALTIMER_LO:
        case GM_SPECIAL_GLOBALTIMER_HI: {
            gm_insn *in = gm_lower_emit(l, GM_DO_clock);
            in->k = own == 8 ? 2 : o->index == GM_SPECIAL_CLOCK_HI || o->index == GM_SPECIAL_GLOBALTIMER_HI;
            return in->d = gm_lower_temp(l, own);
        }
        default:
            return gm_lower_constant(l, GM_FILL_SPECIAL, own < bytes ? bytes : own, special_value(o), 0);
        }
    }
    case GM_OPERAND_VARIABLE: {
        if (is_argument(l, o->index)) {
            gm_lower_refuse(l, "the address of %s, a parameter of a call", l->module->variables[o->index].name);
            return 64;
        }
        uint64_t address = variable_address(l, o->index) + o->bits;
        if (l->module->variables[o->index].space == GM_SPACE_LOCAL && l->number) {
            gm_insn *in = gm_lower_emit(l, GM_DO_add_b64);
            in->a = l->local_slot;
            in->b = bits_constant(l, 8, address);
            return in->d = gm_lower_temp(l, 8);
        }
        return bits_constant(l, bytes, address);
    }
    case GM_OPERAND_FUNCTION:
        if (l->all->function_of[o->index] == GM_NOWHERE) {
            gm_lower_refuse(l, "the address of %s, which the text only declares", l->module->functions[o->index].name);
            return 64;
        }
        return bits_constant(l, bytes, GM_CODE_START + 16 * (uint64_t)l->all->function_of[o->index]);
    case GM_OPERAND_SINK:
    case GM_OPERAND_NONE:
        return gm_lower_temp(l, bytes);
    default:
        gm_lower_refuse(l, "an operand that is not executed yet (a vector here)");
        return 64;
    }
}

uint32_t gm_lower_destination(gm_lower *l, const gm_ptx_operand *o, uint32_t bytes)
{
    /* What stands for a constant is not written. */
    if (o->kind == GM_OPERAND_REG && !l->aliased[o->index])
        return l->slot[o->index];
    return gm_lower_temp(l, bytes);
}

/* name_<type> of operands d, a, b, c, all of one width. */
void gm_lower_plain(gm_lower *l, const char *name, const char *type, uint32_t bytes, uint32_t count)
{
    uint32_t s[3] = {0, 0, 0};
    for (uint32_t k = 0; k < count; k++)
        s[k] = in_slot(l, 1 + k, bytes);
    with(gm_lower_named(l, "%s_%s", name, type), out_slot(l, 0, bytes), s[0], s[1], s[2]);
}
