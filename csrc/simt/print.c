/* PTX as text again: one instruction for reports, a whole module to compare. */
#include "forms.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Text that may be longer than its room: `used` counts on. */
typedef struct gm_out {
    char *to;
    size_t size, used;
    const gm_ptx *module;
    const gm_ptx_function *function;
} gm_out;

static void put(gm_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(gm_out *out, const char *format, ...)
{
    va_list given;
    va_start(given, format);
    size_t room = out->used < out->size ? out->size - out->used : 0;
    int more = vsnprintf(room ? out->to + out->used : NULL, room, format, given);
    va_end(given);
    out->used += more > 0 ? (size_t)more : 0;
}

static void put_reg(gm_out *out, uint32_t index)
{
    const gm_ptx_reg *regs = out->function->regs;
    uint32_t first = index;
    /* Parts of a vector register stand behind its first. */
    while (first > 0 && regs[first].number < 0 && index - first < 3 && regs[first].vector == 1 &&
           regs[first - 1].number < 0 && regs[first - 1].name == regs[first].name)
        first--;
    put(out, "%s", regs[index].name);
    if (regs[index].number >= 0)
        put(out, "%d", (int)regs[index].number);
    else if (regs[first].vector > 1 && index - first < regs[first].vector)
        put(out, ".%c", "xyzw"[index - first]);
}

static void put_plus(gm_out *out, int64_t offset)
{
    if (offset)
        put(out, "%s%lld", offset < 0 ? "" : "+", (long long)offset);
}

static void put_number(gm_out *out, const gm_ptx_operand *o)
{
    const gm_ptx_type_info *type = &gm_ptx_types[o->type];
    if (o->type == GM_PTX_F32)
        put(out, "0f%08llX", (unsigned long long)o->bits);
    else if (o->type == GM_PTX_F64)
        put(out, "0d%016llX", (unsigned long long)o->bits);
    else if (type->kind == GM_KIND_SINT) {
        uint64_t sign = UINT64_C(1) << (type->bits - 1u);
        put(out, "%lld", (long long)(int64_t)((o->bits ^ sign) - sign));
    } else {
        put(out, "%llu", (unsigned long long)o->bits);
    }
}

static void put_operand(gm_out *out, const gm_ptx_operand *o, char open)
{
    switch ((gm_ptx_operand_kind)o->kind) {
    case GM_OPERAND_NONE:
        return;
    case GM_OPERAND_REG:
        put(out, "%s", o->negated ? "!" : "");
        put_reg(out, o->index);
        return;
    case GM_OPERAND_IMM:
        put_number(out, o);
        return;
    case GM_OPERAND_SPECIAL:
        put(out, "%s", gm_ptx_special_text((gm_ptx_special)o->index));
        if (o->index == GM_SPECIAL_ENVREG)
            put(out, "%llu", (unsigned long long)o->bits);
        return;
    case GM_OPERAND_VARIABLE:
        put(out, "%s", out->module->variables[o->index].name);
        put_plus(out, o->offset);
        return;
    case GM_OPERAND_FUNCTION:
        put(out, "%s", out->module->functions[o->index].name);
        return;
    case GM_OPERAND_ADDRESS:
        put(out, "[");
        if (o->base == GM_OPERAND_REG)
            put_reg(out, o->index);
        else if (o->base == GM_OPERAND_VARIABLE)
            put(out, "%s", out->module->variables[o->index].name);
        else
            put(out, "%llu", (unsigned long long)o->offset);
        if (o->base != GM_OPERAND_IMM)
            put_plus(out, o->offset);
        for (uint32_t i = 0; o->coordinates && i < o->n; i++) {
            put(out, "%s", i ? ", " : ", {");
            put_operand(out, &o->coordinates[i], '{');
        }
        put(out, "%s]", o->coordinates ? "}" : "");
        return;
    case GM_OPERAND_VECTOR:
        put(out, "%c", open);
        for (uint32_t i = 0; i < o->n; i++) {
            put(out, "%s", i ? ", " : "");
            put_operand(out, &o->elements[i], open);
        }
        put(out, "%c", open == '(' ? ')' : '}');
        return;
    case GM_OPERAND_LABEL:
        put(out, "$L%u", o->index);
        return;
    case GM_OPERAND_TABLE:
        put(out, "%s", out->function->tables[o->index].name);
        return;
    case GM_OPERAND_SINK:
        put(out, "_");
    }
}

/* The opcode with its modifiers, in the order of its row. */
static void put_words(gm_out *out, const gm_ptx_inst *inst)
{
    const char *pattern = gm_ptx_forms[inst->form].text;
    gm_pattern_word word;
    int types = 0;
    put(out, "%s", gm_ptx_op_text((gm_ptx_op)inst->op));
    while (gm_pattern_next(&pattern, &word)) {
        if (word.field != GM_FIELD_NONE) {
            if (inst->mod[word.field])
                put(out, ".%s", gm_ptx_mod_text((gm_ptx_mod)inst->mod[word.field]));
        } else if (word.is_type) {
            put(out, ".%s", gm_ptx_types[inst->type[types++]].text);
        } else {
            put(out, ".%.*s", (int)word.size, word.text);
        }
    }
}

static void put_inst(gm_out *out, const gm_ptx_inst *inst)
{
    char open = inst->op == GM_OP_CALL ? '(' : '{';
    int any = 0, pair = 0;
    const char *specs = gm_ptx_forms[inst->form].operands;

    if (inst->guard != GM_PTX_NO_REG) {
        put(out, "@%s", inst->guard_negated ? "!" : "");
        put_reg(out, (uint32_t)inst->guard);
        put(out, " ");
    }
    put_words(out, inst);
    for (uint32_t i = 0; i < inst->noperands; i++) {
        size_t size = strcspn(specs, " |");
        int next_pair = specs[size] == '|';
        if (inst->operands[i].kind != GM_OPERAND_NONE) {
            put(out, "%s", pair ? "|" : any ? ", " : " ");
            put_operand(out, &inst->operands[i], open);
            any = 1;
        }
        pair = next_pair;
        specs += size + (specs[size] != 0);
    }
}

size_t gm_ptx_print_inst(const gm_ptx *module, const gm_ptx_function *function, const gm_ptx_inst *inst, char *to,
                         size_t size)
{
    gm_out out = {to, size, 0, module, function};
    if (size)
        *to = 0;
    put_inst(&out, inst);
    return out.used;
}

size_t gm_ptx_print_opcode(const gm_ptx_inst *inst, char *to, size_t size)
{
    gm_out out = {to, size, 0, NULL, NULL};
    if (size)
        *to = 0;
    put_words(&out, inst);
    return out.used;
}
