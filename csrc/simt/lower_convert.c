/* Moves, packing and unpacking, conversions of type and of address. */
#include "lower_operand.h"
#include <string.h>

static void move_one(gm_lower *l, const gm_ptx_operand *d, const gm_ptx_operand *s, uint32_t bytes)
{
    if (d->kind == GM_OPERAND_REG && l->aliased[d->index])
        return;
    if (d->kind != GM_OPERAND_REG)
        return;
    uint32_t from = gm_lower_source(l, s, bytes);
    with(gm_lower_named(l, "mov_%s", bits_text(bytes)), l->slot[d->index], from, 0, 0);
}

void gm_lower_move(gm_lower *l)
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

void gm_lower_convert(gm_lower *l)
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

void gm_lower_convert_address(gm_lower *l)
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
