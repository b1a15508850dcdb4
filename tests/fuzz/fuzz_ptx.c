/* libFuzzer's target for the reader of PTX: whatever the bytes, it ends in a failure with a text, or in a module whose
 * every index names something and whose every instruction can be printed. tools/fuzz.sh builds and runs it. */
#include "../../csrc/simt/ptx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every reference that an executor would follow must be one. */
static void check_operand(const gm_ptx *m, const gm_ptx_function *f, const gm_ptx_operand *o)
{
    uint32_t limit = UINT32_MAX;
    uint8_t kind = o->kind == GM_OPERAND_ADDRESS ? o->base : o->kind;
    if (kind == GM_OPERAND_REG)
        limit = f->nregs;
    else if (kind == GM_OPERAND_VARIABLE)
        limit = m->nvariables;
    else if (kind == GM_OPERAND_FUNCTION)
        limit = m->nfunctions;
    else if (kind == GM_OPERAND_LABEL)
        limit = f->ninsts + 1;
    else if (kind == GM_OPERAND_TABLE)
        limit = f->ntables;
    else if (kind == GM_OPERAND_SPECIAL)
        limit = GM_SPECIAL_COUNT;
    if (o->index >= limit)
        abort();
    for (uint32_t i = 0; o->kind == GM_OPERAND_VECTOR && i < o->n; i++)
        check_operand(m, f, &o->elements[i]);
    for (uint32_t i = 0; o->coordinates && i < o->n; i++)
        check_operand(m, f, &o->coordinates[i]);
}

static void check_function(const gm_ptx *m, const gm_ptx_function *f)
{
    char text[256];
    if (f->first_parameter + (uint64_t)f->nparameters > m->nvariables ||
        f->first_result + (uint64_t)f->nresults > m->nvariables)
        abort();
    for (uint32_t i = 0; i < f->ntables; i++)
        for (uint32_t k = 0; k < f->tables[i].n; k++)
            if (f->tables[i].targets[k] > (f->tables[i].kind == GM_TABLE_BRANCH ? f->ninsts : m->nfunctions - 1))
                abort();
    for (uint32_t i = 0; i < f->ninsts; i++) {
        const gm_ptx_inst *inst = &f->insts[i];
        if (inst->op >= GM_OP_COUNT || inst->loc >= m->nlocs || inst->guard >= (int64_t)f->nregs)
            abort();
        for (uint32_t k = 0; k < inst->noperands; k++)
            check_operand(m, f, &inst->operands[k]);
        if (gm_ptx_print_inst(m, f, inst, text, sizeof text) == 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gm_ptx *module;
    gm_failure failure = {0};
    gm_status status = gm_ptx_parse((const char *)data, size, "fuzz.ptx", &module, &failure);
    if (status ? module || !*failure.text || strlen(failure.text) >= sizeof failure.text : !module)
        abort();
    if (module) {
        for (uint32_t i = 0; i < module->nvariables; i++)
            if (module->variables[i].ndata > module->variables[i].size && !module->variables[i].unsized)
                abort();
        for (uint32_t i = 0; i < module->nlocs; i++)
            if (module->locs[i].file >= module->nfiles || (module->locs[i].inlined && module->locs[i].inlined >= i))
                abort();
        for (uint32_t i = 0; i < module->nfunctions; i++)
            check_function(module, &module->functions[i]);
    }
    gm_ptx_free(module);
    return 0;
}
