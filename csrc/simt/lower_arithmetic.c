/* Arithmetic: the row of handlers.def that type, rounding and flags ask for. */
#include "lower_operand.h"
#include <string.h>

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

void gm_lower_add_or_sub(gm_lower *l, const char *name, gm_arithmetic what)
{
    uint8_t type = l->inst->type[0];
    if (is_float(type))
        floats(l, name, what, 2);
    else if (l->inst->mod[GM_FIELD_SAT])
        gm_lower_plain(l, what == GM_ADD ? "add_sat" : "sub_sat", type_text(type), 4, 2);
    else if (gm_ptx_types[type].lanes == 2)
        gm_lower_plain(l, name, "u16x2", 4, 2);
    else
        gm_lower_plain(l, name, bits_text(type_bytes(type)), type_bytes(type), 2);
}

void gm_lower_multiply(gm_lower *l)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type);
    if (is_float(type))
        floats(l, "mul", GM_MUL, 2);
    else if (has(l, GM_FIELD_PART, GM_MOD_LO))
        gm_lower_plain(l, "mul_lo", bits_text(bytes), bytes, 2);
    else if (has(l, GM_FIELD_PART, GM_MOD_HI))
        gm_lower_plain(l, "mul_hi", type_text(type), bytes, 2);
    else {
        uint32_t a = in_slot(l, 1, bytes), b = in_slot(l, 2, bytes);
        with(gm_lower_named(l, "mul_wide_%s", type_text(type)), out_slot(l, 0, 2 * bytes), a, b, 0);
    }
}

void gm_lower_multiply_add(gm_lower *l)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type);
    if (is_float(type)) {
        floats(l, "fma", GM_FMA, 3);
    } else if (has(l, GM_FIELD_PART, GM_MOD_LO)) {
        gm_lower_plain(l, "mad_lo", bits_text(bytes), bytes, 3);
    } else if (has(l, GM_FIELD_PART, GM_MOD_HI)) {
        if (l->inst->mod[GM_FIELD_SAT]) {
            gm_lower_plain(l, "mad_hi_sat", type_text(type), bytes, 3);
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

void gm_lower_multiply_24(gm_lower *l, int adds)
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
void gm_lower_carries(gm_lower *l, const char *name, int in_carry, int out_carry, int product)
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

void gm_lower_divide(gm_lower *l, const char *name)
{
    uint8_t type = l->inst->type[0];
    if (is_float(type))
        floats(l, "div", GM_DIV, 2);
    else
        gm_lower_plain(l, name, type_text(type), type_bytes(type), 2);
}

void gm_lower_least_or_most(gm_lower *l, const char *name, gm_arithmetic what)
{
    uint8_t type = l->inst->type[0];
    uint32_t bytes = type_bytes(type);
    if (is_float(type)) {
        floats(l, name, what, 2);
        return;
    }
    gm_lower_plain(l, name, type_text(type), bytes, 2);
    if (l->inst->mod[GM_FIELD_RELU]) {
        uint32_t d = out_slot(l, 0, bytes);
        with(gm_lower_named(l, "max_%s", type_text(type)), d, d, bits_constant(l, bytes, 0), 0);
    }
}

void gm_lower_sign(gm_lower *l, const char *name)
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
    gm_lower_plain(l, name, text, bytes, 1);
}

/* sqrt, rcp and what the hardware approximates */
void gm_lower_function_of_one(gm_lower *l, const char *name, gm_arithmetic exact)
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
