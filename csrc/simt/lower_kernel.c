/* A kernel with all that it may reach: functions, also through pointers, and variables, which get addresses. */
#include "lower.h"
#include "../base/integers.h"
#include "../base/memory.h"
#include <stdio.h>
#include <string.h>

enum { MOST_PARAMETERS = 32764 }; /* bytes: PTX ISA 9.0, "Kernel Function Parameters", sm_70 and later */

/* Marks the functions that `inst` calls and the variables that it names. */
typedef struct reach {
    gm_lower_all *all;
    uint8_t *used; /* variables */
} reach;

static void reach_function(gm_lower_all *all, uint32_t function)
{
    if (all->function_of[function] == GM_NOWHERE && all->module->functions[function].has_body) {
        all->function_of[function] = all->function_count;
        all->functions[all->function_count++] = function;
    }
}

static void reach_operand(reach *r, const gm_ptx_operand *o)
{
    if (o->kind == GM_OPERAND_VARIABLE || (o->kind == GM_OPERAND_ADDRESS && o->base == GM_OPERAND_VARIABLE))
        r->used[o->index] = 1;
    if (o->kind == GM_OPERAND_VECTOR)
        for (uint32_t i = 0; i < o->n; i++)
            reach_operand(r, &o->elements[i]);
    if (o->kind == GM_OPERAND_FUNCTION)
        reach_function(r->all, o->index);
}

/* Functions whose addresses are in variables: tables of virtual functions. */
static void reach_tables(gm_lower_all *all)
{
    for (uint32_t v = 0; v < all->module->nvariables; v++)
        for (uint32_t k = 0; k < all->module->variables[v].nfixups; k++)
            if (all->module->variables[v].fixups[k].is_function)
                reach_function(all, all->module->variables[v].fixups[k].index);
}

/* A call through a pointer: 1; the functions that it names are reached. */
static int reach_call(reach *r, const gm_ptx_function *f, const gm_ptx_inst *inst)
{
    if (inst->op != GM_OP_CALL || inst->operands[1].kind == GM_OPERAND_FUNCTION)
        return 0;
    const gm_ptx_table *table = &f->tables[inst->operands[3].index];
    for (uint32_t k = 0; table->kind == GM_TABLE_CALL && k < table->n; k++)
        reach_function(r->all, table->targets[k]);
    return 1;
}

static void reach_all(reach *r)
{
    int through = 0;
    for (uint32_t k = 0; k < r->all->function_count; k++) {
        const gm_ptx_function *f = &r->all->module->functions[r->all->functions[k]];
        for (uint32_t i = 0; i < f->ninsts; i++) {
            for (uint32_t o = 0; o < f->insts[i].noperands; o++)
                reach_operand(r, &f->insts[i].operands[o]);
            if (reach_call(r, f, &f->insts[i]) && !through++)
                reach_tables(r->all);
        }
    }
}

/* Addresses of all variables that the kernel can name. Shared memory: those of fixed size in order, then the launch's.
 */
static gm_status place_variables(gm_lower_all *all, const uint8_t *used)
{
    const gm_ptx *module = all->module;
    gm_program *p = all->program;
    uint64_t shared = 0, global = GM_VARIABLES_START, dynamic_align = 16;
    size_t segments = 0;
    for (uint32_t v = 0; v < module->nvariables; v++) {
        const gm_ptx_variable *variable = &module->variables[v];
        uint32_t function = variable->function >= 0 ? all->function_of[variable->function] : GM_NOWHERE;
        if (variable->space == GM_SPACE_SHARED && used[v]) {
            if (variable->unsized) {
                dynamic_align = variable->align > dynamic_align ? variable->align : dynamic_align;
            } else {
                shared = gm_round_up(shared, variable->align);
                all->address[v] = shared;
                shared += variable->size;
            }
        } else if (variable->space == GM_SPACE_LOCAL && function != GM_NOWHERE) {
            uint64_t at = gm_round_up(all->local_bytes[function], variable->align);
            all->address[v] = at;
            all->local_bytes[function] = at + variable->size;
        } else if (variable->space == GM_SPACE_GLOBAL || variable->space == GM_SPACE_CONST) {
            global = gm_round_up(global, variable->align > 256 ? variable->align : 256);
            all->address[v] = global;
            global += variable->size + 4096;
            segments++;
        }
        if (shared > UINT32_MAX || global - GM_VARIABLES_START > (UINT64_C(1) << 40) ||
            (function != GM_NOWHERE && all->local_bytes[function] > (1u << 24))) {
            all->failure->status = GM_LENS_UNSUPPORTED;
            snprintf(all->failure->text, sizeof all->failure->text, "%s:%u: %s is larger than any GPU's memory",
                     module->name, variable->line, variable->name);
            return GM_LENS_UNSUPPORTED;
        }
    }
    p->kernel.static_shared = (uint32_t)shared;
    p->dynamic_offset = (uint32_t)gm_round_up(shared, dynamic_align);
    for (uint32_t f = 0; f < all->function_count; f++)
        all->local_bytes[f] = gm_round_up(all->local_bytes[f], 16);
    p->kernel.local_bytes = (uint32_t)all->local_bytes[0];
    for (uint32_t v = 0; v < module->nvariables; v++)
        if (module->variables[v].space == GM_SPACE_SHARED && module->variables[v].unsized)
            all->address[v] = p->dynamic_offset;
    p->variables = gm_alloc((segments + 1) * sizeof *p->variables);
    if (!p->variables)
        return GM_NO_MEMORY;
    for (uint32_t v = 0; v < module->nvariables; v++) {
        const gm_ptx_variable *variable = &module->variables[v];
        if (variable->space == GM_SPACE_GLOBAL || variable->space == GM_SPACE_CONST)
            p->variables[p->variable_count++] = (gm_program_variable){variable, all->address[v]};
    }
    return GM_OK;
}

static gm_status describe(gm_program *p, const gm_ptx *module, const gm_ptx_function *entry)
{
    gm_lens_kernel *k = &p->kernel;
    gm_lens_parameter *parameters = gm_alloc((entry->nparameters + 1) * sizeof *parameters);
    if (!parameters)
        return GM_NO_MEMORY;
    k->name = entry->name;
    k->parameters = parameters;
    k->parameter_count = entry->nparameters;
    k->parameter_bytes = (uint32_t)entry->parameter_bytes;
    for (uint32_t i = 0; i < entry->nparameters; i++) {
        const gm_ptx_variable *v = &module->variables[entry->first_parameter + i];
        const gm_ptx_type_info *type = &gm_ptx_types[v->type];
        parameters[i] = (gm_lens_parameter){.name = v->name,
                                            .offset = (uint32_t)v->offset,
                                            .size = (uint32_t)v->size,
                                            .align = v->align,
                                            .bits = type->bits,
                                            .kind = type->kind == GM_KIND_FLOAT  ? 'f'
                                                    : type->kind == GM_KIND_SINT ? 's'
                                                    : type->kind == GM_KIND_UINT ? 'u'
                                                                                 : 'b',
                                            .is_array = v->size * 8 != type->bits,
                                            .is_pointer = v->pointer};
    }
    for (int i = 0; i < 3; i++) {
        k->reqntid[i] = entry->reqntid[i];
        k->maxntid[i] = entry->maxntid[i];
        k->cluster[i] = entry->reqnctapercluster[i];
    }
    return GM_OK;
}

gm_status gm_lower_kernel(gm_program *program, const gm_ptx *module, const gm_ptx_function *entry, gm_failure *failure)
{
    gm_lower_all all = {.module = module, .program = program, .failure = failure};
    uint32_t nv = module->nvariables, nf = module->nfunctions;
    uint8_t *used = gm_alloc(nv + 1);
    gm_status status = GM_NO_MEMORY;
    all.address = gm_alloc((nv + 1) * sizeof *all.address);
    all.function_of = gm_alloc((nf + 1) * sizeof *all.function_of);
    all.functions = gm_alloc((nf + 1) * sizeof *all.functions);
    all.local_bytes = gm_alloc((nf + 1) * sizeof *all.local_bytes);
    if (!used || !all.address || !all.function_of || !all.functions || !all.local_bytes || !gm_lower_names(&all))
        goto done;
    memset(used, 0, nv + 1);
    memset(all.address, 0, (nv + 1) * sizeof *all.address);
    memset(all.function_of, 0xff, (nf + 1) * sizeof *all.function_of);
    memset(all.local_bytes, 0, (nf + 1) * sizeof *all.local_bytes);
    program->shared_grain = program->global_grain = 4;
    all.functions[0] = (uint32_t)(entry - module->functions);
    all.function_of[all.functions[0]] = 0;
    all.function_count = 1;
    reach_all(&(reach){&all, used});
    program->functions = gm_alloc(all.function_count * sizeof *program->functions);
    if (!program->functions)
        goto done;
    memset(program->functions, 0, all.function_count * sizeof *program->functions);
    program->function_count = all.function_count;
    if (module->address_bits != 64) {
        failure->status = status = GM_LENS_UNSUPPORTED;
        snprintf(failure->text, sizeof failure->text, "%s: 32-bit addresses (.address_size 32)", module->name);
        goto done;
    }
    if (entry->parameter_bytes > MOST_PARAMETERS) {
        failure->status = status = GM_LENS_UNSUPPORTED;
        snprintf(failure->text, sizeof failure->text, "%s: %.200s takes %llu bytes of parameters, and can take %d",
                 module->name, entry->name, (unsigned long long)entry->parameter_bytes, MOST_PARAMETERS);
        goto done;
    }
    status = describe(program, module, entry);
    if (!status)
        status = place_variables(&all, used);
    for (uint32_t f = 0; f < all.function_count && !status; f++)
        status = gm_lower_function(&all, f);
    gm_lens_stretch *stretches = (gm_lens_stretch *)(uintptr_t)program->kernel.stretches;
    for (size_t s = 0, at = 0; s < program->kernel.stretch_count && !status; at += stretches[s++].count)
        stretches[s].opcodes = program->opcodes + at;
    /* Calls name the callee's parameters as variables until all slots are known. */
    for (size_t i = 0; i < program->argument_count && !status; i++)
        program->arguments[i].callee = (uint32_t)all.address[program->arguments[i].callee];
done:
    if (status == GM_NO_MEMORY) {
        failure->status = status;
        snprintf(failure->text, sizeof failure->text, "decoding a kernel");
    }
    program->addresses = all.address;
    program->function_of = all.function_of;
    gm_free(used);
    gm_free(all.functions);
    gm_free(all.local_bytes);
    gm_free(all.names);
    return status;
}

void gm_program_free(gm_program *program)
{
    for (size_t i = 0; i < program->function_count && program->functions; i++)
        gm_free((void *)(uintptr_t)program->functions[i].constants);
    for (gm_words *w = program->words, *next; w; w = next) {
        next = w->next;
        gm_free(w);
    }
    gm_free(program->code);
    gm_free(program->places);
    gm_free(program->lists);
    gm_free(program->functions);
    gm_free(program->function_of);
    gm_free(program->arguments);
    gm_free(program->variables);
    gm_free(program->addresses);
    gm_free(program->site_places);
    gm_free(program->site_access);
    gm_free(program->site_how);
    gm_free(program->site_nc);
    gm_free(program->opcodes);
    gm_free((void *)(uintptr_t)program->kernel.stretches);
    gm_free((void *)(uintptr_t)program->kernel.sites);
    gm_free((void *)(uintptr_t)program->kernel.parameters);
}
