/* What a row of ops.def can't say: rules between the parts of an instruction. */
#include "read.h"

/* NULL where there are none at all, and so none to look at. */
static const gm_ptx_variable *variables_from(const gm_reader *r, uint32_t first)
{
    return r->variables.n ? (const gm_ptx_variable *)r->variables.items + first : NULL;
}

/* A call's arguments or results against the parameters that they are for. */
static int check_list(gm_reader *r, const gm_ptx_operand *list, const gm_ptx_variable *parameters, uint32_t n,
                      const char *what, const gm_token *at)
{
    uint32_t given = list->kind == GM_OPERAND_VECTOR ? list->n : 0;
    int open_ended = n && parameters[n - 1].unsized; /* the last parameter takes any number */
    if (given != n && !(open_ended && given + 1 >= n))
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "%u %s where the function has %u", given, what, n);
    for (uint32_t i = 0; i < given && i < n; i++) {
        const gm_ptx_operand *one = &list->elements[i];
        uint64_t size = one->kind == GM_OPERAND_VARIABLE ? variables_from(r, one->index)->size
                        : one->kind == GM_OPERAND_REG    ? gm_ptx_types[one->type].bits / 8u
                                                         : parameters[i].size;
        if (size != parameters[i].size && !parameters[i].unsized)
            return gm_read_fail(r, GM_PTX_MALFORMED, at, "%s %u has %llu bytes where the function has %llu", what, i,
                                (unsigned long long)size, (unsigned long long)parameters[i].size);
    }
    return 1;
}

static int check_call(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    const gm_ptx_operand *results = &inst->operands[0], *callee = &inst->operands[1], *given = &inst->operands[2],
                         *table = &inst->operands[3];
    if (callee->kind == GM_OPERAND_FUNCTION) {
        const gm_ptx_function *f = (const gm_ptx_function *)r->functions.items + callee->index;
        return check_list(r, results, variables_from(r, f->first_result), f->nresults, "results", at) &&
               check_list(r, given, variables_from(r, f->first_parameter), f->nparameters, "arguments", at);
    }
    if (table->kind != GM_OPERAND_TABLE)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "a call through a register needs its prototype or its targets");
    const gm_ptx_table *t = (const gm_ptx_table *)r->tables.items + table->index;
    if (t->kind == GM_TABLE_BRANCH)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "%.200s is a table of labels", t->name);
    return t->kind == GM_TABLE_CALL ||
           (check_list(r, results, t->parameters, t->nresults, "results", at) &&
            check_list(r, given, t->parameters ? t->parameters + t->nresults : NULL, t->nparameters, "arguments", at));
}

static int check_brx(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    const gm_ptx_table *t = (const gm_ptx_table *)r->tables.items + inst->operands[1].index;
    return t->kind == GM_TABLE_BRANCH || gm_read_fail(r, GM_PTX_MALFORMED, at, "%.200s is no table of labels", t->name);
}

static int check_memory(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    unsigned bytes = gm_ptx_types[inst->type[0]].bits / 8u * inst->vector;
    uint8_t sem = inst->mod[GM_FIELD_SEM], scope = inst->mod[GM_FIELD_SCOPE];
    int ordered = sem == GM_MOD_RELAXED || sem == GM_MOD_ACQUIRE || sem == GM_MOD_RELEASE;
    int is_load = inst->op == GM_OP_LD;

    if (inst->mod[GM_FIELD_NC] && inst->space != GM_SPACE_GLOBAL)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, ".nc is for .global");
    if (bytes > (r->module.target >= 100 && inst->space == GM_SPACE_GLOBAL ? 32u : 16u))
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "%u bytes are more than one access may have", bytes);
    if (!is_load && inst->mod[GM_FIELD_SPACE] == GM_MOD_PARAM_ENTRY)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "the parameters of an entry cannot be written");
    if (!is_load && inst->space == GM_SPACE_CONST)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, ".const cannot be written");
    if (inst->mod[GM_FIELD_MMIO] && (sem != GM_MOD_RELAXED || scope != GM_MOD_SYS))
        return gm_read_fail(r, GM_PTX_MALFORMED, at, ".mmio goes with .relaxed.sys");
    if (inst->mod[GM_FIELD_EVICT2] && bytes != 32)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, ".%s goes with accesses of 32 bytes",
                            gm_ptx_mod_text((gm_ptx_mod)inst->mod[GM_FIELD_EVICT2]));
    if (ordered != (scope != GM_MOD_NONE))
        return gm_read_fail(r, GM_PTX_MALFORMED, at,
                            ordered ? "a scope is missing (.cta .cluster .gpu .sys)"
                                    : "a scope needs .relaxed, .acquire or .release");
    if (sem == (is_load ? GM_MOD_RELEASE : GM_MOD_ACQUIRE) || sem == GM_MOD_ACQ_REL || sem == GM_MOD_SC)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "%s has no .%s", gm_ptx_op_text((gm_ptx_op)inst->op),
                            gm_ptx_mod_text((gm_ptx_mod)sem));
    return 1;
}

/* .and, .or and .xor join a comparison with one more predicate: neither without the other. */
static int check_compare(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    int joined = inst->operands[inst->noperands - 1].kind != GM_OPERAND_NONE;
    if (joined != (inst->mod[GM_FIELD_BOOL] != GM_MOD_NONE))
        return gm_read_fail(r, GM_PTX_MALFORMED, at,
                            joined ? ".and, .or or .xor is missing" : "one more predicate is missing");
    return 1;
}

static int check_cp_async(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    uint64_t bytes = inst->operands[2].bits;
    if (bytes != 16 && (inst->mod[GM_FIELD_CACHE] == GM_MOD_CG || (bytes != 4 && bytes != 8)))
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "cp.async copies 4, 8 or 16 bytes, with .cg 16, not %llu",
                            (unsigned long long)bytes);
    return 1;
}

/* f16 goes with f16, bf16 with bf16: their rows have both. */
static int check_mma(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    int half = inst->type[1] == GM_PTX_F16 || inst->type[1] == GM_PTX_BF16;
    return !half || inst->type[1] == inst->type[2] ||
           gm_read_fail(r, GM_PTX_MALFORMED, at, "a and b must be of one type, not .%s and .%s",
                        gm_ptx_types[inst->type[1]].text, gm_ptx_types[inst->type[2]].text);
}

static int check_tensor(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    uint32_t dimensions = (uint32_t)(inst->mod[GM_FIELD_DIM] - GM_MOD_D1) + 1;
    for (uint32_t i = 0; i < inst->noperands; i++)
        if (inst->operands[i].coordinates && inst->operands[i].n != dimensions)
            return gm_read_fail(r, GM_PTX_MALFORMED, at, "%u coordinates of a tensor of %u", inst->operands[i].n,
                                dimensions);
    return 1;
}

/* Constants are known to be wrong here, what is in registers is not. */
static int check_barrier(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    enum { BARRIERS = 16, WARP = 32 };
    int is_reduction = inst->op == GM_OP_BAR_RED || inst->op == GM_OP_BARRIER_RED;
    int arrives = inst->op == GM_OP_BAR_ARRIVE || inst->op == GM_OP_BARRIER_ARRIVE;
    const gm_ptx_operand *number = &inst->operands[is_reduction], *threads = number + 1;

    if (number->kind == GM_OPERAND_IMM && number->bits >= BARRIERS)
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "a barrier's number is 0 to %d, not %llu", BARRIERS - 1,
                            (unsigned long long)number->bits);
    if (threads->kind == GM_OPERAND_IMM && (threads->bits % WARP || (arrives && threads->bits == 0)))
        return gm_read_fail(r, GM_PTX_MALFORMED, at, "a barrier is for a multiple of %d threads%s, not %llu", WARP,
                            arrives ? " that is not 0" : "", (unsigned long long)threads->bits);
    return 1;
}

int gm_read_check(gm_reader *r, const gm_ptx_inst *inst, const gm_token *at)
{
    static int (*const checks[GM_OP_COUNT])(gm_reader *, const gm_ptx_inst *, const gm_token *) = {
        [GM_OP_CALL] = check_call,
        [GM_OP_BRX] = check_brx,
        [GM_OP_LD] = check_memory,
        [GM_OP_ST] = check_memory,
        [GM_OP_SETP] = check_compare,
        [GM_OP_SET] = check_compare,
        [GM_OP_CP_ASYNC] = check_cp_async,
        [GM_OP_BAR_SYNC] = check_barrier,
        [GM_OP_BAR_ARRIVE] = check_barrier,
        [GM_OP_BAR_RED] = check_barrier,
        [GM_OP_BARRIER_SYNC] = check_barrier,
        [GM_OP_BARRIER_ARRIVE] = check_barrier,
        [GM_OP_BARRIER_RED] = check_barrier,
        [GM_OP_MMA] = check_mma,
        [GM_OP_CP_ASYNC_BULK_TENSOR] = check_tensor,
        [GM_OP_CP_REDUCE_ASYNC_BULK_TENSOR] = check_tensor,
        [GM_OP_CP_ASYNC_BULK_PREFETCH_TENSOR] = check_tensor,
    };
    return !checks[inst->op] || checks[inst->op](r, inst, at);
}
