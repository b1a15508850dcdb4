/* Loading a kernel, and one run of it. */
#include "lower.h"
#include "run.h"
#include "../base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORKERS = 256 };

struct gm_lens {
    gm_ptx *module;
    gm_program program, watched; /* watched: no two registers share a slot */
};

/* --- loading --------------------------------------------------------------------------------------------------- */

static const gm_ptx_function *entry_named(const gm_ptx *module, const char *kernel, gm_failure *failure)
{
    const gm_ptx_function *only = NULL;
    char names[700];
    size_t at = 0, count = 0;
    names[0] = 0;
    for (uint32_t i = 0; i < module->nfunctions; i++) {
        const gm_ptx_function *f = &module->functions[i];
        if (!f->is_entry || !f->has_body)
            continue;
        if (kernel && strcmp(kernel, f->name) == 0)
            return f;
        only = f;
        count++;
        int more = at < sizeof names ? snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", f->name) : 0;
        at += more > 0 ? (size_t)more : 0;
    }
    if (!kernel && count == 1)
        return only;
    gm_fail(failure, GM_LENS_KERNEL, kernel ? "'%.200s'; %s has %s" : "%.0sname one of those that %s has: %s",
            kernel ? kernel : "", module->name, count ? names : "none");
    return NULL;
}

gm_status gm_lens_load(gm_lens **lens, const char *text, size_t size, const char *file, const char *kernel,
                       gm_failure *failure)
{
    gm_lens *made = gm_alloc(sizeof *made);
    *lens = NULL;
    if (!made)
        return gm_fail(failure, GM_NO_MEMORY, "a kernel");
    memset(made, 0, sizeof *made);
    gm_status status = gm_ptx_parse(text, size, file, &made->module, failure);
    if (!status) {
        const gm_ptx_function *entry = entry_named(made->module, kernel, failure);
        status = entry ? gm_lower_kernel(&made->program, made->module, entry, failure) : failure->status;
    }
    if (status) {
        gm_lens_free(made);
        return status;
    }
    *lens = made;
    return GM_OK;
}

void gm_lens_free(gm_lens *lens)
{
    if (!lens)
        return;
    gm_program_free(&lens->program);
    gm_program_free(&lens->watched);
    gm_ptx_free(lens->module);
    gm_free(lens);
}

const gm_lens_kernel *gm_lens_describe(const gm_lens *lens)
{
    return &lens->program.kernel;
}

/* --- a run ----------------------------------------------------------------------------------------------------- */

static const gm_lens_isa *isa_named(const char *name)
{
    for (const gm_lens_isa *const *isa = gm_lens_isas; *isa; isa++)
        if ((!name || !*name || strcmp((*isa)->name, name) == 0) && (*isa)->runs_here())
            return *isa;
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    const gm_segment *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* ld.global.nc of what is written: there is something to look for where the kernel has both. */
static int reads_past_writes(const gm_program *program)
{
    int reads = 0, writes = 0;
    for (size_t s = 0; s < program->kernel.site_count; s++) {
        reads |= program->site_nc[s];
        writes |= program->kernel.sites[s].space != GM_SPACE_SHARED && program->site_how[s] & GM_HOW_WRITE;
    }
    return reads && writes;
}

static gm_watch_global *watch_global(const gm_run *run)
{
    size_t count = 0;
    const gm_lens_launch *l = run->launch;
    gm_watch_range *ranges = gm_alloc((l->buffer_count + 1) * sizeof *ranges);
    if (!ranges)
        return NULL;
    for (; count < l->buffer_count; count++) /* their places are in order: findings name buffers by number */
        ranges[count] = (gm_watch_range){l->buffers[count].address, l->buffers[count].size};
    gm_watch_global *made = gm_watch_global_new(&(gm_watch_global_setup){
        .site = run->program->site_places,
        .sites = run->program->kernel.site_count,
        .buffer = ranges,
        .buffers = count,
        .grid = {run->grid[0], run->grid[1], run->grid[2]},
        .block = {run->block[0], run->block[1], run->block[2]},
        .blocks = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2],
        .grain = run->program->global_grain,
        .races = (run->launch->watch & GM_WATCH_GLOBAL) != 0,
        .read_only = 1,
        .memory = run->launch->memory ? run->launch->memory : GM_LENS_MEMORY,
    });
    gm_free(ranges);
    return made;
}

static void collect(gm_lens_result *result, gm_run *run, gm_worker *workers, int count)
{
    const gm_program *p = run->program;
    for (int i = 0; i < count; i++) {
        gm_worker *w = &workers[i];
        result->instructions += w->instructions;
        result->blocks += w->blocks;
        for (uint32_t s = 0; s < p->kernel.site_count && w->sites; s++) {
            gm_site_settle(run, s, &w->sites[s]);
            const uint64_t *from = (const uint64_t *)&w->sites[s].counts;
            uint64_t *to = (uint64_t *)&result->counts[s];
            for (size_t k = 0; k < sizeof(gm_lens_counts) / sizeof(uint64_t); k++)
                to[k] += from[k];
        }
        for (size_t s = 0; s < p->kernel.stretch_count && w->ran; s++) {
            result->ran[s].warps += w->ran[s].warps;
            result->ran[s].lanes += w->ran[s].lanes;
            result->thread_instructions += w->ran[s].lanes * p->kernel.stretches[s].count;
        }
        if (result->findings)
            gm_findings_merge(result->findings, &w->findings);
    }
}

/* One go. `talks` becomes 1, and the rest is of no use, where blocks turned out to talk to one another on several
 * threads. */
static gm_status run_once(const gm_lens *lens, gm_lens_launch *launch, int threads, double until, int *talks,
                          gm_lens_result *result, gm_failure *failure)
{
    const gm_program *p = &lens->program;
    const gm_lens_isa *isa = isa_named(launch->isa);
    gm_failure stopped = {GM_OK, ""};
    gm_run run = {.lens = lens, .program = p, .launch = launch, .failure = &stopped, .until = until};
    gm_run_memory memory = {0};
    gm_worker *workers = NULL;
    gm_insn *code = NULL;
    int count = 0;
    memset(result, 0, sizeof *result);
    if (!isa)
        return gm_fail(failure, GM_LENS_LAUNCH, "no ISA '%.40s' here", launch->isa ? launch->isa : "");
    gm_status status = gm_check_launch(&run, failure);
    if (status)
        return status;
    run.machine = isa->machine;

    memory.segments = gm_alloc((p->variable_count + launch->buffer_count + 2) * sizeof *memory.segments);
    memory.parameters = gm_alloc(launch->parameter_bytes + 16);
    code = gm_alloc((p->count + 1) * sizeof *code);
    result->counts = gm_alloc((p->kernel.site_count + 1) * sizeof *result->counts);
    result->findings = gm_alloc(sizeof *result->findings);
    size_t ran_bytes = (p->kernel.stretch_count + 1) * sizeof *result->ran;
    result->ran = gm_alloc(ran_bytes);
    status = GM_NO_MEMORY;
    if (p->kernel.listens) {
        result->met_count = launch->buffer_count + 1;
        result->met = gm_alloc(result->met_count);
    }
    if (!memory.segments || !memory.parameters || !code || !result->counts || !result->findings || !result->ran ||
        (p->kernel.listens && !result->met))
        goto done;
    if (result->met)
        memset(result->met, 0, result->met_count);
    run.met = (_Atomic uint8_t *)result->met;
    memset(result->counts, 0, (p->kernel.site_count + 1) * sizeof *result->counts);
    memset(result->findings, 0, sizeof *result->findings);
    memset(result->ran, 0, ran_bytes);
    result->site_count = p->kernel.site_count;
    result->stretch_count = p->kernel.stretch_count;
    memcpy(code, p->code, p->count * sizeof *code);
    for (size_t i = 0; i < p->count; i++)
        code[i].run = run.machine->handlers[code[i].op];
    run.code = code;
    run.parameters = memory.parameters;
    status = gm_place_module(&run, lens->module, &memory, failure);
    if (!status)
        status = gm_place_buffers(&run, launch, &memory, failure);
    if (status)
        goto done;
    qsort(memory.segments, run.segment_count, sizeof *memory.segments, by_address);
    run.segments = memory.segments;

    status = GM_NO_MEMORY;
    int wanted = launch->watch & GM_WATCH_GLOBAL || (launch->watch && reads_past_writes(p));
    if (wanted && !(run.watch_global = watch_global(&run)))
        goto done;
    count = threads > 0 ? threads : 1;
    count = count > MOST_WORKERS ? MOST_WORKERS : count;
    if ((uint64_t)count > run.unit_count)
        count = run.unit_count ? (int)run.unit_count : 1;
    if (p->kernel.communicates || launch->watch & GM_WATCH_GLOBAL)
        count = 1;
    run.many = count > 1;
    workers = gm_alloc((size_t)count * sizeof *workers);
    if (!workers)
        goto done;
    memset(workers, 0, (size_t)count * sizeof *workers);
    for (int i = 0; i < count; i++) {
        workers[i].run = &run;
        workers[i].sites = gm_alloc((p->kernel.site_count + 1) * sizeof *workers[i].sites);
        workers[i].ran = gm_alloc(ran_bytes);
        if (!workers[i].sites || !workers[i].ran)
            goto done;
        memset(workers[i].sites, 0, (p->kernel.site_count + 1) * sizeof *workers[i].sites);
        memset(workers[i].ran, 0, ran_bytes);
    }
    status = gm_execute(&run, workers, count, failure);
    if (run.watch_global)
        gm_watch_global_report(run.watch_global, result->findings);
    collect(result, &run, workers, count);
    if (gm_patterns_collect(result, &run, workers, count))
        status = GM_NO_MEMORY;
    result->blocks_total = (uint64_t)run.grid[0] * run.grid[1] * run.grid[2];
    *talks = atomic_load(&run.stop) == GM_STOP_TALK;
    if (!status && !*talks && atomic_load(&run.stop)) {
        *failure = stopped;
        status = stopped.status;
    }
done:
    result->ended = status;
    if (status == GM_NO_MEMORY && failure->status != GM_NO_MEMORY)
        gm_fail(failure, GM_NO_MEMORY, "a run of the lens");
    for (int i = 0; workers && i < count; i++) {
        for (uint32_t s = 0; workers[i].sites && s < p->kernel.site_count; s++)
            for (uint32_t k = 0; k < workers[i].sites[s].used; k++)
                gm_free(workers[i].sites[s].patterns[k]);
        for (uint32_t s = 0; workers[i].sites && s < p->kernel.site_count; s++)
            gm_free(workers[i].sites[s].seen.list);
        gm_free(workers[i].sites);
        gm_free(workers[i].ran);
        gm_findings_free(&workers[i].findings);
    }
    gm_watch_global_free(run.watch_global);
    gm_free(workers);
    gm_free(code);
    gm_free(memory.segments);
    gm_free(memory.variables);
    gm_free(memory.parameters);
    return status;
}

/* Copies the buffers that a kernel may write to where they are kept, or back. */
static void keep_or_restore(const gm_lens_launch *launch, uint8_t *kept, int restore)
{
    for (size_t i = 0; i < launch->buffer_count; i++) {
        const gm_lens_buffer *b = &launch->buffers[i];
        if (b->read_only || b->size == 0)
            continue;
        memcpy(restore ? b->memory : kept, restore ? kept : b->memory, b->size);
        kept += b->size;
    }
}

/* A copy of all that the kernel may write; NULL where that is more than the run may take. */
static uint8_t *keep(const gm_lens_launch *launch)
{
    uint64_t limit = launch->memory ? launch->memory : GM_LENS_MEMORY, total = 1;
    for (size_t i = 0; i < launch->buffer_count; i++) {
        uint64_t size = launch->buffers[i].read_only ? 0 : launch->buffers[i].size;
        if (size > limit || total + size > limit)
            return NULL;
        total += size;
    }
    uint8_t *kept = gm_alloc(total);
    if (kept)
        keep_or_restore(launch, kept, 0);
    return kept;
}

gm_status gm_lens_run(const gm_lens *lens, gm_lens_launch *launch, gm_lens_result *result, gm_failure *failure)
{
    const gm_lens_kernel *kernel = &lens->program.kernel;
    double until = gm_now() + (launch->seconds > 0 ? launch->seconds : GM_LENS_SECONDS);
    int threads = launch->threads, talks = 0;
    uint8_t *kept = NULL;
    if (kernel->listens && threads > 1 && !kernel->communicates && !(launch->watch & GM_WATCH_GLOBAL) &&
        !(kept = keep(launch)))
        threads = 1;
    gm_status status = run_once(lens, launch, threads, until, &talks, result, failure);
    if (talks && kept) {
        keep_or_restore(launch, kept, 1);
        gm_lens_result_free(result);
        status = run_once(lens, launch, 1, until, &talks, result, failure);
    }
    gm_free(kept);
    return status;
}

void gm_lens_result_free(gm_lens_result *result)
{
    if (result->findings)
        gm_findings_free(result->findings);
    gm_free(result->findings);
    gm_free(result->counts);
    gm_free(result->ran);
    gm_free(result->patterns);
    gm_free(result->met);
    memset(result, 0, sizeof *result);
}
