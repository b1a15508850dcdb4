/* A launch: what no GPU would take is refused; everything that the kernel can reach gets its address. */
#include "ptx.h"
#include "run.h"
#include "../base/integers.h"
#include "../base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What the H200 and its like take. */
enum { MOST_THREADS = 1024, MOST_SHARED = 232448, MOST_CLUSTER = 16, GUARD = 1 << 16 };

gm_status gm_fail(gm_failure *failure, gm_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    failure->status = status;
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return status;
}

gm_status gm_check_launch(gm_run *run, gm_failure *failure)
{
    const gm_lens_launch *l = run->launch;
    const gm_lens_kernel *k = &run->program->kernel;
    const uint32_t most_block[3] = {1024, 1024, 64}, most_grid[3] = {INT32_MAX, 65535, 65535};
    const uint32_t grid[3] = {l->grid.x, l->grid.y, l->grid.z}, block[3] = {l->block.x, l->block.y, l->block.z};
    const uint32_t cluster[3] = {l->cluster.x, l->cluster.y, l->cluster.z};
    uint64_t threads = 1, cluster_blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (grid[i] == 0 || block[i] == 0)
            return gm_fail(failure, GM_LENS_LAUNCH, "grid (%u, %u, %u) of blocks of (%u, %u, %u) has a zero", grid[0],
                           grid[1], grid[2], block[0], block[1], block[2]);
        if (grid[i] > most_grid[i])
            return gm_fail(failure, GM_LENS_LAUNCH, "grid (%u, %u, %u): at most (%u, %u, %u)", grid[0], grid[1],
                           grid[2], most_grid[0], most_grid[1], most_grid[2]);
        if (block[i] > most_block[i])
            return gm_fail(failure, GM_LENS_LAUNCH,
                           "blocks of (%u, %u, %u) threads: at most (1024, 1024, 64), 1024 in all", block[0], block[1],
                           block[2]);
        threads *= block[i];
        run->grid[i] = grid[i], run->block[i] = block[i];
        run->cluster[i] = cluster[i] ? cluster[i] : k->cluster[i] ? k->cluster[i] : 1;
        cluster_blocks *= run->cluster[i];
        if (cluster_blocks > MOST_CLUSTER || grid[i] % run->cluster[i])
            return gm_fail(
                failure, GM_LENS_LAUNCH,
                "clusters of (%u, %u, %u) blocks: at most 16 in all, and they must divide the grid (%u, %u, %u)",
                run->cluster[0], run->cluster[1] ? run->cluster[1] : 1, run->cluster[2] ? run->cluster[2] : 1, grid[0],
                grid[1], grid[2]);
        if (k->reqntid[0] && block[i] != (k->reqntid[i] ? k->reqntid[i] : 1))
            return gm_fail(failure, GM_LENS_LAUNCH, "blocks of (%u, %u, %u): %s demands (%u, %u, %u) (.reqntid)",
                           block[0], block[1], block[2], k->name, k->reqntid[0], k->reqntid[1] ? k->reqntid[1] : 1,
                           k->reqntid[2] ? k->reqntid[2] : 1);
    }
    uint64_t most = MOST_THREADS;
    if (k->maxntid[0])
        most = (uint64_t)k->maxntid[0] * (k->maxntid[1] ? k->maxntid[1] : 1) * (k->maxntid[2] ? k->maxntid[2] : 1);
    if (threads > MOST_THREADS)
        return gm_fail(failure, GM_LENS_LAUNCH, "blocks of (%u, %u, %u) threads are %llu: at most 1024", block[0],
                       block[1], block[2], (unsigned long long)threads);
    if (threads > most)
        return gm_fail(failure, GM_LENS_LAUNCH,
                       "blocks of %llu threads: %s takes at most %llu (.maxntid; CUDA's error 701)",
                       (unsigned long long)threads, k->name, (unsigned long long)most);
    run->threads = (uint32_t)threads;
    run->warps = (run->threads + GM_LANES - 1) / GM_LANES;
    run->cluster_blocks = (uint32_t)cluster_blocks;
    uint64_t shared = l->dynamic_shared ? (uint64_t)run->program->dynamic_offset + l->dynamic_shared : k->static_shared;
    if (shared > MOST_SHARED)
        return gm_fail(failure, GM_LENS_LAUNCH,
                       "%u bytes of static and %u of dynamic shared memory: a block has at most %d together",
                       k->static_shared, l->dynamic_shared, MOST_SHARED);
    run->shared_bytes = (uint32_t)shared;
    if (l->parameter_bytes != k->parameter_bytes)
        return gm_fail(failure, GM_LENS_LAUNCH, "a parameter block of %zu bytes: %s takes %u", l->parameter_bytes,
                       k->name, k->parameter_bytes);
    for (size_t i = 0; i < l->pointer_count; i++)
        if (l->pointers[i].buffer >= l->buffer_count || l->pointers[i].at > l->parameter_bytes ||
            l->parameter_bytes - l->pointers[i].at < 8)
            return gm_fail(failure, GM_LENS_LAUNCH, "pointer %zu lies outside of the parameters or the buffers", i);
    uint64_t units = (uint64_t)grid[0] / run->cluster[0] * (grid[1] / run->cluster[1]) * (grid[2] / run->cluster[2]);
    run->unit_first = l->first;
    run->unit_step = l->step ? l->step : 1;
    uint64_t left = l->first < units ? (units - l->first + run->unit_step - 1) / run->unit_step : 0;
    run->unit_count = l->units && l->units < left ? l->units : left;
    return GM_OK;
}

/* --- memory ---------------------------------------------------------------------------------------------------- */

static uint64_t generic_address(const gm_run *run, const gm_ptx *module, uint32_t variable, int generic)
{
    uint64_t address = run->program->addresses[variable];
    if (generic && module->variables[variable].space == GM_SPACE_SHARED)
        address += GM_SHARED_WINDOW;
    return address;
}

/* 0: a function that this kernel cannot reach. */
static uint64_t function_address(const gm_program *p, uint32_t function)
{
    uint32_t number = p->function_of[function];
    return number == GM_NOWHERE ? 0 : GM_CODE_START + 16 * (uint64_t)number;
}

/* The module's own variables, with their initial bytes, in one block. */
gm_status gm_place_module(gm_run *run, const gm_ptx *module, gm_run_memory *m, gm_failure *failure)
{
    const gm_program *p = run->program;
    uint64_t limit = run->launch->memory ? run->launch->memory : GM_LENS_MEMORY, total = 0;
    for (size_t i = 0; i < p->variable_count; i++) {
        total += (p->variables[i].variable->size + 255) / 256 * 256;
        if (total > limit)
            return gm_fail(failure, GM_LENS_LIMIT, "the module's variables take more than the limit of %llu bytes",
                           (unsigned long long)limit);
    }
    m->variables = gm_alloc(total + 64);
    if (!m->variables)
        return gm_fail(failure, GM_NO_MEMORY, "the module's variables");
    memset(m->variables, 0, total + 64);
    atomic_fetch_add(&run->memory, total);
    uint8_t *at = m->variables;
    for (size_t i = 0; i < p->variable_count; i++) {
        const gm_ptx_variable *v = p->variables[i].variable;
        if (v->ndata)
            memcpy(at, v->data, v->ndata);
        for (uint32_t k = 0; k < v->nfixups; k++) {
            const gm_ptx_fixup *f = &v->fixups[k];
            uint64_t value = f->is_function ? function_address(p, f->index)
                                            : generic_address(run, module, f->index, f->generic) + (uint64_t)f->plus;
            value >>= f->shift & 63;
            if (f->at <= v->size && f->size <= 8 && f->size <= v->size - f->at)
                memcpy(at + f->at, &value, f->size);
        }
        m->segments[run->segment_count++] = (gm_segment){.start = p->variables[i].address,
                                                         .end = p->variables[i].address + v->size,
                                                         .host = at,
                                                         .writable = v->space == GM_SPACE_GLOBAL,
                                                         .buffer = -1,
                                                         .name = v->name};
        at += (v->size + 255) / 256 * 256;
    }
    m->segments[run->segment_count++] = (gm_segment){
        .start = GM_MEETING, .end = GM_MEETING + 64, .host = at, .writable = 1, .buffer = -1, .name = "grid barrier"};
    return GM_OK;
}

gm_status gm_place_buffers(gm_run *run, gm_lens_launch *launch, gm_run_memory *m, gm_failure *failure)
{
    uint64_t at = GM_BUFFERS_START;
    for (size_t i = 0; i < launch->buffer_count; i++) {
        gm_lens_buffer *b = &launch->buffers[i];
        if (b->size > UINT64_C(1) << 46 || b->lead > 255)
            return gm_fail(failure, GM_LENS_LAUNCH, "buffer %zu of %llu bytes, %u behind a multiple of 256", i,
                           (unsigned long long)b->size, b->lead);
        b->address = at + b->lead;
        if (b->size)
            m->segments[run->segment_count++] = (gm_segment){.start = b->address,
                                                             .end = b->address + b->size,
                                                             .host = b->memory,
                                                             .writable = !b->read_only,
                                                             .buffer = (int32_t)i,
                                                             .name = b->name};
        at = (b->address + b->size + 255) / 256 * 256 + GUARD;
    }
    memcpy(m->parameters, launch->parameters ? launch->parameters : "", launch->parameter_bytes);
    for (size_t i = 0; i < launch->pointer_count; i++) {
        uint64_t address = launch->buffers[launch->pointers[i].buffer].address + (uint64_t)launch->pointers[i].offset;
        memcpy(m->parameters + launch->pointers[i].at, &address, 8);
    }
    return GM_OK;
}
