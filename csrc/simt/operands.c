/* What operands mean: names are looked up, types compared, numbers made the bits of their type. */
#include "forms.h"
#include <stdlib.h>
#include <string.h>

typedef struct gm_place {
    gm_reader *r;
    const gm_form *form;
    gm_ptx_inst *inst;
    const gm_spec *spec;
} gm_place;

static const gm_ptx_reg *reg_of(const gm_reader *r, uint32_t index)
{
    return (const gm_ptx_reg *)r->regs.items + index;
}

static const gm_ptx_variable *variable_of(const gm_reader *r, uint32_t index)
{
    return (const gm_ptx_variable *)r->variables.items + index;
}

static int is_integer(int kind)
{
    return kind == GM_KIND_UINT || kind == GM_KIND_SINT;
}

/* May a register of type `have` stand for `need`? `wider`: as ld, st and cvt see it. */
static int agrees(gm_ptx_type have, gm_ptx_type need, int wider)
{
    const gm_ptx_type_info *h = &gm_ptx_types[have], *n = &gm_ptx_types[need];
    if (h->kind == GM_KIND_PRED || n->kind == GM_KIND_PRED)
        return h->kind == n->kind;
    if (wider && n->kind != GM_KIND_FLOAT)
        return h->bits >= n->bits;
    return h->bits == n->bits && (h->kind == GM_KIND_BITS || n->kind == GM_KIND_BITS || h->kind == n->kind ||
                                  (is_integer(h->kind) && is_integer(n->kind)));
}

static int wrong_type(gm_place *p, const gm_raw *raw, gm_ptx_type have, gm_ptx_type need)
{
    return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "a .%s where %s%s%s needs a .%s", gm_ptx_types[have].text,
                        gm_ptx_op_text((gm_ptx_op)p->inst->op), p->inst->type[0] ? "." : "",
                        gm_ptx_types[p->inst->type[0]].text, gm_ptx_types[need].text);
}

static gm_ptx_type widened(gm_ptx_type type)
{
    switch (type) {
    case GM_PTX_U16:
        return GM_PTX_U32;
    case GM_PTX_S16:
        return GM_PTX_S32;
    case GM_PTX_U32:
        return GM_PTX_U64;
    default:
        return GM_PTX_S64;
    }
}

static gm_ptx_type type_of(const gm_place *p)
{
    if (p->spec->type)
        return p->spec->type;
    if (p->spec->role == 'h')
        return GM_PTX_B64;
    if (p->spec->role == 'c')
        return GM_PTX_U16;
    gm_ptx_type type = p->inst->type[p->spec->number];
    return p->spec->wide ? widened(type) : type;
}

static int number(gm_place *p, const gm_raw *raw, gm_ptx_type type, gm_ptx_operand *to)
{
    to->kind = GM_OPERAND_IMM;
    if (!gm_number_as(&raw->number, type, &to->bits))
        return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "this number cannot be a .%s", gm_ptx_types[type].text);
    return 1;
}

/* A name where a value is read or written. */
static int named(gm_place *p, const gm_raw *raw, gm_ptx_type type, gm_ptx_operand *to)
{
    gm_reader *r = p->r;
    char role = p->spec->role;
    gm_binding b;

    if (raw->name->special) {
        gm_ptx_special special = (gm_ptx_special)(raw->name->special - 1);
        if (role != 'a')
            return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "%s is read by mov alone", raw->name->text);
        to->kind = GM_OPERAND_SPECIAL;
        to->index = special;
        if (special == GM_SPECIAL_ENVREG)
            to->bits = (uint64_t)strtol(raw->name->text + strlen("%envreg"), NULL, 10);
        if (raw->number.bits || raw->negated)
            return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "nothing may be added to %s", raw->name->text);
        if (!agrees(gm_ptx_special_type(special), type, type == GM_PTX_U16))
            return wrong_type(p, raw, gm_ptx_special_type(special), type);
        return 1;
    }
    if (!gm_read_lookup(r, raw->name, &b))
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "%.200s is not declared", raw->name->text);
    if (b.kind == BOUND_REG) {
        const gm_ptx_reg *reg = reg_of(r, b.index);
        to->kind = GM_OPERAND_REG;
        to->index = b.index;
        to->negated = raw->negated;
        if (raw->number.bits)
            return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "a register plus a number is an address: it needs [ ]");
        if (raw->component ? raw->component > reg->vector : reg->vector > 1)
            return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "%.200s is a vector of %d", raw->name->text,
                                reg->vector);
        if (raw->component)
            to->index += raw->component - 1u;
        if (!agrees(reg->type, type, role == 'D' || role == 'S'))
            return wrong_type(p, raw, reg->type, type);
        if (raw->negated && !p->spec->negatable)
            return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "! has no place here");
        return 1;
    }
    if (role != 'a' && role != 'A' && role != 'R')
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "a register is needed here");
    if (raw->negated || raw->component)
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "no register");
    to->index = b.index;
    to->bits = raw->number.bits;
    if (b.kind == BOUND_VARIABLE)
        to->kind = GM_OPERAND_VARIABLE;
    else if (b.kind == BOUND_FUNCTION && role == 'a')
        to->kind = GM_OPERAND_FUNCTION;
    else
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "%.200s is no value", raw->name->text);
    if (role == 'a' && (gm_ptx_types[type].kind == GM_KIND_FLOAT || gm_ptx_types[type].bits < 32))
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "an address is no .%s", gm_ptx_types[type].text);
    return 1;
}

static int value(gm_place *p, const gm_raw *raw, gm_ptx_type type, gm_ptx_operand *to)
{
    char role = p->spec->role;
    to->type = (uint8_t)type;
    switch (raw->kind) {
    case RAW_SINK:
        if (role != 'd' && role != 'D' && role != '_')
            return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "_ is for results that nobody wants");
        to->kind = GM_OPERAND_SINK;
        return 1;
    case RAW_NUMBER:
        if (role == '_' || role == 'd' || role == 'D' || role == 'r' || role == 'R')
            return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "a register is needed here");
        return number(p, raw, type, to);
    case RAW_NAME:
        if (role == '_')
            return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "only the sink _ may stand here");
        if (role == 'i')
            return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "a number is needed here");
        return named(p, raw, type, to);
    default:
        return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "a register or a number is needed here");
    }
}

/* { } of `n` elements of one type. */
static int vector(gm_place *p, const gm_raw *raw, gm_ptx_type type, gm_ptx_operand *to)
{
    gm_ptx_operand *elements = gm_read_take(p->r, raw->n * sizeof *elements);
    if (!elements)
        return 0;
    *to = (gm_ptx_operand){.kind = GM_OPERAND_VECTOR, .type = (uint8_t)type, .n = raw->n, .elements = elements};
    for (uint32_t i = 0; i < raw->n; i++)
        if (!value(p, (const gm_raw *)p->r->scratch.items + raw->first + i, type, &elements[i]))
            return 0;
    return 1;
}

/* mov packs a few values into one, or takes one apart: {a, b} of halves of the type. */
static int packed(gm_place *p, const gm_raw *raw, gm_ptx_operand *to)
{
    static const uint8_t of_bits[] = {8, 16, 32, 64}, types[] = {GM_PTX_B8, GM_PTX_B16, GM_PTX_B32, GM_PTX_B64};
    unsigned whole = gm_ptx_types[p->inst->type[0]].bits;
    for (size_t i = 0; i < sizeof types; i++)
        if ((raw->n == 2 || raw->n == 4) && of_bits[i] * raw->n == whole &&
            gm_ptx_types[p->inst->type[0]].kind == GM_KIND_BITS)
            return vector(p, raw, types[i], to);
    return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "a .%s is not made of %u parts",
                        gm_ptx_types[p->inst->type[0]].text, raw->n);
}

/* What a .vec makes a vector; without one it is a single value, which may stand in braces all the same. */
static int vector_or_value(gm_place *p, const gm_raw *raw, gm_ptx_operand *to)
{
    uint32_t count = p->spec->count == COUNT_VEC ? p->inst->vector : p->spec->count;
    gm_ptx_type type = type_of(p);
    if (raw->kind == RAW_NAME && p->inst->vector > 1 && p->spec->count == COUNT_VEC) {
        gm_binding b; /* a vector register stands for its parts */
        if (gm_read_lookup(p->r, raw->name, &b) && b.kind == BOUND_REG && reg_of(p->r, b.index)->vector == count) {
            gm_ptx_operand *elements = gm_read_take(p->r, count * sizeof *elements);
            if (!elements)
                return 0;
            if (!agrees(reg_of(p->r, b.index)->type, type, p->spec->role == 'D' || p->spec->role == 'S'))
                return wrong_type(p, raw, reg_of(p->r, b.index)->type, type);
            for (uint32_t i = 0; i < count; i++)
                elements[i] = (gm_ptx_operand){.kind = GM_OPERAND_REG, .type = (uint8_t)type, .index = b.index + i};
            *to = (gm_ptx_operand){.kind = GM_OPERAND_VECTOR, .type = (uint8_t)type, .n = count, .elements = elements};
            return 1;
        }
    }
    if (count == 1 && p->spec->count == COUNT_VEC) {
        int braced = raw->kind == RAW_VECTOR && raw->n == 1;
        return value(p, braced ? (const gm_raw *)p->r->scratch.items + raw->first : raw, type, to);
    }
    if (raw->kind != RAW_VECTOR)
        return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "a vector of %u is needed here", count);
    if (raw->n != count)
        return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "a vector of %u is needed here, not of %u", count,
                            raw->n);
    return vector(p, raw, type, to);
}

/* The space of a variable that an instruction names must be the instruction's. */
static int space_agrees(gm_place *p, const gm_raw *raw, const gm_ptx_variable *variable, uint8_t *space)
{
    int same = *space == variable->space || (*space == GM_SPACE_SHARED_CLUSTER && variable->space == GM_SPACE_SHARED);
    if (*space == GM_SPACE_GENERIC && p->spec->role != 't') {
        *space = variable->space; /* as ptxas does: the name says where it is */
        return 1;
    }
    return same || p->spec->role == 't' ||
           gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "%.200s is in .%s", variable->name,
                        gm_space_text((gm_space)variable->space));
}

static int address(gm_place *p, const gm_raw *raw, gm_ptx_operand *to)
{
    gm_reader *r = p->r;
    gm_binding b;
    uint8_t other = GM_SPACE_SHARED;
    uint8_t *space = p->spec->role == 'n' ? &p->inst->space2 : p->spec->role == 'k' ? &other : &p->inst->space;

    *to = (gm_ptx_operand){.kind = GM_OPERAND_ADDRESS, .type = p->inst->type[0], .base = GM_OPERAND_IMM};
    memcpy(&to->offset, &raw->number.bits, sizeof to->offset);
    if (raw->has_coordinates != (p->spec->role == 't'))
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at,
                            raw->has_coordinates ? "coordinates have no place here"
                                                 : "[map, {coordinates}] is needed here");
    if (raw->has_coordinates) {
        gm_ptx_operand coordinates;
        gm_spec spec = {.role = 's', .type = GM_PTX_S32};
        gm_place place = {r, p->form, p->inst, &spec};
        if (!vector(&place, raw, GM_PTX_S32, &coordinates))
            return 0;
        to->coordinates = coordinates.elements;
        to->n = coordinates.n;
    }
    if (!raw->name)
        return 1;
    if (!gm_read_lookup(r, raw->name, &b))
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "%.200s is not declared", raw->name->text);
    to->index = b.index;
    if (b.kind == BOUND_VARIABLE) {
        to->base = GM_OPERAND_VARIABLE;
        return space_agrees(p, raw, variable_of(r, b.index), space);
    }
    to->base = GM_OPERAND_REG;
    if (b.kind != BOUND_REG)
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "%.200s is no address", raw->name->text);
    const gm_ptx_reg *reg = reg_of(r, b.index);
    if (reg->vector > 1 || gm_ptx_types[reg->type].kind == GM_KIND_FLOAT ||
        (gm_ptx_types[reg->type].bits != 32 && gm_ptx_types[reg->type].bits != 64))
        return gm_read_fail(r, GM_PTX_MALFORMED, &raw->at, "an address is in a register of 32 or 64 bits, not in a .%s",
                            gm_ptx_types[reg->type].text);
    return 1;
}

static int label(gm_place *p, const gm_raw *raw, gm_ptx_operand *to)
{
    gm_label_ref *ref = gm_read_push(p->r, &p->r->refs, sizeof *ref);
    if (!ref)
        return 0;
    to->kind = GM_OPERAND_LABEL;
    *ref = (gm_label_ref){raw->name, &to->index, raw->at};
    return 1;
}

static int table(gm_place *p, const gm_raw *raw, gm_ptx_operand *to)
{
    gm_binding b;
    if (!gm_read_lookup(p->r, raw->name, &b) || b.kind != BOUND_TABLE)
        return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "%.200s is no table of targets", raw->name->text);
    to->kind = GM_OPERAND_TABLE;
    to->index = b.index;
    return 1;
}

static int callee(gm_place *p, const gm_raw *raw, gm_ptx_operand *to)
{
    gm_binding b;
    if (!gm_read_lookup(p->r, raw->name, &b))
        return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "%.200s is not declared", raw->name->text);
    to->index = b.index;
    if (b.kind == BOUND_FUNCTION) {
        to->kind = GM_OPERAND_FUNCTION;
        return 1;
    }
    if (b.kind != BOUND_REG || !agrees(reg_of(p->r, b.index)->type, GM_PTX_B64, 0))
        return gm_read_fail(p->r, GM_PTX_MALFORMED, &raw->at, "a function or a .b64 register is needed here");
    to->kind = GM_OPERAND_REG;
    to->type = GM_PTX_B64;
    return 1;
}

/* (a, b): registers, numbers and .param variables; call.c compares them with what the callee takes. */
static int arguments(gm_place *p, const gm_raw *raw, gm_ptx_operand *to)
{
    gm_ptx_operand *elements = gm_read_take(p->r, (raw->n + 1) * sizeof *elements);
    if (!elements)
        return 0;
    *to = (gm_ptx_operand){.kind = GM_OPERAND_VECTOR, .n = raw->n, .elements = elements};
    for (uint32_t i = 0; i < raw->n; i++) {
        const gm_raw *one = (const gm_raw *)p->r->scratch.items + raw->first + i;
        gm_binding b;
        gm_ptx_type type = GM_PTX_B64; /* a number gets the type of the parameter later */
        if (one->kind == RAW_NUMBER && one->number.kind == NUMBER_SINGLE)
            type = GM_PTX_B32;
        if (one->kind == RAW_NAME && gm_read_lookup(p->r, one->name, &b) && b.kind == BOUND_REG)
            type = reg_of(p->r, b.index)->type;
        if (!value(p, one, type, &elements[i]))
            return 0;
        if (elements[i].kind == GM_OPERAND_VARIABLE) {
            const gm_ptx_variable *variable = variable_of(p->r, elements[i].index);
            elements[i].type = variable->type;
            if (variable->space != GM_SPACE_PARAM || elements[i].bits)
                return gm_read_fail(p->r, GM_PTX_MALFORMED, &one->at, "a register or a .param variable is needed here");
        }
    }
    return 1;
}

static int resolve(gm_place *p, const gm_raw *raw, gm_ptx_operand *to)
{
    switch (p->spec->role) {
    case 'm':
    case 'n':
    case 'k':
    case 't':
        return address(p, raw, to);
    case 'l':
        return label(p, raw, to);
    case 'b':
        return table(p, raw, to);
    case 'f':
        return callee(p, raw, to);
    case 'R':
    case 'A':
        return arguments(p, raw, to);
    default:
        if (raw->kind == RAW_VECTOR && p->inst->op == GM_OP_MOV && p->inst->vector == 1)
            return packed(p, raw, to);
        return p->spec->count ? vector_or_value(p, raw, to) : value(p, raw, type_of(p), to);
    }
}

/* raws[i] stands for the form's i-th operand, or is NULL. */
int gm_read_resolve(gm_reader *r, const gm_form *form, const gm_raw *const *raws, gm_ptx_inst *inst)
{
    gm_ptx_operand *operands = gm_read_take(r, (form->nspecs + 1u) * sizeof *operands);
    if (!operands)
        return 0;
    inst->operands = operands;
    inst->noperands = form->nspecs;
    for (uint32_t i = 0; i < form->nspecs; i++) {
        gm_place place = {r, form, inst, &form->specs[i]};
        if (raws[i] && !resolve(&place, raws[i], &operands[i]))
            return 0;
    }
    return 1;
}
