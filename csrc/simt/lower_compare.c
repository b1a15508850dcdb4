/* Comparisons, what is combined with them, and choices by them. */
#include "lower_operand.h"
#include <string.h>

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
void gm_lower_combine(gm_lower *l, uint32_t d, uint32_t truth, const gm_ptx_operand *other)
{
    if (l->inst->mod[GM_FIELD_BOOL] == GM_MOD_NONE || other->kind == GM_OPERAND_NONE) {
        if (d != truth)
            with(gm_lower_named(l, "mov_pred"), d, truth, 0, 0);
        return;
    }
    uint32_t c = gm_lower_source(l, other, 1);
    with(gm_lower_named(l, "%s_pred", gm_ptx_mod_text((gm_ptx_mod)l->inst->mod[GM_FIELD_BOOL])), d, truth, c, 0);
}

void gm_lower_set_predicate(gm_lower *l)
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
                gm_lower_combine(l, l->slot[to->index], t, c);
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
    gm_lower_combine(l, r, t, c);
    if (q->kind == GM_OPERAND_REG)
        gm_lower_combine(l, l->slot[q->index], n, c);
    if (p->kind == GM_OPERAND_REG)
        with(gm_lower_named(l, "mov_pred"), l->slot[p->index], r, 0, 0);
}

/* set: all ones or 0, or 1.0 and 0 */
void gm_lower_set_value(gm_lower *l)
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
            gm_lower_combine(l, p, t, operand(l, 3));
            r[k] = gm_lower_temp(l, 2);
            with(gm_lower_named(l, "selp_b16"), r[k], bits_constant(l, 2, truth), bits_constant(l, 2, 0), p);
        }
        with(gm_lower_named(l, "pack_b32_b16"), out_slot(l, 0, 4), r[0], r[1], 0);
        return;
    }
    uint32_t t = gm_lower_temp(l, 1), p = gm_lower_temp(l, 1);
    compare(l, t, type, a, b);
    gm_lower_combine(l, p, t, operand(l, 3));
    with(gm_lower_named(l, "selp_%s", bits_text(own)), out_slot(l, 0, own), bits_constant(l, own, truth),
         bits_constant(l, own, 0), p);
}

void gm_lower_select_predicate(gm_lower *l)
{
    uint32_t bytes = type_bytes(l->inst->type[0]), a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes);
    const gm_ptx_operand *p = operand(l, 3);
    int plain_register = p->kind == GM_OPERAND_REG;
    uint32_t c = plain_register ? l->slot[p->index] : gm_lower_source(l, p, 1);
    gm_insn *in = with(gm_lower_named(l, "selp_%s", bits_text(bytes)), out_slot(l, 0, bytes), a, b, c);
    in->imm = plain_register && p->negated ? (int64_t)GM_FULL : 0;
}

void gm_lower_select_sign(gm_lower *l)
{
    uint8_t by = l->inst->type[1];
    uint32_t bytes = type_bytes(l->inst->type[0]), a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes);
    uint32_t c = in_slot(l, 3, 4), t = gm_lower_temp(l, 1);
    with(gm_lower_named(l, "setp_ge_%s", by == GM_PTX_F32 ? (l->inst->mod[GM_FIELD_FTZ] ? "ftz_f32" : "f32") : "s32"),
         t, c, bits_constant(l, 4, 0), 0);
    with(gm_lower_named(l, "selp_%s", bits_text(bytes)), out_slot(l, 0, bytes), a, b, t);
}
