/* A function made ready: instructions get handlers, memory instructions sites, blocks stretches. */
#include "lower.h"
#include "../base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ARGUMENT = 4096 };

/* --- growing arrays -------------------------------------------------------------------------------------------- */

/* Room for `count` items; 0 where there is no memory. */
int gm_lower_room(void *array, size_t *capacity, size_t count, size_t size)
{
    void *old, *larger;
    if (count <= *capacity)
        return 1;
    size_t more = *capacity ? *capacity * 2 : 64;
    more = more < count ? count : more;
    larger = gm_alloc(more * size);
    if (larger == NULL)
        return 0;
    memcpy(&old, array, sizeof old);
    if (old)
        memcpy(larger, old, *capacity * size);
    gm_free(old);
    memcpy(array, &larger, sizeof larger);
    *capacity = more;
    return 1;
}

void gm_lower_no_memory(gm_lower *l)
{
    if (!l->status) {
        l->status = l->failure->status = GM_NO_MEMORY;
        snprintf(l->failure->text, sizeof l->failure->text, "decoding a kernel");
    }
}

void gm_lower_refuse(gm_lower *l, const char *format, ...)
{
    if (l->status)
        return;
    l->status = l->failure->status = GM_LENS_UNSUPPORTED;
    int at = snprintf(l->failure->text, sizeof l->failure->text, "%s:%u: ", l->module->name,
                      l->inst ? l->inst->line : l->function->line);
    va_list arguments;
    va_start(arguments, format);
    if (at > 0 && at < (int)sizeof l->failure->text)
        vsnprintf(l->failure->text + at, sizeof l->failure->text - (size_t)at, format, arguments);
    va_end(arguments);
}

/* --- handlers by name ------------------------------------------------------------------------------------------ */

static const char *const handler_names[GM_DO_COUNT] = {
#define GM_HANDLER(name, ...) #name,
#include "handlers.def"
#undef GM_HANDLER
};

enum { NAME_HASH = 2048 };

static uint32_t hash_name(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h % NAME_HASH;
}

int gm_lower_names(gm_lower_all *all)
{
    all->names = gm_alloc(NAME_HASH * sizeof *all->names);
    if (!all->names)
        return 0;
    for (int i = 0; i < NAME_HASH; i++)
        all->names[i] = GM_DO_COUNT;
    for (int i = 0; i < GM_DO_COUNT; i++) {
        uint32_t at = hash_name(handler_names[i]);
        while (all->names[at] != GM_DO_COUNT)
            at = (at + 1) % NAME_HASH;
        all->names[at] = (uint16_t)i;
    }
    return 1;
}

gm_insn *gm_lower_named(gm_lower *l, const char *format, ...)
{
    char name[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    for (uint32_t at = hash_name(name); l->all->names[at] != GM_DO_COUNT; at = (at + 1) % NAME_HASH)
        if (strcmp(handler_names[l->all->names[at]], name) == 0)
            return gm_lower_emit(l, (gm_do)l->all->names[at]);
    char text[200];
    gm_ptx_print_inst(l->module, l->function, l->inst, text, sizeof text);
    gm_lower_refuse(l, "%s is read, but not executed yet", text);
    return gm_lower_emit(l, GM_DO_nop);
}

/* --- code ------------------------------------------------------------------------------------------------------ */

/* Text that lives as long as the program. */
static const char *keep(gm_lower *l, const char *from, size_t length)
{
    gm_program *p = l->program;
    gm_words *words = p->words;
    if (!words || words->used + length + 1 > sizeof words->text) {
        words = gm_alloc(sizeof *words);
        if (!words) {
            gm_lower_no_memory(l);
            return "";
        }
        words->next = p->words;
        words->used = 0;
        p->words = words;
    }
    char *to = words->text + words->used;
    memcpy(to, from, length);
    to[length] = 0;
    words->used += length + 1;
    return to;
}

/* The opcode with its modifiers: what stands before the operands. */
static const char *opcode_of(gm_lower *l)
{
    char text[256];
    gm_ptx_print_opcode(l->inst, text, sizeof text);
    size_t length = strlen(text);
    gm_program *p = l->program;
    /* The same words once. */
    const char *last = p->count ? p->places[p->count - 1].opcode : NULL;
    if (last && strlen(last) == length && memcmp(last, text, length) == 0)
        return last;
    return keep(l, text, length);
}

/* See gm_place. Instructions of one call follow one another. */
static const char *calls_of(gm_lower *l, const gm_ptx_loc *loc)
{
    enum { DEEPEST = 16 };
    char text[1024];
    size_t used = 0;
    if (loc->inlined == l->call)
        return l->calls;
    uint32_t i = loc->inlined;
    for (int depth = 0; i && i < l->module->nlocs && depth < DEEPEST; depth++, i = l->module->locs[i].inlined) {
        const gm_ptx_loc *at = &l->module->locs[i];
        int length = snprintf(text + used, sizeof text - used, "%s%s:%u", used ? "\n" : "",
                              at->file < l->module->nfiles ? l->module->files[at->file] : "", at->line);
        if (length < 0 || used + (size_t)length >= sizeof text)
            break;
        used += (size_t)length;
    }
    l->call = loc->inlined;
    return l->calls = used ? keep(l, text, used) : NULL;
}

static gm_place place_now(gm_lower *l)
{
    gm_place place = {.opcode = ""};
    if (!l->inst)
        return place;
    const gm_ptx_loc *loc = l->inst->loc && l->inst->loc < l->module->nlocs ? &l->module->locs[l->inst->loc] : NULL;
    place.line = l->inst->line;
    if (loc && loc->line) {
        place.file = loc->file < l->module->nfiles ? l->module->files[loc->file] : NULL;
        place.file_line = loc->line;
        place.calls = calls_of(l, loc);
    }
    place.opcode = l->opcode;
    return place;
}

gm_insn *gm_lower_emit(gm_lower *l, gm_do what)
{
    static _Thread_local gm_insn nowhere; /* what is written to after memory ran out */
    gm_program *p = l->program;
    if (!gm_lower_room(&p->code, &l->all->code_room, p->count + 1, sizeof *p->code) ||
        !gm_lower_room(&p->places, &l->all->place_room, p->count + 1, sizeof *p->places)) {
        gm_lower_no_memory(l);
        return &nowhere;
    }
    gm_insn *in = &p->code[p->count];
    memset(in, 0, sizeof *in);
    in->op = (uint16_t)what;
    in->x = GM_NOWHERE;
    if (l->inst && l->inst->guard != GM_PTX_NO_REG) {
        in->guard = l->slot[l->inst->guard];
        in->invert = l->inst->guard_negated ? GM_FULL : 0;
    }
    p->places[p->count++] = place_now(l);
    return in;
}

uint32_t gm_lower_list(gm_lower *l, const uint32_t *slots, uint32_t count)
{
    gm_program *p = l->program;
    if (!gm_lower_room(&p->lists, &l->all->list_room, p->list_count + count, sizeof *p->lists)) {
        gm_lower_no_memory(l);
        return 0;
    }
    memcpy(p->lists + p->list_count, slots, count * sizeof *slots);
    p->list_count += count;
    return (uint32_t)(p->list_count - count);
}

uint32_t gm_lower_argument(gm_lower *l, gm_argument argument)
{
    gm_program *p = l->program;
    if (!gm_lower_room(&p->arguments, &l->all->argument_room, p->argument_count + 1, sizeof *p->arguments)) {
        gm_lower_no_memory(l);
        return 0;
    }
    p->arguments[p->argument_count] = argument;
    return (uint32_t)p->argument_count++;
}

uint32_t gm_lower_site(gm_lower *l, gm_site_kind kind, gm_space space, gm_access access, unsigned how, uint32_t bytes)
{
    gm_program *p = l->program;
    size_t rooms[5];
    for (int i = 0; i < 5; i++)
        rooms[i] = l->all->site_room;
    gm_lens_site *sites = (gm_lens_site *)(uintptr_t)p->kernel.sites;
    size_t n = p->kernel.site_count;
    int ok = gm_lower_room(&sites, &rooms[0], n + 1, sizeof *sites);
    p->kernel.sites = sites;
    ok = ok && gm_lower_room(&p->site_places, &rooms[1], n + 1, sizeof *p->site_places) &&
         gm_lower_room(&p->site_access, &rooms[2], n + 1, 1) && gm_lower_room(&p->site_how, &rooms[3], n + 1, 1) &&
         gm_lower_room(&p->site_nc, &rooms[4], n + 1, 1);
    if (!ok) {
        gm_lower_no_memory(l);
        return 0;
    }
    l->all->site_room = rooms[4];
    gm_place place = place_now(l);
    sites[n] = (gm_lens_site){.opcode = place.opcode,
                              .file = place.file,
                              .line = place.line,
                              .file_line = place.file_line,
                              .calls = place.calls,
                              .kind = (uint8_t)kind,
                              .space = (uint8_t)space,
                              .lane_bytes = (uint16_t)bytes};
    p->site_places[n] = place;
    p->site_access[n] = (uint8_t)access;
    p->site_how[n] = (uint8_t)how;
    p->site_nc[n] = l->inst->mod[GM_FIELD_NC] != GM_MOD_NONE;
    p->kernel.site_count = n + 1;
    p->fences |= (how & GM_HOW_ORDERS) != 0;
    uint32_t least = bytes < 4 ? bytes : 4;
    if (space == GM_SPACE_SHARED || space == GM_SPACE_GENERIC || space == GM_SPACE_SHARED_CLUSTER)
        p->shared_grain = least < p->shared_grain ? least : p->shared_grain;
    if (space == GM_SPACE_GLOBAL || space == GM_SPACE_GENERIC)
        p->global_grain = least < p->global_grain ? least : p->global_grain;
    return (uint32_t)n;
}

/* --- a function ------------------------------------------------------------------------------------------------ */

/* .param variables that are no entry's parameters: 32 lanes of bytes each. */
static void place_arguments(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    for (uint32_t v = 0; v < l->module->nvariables; v++) {
        const gm_ptx_variable *variable = &l->module->variables[v];
        if (variable->space != GM_SPACE_PARAM || variable->function != (int32_t)(f - l->module->functions) ||
            (f->is_entry && v >= f->first_parameter && v < f->first_parameter + f->nparameters))
            continue;
        if (variable->size > MOST_ARGUMENT)
            gm_lower_refuse(l, "the parameter %s of a call has more than %d bytes", variable->name, MOST_ARGUMENT);
        l->frame = (l->frame + 63) / 64 * 64;
        l->all->address[v] = l->frame;
        l->frame += (uint32_t)variable->size * GM_LANES;
        if (l->frame > GM_MOST_FRAME)
            gm_lower_refuse(l, "%s has more parameters than fit", f->name);
    }
    l->frame = (l->frame + 63) / 64 * 64;
}

/* A stretch without its opcodes: they move while there come more. */
static uint32_t new_stretch(gm_lower *l, uint32_t count)
{
    gm_lens_kernel *k = &l->program->kernel;
    gm_lens_stretch *stretches = (gm_lens_stretch *)(uintptr_t)k->stretches;
    int ok = gm_lower_room(&stretches, &l->all->stretch_room, k->stretch_count + 1, sizeof *stretches);
    k->stretches = stretches;
    if (!ok) {
        gm_lower_no_memory(l);
        return 0;
    }
    stretches[k->stretch_count] = (gm_lens_stretch){NULL, count};
    return (uint32_t)k->stretch_count++;
}

static void add_opcode(gm_lower *l)
{
    gm_program *p = l->program;
    if (!gm_lower_room(&p->opcodes, &l->all->opcode_room, p->opcode_count + 1, sizeof *p->opcodes)) {
        gm_lower_no_memory(l);
        return;
    }
    p->opcodes[p->opcode_count++] = l->opcode;
}

static void write_code(gm_lower *l)
{
    const gm_ptx_function *f = l->function;
    gm_program *p = l->program;
    uint32_t start = (uint32_t)p->count;
    for (uint32_t b = 0; b < l->flow.count && !l->status; b++) {
        gm_flow_block *block = &l->flow.blocks[b];
        l->inst = NULL;
        l->opcode = "";
        l->block = b;
        block->code = (uint32_t)p->count;
        gm_insn *in = gm_lower_emit(l, block->is_meet ? GM_DO_join_block : GM_DO_block);
        in->imm = block->end - block->first;
        in->x = new_stretch(l, block->end - block->first);
        for (uint32_t i = block->first; i < block->end && !l->status; i++) {
            l->inst = &f->insts[i];
            l->opcode = opcode_of(l);
            add_opcode(l);
            l->used_temps = l->used_pred_temps = 0;
            gm_lower_inst(l);
        }
        if (block->first == f->ninsts) {
            l->inst = NULL;
            gm_lower_emit(l, GM_DO_ret); /* falls off the end */
        }
    }
    if (l->status)
        return;
    /* Branches name blocks until now. */
    for (uint32_t i = start; i < p->count; i++) {
        gm_insn *in = &p->code[i];
        if (in->op == GM_DO_bra || in->op == GM_DO_bra_uni || in->op == GM_DO_brx) {
            if (in->op == GM_DO_brx)
                for (uint32_t k = 0; k < in->n; k++)
                    p->lists[in->x + k] = l->flow.blocks[p->lists[in->x + k]].code;
            else
                in->x = l->flow.blocks[in->x].code;
            in->e = in->e == GM_NOWHERE ? GM_NOWHERE : l->flow.blocks[in->e].code;
        }
    }
}

gm_status gm_lower_function(gm_lower_all *all, uint32_t number)
{
    const gm_ptx_function *f = &all->module->functions[all->functions[number]];
    gm_program *p = all->program;
    gm_lower l = {.module = all->module,
                  .function = f,
                  .program = p,
                  .failure = all->failure,
                  .number = number,
                  .all = all,
                  .opcode = ""};
    gm_status status = gm_flow_make(&l.flow, all->module, f);
    if (status) {
        all->failure->status = status;
        snprintf(all->failure->text, sizeof all->failure->text, "decoding %s", f->name);
        gm_flow_free(&l.flow);
        return status;
    }
    l.slot = gm_alloc((f->nregs + 1) * sizeof *l.slot);
    l.aliased = gm_alloc(f->nregs + 1);
    if (!l.slot || !l.aliased)
        gm_lower_no_memory(&l);
    if (!l.status) {
        memset(l.slot, 0, (f->nregs + 1) * sizeof *l.slot);
        memset(l.aliased, 0, f->nregs + 1);
        gm_lower_place_predicates(&l);
        place_arguments(&l);
        if (number && all->local_bytes[number])
            l.local_slot = gm_lower_new_slot(&l, 8);
        uint32_t truth = gm_lower_constant(&l, GM_FILL_PREDICATE, 1, GM_FULL, 0);
        if (!l.status)
            l.constants[0].slot = 0; /* not `truth`: the word that instructions without a guard name */
        (void)truth;
        gm_lower_alias_registers(&l);
        gm_lower_place_registers(&l);
    }
    gm_function *done = &p->functions[number];
    done->name = f->name;
    done->start = (uint32_t)p->count;
    if (!l.status) {
        for (uint32_t r = 0; r < f->nregs; r++)
            if (!l.slot[r])
                l.slot[r] = 64; /* never used */
        write_code(&l);
        done->frame_bytes = (l.frame + 63) / 64 * 64;
        done->zero[0] = (gm_range){GM_CARRY_SLOT, l.pred_bytes};
        done->zero[1] = (gm_range){l.zero_from, l.zero_bytes};
        done->local_bytes = (uint32_t)all->local_bytes[number];
        done->local_slot = l.local_slot;
        done->constants = l.constants;
        done->constant_count = l.constant_count;
        l.constants = NULL;
    }
    status = l.status;
    gm_free(l.slot);
    gm_free(l.aliased);
    gm_free(l.constants);
    gm_free(l.constant_hash);
    gm_flow_free(&l.flow);
    return status;
}
