/* Operands of an instruction as slots, for the files that turn instructions into handlers (lower_*.c). */
#pragma once
#include "lower.h"

void gm_lower_plain(gm_lower *l, const char *name, const char *type, uint32_t bytes, uint32_t count);
void gm_lower_add_or_sub(gm_lower *l, const char *name, gm_arithmetic what);
void gm_lower_multiply(gm_lower *l);
void gm_lower_multiply_add(gm_lower *l);
void gm_lower_multiply_24(gm_lower *l, int adds);
void gm_lower_carries(gm_lower *l, const char *name, int in_carry, int out_carry, int product);
void gm_lower_divide(gm_lower *l, const char *name);
void gm_lower_least_or_most(gm_lower *l, const char *name, gm_arithmetic what);
void gm_lower_sign(gm_lower *l, const char *name);
void gm_lower_function_of_one(gm_lower *l, const char *name, gm_arithmetic exact);
void gm_lower_combine(gm_lower *l, uint32_t d, uint32_t truth, const gm_ptx_operand *other);
void gm_lower_set_predicate(gm_lower *l);
void gm_lower_set_value(gm_lower *l);
void gm_lower_select_predicate(gm_lower *l);
void gm_lower_select_sign(gm_lower *l);
void gm_lower_move(gm_lower *l);
void gm_lower_convert(gm_lower *l);
void gm_lower_convert_address(gm_lower *l);
void gm_lower_load_or_store(gm_lower *l, int writes);
void gm_lower_atomics(gm_lower *l, int gives);
void gm_lower_store_async(gm_lower *l, int reduces);
void gm_lower_shuffle(gm_lower *l);
void gm_lower_vote(gm_lower *l);
void gm_lower_match(gm_lower *l);
void gm_lower_reduce_lanes(gm_lower *l);
void gm_lower_barrier(gm_lower *l, gm_do what, uint32_t at, int aligned);
void gm_lower_branch(gm_lower *l);
void gm_lower_branch_table(gm_lower *l);
void gm_lower_call(gm_lower *l);
void gm_lower_copy_async(gm_lower *l);
void gm_lower_matrices(gm_lower *l, int writes);
uint32_t gm_lower_base_slot(gm_lower *l, const gm_ptx_operand *o, gm_space space, uint32_t *wide);
unsigned gm_lower_how_of(const gm_lower *l, int writes, int atomic);

static inline const gm_ptx_operand *operand(const gm_lower *l, uint32_t at)
{
    static const gm_ptx_operand none = {.kind = GM_OPERAND_NONE};
    return at < l->inst->noperands ? &l->inst->operands[at] : &none;
}

static inline uint32_t type_bytes(uint8_t type)
{
    uint32_t bits = gm_ptx_types[type].bits;
    return bits == 1 ? 1 : bits <= 16 ? 2 : bits / 8;
}

static inline int has(const gm_lower *l, gm_ptx_field field, gm_ptx_mod mod)
{
    return l->inst->mod[field] == mod;
}

static inline uint32_t bits_constant(gm_lower *l, uint32_t bytes, uint64_t value)
{
    return bytes == 1 ? gm_lower_constant(l, GM_FILL_PREDICATE, 1, value ? GM_FULL : 0, 0)
                      : gm_lower_constant(l, GM_FILL_BITS, bytes, value, 0);
}

static inline int is_entry_parameter(const gm_lower *l, uint32_t v)
{
    const gm_ptx_function *f = l->function;
    return f->is_entry && v >= f->first_parameter && v < f->first_parameter + f->nparameters;
}

static inline int is_argument(const gm_lower *l, uint32_t v)
{
    return l->module->variables[v].space == GM_SPACE_PARAM && !is_entry_parameter(l, v);
}

/* The address of a variable as `mov` gives it, in its own space; generic for global and const. */
static inline uint64_t variable_address(const gm_lower *l, uint32_t v)
{
    const gm_ptx_variable *variable = &l->module->variables[v];
    if (variable->space == GM_SPACE_PARAM)
        return variable->offset;
    return l->all->address[v];
}

/* Which special register; of %envreg<n>, n in the upper half. */
static inline uint64_t special_value(const gm_ptx_operand *o)
{
    return o->index == GM_SPECIAL_ENVREG ? o->index | o->bits << 32 : o->index;
}

static inline uint32_t in_slot(gm_lower *l, uint32_t at, uint32_t bytes)
{
    return gm_lower_source(l, operand(l, at), bytes);
}

static inline uint32_t out_slot(gm_lower *l, uint32_t at, uint32_t bytes)
{
    return gm_lower_destination(l, operand(l, at), bytes);
}

/* Two steps of one instruction: operands of the second may be temporaries of the first. */
static inline gm_insn *with(gm_insn *in, uint32_t d, uint32_t a, uint32_t b, uint32_t c)
{
    in->d = d, in->a = a, in->b = b, in->c = c;
    return in;
}

static inline const char *bits_text(uint32_t bytes)
{
    return bytes == 1 ? "pred" : bytes == 2 ? "b16" : bytes == 4 ? "b32" : bytes == 8 ? "b64" : "b128";
}

static inline const char *type_text(uint8_t type)
{
    return gm_ptx_types[type].text;
}

static inline int is_float(uint8_t type)
{
    return gm_ptx_types[type].kind == GM_KIND_FLOAT;
}

static inline gm_rounding rounding(const gm_lower *l)
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

static inline uint64_t window_of(gm_space space)
{
    return space == GM_SPACE_SHARED || space == GM_SPACE_SHARED_CLUSTER ? GM_SHARED_WINDOW
           : space == GM_SPACE_LOCAL                                    ? GM_LOCAL_WINDOW
           : space == GM_SPACE_PARAM                                    ? GM_PARAM_WINDOW
                                                                        : 0;
}

static inline gm_space mod_space(uint8_t mod)
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

static inline int log2_of(uint32_t bytes)
{
    return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
}
