/* One PTX instruction as handlers: which function makes it, and what needs none. What a handler does not do in one step
 * is several; only PTX instructions are counted. */
#include "lower_operand.h"
#include <string.h>

void gm_lower_inst(gm_lower *l)
{
    const gm_ptx_inst *inst = l->inst;
    uint8_t type = inst->type[0];
    uint32_t bytes = type ? type_bytes(type) : 4;
    const char *bits = bits_text(bytes);
    gm_insn *in;
    switch (inst->op) {
    case GM_OP_ADD:
        gm_lower_add_or_sub(l, "add", GM_ADD);
        break;
    case GM_OP_SUB:
        gm_lower_add_or_sub(l, "sub", GM_SUB);
        break;
    case GM_OP_MUL:
        gm_lower_multiply(l);
        break;
    case GM_OP_MAD:
    case GM_OP_FMA:
        gm_lower_multiply_add(l);
        break;
    case GM_OP_MUL24:
        gm_lower_multiply_24(l, 0);
        break;
    case GM_OP_MAD24:
        gm_lower_multiply_24(l, 1);
        break;
    case GM_OP_SAD:
        gm_lower_plain(l, "sad", type_text(type), bytes, 3);
        break;
    case GM_OP_DIV:
        gm_lower_divide(l, "div");
        break;
    case GM_OP_REM:
        gm_lower_divide(l, "rem");
        break;
    case GM_OP_ABS:
        gm_lower_sign(l, "abs");
        break;
    case GM_OP_NEG:
        gm_lower_sign(l, "neg");
        break;
    case GM_OP_MIN:
        gm_lower_least_or_most(l, "min", GM_MIN);
        break;
    case GM_OP_MAX:
        gm_lower_least_or_most(l, "max", GM_MAX);
        break;
    case GM_OP_COPYSIGN:
        gm_lower_plain(l, "copysign", type_text(type), bytes, 2);
        break;
    case GM_OP_RCP:
        gm_lower_function_of_one(l, "rcp", GM_RCP);
        break;
    case GM_OP_SQRT:
        gm_lower_function_of_one(l, "sqrt", GM_SQRT);
        break;
    case GM_OP_RSQRT:
        gm_lower_function_of_one(l, "rsqrt", GM_ADD);
        break;
    case GM_OP_SIN:
        gm_lower_function_of_one(l, "sin", GM_ADD);
        break;
    case GM_OP_COS:
        gm_lower_function_of_one(l, "cos", GM_ADD);
        break;
    case GM_OP_LG2:
        gm_lower_function_of_one(l, "lg2", GM_ADD);
        break;
    case GM_OP_EX2:
        gm_lower_function_of_one(l, "ex2", GM_ADD);
        break;
    case GM_OP_TANH:
        gm_lower_function_of_one(l, "tanh", GM_ADD);
        break;
    case GM_OP_TESTP: {
        uint32_t a = in_slot(l, 1, bytes);
        with(gm_lower_named(l, "testp_%s_%s", gm_ptx_mod_text((gm_ptx_mod)inst->mod[GM_FIELD_OP]), type_text(type)),
             out_slot(l, 0, 1), a, a, 0);
        break;
    }
    case GM_OP_ADD_CC:
        gm_lower_carries(l, "add", 0, 1, 0);
        break;
    case GM_OP_ADDC:
        gm_lower_carries(l, "add", 1, inst->mod[GM_FIELD_CC] != 0, 0);
        break;
    case GM_OP_SUB_CC:
        gm_lower_carries(l, "sub", 0, 1, 0);
        break;
    case GM_OP_SUBC:
        gm_lower_carries(l, "sub", 1, inst->mod[GM_FIELD_CC] != 0, 0);
        break;
    case GM_OP_MAD_CC:
        gm_lower_carries(l, "add", 0, 1, 1);
        break;
    case GM_OP_MADC:
        gm_lower_carries(l, "add", 1, inst->mod[GM_FIELD_CC] != 0, 1);
        break;
    case GM_OP_AND:
        gm_lower_plain(l, "and", bits, bytes, 2);
        break;
    case GM_OP_OR:
        gm_lower_plain(l, "or", bits, bytes, 2);
        break;
    case GM_OP_XOR:
        gm_lower_plain(l, "xor", bits, bytes, 2);
        break;
    case GM_OP_NOT:
        gm_lower_plain(l, "not", bits, bytes, 1);
        break;
    case GM_OP_CNOT:
        gm_lower_plain(l, "cnot", bits, bytes, 1);
        break;
    case GM_OP_LOP3: {
        int tests = inst->mod[GM_FIELD_BOOL] != 0;
        uint32_t at = tests ? 2 : 1, a = in_slot(l, at, 4), b = in_slot(l, at + 1, 4), c = in_slot(l, at + 2, 4);
        uint32_t d = tests && operand(l, 0)->kind != GM_OPERAND_REG ? gm_lower_temp(l, 4) : out_slot(l, 0, 4);
        with(gm_lower_named(l, "lop3_b32"), d, a, b, c)->k = (uint8_t)operand(l, at + 3)->bits;
        if (tests) {
            uint32_t t = gm_lower_temp(l, 1);
            with(gm_lower_named(l, "setp_ne_b32"), t, d, bits_constant(l, 4, 0), 0);
            gm_lower_combine(l, out_slot(l, 1, 1), t, operand(l, 6));
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
        gm_lower_plain(l, "brev", bits, bytes, 1);
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
        gm_lower_plain(l, "fns", "b32", 4, 3);
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
        gm_lower_set_value(l);
        break;
    case GM_OP_SETP:
        gm_lower_set_predicate(l);
        break;
    case GM_OP_SELP:
        gm_lower_select_predicate(l);
        break;
    case GM_OP_SLCT:
        gm_lower_select_sign(l);
        break;
    case GM_OP_MOV:
        gm_lower_move(l);
        break;
    case GM_OP_CVT:
        gm_lower_convert(l);
        break;
    case GM_OP_CVTA:
        gm_lower_convert_address(l);
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
        gm_lower_load_or_store(l, 0);
        break;
    case GM_OP_ST:
        gm_lower_load_or_store(l, 1);
        break;
    case GM_OP_ATOM:
        gm_lower_atomics(l, 1);
        break;
    case GM_OP_ST_ASYNC:
    case GM_OP_RED_ASYNC:
        gm_lower_store_async(l, l->inst->op == GM_OP_RED_ASYNC);
        break;
    case GM_OP_RED:
        gm_lower_atomics(l, 0);
        break;
    case GM_OP_SHFL:
        gm_lower_shuffle(l);
        break;
    case GM_OP_VOTE:
        gm_lower_vote(l);
        break;
    case GM_OP_MATCH:
        gm_lower_match(l);
        break;
    case GM_OP_REDUX:
        gm_lower_reduce_lanes(l);
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
        gm_lower_barrier(l, GM_DO_bar_sync, 0, 1);
        break;
    case GM_OP_BAR_ARRIVE:
        gm_lower_barrier(l, GM_DO_bar_arrive, 0, 1);
        break;
    case GM_OP_BAR_RED:
        gm_lower_barrier(l, GM_DO_bar_red, 1, 1);
        break;
    case GM_OP_BARRIER_SYNC:
        gm_lower_barrier(l, GM_DO_bar_sync, 0, inst->mod[GM_FIELD_ALIGNED] != 0);
        break;
    case GM_OP_BARRIER_ARRIVE:
        gm_lower_barrier(l, GM_DO_bar_arrive, 0, inst->mod[GM_FIELD_ALIGNED] != 0);
        break;
    case GM_OP_BARRIER_RED:
        gm_lower_barrier(l, GM_DO_bar_red, 1, inst->mod[GM_FIELD_ALIGNED] != 0);
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
        l->program->fences = 1;
        break;
    case GM_OP_BRA:
        gm_lower_branch(l);
        break;
    case GM_OP_BRX:
        gm_lower_branch_table(l);
        break;
    case GM_OP_CALL:
        gm_lower_call(l);
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
        gm_lower_copy_async(l);
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
        gm_lower_matrices(l, 0);
        break;
    case GM_OP_STMATRIX:
        gm_lower_matrices(l, 1);
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
