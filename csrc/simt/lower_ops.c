/* One PTX instruction as handlers: operands become slots, types and modifiers pick the row of handlers.def. What a
 * handler does not do in one step is several; only PTX instructions are counted. */
#include "lower.h"
#include <string.h>

/* --- operands -------------------------------------------------------------------------------------------------- */

static const gm_ptx_operand *operand(const gm_lower *l, uint32_t at)
{
    static const gm_ptx_operand none = {.kind = GM_OPERAND_NONE};
    return at < l->inst->noperands ? &l->inst->operands[at] : &none;
}

static uint32_t type_bytes(uint8_t type)
{
    uint32_t bits = gm_ptx_types[type].bits;
    return bits == 1 ? 1 : bits <= 16 ? 2 : bits / 8;
}

static int has(const gm_lower *l, gm_ptx_field field, gm_ptx_mod mod)
{
    return l->inst->mod[field] == mod;
}

static uint32_t bits_constant(gm_lower *l, uint32_t bytes, uint64_t value)
{
    return bytes == 1 ? gm_lower_constant(l, GM_FILL_PREDICATE, 1, value ? GM_FULL : 0, 0)
                      : gm_lower_constant(l, GM_FILL_BITS, bytes, value, 0);
}

/* The address of a variable as `mov` gives it, in its own space; generic for global and const. */
static uint64_t variable_address(const gm_lower *l, uint32_t v)
{
    const gm_ptx_variable *variable = &l->module->variables[v];
    if (variable->space == GM_SPACE_PARAM)
        return variable->offset;
    return l->all->address[v];
}

static int is_entry_parameter(const gm_lower *l, uint32_t v)
{
    const gm_ptx_function *f = l->function;
    return f->is_entry && v >= f->first_parameter && v < f->first_parameter + f->nparameters;
}

static int is_argument(const gm_lower *l, uint32_t v)
{
    return l->module->variables[v].space == GM_SPACE_PARAM && !is_entry_parameter(l, v);
}

/* Which special register; of %envreg<n>, n in the upper half. */
static uint64_t special_value(const gm_ptx_operand *o)
{
    return o->index == GM_SPECIAL_ENVREG ? o->index | o->bits << 32 : o->index;
}

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
    case GM_OPERAND_SINK:
    case GM_OPERAND_NONE:
        return gm_lower_temp(l, bytes);
    default:
        gm_lower_refuse(l, "an operand that is not executed yet (a function's address, or a vector here)");
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

static uint32_t in_slot(gm_lower *l, uint32_t at, uint32_t bytes)
{
    return gm_lower_source(l, operand(l, at), bytes);
}

static uint32_t out_slot(gm_lower *l, uint32_t at, uint32_t bytes)
{
    return gm_lower_destination(l, operand(l, at), bytes);
}

/* Two steps of one instruction: operands of the second may be temporaries of the first. */
static gm_insn *with(gm_insn *in, uint32_t d, uint32_t a, uint32_t b, uint32_t c)
{
    in->d = d, in->a = a, in->b = b, in->c = c;
    return in;
}

/* name_<type> of operands d, a, b, c, all of one width. */
static void plain(gm_lower *l, const char *name, const char *type, uint32_t bytes, uint32_t count)
{
    uint32_t s[3] = {0, 0, 0};
    for (uint32_t k = 0; k < count; k++)
        s[k] = in_slot(l, 1 + k, bytes);
    with(gm_lower_named(l, "%s_%s", name, type), out_slot(l, 0, bytes), s[0], s[1], s[2]);
}

static const char *bits_text(uint32_t bytes)
{
    return bytes == 1 ? "pred" : bytes == 2 ? "b16" : bytes == 4 ? "b32" : bytes == 8 ? "b64" : "b128";
}

static const char *type_text(uint8_t type)
{
    return gm_ptx_types[type].text;
}

static int is_float(uint8_t type)
{
    return gm_ptx_types[type].kind == GM_KIND_FLOAT;
}

static gm_rounding rounding(const gm_lower *l)
{
    switch (l->inst->mod[GM_FIELD_ROUND]) {
    case GM_MOD_RZ:
    case GM_MOD_RZI:
        return GM_ROUND_ZERO;
    case GM_MOD_RM:
    case GM_MOD_RMI:
        return GM_ROUND_DOWN;
    case GM_MOD_RP:
    case GM_MOD_RPI:
        return GM_ROUND_UP;
    default:
        return GM_ROUND_EVEN;
    }
}

/* --- arithmetic ------------------------------------------------------------------------------------------------ */

static void floats(gm_lower *l, const char *name, gm_arithmetic what, uint32_t count)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type);
    int ftz = l->inst->mod[GM_FIELD_FTZ] != GM_MOD_NONE, sat = l->inst->mod[GM_FIELD_SAT] != GM_MOD_NONE;
    gm_rounding round = rounding(l);
    if (l->inst->type[1] || l->inst->mod[GM_FIELD_OOB] || l->inst->mod[GM_FIELD_XORSIGN] ||
        l->inst->mod[GM_FIELD_ABS] || operand(l, 1 + count)->kind != GM_OPERAND_NONE) {
        gm_lower_named(l, "?");
        return;
    }
    if ((type == GM_PTX_F32 || type == GM_PTX_F64) && round == GM_ROUND_EVEN && !sat) {
        const char *nan = l->inst->mod[GM_FIELD_NAN] ? "_nan" : "";
        uint32_t s[3] = {0, 0, 0};
        for (uint32_t k = 0; k < count; k++)
            s[k] = in_slot(l, 1 + k, bytes);
        with(gm_lower_named(l, "%s%s%s_%s", name, nan, ftz && type == GM_PTX_F32 ? "_ftz" : "", type_text(type)),
             out_slot(l, 0, bytes), s[0], s[1], s[2]);
        return;
    }
    uint32_t s[3] = {64, 64, 64};
    for (uint32_t k = 0; k < count; k++)
        s[k] = in_slot(l, 1 + k, bytes);
    for (uint32_t k = count; k < 3; k++)
        s[k] = s[0];
    gm_insn *in = with(gm_lower_named(l, "round_%s", type_text(type)), out_slot(l, 0, bytes), s[0], s[1], s[2]);
    in->k = (uint8_t)what;
    in->n = (uint8_t)(round | (ftz ? GM_FLUSH : 0) | (sat ? GM_SATURATE : 0) |
                      (l->inst->mod[GM_FIELD_RELU] ? GM_RELU : 0) | (l->inst->mod[GM_FIELD_NAN] ? GM_KEEP_NAN : 0));
}

static void add_or_sub(gm_lower *l, const char *name, gm_arithmetic what)
{
    uint8_t type = l->inst->type[0];
    if (is_float(type))
        floats(l, name, what, 2);
    else if (l->inst->mod[GM_FIELD_SAT])
        plain(l, what == GM_ADD ? "add_sat" : "sub_sat", type_text(type), 4, 2);
    else if (gm_ptx_types[type].lanes == 2)
        plain(l, name, "u16x2", 4, 2);
    else
        plain(l, name, bits_text(type_bytes(type)), type_bytes(type), 2);
}

static void multiply(gm_lower *l)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type);
    if (is_float(type))
        floats(l, "mul", GM_MUL, 2);
    else if (has(l, GM_FIELD_PART, GM_MOD_LO))
        plain(l, "mul_lo", bits_text(bytes), bytes, 2);
    else if (has(l, GM_FIELD_PART, GM_MOD_HI))
        plain(l, "mul_hi", type_text(type), bytes, 2);
    else {
        uint32_t a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes);
        with(gm_lower_named(l, "mul_wide_%s", type_text(type)), out_slot(l, 0, 2 * bytes), a, b, 0);
    }
}

static void multiply_add(gm_lower *l)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type);
    if (is_float(type)) {
        floats(l, "fma", GM_FMA, 3);
    } else if (has(l, GM_FIELD_PART, GM_MOD_LO)) {
        plain(l, "mad_lo", bits_text(bytes), bytes, 3);
    } else if (has(l, GM_FIELD_PART, GM_MOD_HI)) {
        if (l->inst->mod[GM_FIELD_SAT]) {
            plain(l, "mad_hi_sat", type_text(type), bytes, 3);
            return;
        }
        uint32_t a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes), c = in_slot(l, 3, bytes);
        uint32_t high = gm_lower_temp(l, bytes);
        with(gm_lower_named(l, "mul_hi_%s", type_text(type)), high, a, b, 0);
        with(gm_lower_named(l, "add_%s", bits_text(bytes)), out_slot(l, 0, bytes), high, c, 0);
    } else {
        uint32_t a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes), c = in_slot(l, 3, 2 * bytes);
        with(gm_lower_named(l, "mad_wide_%s", type_text(type)), out_slot(l, 0, 2 * bytes), a, b, c);
    }
}

static void multiply_24(gm_lower *l, int adds)
{
    uint8_t type = l->inst->type[0];
    const char *part = has(l, GM_FIELD_PART, GM_MOD_LO) ? "lo" : "hi";
    uint32_t a = in_slot(l, 1, 4), b = in_slot(l, 2, 4), d = out_slot(l, 0, 4);
    uint32_t product = adds ? gm_lower_temp(l, 4) : d;
    with(gm_lower_named(l, "mul_24_%s_%s", part, type_text(type)), product, a, b, 0);
    if (adds)
        with(gm_lower_named(l, l->inst->mod[GM_FIELD_SAT] ? "add_sat_s32" : "add_b32"), d, product, in_slot(l, 3, 4),
             0);
}

/* add.cc, addc and the like; mad.cc with the product first. */
static void carries(gm_lower *l, const char *name, int in_carry, int out_carry, int product)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type), a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes);
    if (product) {
        uint32_t c = in_slot(l, 3, bytes), part = gm_lower_temp(l, bytes);
        int low = has(l, GM_FIELD_PART, GM_MOD_LO);
        with(low ? gm_lower_named(l, "mul_lo_%s", bits_text(bytes)) : gm_lower_named(l, "mul_hi_%s", type_text(type)),
             part, a, b, 0);
        a = part, b = c;
    }
    gm_insn *in =
        with(gm_lower_named(l, "carry_%s_%s", name, bits_text(bytes)), out_slot(l, 0, bytes), a, b, GM_CARRY_SLOT);
    in->k = (uint8_t)in_carry, in->n = (uint8_t)out_carry, in->e = GM_CARRY_SLOT;
}

static void divide(gm_lower *l, const char *name)
{
    uint8_t type = l->inst->type[0];
    if (is_float(type))
        floats(l, "div", GM_DIV, 2);
    else
        plain(l, name, type_text(type), type_bytes(type), 2);
}

static void least_or_most(gm_lower *l, const char *name, gm_arithmetic what)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type);
    if (is_float(type)) {
        floats(l, name, what, 2);
        return;
    }
    plain(l, name, type_text(type), bytes, 2);
    if (l->inst->mod[GM_FIELD_RELU]) {
        uint32_t d = out_slot(l, 0, bytes);
        with(gm_lower_named(l, "max_%s", type_text(type)), d, d, bits_constant(l, bytes, 0), 0);
    }
}

static void sign(gm_lower *l, const char *name)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type);
    const char *text = type_text(type);
    if (type == GM_PTX_BF16)
        text = "f16";
    else if (type == GM_PTX_BF16X2)
        text = "f16x2";
    else if (type == GM_PTX_F32 && l->inst->mod[GM_FIELD_FTZ])
        text = "ftz_f32";
    else if (!is_float(type) && name[0] == 'n')
        text = bits_text(bytes);
    plain(l, name, text, bytes, 1);
}

/* sqrt, rcp and what the hardware approximates */
static void function_of_one(gm_lower *l, const char *name, gm_arithmetic exact)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type), a = in_slot(l, 1, bytes);
    int ftz = l->inst->mod[GM_FIELD_FTZ] != GM_MOD_NONE;
    gm_insn *in;
    if (exact != GM_ADD && rounding(l) == GM_ROUND_EVEN) {
        in = gm_lower_named(l, "%s%s_%s", name, ftz && type == GM_PTX_F32 ? "_ftz" : "", type_text(type));
    } else if (exact != GM_ADD) {
        in = gm_lower_named(l, "round_%s", type_text(type));
        in->k = (uint8_t)exact;
        in->n = (uint8_t)(rounding(l) | (ftz && type == GM_PTX_F32 ? GM_FLUSH : 0));
    } else if (gm_ptx_types[type].lanes == 2) {
        const char *half = type == GM_PTX_F16X2 ? "f16" : "bf16";
        uint32_t low = gm_lower_temp(l, 2), high = gm_lower_temp(l, 2), r0 = gm_lower_temp(l, 2),
                 r1 = gm_lower_temp(l, 2);
        with(gm_lower_named(l, "low_b16_b32"), low, a, 0, 0);
        with(gm_lower_named(l, "high_b16_b32"), high, a, 0, 0);
        with(gm_lower_named(l, "%s_%s", name, half), r0, low, 0, 0);
        with(gm_lower_named(l, "%s_%s", name, half), r1, high, 0, 0);
        in = gm_lower_named(l, "pack_b32_b16");
        with(in, out_slot(l, 0, 4), r0, r1, 0);
        return;
    } else {
        in = gm_lower_named(l, "%s_%s", name, type_text(type));
        in->n = (uint8_t)ftz;
    }
    with(in, out_slot(l, 0, bytes), a, a, a);
}

/* --- comparisons ----------------------------------------------------------------------------------------------- */

static const char *comparison(const gm_lower *l, uint8_t type)
{
    switch (l->inst->mod[GM_FIELD_CMP]) {
    case GM_MOD_LO:
        return "lt";
    case GM_MOD_LS:
        return "le";
    case GM_MOD_HI:
        return "gt";
    case GM_MOD_HS:
        return "ge";
    default:
        (void)type;
        return gm_ptx_mod_text((gm_ptx_mod)l->inst->mod[GM_FIELD_CMP]);
    }
}

/* A predicate, without the combination with another. */
static void compare(gm_lower *l, uint32_t d, uint8_t type, uint32_t a, uint32_t b)
{
    const char *how = comparison(l, type), *text = type_text(type);
    int equality = strcmp(how, "eq") == 0 || strcmp(how, "ne") == 0;
    uint32_t bytes = type_bytes(type);
    if (!is_float(type)) {
        uint8_t mod = l->inst->mod[GM_FIELD_CMP];
        int unsigned_ones = mod == GM_MOD_LO || mod == GM_MOD_LS || mod == GM_MOD_HI || mod == GM_MOD_HS;
        if (equality)
            text = bits_text(bytes);
        else if (unsigned_ones || gm_ptx_types[type].kind == GM_KIND_BITS)
            text = bytes == 2 ? "u16" : bytes == 4 ? "u32" : "u64";
    } else if (type == GM_PTX_F32 && l->inst->mod[GM_FIELD_FTZ]) {
        text = "ftz_f32";
    }
    with(gm_lower_named(l, "setp_%s_%s", how, text), d, a, b, 0);
}

/* p = (a cmp b) op c and q = !(a cmp b) op c, with t what was compared. */
static void combine(gm_lower *l, uint32_t d, uint32_t truth, const gm_ptx_operand *other)
{
    if (l->inst->mod[GM_FIELD_BOOL] == GM_MOD_NONE || other->kind == GM_OPERAND_NONE) {
        if (d != truth)
            with(gm_lower_named(l, "mov_pred"), d, truth, 0, 0);
        return;
    }
    uint32_t c = gm_lower_source(l, other, 1);
    with(gm_lower_named(l, "%s_pred", gm_ptx_mod_text((gm_ptx_mod)l->inst->mod[GM_FIELD_BOOL])), d, truth, c, 0);
}

static void set_predicate(gm_lower *l)
{
    /* One destination or two, then a, b and the predicate that is combined. */
    uint32_t at = l->inst->noperands - 3u;
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type), a = in_slot(l, at, bytes), b = in_slot(l, at + 1, bytes);
    static const gm_ptx_operand none = {.kind = GM_OPERAND_NONE};
    const gm_ptx_operand *p = operand(l, 0), *q = at == 2 ? operand(l, 1) : &none, *c = operand(l, at + 2);
    int simple = q->kind == GM_OPERAND_NONE && (c->kind == GM_OPERAND_NONE || !l->inst->mod[GM_FIELD_BOOL]);
    if (bytes == 2 && is_float(type) && l->inst->mod[GM_FIELD_FTZ]) {
        gm_lower_named(l, "?");
        return;
    }
    if (gm_ptx_types[type].lanes == 2) {
        uint8_t half = type == GM_PTX_F16X2 ? GM_PTX_F16 : GM_PTX_BF16;
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t x = gm_lower_temp(l, 2), y = gm_lower_temp(l, 2), t = gm_lower_temp(l, 1);
            with(gm_lower_named(l, k ? "high_b16_b32" : "low_b16_b32"), x, a, 0, 0);
            with(gm_lower_named(l, k ? "high_b16_b32" : "low_b16_b32"), y, b, 0, 0);
            compare(l, t, half, x, y);
            const gm_ptx_operand *to = k ? q : p;
            if (to->kind == GM_OPERAND_REG)
                combine(l, l->slot[to->index], t, c);
        }
        return;
    }
    if (simple) {
        compare(l, gm_lower_destination(l, p, 1), type, a, b);
        return;
    }
    uint32_t t = gm_lower_temp(l, 1), n = gm_lower_temp(l, 1), r = gm_lower_temp(l, 1);
    compare(l, t, type, a, b);
    with(gm_lower_named(l, "not_pred"), n, t, 0, 0);
    combine(l, r, t, c);
    if (q->kind == GM_OPERAND_REG)
        combine(l, l->slot[q->index], n, c);
    if (p->kind == GM_OPERAND_REG)
        with(gm_lower_named(l, "mov_pred"), l->slot[p->index], r, 0, 0);
}

/* set: all ones or 0, or 1.0 and 0 */
static void set_value(gm_lower *l)
{
    uint8_t to = l->inst->type[0], type = l->inst->type[1];
    uint32_t bytes = type_bytes(type), own = type_bytes(to), a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes);
    uint64_t truth = to == GM_PTX_F32    ? 0x3f800000
                     : to == GM_PTX_F16  ? 0x3c00
                     : to == GM_PTX_BF16 ? 0x3f80
                                         : UINT64_MAX;
    if (gm_ptx_types[type].lanes == 2) {
        uint8_t half = type == GM_PTX_F16X2 ? GM_PTX_F16 : GM_PTX_BF16;
        uint32_t r[2];
        truth = to == GM_PTX_F16X2 ? 0x3c00 : to == GM_PTX_BF16X2 ? 0x3f80 : 0xffff;
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t x = gm_lower_temp(l, 2), y = gm_lower_temp(l, 2), t = gm_lower_temp(l, 1), p = gm_lower_temp(l, 1);
            with(gm_lower_named(l, k ? "high_b16_b32" : "low_b16_b32"), x, a, 0, 0);
            with(gm_lower_named(l, k ? "high_b16_b32" : "low_b16_b32"), y, b, 0, 0);
            compare(l, t, half, x, y);
            combine(l, p, t, operand(l, 3));
            r[k] = gm_lower_temp(l, 2);
            with(gm_lower_named(l, "selp_b16"), r[k], bits_constant(l, 2, truth), bits_constant(l, 2, 0), p);
        }
        with(gm_lower_named(l, "pack_b32_b16"), out_slot(l, 0, 4), r[0], r[1], 0);
        return;
    }
    uint32_t t = gm_lower_temp(l, 1), p = gm_lower_temp(l, 1);
    compare(l, t, type, a, b);
    combine(l, p, t, operand(l, 3));
    with(gm_lower_named(l, "selp_%s", bits_text(own)), out_slot(l, 0, own), bits_constant(l, own, truth),
         bits_constant(l, own, 0), p);
}

static void select_predicate(gm_lower *l)
{
    uint32_t bytes = type_bytes(l->inst->type[0]), a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes);
    const gm_ptx_operand *p = operand(l, 3);
    int plain_register = p->kind == GM_OPERAND_REG;
    uint32_t c = plain_register ? l->slot[p->index] : gm_lower_source(l, p, 1);
    gm_insn *in = with(gm_lower_named(l, "selp_%s", bits_text(bytes)), out_slot(l, 0, bytes), a, b, c);
    in->imm = plain_register && p->negated ? (int64_t)GM_FULL : 0;
}

static void select_sign(gm_lower *l)
{
    uint8_t by = l->inst->type[1];
    uint32_t bytes = type_bytes(l->inst->type[0]), a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes);
    uint32_t c = in_slot(l, 3, 4), t = gm_lower_temp(l, 1);
    with(gm_lower_named(l, "setp_ge_%s", by == GM_PTX_F32 ? (l->inst->mod[GM_FIELD_FTZ] ? "ftz_f32" : "f32") : "s32"),
         t, c, bits_constant(l, 4, 0), 0);
    with(gm_lower_named(l, "selp_%s", bits_text(bytes)), out_slot(l, 0, bytes), a, b, t);
}

/* --- moves and conversions ------------------------------------------------------------------------------------- */

static void move_one(gm_lower *l, const gm_ptx_operand *d, const gm_ptx_operand *s, uint32_t bytes)
{
    if (d->kind == GM_OPERAND_REG && l->aliased[d->index])
        return;
    if (d->kind != GM_OPERAND_REG)
        return;
    uint32_t from = gm_lower_source(l, s, bytes);
    with(gm_lower_named(l, "mov_%s", bits_text(bytes)), l->slot[d->index], from, 0, 0);
}

static void move(gm_lower *l)
{
    uint32_t bytes = type_bytes(l->inst->type[0]);
    const gm_ptx_operand *d = operand(l, 0), *s = operand(l, 1);
    if (d->kind == GM_OPERAND_VECTOR && s->kind == GM_OPERAND_VECTOR) {
        for (uint32_t k = 0; k < d->n && k < s->n; k++)
            move_one(l, &d->elements[k], &s->elements[k], bytes);
    } else if (d->kind == GM_OPERAND_VECTOR) {
        /* unpack */
        uint32_t from = gm_lower_source(l, s, bytes), part = bytes / d->n;
        for (uint32_t k = 0; k < d->n; k++) {
            const gm_ptx_operand *to = &d->elements[k];
            if (to->kind != GM_OPERAND_REG)
                continue;
            uint32_t slot = l->slot[to->index];
            if (bytes == 16) {
                if (part == 8)
                    with(gm_lower_named(l, "mov_b64"), slot, from + 256 * k, 0, 0);
                else
                    with(gm_lower_named(l, k % 2 ? "high_b32_b64" : "low_b32_b64"), slot, from + 256 * (k / 2), 0, 0);
            } else if (part == 4) {
                with(gm_lower_named(l, k ? "high_b32_b64" : "low_b32_b64"), slot, from, 0, 0);
            } else if (part == 2 && bytes == 4) {
                with(gm_lower_named(l, k ? "high_b16_b32" : "low_b16_b32"), slot, from, 0, 0);
            } else if (part == 2) {
                with(gm_lower_named(l, "part_b16_b64"), slot, from, 0, 0)->k = (uint8_t)(16 * k);
            } else {
                gm_lower_refuse(l, "a mov into pieces of %u bytes", part);
            }
        }
    } else if (s->kind == GM_OPERAND_VECTOR) {
        /* pack */
        uint32_t part = bytes / s->n, from[8], to = gm_lower_destination(l, d, bytes);
        if (s->n > 8) {
            gm_lower_refuse(l, "a mov of %u pieces", s->n);
            return;
        }
        for (uint32_t k = 0; k < s->n; k++)
            from[k] = gm_lower_source(l, &s->elements[k], part < 2 ? 2 : part);
        if (bytes == 16 && part == 8) {
            uint32_t t = gm_lower_temp(l, 8);
            with(gm_lower_named(l, "mov_b64"), t, from[1], 0, 0);
            with(gm_lower_named(l, "mov_b64"), to, from[0], 0, 0);
            with(gm_lower_named(l, "mov_b64"), to + 256, t, 0, 0);
        } else if (bytes == 16 && part == 4) {
            with(gm_lower_named(l, "pack_b64_b32"), to, from[0], from[1], 0);
            with(gm_lower_named(l, "pack_b64_b32"), to + 256, from[2], from[3], 0);
        } else if (part == 4) {
            with(gm_lower_named(l, "pack_b64_b32"), to, from[0], from[1], 0);
        } else if (part == 2 && bytes == 4) {
            with(gm_lower_named(l, "pack_b32_b16"), to, from[0], from[1], 0);
        } else if (part == 2 && bytes == 8) {
            uint32_t low = gm_lower_temp(l, 4), high = gm_lower_temp(l, 4);
            with(gm_lower_named(l, "pack_b32_b16"), low, from[0], from[1], 0);
            with(gm_lower_named(l, "pack_b32_b16"), high, from[2], from[3], 0);
            with(gm_lower_named(l, "pack_b64_b32"), to, low, high, 0);
        } else {
            gm_lower_refuse(l, "a mov of pieces of %u bytes", part);
        }
    } else {
        move_one(l, d, s, bytes);
    }
}

/* The operand's value, of integer `type`, extended or cut to `bytes`. */
static uint32_t extended(gm_lower *l, const gm_ptx_operand *o, uint8_t type, uint32_t bytes)
{
    const gm_ptx_type_info *t = &gm_ptx_types[type];
    uint32_t own = t->bits <= 16 ? 2 : t->bits / 8, to;
    char sign_letter = t->kind == GM_KIND_SINT ? 's' : 'u';
    if (o->kind != GM_OPERAND_REG) {
        uint64_t value = o->bits;
        if (o->kind == GM_OPERAND_IMM) {
            if (t->bits < 64) {
                value &= (UINT64_C(1) << t->bits) - 1;
                if (sign_letter == 's' && value >> (t->bits - 1) & 1)
                    value |= ~((UINT64_C(1) << t->bits) - 1);
            }
            return bits_constant(l, bytes, value);
        }
    }
    uint32_t from = gm_lower_source(l, o, own);
    if (t->bits == 8) {
        to = gm_lower_temp(l, bytes);
        with(gm_lower_named(l, "widen_b%u_%c8", bytes * 8, sign_letter), to, from, 0, 0);
        return to;
    }
    if (own == bytes)
        return from;
    to = gm_lower_temp(l, bytes);
    if (own < bytes)
        with(gm_lower_named(l, "widen_b%u_%c%u", bytes * 8, sign_letter, t->bits), to, from, 0, 0);
    else
        with(gm_lower_named(l, "narrow_b%u_b%u", bytes * 8, own * 8), to, from, 0, 0);
    return to;
}

/* An integer in slot `from` of `bytes`, as a value of `type` in the register d, which may be wider. */
static void deliver(gm_lower *l, const gm_ptx_operand *d, uint8_t type, uint32_t from, uint32_t bytes)
{
    const gm_ptx_type_info *t = &gm_ptx_types[type];
    uint32_t own = d->kind == GM_OPERAND_REG ? gm_register_bytes(&l->function->regs[d->index]) : bytes;
    uint32_t to = gm_lower_destination(l, d, own), type_slot = t->bits <= 16 ? 2 : t->bits / 8;
    char sign_letter = t->kind == GM_KIND_SINT ? 's' : 'u';
    if (bytes > type_slot) {
        uint32_t cut = t->bits == 8 || own != type_slot ? gm_lower_temp(l, type_slot) : to;
        with(gm_lower_named(l, "narrow_b%u_b%u", type_slot * 8, bytes * 8), cut, from, 0, 0);
        from = cut, bytes = type_slot;
        if (cut == to)
            return;
    }
    if (t->bits == 8)
        with(gm_lower_named(l, "widen_b%u_%c8", own * 8, sign_letter), to, from, 0, 0);
    else if (bytes < own)
        with(gm_lower_named(l, "widen_b%u_%c%u", own * 8, sign_letter, t->bits), to, from, 0, 0);
    else if (to != from)
        with(gm_lower_named(l, "mov_%s", bits_text(own)), to, from, 0, 0);
}

static void integer_to_integer(gm_lower *l, uint8_t to, uint8_t from)
{
    const gm_ptx_type_info *t = &gm_ptx_types[to], *f = &gm_ptx_types[from];
    const gm_ptx_operand *d = operand(l, 0), *s = operand(l, 1);
    if (l->inst->mod[GM_FIELD_SAT]) {
        uint32_t wide = extended(l, s, from, 8), cut = gm_lower_temp(l, 8);
        gm_insn *in = with(gm_lower_named(l, "clamp_b64"), cut, wide, 0, 0);
        in->n = t->bits;
        in->k = (uint8_t)((f->kind == GM_KIND_SINT) | (t->kind == GM_KIND_SINT) << 1);
        deliver(l, d, to, cut, 8);
        return;
    }
    uint32_t own = d->kind == GM_OPERAND_REG ? gm_register_bytes(&l->function->regs[d->index]) : type_bytes(to);
    /* The value in the source type's extension, cut to the result's. The common widenings are one step. */
    if (s->kind == GM_OPERAND_REG && t->bits >= f->bits && f->bits >= 8 && own * 8 == t->bits &&
        gm_register_bytes(&l->function->regs[s->index]) == (f->bits <= 16 ? 2 : f->bits / 8) && t->bits > 8) {
        if (f->bits == t->bits)
            with(gm_lower_named(l, "mov_%s", bits_text(own)), l->slot[d->kind == GM_OPERAND_REG ? d->index : 0],
                 l->slot[s->index], 0, 0);
        else
            with(gm_lower_named(l, "widen_b%u_%c%u", own * 8, f->kind == GM_KIND_SINT ? 's' : 'u', f->bits),
                 gm_lower_destination(l, d, own), l->slot[s->index], 0, 0);
        return;
    }
    uint32_t bytes = type_bytes(to);
    deliver(l, d, to, extended(l, s, from, bytes), bytes);
}

/* A float operand as f32 (4) or f64 (8). */
static uint32_t as_float(gm_lower *l, const gm_ptx_operand *o, uint8_t type, uint32_t bytes)
{
    uint32_t from = gm_lower_source(l, o, type_bytes(type)), to;
    if (type == GM_PTX_F16 || type == GM_PTX_BF16) {
        to = gm_lower_temp(l, 4);
        with(gm_lower_named(l, "cvt_f32_%s", type_text(type)), to, from, 0, 0);
        from = to, type = GM_PTX_F32;
    }
    if (type_bytes(type) == bytes)
        return from;
    to = gm_lower_temp(l, bytes);
    with(gm_lower_named(l, bytes == 8 ? "cvt_f64_f32" : "cvt_f32_f64"), to, from, 0, 0);
    return to;
}

static void convert(gm_lower *l)
{
    uint8_t to = l->inst->type[0], from = l->inst->type[1];
    const gm_ptx_operand *d = operand(l, 0), *s = operand(l, 1);
    gm_rounding round = rounding(l);
    uint8_t mod = l->inst->mod[GM_FIELD_ROUND];
    int whole = mod == GM_MOD_RNI || mod == GM_MOD_RZI || mod == GM_MOD_RMI || mod == GM_MOD_RPI;
    int sat = has(l, GM_FIELD_SAT, GM_MOD_SAT), relu = l->inst->mod[GM_FIELD_RELU] != 0;
    int ftz = l->inst->mod[GM_FIELD_FTZ] != GM_MOD_NONE, tf32 = to == GM_PTX_TF32;
    gm_insn *in;
    if (has(l, GM_FIELD_SAT, GM_MOD_SATFINITE) && to != GM_PTX_E4M3X2 && to != GM_PTX_E5M2X2) {
        gm_lower_named(l, "?");
        return;
    }
    if (!is_float(to) && !is_float(from)) {
        integer_to_integer(l, to, from);
        return;
    }
    if (to == GM_PTX_E4M3X2 || to == GM_PTX_E5M2X2) {
        if (from == GM_PTX_F32) {
            uint32_t a = in_slot(l, 1, 4), b = in_slot(l, 2, 4);
            in = with(gm_lower_named(l, "cvt_f8x2_f32"), out_slot(l, 0, 2), a, b, 0);
        } else {
            in = with(gm_lower_named(l, "cvt_f8x2_%s", type_text(from)), out_slot(l, 0, 2), in_slot(l, 1, 4), 0, 0);
        }
        in->n = to == GM_PTX_E5M2X2, in->k = (uint8_t)relu;
        return;
    }
    if (from == GM_PTX_E4M3X2 || from == GM_PTX_E5M2X2) {
        in = with(gm_lower_named(l, "cvt_%s_f8x2", type_text(to)), out_slot(l, 0, 4), in_slot(l, 1, 2), 0, 0);
        in->n = from == GM_PTX_E5M2X2;
        if (relu)
            gm_lower_named(l, "?");
        return;
    }
    if (gm_ptx_types[to].lanes == 2) { /* two floats into one register */
        if (from != GM_PTX_F32 || mod == GM_MOD_RS) {
            gm_lower_named(l, "?");
            return;
        }
        uint32_t a = in_slot(l, 1, 4), b = in_slot(l, 2, 4);
        if (round == GM_ROUND_EVEN && !relu) {
            with(gm_lower_named(l, "cvt_%s_f32", type_text(to)), out_slot(l, 0, 4), a, b, 0);
            return;
        }
        uint32_t halves[2];
        for (int k = 0; k < 2; k++) {
            uint32_t wide = gm_lower_temp(l, 8);
            halves[k] = gm_lower_temp(l, 2);
            with(gm_lower_named(l, "cvt_f64_f32"), wide, k ? a : b, 0, 0);
            in =
                with(gm_lower_named(l, "round_cvt_%s_f64", to == GM_PTX_F16X2 ? "f16" : "bf16"), halves[k], wide, 0, 0);
            in->k = (uint8_t)round, in->n = (uint8_t)(relu ? GM_RELU : 0);
        }
        with(gm_lower_named(l, "pack_b32_b16"), out_slot(l, 0, 4), halves[0], halves[1], 0);
        return;
    }
    if (tf32) {
        if (relu || (mod != GM_MOD_RNA && mod != GM_MOD_RN)) {
            gm_lower_named(l, "?");
            return;
        }
        with(gm_lower_named(l, "cvt_%s_tf32_f32", mod == GM_MOD_RNA ? "rna" : "rn"), out_slot(l, 0, 4),
             in_slot(l, 1, 4), 0, 0);
        return;
    }
    if (is_float(from) && !is_float(to)) { /* float to integer */
        const gm_ptx_type_info *t = &gm_ptx_types[to];
        if (to == GM_PTX_S32 && from == GM_PTX_F32 && round == GM_ROUND_ZERO && !ftz && d->kind == GM_OPERAND_REG &&
            gm_register_bytes(&l->function->regs[d->index]) == 4) {
            with(gm_lower_named(l, "cvt_rzi_s32_f32"), l->slot[d->index], gm_lower_source(l, s, 4), 0, 0);
            return;
        }
        int wide = from == GM_PTX_F64;
        uint32_t value = as_float(l, s, from, wide ? 8 : 4), r = gm_lower_temp(l, 8);
        in = with(gm_lower_named(l, wide ? "integer_f64" : "integer_f32"), r, value, 0, 0);
        in->k = (uint8_t)round;
        in->n = (uint8_t)((t->kind == GM_KIND_SINT ? 0x80 : 0) | (ftz ? 0x40 : 0) |
                          (t->bits == 8    ? 0
                           : t->bits == 16 ? 1
                           : t->bits == 32 ? 2
                                           : 3));
        deliver(l, d, to, r, 8);
        return;
    }
    uint32_t bytes = type_bytes(to);
    if (!is_float(from)) { /* integer to float */
        int wide = gm_ptx_types[from].bits == 64;
        int is_signed = gm_ptx_types[from].kind == GM_KIND_SINT;
        uint32_t r = gm_lower_destination(l, d, bytes);
        if (to == GM_PTX_F16 || to == GM_PTX_BF16) {
            uint32_t value = extended(l, s, from, 8), middle = gm_lower_temp(l, 8);
            in = with(gm_lower_named(l, "cvt_f64_%s", is_signed ? "s64" : "u64"), middle, value, 0, 0);
            in = with(gm_lower_named(l, "round_cvt_%s_f64", type_text(to)), r, middle, 0, 0);
            in->k = (uint8_t)round, in->n = (uint8_t)(sat ? GM_SATURATE : 0);
            return;
        }
        if (round != GM_ROUND_EVEN && (wide || to == GM_PTX_F32)) {
            uint32_t value = extended(l, s, from, 8);
            in = with(gm_lower_named(l, "round_cvt_%s_%s", type_text(to), is_signed ? "s64" : "u64"), r, value, 0, 0);
            in->k = (uint8_t)round;
        } else {
            uint32_t value = extended(l, s, from, wide ? 8 : 4);
            with(gm_lower_named(l, "cvt_%s_%c%u", type_text(to), is_signed ? 's' : 'u', wide ? 64 : 32), r, value, 0,
                 0);
        }
        if (sat)
            with(gm_lower_named(l, "clip_%s", type_text(to)), r, r, 0, 0);
        return;
    }
    /* float to float */
    uint32_t r = gm_lower_destination(l, d, bytes), value;
    int half = to == GM_PTX_F16 || to == GM_PTX_BF16;
    if (whole) {
        int wide = to == GM_PTX_F64 || from == GM_PTX_F64;
        value = as_float(l, s, from, wide ? 8 : 4);
        if (ftz && from == GM_PTX_F32) {
            uint32_t t = gm_lower_temp(l, 4), zero = bits_constant(l, 4, 0x80000000u);
            with(gm_lower_named(l, "add_ftz_f32"), t, value, zero, 0);
            value = t;
        }
        uint32_t t = gm_lower_temp(l, wide ? 8 : 4);
        in = with(gm_lower_named(l, wide ? "whole_f64" : "whole_f32"), t, value, 0, 0);
        in->k = (uint8_t)round;
        if (half)
            with(gm_lower_named(l, "cvt_%s_f32", type_text(to)), r, t, 0, 0);
        else if (to == GM_PTX_F32 && wide)
            with(gm_lower_named(l, "cvt_f32_f64"), r, t, 0, 0);
        else
            with(gm_lower_named(l, "mov_%s", bits_text(bytes)), r, t, 0, 0);
        if (sat && !half)
            in = with(gm_lower_named(l, "clip_%s", type_text(to)), r, r, 0, 0);
        return;
    }
    if (half) {
        if (round == GM_ROUND_EVEN && !sat && !relu && from == GM_PTX_F32) {
            with(gm_lower_named(l, "cvt_%s_f32", type_text(to)), r, gm_lower_source(l, s, 4), 0, 0);
            return;
        }
        value = as_float(l, s, from, 8);
        in = with(gm_lower_named(l, "round_cvt_%s_f64", type_text(to)), r, value, 0, 0);
        in->k = (uint8_t)round;
        in->n = (uint8_t)((sat ? GM_SATURATE : 0) | (relu ? GM_RELU : 0));
        return;
    }
    if (to == GM_PTX_F32 && from == GM_PTX_F64) {
        value = gm_lower_source(l, s, 8);
        in = round == GM_ROUND_EVEN ? gm_lower_named(l, "cvt_f32_f64") : gm_lower_named(l, "round_cvt_f32_f64");
        with(in, r, value, 0, 0)->k = (uint8_t)round;
    } else {
        value = as_float(l, s, from, bytes);
        if (ftz && from == GM_PTX_F32 && to == GM_PTX_F64) {
            uint32_t t = gm_lower_temp(l, 4);
            with(gm_lower_named(l, "add_ftz_f32"), t, gm_lower_source(l, s, 4), bits_constant(l, 4, 0x80000000u), 0);
            with(gm_lower_named(l, "cvt_f64_f32"), r, t, 0, 0);
        } else if (value != r) {
            with(gm_lower_named(l, "mov_%s", bits_text(bytes)), r, value, 0, 0);
        }
    }
    if (sat || (ftz && to == GM_PTX_F32))
        with(gm_lower_named(l, sat ? "clip_%s" : "flush_%s", type_text(to)), r, r, 0, 0)->n = (uint8_t)ftz;
}

static uint64_t window_of(gm_space space)
{
    return space == GM_SPACE_SHARED || space == GM_SPACE_SHARED_CLUSTER ? GM_SHARED_WINDOW
           : space == GM_SPACE_LOCAL                                    ? GM_LOCAL_WINDOW
           : space == GM_SPACE_PARAM                                    ? GM_PARAM_WINDOW
                                                                        : 0;
}

static gm_space mod_space(uint8_t mod)
{
    switch (mod) {
    case GM_MOD_SHARED:
    case GM_MOD_SHARED_CTA:
        return GM_SPACE_SHARED;
    case GM_MOD_SHARED_CLUSTER:
        return GM_SPACE_SHARED_CLUSTER;
    case GM_MOD_LOCAL:
        return GM_SPACE_LOCAL;
    case GM_MOD_CONST:
        return GM_SPACE_CONST;
    case GM_MOD_PARAM:
    case GM_MOD_PARAM_ENTRY:
    case GM_MOD_PARAM_FUNC:
        return GM_SPACE_PARAM;
    default:
        return GM_SPACE_GLOBAL;
    }
}

static void convert_address(gm_lower *l)
{
    uint64_t window = window_of(mod_space(l->inst->mod[GM_FIELD_SPACE]));
    const gm_ptx_operand *d = operand(l, 0);
    if (d->kind == GM_OPERAND_REG && l->aliased[d->index])
        return;
    if (l->inst->mod[GM_FIELD_TO])
        window = 0 - window;
    uint32_t a = in_slot(l, 1, 8);
    if (window == 0)
        with(gm_lower_named(l, "mov_b64"), out_slot(l, 0, 8), a, 0, 0);
    else
        with(gm_lower_named(l, "add_b64"), out_slot(l, 0, 8), a, bits_constant(l, 8, window), 0);
}

/* --- memory ---------------------------------------------------------------------------------------------------- */

/* What an ADDRESS operand is relative to: a slot, and whether it has 64 bits (0x100). */
static uint32_t base_slot(gm_lower *l, const gm_ptx_operand *o, gm_space space, uint32_t *wide)
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
    uint32_t wide, base = base_slot(l, o, space, &wide);
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

static unsigned how_of(const gm_lower *l, int writes, int atomic)
{
    unsigned how = writes ? GM_HOW_WRITE : GM_HOW_READ;
    switch (l->inst->mod[GM_FIELD_SEM]) {
    case GM_MOD_RELAXED:
    case GM_MOD_ACQUIRE:
    case GM_MOD_RELEASE:
    case GM_MOD_ACQ_REL:
    case GM_MOD_SC:
    case GM_MOD_MMIO:
        how |= GM_HOW_ATOMIC;
        break;
    case GM_MOD_VOLATILE:
        how |= GM_HOW_VOLATILE;
        break;
    default:
        break;
    }
    return atomic ? how | GM_HOW_ATOMIC : how;
}

static int log2_of(uint32_t bytes)
{
    return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
}

static const char *space_word(gm_space space)
{
    return space == GM_SPACE_SHARED || space == GM_SPACE_SHARED_CLUSTER ? "shared"
           : space == GM_SPACE_LOCAL                                    ? "local"
           : space == GM_SPACE_GENERIC                                  ? "generic"
                                                                        : "global";
}

/* Blocks may talk through this. */
static void may_communicate(gm_lower *l)
{
    gm_lens_kernel *k = &l->program->kernel;
    if (!k->communicates) {
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

static void load_or_store(gm_lower *l, int writes)
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
    uint32_t base = base_slot(l, address, space, &wide), slots = data_slots(l, data, n, item, writes, &width);
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
                              writes ? GM_ACCESS_STORE : GM_ACCESS_LOAD, how_of(l, writes, 0), item * n);
    if (strong && !writes && (space == GM_SPACE_GLOBAL || space == GM_SPACE_GENERIC))
        may_communicate(l);
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

static void atomics(gm_lower *l, int gives)
{
    const gm_ptx_inst *inst = l->inst;
    uint8_t type = inst->type[0];
    uint32_t n = inst->vector, item = gm_ptx_types[type].bits / 8, wide, width, at = gives ? 1 : 0;
    uint32_t what = gm_lower_atom(inst);
    gm_space space = (gm_space)inst->space;
    const gm_ptx_operand *address = operand(l, at), *value = operand(l, at + 1), *d = operand(l, 0);
    int compares = what == GM_ATOM_CAS;
    uint32_t base = base_slot(l, address, space, &wide);
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
                          how_of(l, 1, 1), item * n);
    if (space != GM_SPACE_SHARED && (wanted || what == GM_ATOM_EXCH || compares || (atom_type >= GM_ATOM_F32)))
        may_communicate(l);
}

/* --- a warp's exchanges ---------------------------------------------------------------------------------------- */

static void shuffle(gm_lower *l)
{
    uint32_t a = in_slot(l, 2, 4), b = in_slot(l, 3, 4), c = in_slot(l, 4, 4), members = in_slot(l, 5, 4);
    const gm_ptx_operand *p = operand(l, 1);
    gm_insn *in = with(gm_lower_named(l, "shfl"), out_slot(l, 0, 4), a, b, c);
    switch (l->inst->mod[GM_FIELD_OP]) {
    case GM_MOD_IDX:
        in->k = 0;
        break;
    case GM_MOD_UP:
        in->k = 1;
        break;
    case GM_MOD_DOWN:
        in->k = 2;
        break;
    default:
        in->k = 3;
        break;
    }
    in->e = members;
    in->f = p->kind == GM_OPERAND_REG ? l->slot[p->index] : GM_NOWHERE;
}

static void vote(gm_lower *l)
{
    int ballot = has(l, GM_FIELD_OP, GM_MOD_BALLOT);
    const gm_ptx_operand *p = operand(l, 1);
    uint32_t a = p->kind == GM_OPERAND_REG ? l->slot[p->index] : gm_lower_source(l, p, 1), members = in_slot(l, 2, 4);
    gm_insn *in = with(gm_lower_named(l, "vote"), out_slot(l, 0, ballot ? 4 : 1), a, 0, 0);
    in->imm = p->kind == GM_OPERAND_REG && p->negated ? (int64_t)GM_FULL : 0;
    in->e = members;
    in->k = ballot ? 3 : has(l, GM_FIELD_OP, GM_MOD_ALL) ? 0 : has(l, GM_FIELD_OP, GM_MOD_ANY) ? 1 : 2;
}

static void match(gm_lower *l)
{
    uint32_t bytes = type_bytes(l->inst->type[0]);
    int all = has(l, GM_FIELD_OP, GM_MOD_ALL);
    uint32_t at = all ? 2 : 1, a = in_slot(l, at, bytes), members = in_slot(l, at + 1, 4);
    const gm_ptx_operand *p = operand(l, 1);
    gm_insn *in =
        with(gm_lower_named(l, "match_%s_%s", all ? "all" : "any", bits_text(bytes)), out_slot(l, 0, 4), a, 0, 0);
    in->e = members;
    in->f = all && p->kind == GM_OPERAND_REG ? l->slot[p->index] : GM_NOWHERE;
}

static void reduce_lanes(gm_lower *l)
{
    uint8_t mod = l->inst->mod[GM_FIELD_OP] ? l->inst->mod[GM_FIELD_OP] : l->inst->mod[GM_FIELD_BOOL];
    if (is_float(l->inst->type[0])) {
        gm_lower_named(l, "?");
        return;
    }
    uint32_t a = in_slot(l, 1, 4), members = in_slot(l, 2, 4);
    gm_insn *in = with(gm_lower_named(l, "redux_b32"), out_slot(l, 0, 4), a, 0, 0);
    in->e = members;
    in->k = mod == GM_MOD_ADD   ? GM_ATOM_ADD
            : mod == GM_MOD_MIN ? GM_ATOM_MIN
            : mod == GM_MOD_MAX ? GM_ATOM_MAX
            : mod == GM_MOD_AND ? GM_ATOM_AND
            : mod == GM_MOD_OR  ? GM_ATOM_OR
                                : GM_ATOM_XOR;
    in->n = l->inst->type[0] == GM_PTX_S32 ? GM_ATOM_S32 : GM_ATOM_BITS;
}

/* --- barriers -------------------------------------------------------------------------------------------------- */

static void barrier(gm_lower *l, gm_do what, uint32_t at, int aligned)
{
    const gm_ptx_operand *count = operand(l, at + 1);
    uint32_t id = in_slot(l, at, 4), threads = count->kind == GM_OPERAND_NONE ? GM_NOWHERE : in_slot(l, at + 1, 4);
    gm_insn *in = gm_lower_emit(l, what);
    in->a = id, in->b = threads, in->k = (uint8_t)aligned;
    if (what == GM_DO_bar_red) {
        const gm_ptx_operand *p = operand(l, at + 2);
        uint8_t mod = l->inst->mod[GM_FIELD_OP] ? l->inst->mod[GM_FIELD_OP] : l->inst->mod[GM_FIELD_BOOL];
        int popc = l->inst->type[0] == GM_PTX_U32;
        if (p->kind != GM_OPERAND_REG)
            gm_lower_refuse(l, "bar.red of a constant");
        else
            in->c = l->slot[p->index], in->imm = p->negated ? (int64_t)GM_FULL : 0;
        in->d = out_slot(l, 0, popc ? 4 : 1);
        in->n = popc ? 0 : mod == GM_MOD_AND ? 1 : 2;
    }
}

/* --- flow ------------------------------------------------------------------------------------------------------ */

static void branch(gm_lower *l)
{
    const gm_flow_block *block = &l->flow.blocks[l->block];
    gm_insn *in = gm_lower_emit(l, l->inst->guard == GM_PTX_NO_REG ? GM_DO_bra_uni : GM_DO_bra);
    in->x = block->target;
    in->e = block->meet;
}

static void branch_table(gm_lower *l)
{
    const gm_flow_block *block = &l->flow.blocks[l->block];
    const gm_ptx_table *table = &l->function->tables[operand(l, 1)->index];
    uint32_t index = in_slot(l, 0, 4);
    if (table->n > 255 || table->n == 0 || l->inst->guard != GM_PTX_NO_REG) {
        gm_lower_refuse(l, "brx.idx with a guard or more than 255 targets");
        return;
    }
    uint32_t targets[256];
    for (uint32_t k = 0; k < table->n; k++)
        targets[k] = l->flow.block_of[table->targets[k]];
    gm_insn *in = gm_lower_emit(l, GM_DO_brx);
    in->x = gm_lower_list(l, targets, table->n);
    in->n = (uint8_t)table->n;
    in->a = index;
    in->e = block->meet;
}

static void call(gm_lower *l)
{
    const gm_ptx_operand *results = operand(l, 0), *callee = operand(l, 1), *given = operand(l, 2);
    if (callee->kind != GM_OPERAND_FUNCTION) {
        gm_lower_refuse(l, "a call through a pointer");
        return;
    }
    const gm_ptx_function *f = &l->module->functions[callee->index];
    if (!f->has_body) {
        if (strcmp(f->name, "vprintf") == 0) {
            gm_lower_emit(l, GM_DO_nop); /* nothing is printed; its result stays 0 */
            return;
        }
        if (strcmp(f->name, "__assertfail") == 0) {
            gm_lower_emit(l, GM_DO_trap);
            return;
        }
        gm_lower_refuse(l, "a call of %s, which the text only declares", f->name);
        return;
    }
    uint32_t first = GM_NOWHERE, n[2] = {0, 0};
    for (int back = 0; back < 2; back++) {
        const gm_ptx_operand *list = back ? results : given;
        uint32_t count = list->kind == GM_OPERAND_VECTOR ? list->n : list->kind == GM_OPERAND_NONE ? 0 : 1;
        uint32_t wanted = back ? f->nresults : f->nparameters, from = back ? f->first_result : f->first_parameter;
        const int32_t *regs = back ? f->result_regs : f->parameter_regs;
        if (count != wanted || count > 255) {
            gm_lower_refuse(l, "a call of %s with %u %s, where it has %u", f->name, count,
                            back ? "results" : "arguments", wanted);
            return;
        }
        for (uint32_t k = 0; k < count; k++) {
            const gm_ptx_operand *one = list->kind == GM_OPERAND_VECTOR ? &list->elements[k] : list;
            const gm_ptx_variable *formal = &l->module->variables[from + k];
            if ((regs && regs[k] != GM_PTX_NO_REG) || one->kind != GM_OPERAND_VARIABLE) {
                gm_lower_refuse(l, "a call whose arguments are no .param variables");
                return;
            }
            const gm_ptx_variable *actual = &l->module->variables[one->index];
            if (actual->size != formal->size) {
                gm_lower_refuse(l, "a call of %s with an argument of %llu bytes, where it has %llu", f->name,
                                (unsigned long long)actual->size, (unsigned long long)formal->size);
                return;
            }
            /* The callee's slots are known when it has been decoded: until then, the variable's number. */
            uint32_t at = gm_lower_argument(
                l, (gm_argument){(uint32_t)l->all->address[one->index], from + k, (uint32_t)formal->size});
            first = first == GM_NOWHERE ? at : first;
            n[back]++;
        }
    }
    gm_insn *in = gm_lower_emit(l, GM_DO_call);
    in->x = l->all->function_of[callee->index];
    in->e = first == GM_NOWHERE ? 0 : first;
    in->n = (uint8_t)n[0], in->k = (uint8_t)n[1];
}

/* --- copies and matrices --------------------------------------------------------------------------------------- */

static void copy_async(gm_lower *l)
{
    const gm_ptx_operand *to = operand(l, 0), *from = operand(l, 1), *size = operand(l, 2), *length = operand(l, 3);
    uint32_t to_wide, from_wide, bytes = (uint32_t)size->bits;
    uint32_t target = base_slot(l, to, GM_SPACE_SHARED, &to_wide),
             origin = base_slot(l, from, GM_SPACE_GLOBAL, &from_wide);
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

static void matrices(gm_lower *l, int writes)
{
    const gm_ptx_operand *address = operand(l, writes ? 0 : 1), *data = operand(l, writes ? 1 : 0);
    uint32_t n = data->kind == GM_OPERAND_VECTOR ? data->n : 1, slots[4], wide;
    uint32_t base = base_slot(l, address, GM_SPACE_SHARED, &wide);
    for (uint32_t k = 0; k < n && k < 4; k++) {
        const gm_ptx_operand *one = data->kind == GM_OPERAND_VECTOR ? &data->elements[k] : data;
        slots[k] = writes ? gm_lower_source(l, one, 4) : gm_lower_destination(l, one, 4);
    }
    gm_insn *in = gm_lower_emit(l, writes ? GM_DO_stmatrix : GM_DO_ldmatrix);
    in->a = base, in->imm = address->offset, in->n = (uint8_t)n, in->k = l->inst->mod[GM_FIELD_TRANS] != 0;
    in->d = gm_lower_list(l, slots, n);
    in->f = wide | 4;
    in->x = gm_lower_site(l, writes ? GM_SITE_STMATRIX : GM_SITE_LDMATRIX, GM_SPACE_SHARED,
                          writes ? GM_ACCESS_STORE : GM_ACCESS_LOAD, how_of(l, writes, 0), 16);
}

/* --- all ------------------------------------------------------------------------------------------------------- */

void gm_lower_inst(gm_lower *l)
{
    const gm_ptx_inst *inst = l->inst;
    uint8_t type = inst->type[0];
    uint32_t bytes = type ? type_bytes(type) : 4;
    const char *bits = bits_text(bytes);
    gm_insn *in;
    switch (inst->op) {
    case GM_OP_ADD:
        add_or_sub(l, "add", GM_ADD);
        break;
    case GM_OP_SUB:
        add_or_sub(l, "sub", GM_SUB);
        break;
    case GM_OP_MUL:
        multiply(l);
        break;
    case GM_OP_MAD:
    case GM_OP_FMA:
        multiply_add(l);
        break;
    case GM_OP_MUL24:
        multiply_24(l, 0);
        break;
    case GM_OP_MAD24:
        multiply_24(l, 1);
        break;
    case GM_OP_SAD:
        plain(l, "sad", type_text(type), bytes, 3);
        break;
    case GM_OP_DIV:
        divide(l, "div");
        break;
    case GM_OP_REM:
        divide(l, "rem");
        break;
    case GM_OP_ABS:
        sign(l, "abs");
        break;
    case GM_OP_NEG:
        sign(l, "neg");
        break;
    case GM_OP_MIN:
        least_or_most(l, "min", GM_MIN);
        break;
    case GM_OP_MAX:
        least_or_most(l, "max", GM_MAX);
        break;
    case GM_OP_COPYSIGN:
        plain(l, "copysign", type_text(type), bytes, 2);
        break;
    case GM_OP_RCP:
        function_of_one(l, "rcp", GM_RCP);
        break;
    case GM_OP_SQRT:
        function_of_one(l, "sqrt", GM_SQRT);
        break;
    case GM_OP_RSQRT:
        function_of_one(l, "rsqrt", GM_ADD);
        break;
    case GM_OP_SIN:
        function_of_one(l, "sin", GM_ADD);
        break;
    case GM_OP_COS:
        function_of_one(l, "cos", GM_ADD);
        break;
    case GM_OP_LG2:
        function_of_one(l, "lg2", GM_ADD);
        break;
    case GM_OP_EX2:
        function_of_one(l, "ex2", GM_ADD);
        break;
    case GM_OP_TANH:
        function_of_one(l, "tanh", GM_ADD);
        break;
    case GM_OP_TESTP: {
        uint32_t a = in_slot(l, 1, bytes);
        with(gm_lower_named(l, "testp_%s_%s", gm_ptx_mod_text((gm_ptx_mod)inst->mod[GM_FIELD_OP]), type_text(type)),
             out_slot(l, 0, 1), a, a, 0);
        break;
    }
    case GM_OP_ADD_CC:
        carries(l, "add", 0, 1, 0);
        break;
    case GM_OP_ADDC:
        carries(l, "add", 1, inst->mod[GM_FIELD_CC] != 0, 0);
        break;
    case GM_OP_SUB_CC:
        carries(l, "sub", 0, 1, 0);
        break;
    case GM_OP_SUBC:
        carries(l, "sub", 1, inst->mod[GM_FIELD_CC] != 0, 0);
        break;
    case GM_OP_MAD_CC:
        carries(l, "add", 0, 1, 1);
        break;
    case GM_OP_MADC:
        carries(l, "add", 1, inst->mod[GM_FIELD_CC] != 0, 1);
        break;
    case GM_OP_AND:
        plain(l, "and", bits, bytes, 2);
        break;
    case GM_OP_OR:
        plain(l, "or", bits, bytes, 2);
        break;
    case GM_OP_XOR:
        plain(l, "xor", bits, bytes, 2);
        break;
    case GM_OP_NOT:
        plain(l, "not", bits, bytes, 1);
        break;
    case GM_OP_CNOT:
        plain(l, "cnot", bits, bytes, 1);
        break;
    case GM_OP_LOP3: {
        int tests = inst->mod[GM_FIELD_BOOL] != 0;
        uint32_t at = tests ? 2 : 1, a = in_slot(l, at, 4), b = in_slot(l, at + 1, 4), c = in_slot(l, at + 2, 4);
        uint32_t d = tests && operand(l, 0)->kind != GM_OPERAND_REG ? gm_lower_temp(l, 4) : out_slot(l, 0, 4);
        with(gm_lower_named(l, "lop3_b32"), d, a, b, c)->k = (uint8_t)operand(l, at + 3)->bits;
        if (tests) {
            uint32_t t = gm_lower_temp(l, 1);
            with(gm_lower_named(l, "setp_ne_b32"), t, d, bits_constant(l, 4, 0), 0);
            combine(l, out_slot(l, 1, 1), t, operand(l, 6));
        }
        break;
    }
    case GM_OP_SHL: {
        uint32_t a = in_slot(l, 1, bytes), b = in_slot(l, 2, 4);
        with(gm_lower_named(l, "shl_%s", bits), out_slot(l, 0, bytes), a, b, 0);
        break;
    }
    case GM_OP_SHR: {
        uint32_t a = in_slot(l, 1, bytes), b = in_slot(l, 2, 4);
        with(gm_lower_named(l, "shr_%c%u", gm_ptx_types[type].kind == GM_KIND_SINT ? 's' : 'u', bytes * 8),
             out_slot(l, 0, bytes), a, b, 0);
        break;
    }
    case GM_OP_SHF_L:
    case GM_OP_SHF_R: {
        uint32_t a = in_slot(l, 1, 4), b = in_slot(l, 2, 4), c = in_slot(l, 3, 4);
        with(gm_lower_named(l, "shf_%c_%s_b32", inst->op == GM_OP_SHF_L ? 'l' : 'r',
                            has(l, GM_FIELD_MODE, GM_MOD_WRAP) ? "wrap" : "clamp"),
             out_slot(l, 0, 4), a, b, c);
        break;
    }
    case GM_OP_PRMT: {
        uint32_t a = in_slot(l, 1, 4), b = in_slot(l, 2, 4), c = in_slot(l, 3, 4);
        uint8_t mode = inst->mod[GM_FIELD_MODE];
        in = with(gm_lower_named(l, mode ? "prmt_mode_b32" : "prmt_b32"), out_slot(l, 0, 4), a, b, c);
        in->k = mode ? (uint8_t)(mode - GM_MOD_F4E + 1) : 0;
        break;
    }
    case GM_OP_POPC:
    case GM_OP_CLZ: {
        uint32_t a = in_slot(l, 1, bytes);
        with(gm_lower_named(l, "%s_%s", inst->op == GM_OP_POPC ? "popc" : "clz", bits), out_slot(l, 0, 4), a, 0, 0);
        break;
    }
    case GM_OP_BREV:
        plain(l, "brev", bits, bytes, 1);
        break;
    case GM_OP_BFIND: {
        uint32_t a = in_slot(l, 1, bytes);
        with(gm_lower_named(l, "bfind_%s", type_text(type)), out_slot(l, 0, 4), a, 0, 0)->k =
            inst->mod[GM_FIELD_SHIFTAMT] != 0;
        break;
    }
    case GM_OP_BFE: {
        uint32_t a = in_slot(l, 1, bytes), b = in_slot(l, 2, 4), c = in_slot(l, 3, 4);
        with(gm_lower_named(l, "bfe_%s", type_text(type)), out_slot(l, 0, bytes), a, b, c);
        break;
    }
    case GM_OP_BFI: {
        uint32_t a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes), c = in_slot(l, 3, 4), n = in_slot(l, 4, 4);
        with(gm_lower_named(l, "bfi_%s", bits), out_slot(l, 0, bytes), a, b, c)->e = n;
        break;
    }
    case GM_OP_BMSK:
    case GM_OP_SZEXT: {
        uint32_t a = in_slot(l, 1, 4), b = in_slot(l, 2, 4);
        with(gm_lower_named(l, "%s_%s_%s", inst->op == GM_OP_BMSK ? "bmsk" : "szext",
                            has(l, GM_FIELD_MODE, GM_MOD_WRAP) ? "wrap" : "clamp", type_text(type)),
             out_slot(l, 0, 4), a, b, 0);
        break;
    }
    case GM_OP_FNS:
        plain(l, "fns", "b32", 4, 3);
        break;
    case GM_OP_DP4A:
    case GM_OP_DP2A: {
        uint32_t a = in_slot(l, 1, 4), b = in_slot(l, 2, 4), c = in_slot(l, 3, 4);
        in = with(gm_lower_named(l, "%s_%s_%s", inst->op == GM_OP_DP4A ? "dp4a" : "dp2a", type_text(type),
                                 type_text(inst->type[1])),
                  out_slot(l, 0, 4), a, b, c);
        in->k = has(l, GM_FIELD_PART, GM_MOD_HI);
        break;
    }
    case GM_OP_SET:
        set_value(l);
        break;
    case GM_OP_SETP:
        set_predicate(l);
        break;
    case GM_OP_SELP:
        select_predicate(l);
        break;
    case GM_OP_SLCT:
        select_sign(l);
        break;
    case GM_OP_MOV:
        move(l);
        break;
    case GM_OP_CVT:
        convert(l);
        break;
    case GM_OP_CVTA:
        convert_address(l);
        break;
    case GM_OP_ISSPACEP: {
        uint32_t a = in_slot(l, 1, 8);
        gm_space space = mod_space(inst->mod[GM_FIELD_SPACE]);
        in = with(gm_lower_named(l, "isspacep_b64"), out_slot(l, 0, 1), a, a, 0);
        in->n = (uint8_t)(space == GM_SPACE_SHARED_CLUSTER ? GM_SPACE_SHARED : space);
        break;
    }
    case GM_OP_MAPA:
    case GM_OP_GETCTARANK: {
        uint32_t a = in_slot(l, 1, bytes), b = inst->op == GM_OP_MAPA ? in_slot(l, 2, 4) : 0;
        in = with(gm_lower_emit(l, inst->op == GM_OP_MAPA ? GM_DO_mapa : GM_DO_getctarank),
                  out_slot(l, 0, inst->op == GM_OP_MAPA ? bytes : 4), a, b, 0);
        in->n = (uint8_t)bytes;
        break;
    }
    case GM_OP_LD:
    case GM_OP_LDU:
        load_or_store(l, 0);
        break;
    case GM_OP_ST:
        load_or_store(l, 1);
        break;
    case GM_OP_ATOM:
        atomics(l, 1);
        break;
    case GM_OP_RED:
        atomics(l, 0);
        break;
    case GM_OP_SHFL:
        shuffle(l);
        break;
    case GM_OP_VOTE:
        vote(l);
        break;
    case GM_OP_MATCH:
        match(l);
        break;
    case GM_OP_REDUX:
        reduce_lanes(l);
        break;
    case GM_OP_ACTIVEMASK:
        gm_lower_emit(l, GM_DO_activemask)->d = out_slot(l, 0, 4);
        break;
    case GM_OP_ELECT: {
        uint32_t members = in_slot(l, 2, 4);
        in = gm_lower_emit(l, GM_DO_elect);
        in->e = members, in->d = out_slot(l, 0, 4), in->f = out_slot(l, 1, 1);
        break;
    }
    case GM_OP_BAR_WARP_SYNC: {
        uint32_t members = in_slot(l, 0, 4);
        gm_lower_emit(l, GM_DO_warpsync)->e = members;
        break;
    }
    case GM_OP_BAR_SYNC:
        barrier(l, GM_DO_bar_sync, 0, 1);
        break;
    case GM_OP_BAR_ARRIVE:
        barrier(l, GM_DO_bar_arrive, 0, 1);
        break;
    case GM_OP_BAR_RED:
        barrier(l, GM_DO_bar_red, 1, 1);
        break;
    case GM_OP_BARRIER_SYNC:
        barrier(l, GM_DO_bar_sync, 0, inst->mod[GM_FIELD_ALIGNED] != 0);
        break;
    case GM_OP_BARRIER_ARRIVE:
        barrier(l, GM_DO_bar_arrive, 0, inst->mod[GM_FIELD_ALIGNED] != 0);
        break;
    case GM_OP_BARRIER_RED:
        barrier(l, GM_DO_bar_red, 1, inst->mod[GM_FIELD_ALIGNED] != 0);
        break;
    case GM_OP_BARRIER_CLUSTER_ARRIVE:
        gm_lower_emit(l, GM_DO_cluster_arrive);
        break;
    case GM_OP_BARRIER_CLUSTER_WAIT:
        gm_lower_emit(l, GM_DO_cluster_wait);
        break;
    case GM_OP_MEMBAR:
    case GM_OP_FENCE:
        gm_lower_emit(l, GM_DO_fence);
        break;
    case GM_OP_BRA:
        branch(l);
        break;
    case GM_OP_BRX:
        branch_table(l);
        break;
    case GM_OP_CALL:
        call(l);
        break;
    case GM_OP_RET:
        gm_lower_emit(l, GM_DO_ret);
        break;
    case GM_OP_EXIT:
        gm_lower_emit(l, GM_DO_exit);
        break;
    case GM_OP_TRAP:
        gm_lower_emit(l, GM_DO_trap);
        break;
    case GM_OP_NANOSLEEP:
        gm_lower_emit(l, GM_DO_nanosleep);
        break;
    case GM_OP_CP_ASYNC:
        copy_async(l);
        break;
    case GM_OP_CP_ASYNC_COMMIT:
        gm_lower_emit(l, GM_DO_cp_async_commit);
        break;
    case GM_OP_CP_ASYNC_WAIT:
        in = gm_lower_emit(l, GM_DO_cp_async_wait);
        in->imm = (int64_t)operand(l, 0)->bits;
        break;
    case GM_OP_CP_ASYNC_WAIT_ALL:
        gm_lower_emit(l, GM_DO_cp_async_wait)->n = 1;
        break;
    case GM_OP_LDMATRIX:
        matrices(l, 0);
        break;
    case GM_OP_STMATRIX:
        matrices(l, 1);
        break;
    case GM_OP_MOVMATRIX: {
        uint32_t a = in_slot(l, 1, 4);
        with(gm_lower_emit(l, GM_DO_movmatrix), out_slot(l, 0, 4), a, 0, 0);
        break;
    }
    /* What changes nothing that can be seen here. */
    case GM_OP_PREFETCH:
    case GM_OP_PREFETCHU:
    case GM_OP_APPLYPRIORITY:
    case GM_OP_DISCARD:
    case GM_OP_BRKPT:
    case GM_OP_PMEVENT:
    case GM_OP_SETMAXNREG:
    case GM_OP_GRIDDEP_LAUNCH:
    case GM_OP_GRIDDEP_WAIT:
    case GM_OP_FENCE_MBARRIER_INIT:
    case GM_OP_FENCE_SYNC_RESTRICT:
    case GM_OP_FENCE_PROXY:
    case GM_OP_FENCE_PROXY_TENSORMAP:
    case GM_OP_CP_ASYNC_BULK_PREFETCH:
    case GM_OP_CP_ASYNC_BULK_PREFETCH_TENSOR:
        break;
    case GM_OP_CREATEPOLICY_FRACTIONAL:
    case GM_OP_CREATEPOLICY_RANGE:
    case GM_OP_CREATEPOLICY_CVT:
        with(gm_lower_named(l, "mov_b64"), out_slot(l, 0, 8), bits_constant(l, 8, 0), 0, 0);
        break;
    default:
        gm_lower_async(l);
        break;
    }
}

uint32_t gm_lower_alias(gm_lower *l, const gm_ptx_inst *inst, uint32_t k)
{
    const gm_ptx_operand *d = &inst->operands[0], *s = inst->noperands > 1 ? &inst->operands[1] : NULL;
    const gm_ptx_operand *one = d->kind == GM_OPERAND_VECTOR ? &d->elements[k] : d;
    uint32_t bytes = gm_register_bytes(&l->function->regs[one->index]);
    if (bytes == 1 || !s)
        return 0;
    if (inst->op == GM_OP_LD && inst->space == GM_SPACE_PARAM && s->base == GM_OPERAND_VARIABLE &&
        is_entry_parameter(l, s->index) && bytes * 8 == gm_ptx_types[inst->type[0]].bits && bytes <= 8) {
        uint64_t at = l->module->variables[s->index].offset + (uint64_t)s->offset + (uint64_t)k * bytes;
        if (at > l->function->parameter_bytes || bytes > l->function->parameter_bytes - at)
            return 0;
        return gm_lower_constant(l, GM_FILL_PARAMETER, bytes, at, 0);
    }
    int copies = inst->op == GM_OP_MOV && d->kind != GM_OPERAND_VECTOR && s->kind != GM_OPERAND_VECTOR;
    int address = inst->op == GM_OP_CVTA && window_of(mod_space(inst->mod[GM_FIELD_SPACE])) == 0;
    if (!copies && !address)
        return 0;
    if (s->kind == GM_OPERAND_REG)
        return l->aliased[s->index] && gm_register_bytes(&l->function->regs[s->index]) == bytes ? l->slot[s->index] : 0;
    if (s->kind == GM_OPERAND_IMM)
        return bits_constant(l, bytes, s->bits);
    if (s->kind == GM_OPERAND_VARIABLE && !is_argument(l, s->index) &&
        !(l->module->variables[s->index].space == GM_SPACE_LOCAL && l->number))
        return bits_constant(l, bytes, variable_address(l, s->index) + s->bits);
    if (s->kind == GM_OPERAND_SPECIAL && type_bytes((uint8_t)gm_ptx_special_type((gm_ptx_special)s->index)) == bytes &&
        !(s->index >= GM_SPECIAL_CLOCK && s->index <= GM_SPECIAL_GLOBALTIMER_HI))
        return gm_lower_constant(l, GM_FILL_SPECIAL, bytes, special_value(s), 0);
    return 0;
}
