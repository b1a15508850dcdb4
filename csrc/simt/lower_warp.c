/* What lanes do together, barriers, branches and calls. */
#include "lower_operand.h"
#include "../base/memory.h"
#include <string.h>

void gm_lower_shuffle(gm_lower *l)
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

void gm_lower_vote(gm_lower *l)
{
    int ballot = has(l, GM_FIELD_OP, GM_MOD_BALLOT);
    const gm_ptx_operand *p = operand(l, 1);
    uint32_t a = p->kind == GM_OPERAND_REG ? l->slot[p->index] : gm_lower_source(l, p, 1), members = in_slot(l, 2, 4);
    gm_insn *in = with(gm_lower_named(l, "vote"), out_slot(l, 0, ballot ? 4 : 1), a, 0, 0);
    in->imm = p->kind == GM_OPERAND_REG && p->negated ? (int64_t)GM_FULL : 0;
    in->e = members;
    in->k = ballot ? 3 : has(l, GM_FIELD_OP, GM_MOD_ALL) ? 0 : has(l, GM_FIELD_OP, GM_MOD_ANY) ? 1 : 2;
}

void gm_lower_match(gm_lower *l)
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

void gm_lower_reduce_lanes(gm_lower *l)
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

void gm_lower_barrier(gm_lower *l, gm_do what, uint32_t at, int aligned)
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

void gm_lower_branch(gm_lower *l)
{
    const gm_flow_block *block = &l->flow.blocks[l->block];
    gm_insn *in = gm_lower_emit(l, l->inst->guard == GM_PTX_NO_REG ? GM_DO_bra_uni : GM_DO_bra);
    in->x = block->target;
    in->e = block->meet;
}

void gm_lower_branch_table(gm_lower *l)
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

/* Whether a call's list is .param variables of the sizes of a function's own. */
static int fits(const gm_lower *l, const gm_ptx_operand *list, uint32_t first, uint32_t wanted, const int32_t *regs)
{
    uint32_t count = list->kind == GM_OPERAND_VECTOR ? list->n : 0;
    int good = count == wanted && count < 256;
    for (uint32_t k = 0; good && k < count; k++) {
        const gm_ptx_operand *one = &list->elements[k];
        good = one->kind == GM_OPERAND_VARIABLE && !(regs && regs[k] != GM_PTX_NO_REG) &&
               l->module->variables[one->index].size == l->module->variables[first + k].size;
    }
    return good;
}

static int fits_function(const gm_lower *l, const gm_ptx_function *f)
{
    return fits(l, operand(l, 2), f->first_parameter, f->nparameters, f->parameter_regs) &&
           fits(l, operand(l, 0), f->first_result, f->nresults, f->result_regs);
}

/* The rows of a call's arguments, then results; the first one's number. */
static uint32_t argument_rows(gm_lower *l, const gm_ptx_function *f)
{
    uint32_t first = 0, rows = 0;
    for (int back = 0; back < 2; back++) {
        const gm_ptx_operand *list = operand(l, back ? 0 : 2);
        uint32_t from = back ? f->first_result : f->first_parameter;
        for (uint32_t k = 0; list->kind == GM_OPERAND_VECTOR && k < list->n; k++) {
            /* The callee's slots are known when it has been decoded: until then, the variable's number. */
            uint32_t at = gm_lower_argument(l, (gm_argument){(uint32_t)l->all->address[list->elements[k].index],
                                                             from + k, (uint32_t)l->module->variables[from + k].size});
            first = rows++ ? first : at;
        }
    }
    return first;
}

static uint32_t length(const gm_ptx_operand *list)
{
    return list->kind == GM_OPERAND_VECTOR ? list->n : 0;
}

/* Through a pointer: to any function that the kernel may reach and that takes such arguments, or to those of a table.
 */
static void call_through(gm_lower *l)
{
    const gm_ptx_table *table = &l->function->tables[operand(l, 3)->index];
    uint32_t count = 0, rows = table->kind == GM_TABLE_CALL ? table->n : l->all->function_count;
    uint32_t *row = gm_alloc(2 * ((size_t)rows + 1) * sizeof *row);
    if (row == NULL) {
        l->status = GM_NO_MEMORY;
        return;
    }
    for (uint32_t k = 0; k < rows; k++) {
        uint32_t number = table->kind == GM_TABLE_CALL ? l->all->function_of[table->targets[k]] : k;
        const gm_ptx_function *f = number == GM_NOWHERE ? NULL : &l->module->functions[l->all->functions[number]];
        if (f == NULL || f->is_entry || !fits_function(l, f))
            continue;
        row[2 * count] = number;
        row[2 * count + 1] = argument_rows(l, f);
        count++;
    }
    uint32_t pointer = gm_lower_source(l, operand(l, 1), 8), list = gm_lower_list(l, row, 2 * count);
    gm_free(row);
    gm_insn *in = gm_lower_emit(l, GM_DO_call_through);
    in->a = pointer, in->x = list, in->f = count;
    in->n = (uint8_t)length(operand(l, 2)), in->k = (uint8_t)length(operand(l, 0));
}

void gm_lower_call(gm_lower *l)
{
    const gm_ptx_operand *callee = operand(l, 1);
    if (callee->kind != GM_OPERAND_FUNCTION) {
        call_through(l);
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
    if (!fits_function(l, f)) {
        gm_lower_refuse(l, "a call of %s with arguments or results that are no .param variables of its own's sizes",
                        f->name);
        return;
    }
    uint32_t first = argument_rows(l, f);
    gm_insn *in = gm_lower_emit(l, GM_DO_call);
    in->x = l->all->function_of[callee->index];
    in->e = first;
    in->n = (uint8_t)length(operand(l, 2)), in->k = (uint8_t)length(operand(l, 0));
}
