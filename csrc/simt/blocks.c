/* Blocks: their memory, their start, and whose turn it is. A worker (one host thread) keeps a bounded number of blocks
 * alive. It runs one until it ends; where a block keeps asking memory for something, the next ones are begun and take
 * turns with it, so that a block can wait for another one, earlier or later in the grid. */
#include "machine.h"
#include "ptx.h"
#include "run.h"
#include "../base/integers.h"
#include "../base/memory.h"
#include <stdio.h>
#include <string.h>

enum { MOST_RESIDENT = 2048, MOST_DEPTH = 2048, PATIENCE = 64 };

/* gm_alloc within the run's limit; NULL stops the run. */
static void *take_memory(gm_run *run, size_t bytes)
{
    uint64_t limit = run->launch->memory ? run->launch->memory : GM_LENS_MEMORY;
    uint64_t before = atomic_fetch_add(&run->memory, bytes);
    if (before > limit || bytes > limit - before) {
        atomic_fetch_sub(&run->memory, bytes);
        char text[160];
        snprintf(text, sizeof text, "the kernel needs more than the limit of %llu bytes of memory",
                 (unsigned long long)limit);
        gm_stop(run, GM_LENS_LIMIT, text);
        return NULL;
    }
    void *memory = gm_alloc(bytes ? bytes : 1);
    if (memory == NULL) {
        atomic_fetch_sub(&run->memory, bytes);
        gm_stop(run, GM_NO_MEMORY, "the registers of a block");
    }
    return memory;
}

static void give_memory(gm_run *run, void *memory, size_t bytes)
{
    if (memory)
        atomic_fetch_sub(&run->memory, bytes);
    gm_free(memory);
}

/* --- constants of a frame -------------------------------------------------------------------------------------- */

static uint64_t special(const gm_warp *w, uint32_t lane, uint64_t which)
{
    const gm_run *run = w->worker->run;
    const gm_block *block = w->block;
    const uint32_t *ctaid = block->ctaid, *cluster = run->cluster;
    uint32_t at = w->index * GM_LANES + lane, bit = 1u << lane;
    if ((uint32_t)which == GM_SPECIAL_ENVREG) /* 1 and 2 are where blocks of a cooperative launch meet, high and low */
        return which >> 32 == 1 ? GM_MEETING >> 32 : which >> 32 == 2 ? (uint32_t)GM_MEETING : 0;
    switch (which) {
    case GM_SPECIAL_TID_X:
        return at % run->block[0];
    case GM_SPECIAL_TID_Y:
        return at / run->block[0] % run->block[1];
    case GM_SPECIAL_TID_Z:
        return at / run->block[0] / run->block[1] % run->block[2];
    case GM_SPECIAL_NTID_X:
    case GM_SPECIAL_NTID_Y:
    case GM_SPECIAL_NTID_Z:
        return run->block[which - GM_SPECIAL_NTID_X];
    case GM_SPECIAL_CTAID_X:
    case GM_SPECIAL_CTAID_Y:
    case GM_SPECIAL_CTAID_Z:
        return ctaid[which - GM_SPECIAL_CTAID_X];
    case GM_SPECIAL_NCTAID_X:
    case GM_SPECIAL_NCTAID_Y:
    case GM_SPECIAL_NCTAID_Z:
        return run->grid[which - GM_SPECIAL_NCTAID_X];
    case GM_SPECIAL_LANEID:
        return lane;
    case GM_SPECIAL_WARPID:
        return w->index;
    case GM_SPECIAL_NWARPID:
        return run->warps;
    case GM_SPECIAL_SMID:
        return block->number % 132;
    case GM_SPECIAL_NSMID:
        return 132;
    case GM_SPECIAL_LANEMASK_EQ:
        return bit;
    case GM_SPECIAL_LANEMASK_LT:
        return bit - 1;
    case GM_SPECIAL_LANEMASK_LE:
        return bit | (bit - 1);
    case GM_SPECIAL_LANEMASK_GT:
        return ~(bit | (bit - 1)) & GM_FULL;
    case GM_SPECIAL_LANEMASK_GE:
        return ~(bit - 1) & GM_FULL;
    case GM_SPECIAL_CLUSTERID_X:
    case GM_SPECIAL_CLUSTERID_Y:
    case GM_SPECIAL_CLUSTERID_Z:
        return ctaid[which - GM_SPECIAL_CLUSTERID_X] / cluster[which - GM_SPECIAL_CLUSTERID_X];
    case GM_SPECIAL_NCLUSTERID_X:
    case GM_SPECIAL_NCLUSTERID_Y:
    case GM_SPECIAL_NCLUSTERID_Z:
        return run->grid[which - GM_SPECIAL_NCLUSTERID_X] / cluster[which - GM_SPECIAL_NCLUSTERID_X];
    case GM_SPECIAL_CLUSTER_CTAID_X:
    case GM_SPECIAL_CLUSTER_CTAID_Y:
    case GM_SPECIAL_CLUSTER_CTAID_Z:
        return ctaid[which - GM_SPECIAL_CLUSTER_CTAID_X] % cluster[which - GM_SPECIAL_CLUSTER_CTAID_X];
    case GM_SPECIAL_CLUSTER_NCTAID_X:
    case GM_SPECIAL_CLUSTER_NCTAID_Y:
    case GM_SPECIAL_CLUSTER_NCTAID_Z:
        return cluster[which - GM_SPECIAL_CLUSTER_NCTAID_X];
    case GM_SPECIAL_CLUSTER_CTARANK:
        return block->rank;
    case GM_SPECIAL_CLUSTER_NCTARANK:
        return run->cluster_blocks;
    case GM_SPECIAL_IS_EXPLICIT_CLUSTER:
        return run->cluster_blocks > 1;
    case GM_SPECIAL_DYNAMIC_SMEM_SIZE:
        return run->launch->dynamic_shared;
    case GM_SPECIAL_TOTAL_SMEM_SIZE:
    case GM_SPECIAL_AGGR_SMEM_SIZE:
        return run->shared_bytes;
    default:
        return 0;
    }
}

static int differs_by_block(uint64_t which)
{
    return (which >= GM_SPECIAL_CTAID_X && which <= GM_SPECIAL_CTAID_Z) || which == GM_SPECIAL_SMID ||
           (which >= GM_SPECIAL_CLUSTERID_X && which <= GM_SPECIAL_CLUSTERID_Z) ||
           (which >= GM_SPECIAL_CLUSTER_CTAID_X && which <= GM_SPECIAL_CLUSTER_CTAID_Z) ||
           which == GM_SPECIAL_CLUSTER_CTARANK;
}

static void fill(const gm_warp *w, uint8_t *regs, const gm_constant *c)
{
    const gm_run *run = w->worker->run;
    uint8_t *to = regs + c->slot;
    if (c->filler == GM_FILL_PREDICATE) {
        uint32_t word = (uint32_t)c->value;
        memcpy(to, &word, 4);
        return;
    }
    uint64_t value[2] = {c->value, c->high};
    if (c->filler == GM_FILL_PARAMETER) {
        memset(value, 0, sizeof value);
        memcpy(value, run->parameters + c->value, c->bytes);
    }
    if (c->filler == GM_FILL_SPECIAL && c->value == GM_SPECIAL_IS_EXPLICIT_CLUSTER) {
        uint32_t word = run->cluster_blocks > 1 ? GM_FULL : 0;
        memcpy(to, &word, 4);
        return;
    }
    for (uint32_t lane = 0; lane < GM_LANES; lane++) {
        if (c->filler == GM_FILL_SPECIAL)
            value[0] = special(w, lane, c->value);
        if (c->bytes == 16) {
            memcpy(to + 8 * lane, &value[0], 8);
            memcpy(to + 256 + 8 * lane, &value[1], 8);
        } else {
            memcpy(to + c->bytes * lane, &value[0], c->bytes);
        }
    }
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

static int follows_values(const gm_run *run)
{
    return (run->launch->watch & GM_WATCH_REGISTERS) != 0;
}

/* A warp's local memory, and, where values are followed, whether each of its bytes was written. */
static uint64_t local_lanes(const gm_run *run)
{
    return follows_values(run) ? 2 * GM_LANES : GM_LANES;
}

static int grow_local(gm_warp *w, uint64_t bytes)
{
    if (bytes <= w->local_bytes)
        return 1;
    bytes = (bytes + 15) / 16 * 16;
    if (w->local_bytes && bytes < 2 * w->local_bytes)
        bytes = 2 * w->local_bytes; /* deep calls: few copies */
    gm_run *run = w->worker->run;
    const uint64_t lanes = local_lanes(run);
    uint8_t *larger = take_memory(run, bytes * lanes);
    if (larger == NULL)
        return 0;
    memset(larger, 0, bytes * lanes);
    for (uint64_t lane = 0; lane < lanes && w->local_bytes; lane++)
        memcpy(larger + lane * bytes, w->local + lane * w->local_bytes, w->local_bytes);
    give_memory(run, w->local, w->local_bytes * lanes);
    w->local = larger;
    w->local_bytes = bytes;
    return 1;
}

/* With what values.c keeps of each slot. */
static size_t frame_bytes(const gm_run *run, const gm_function *f)
{
    return (follows_values(run) ? 1 + GM_VALUE_WORDS : 1) * (size_t)f->frame_bytes;
}

gm_frame *gm_frame_new(gm_warp *w, uint32_t function, gm_frame *caller, uint32_t lanes)
{
    gm_run *run = w->worker->run;
    const gm_function *f = &run->program->functions[function];
    if (caller->depth + 1 > MOST_DEPTH) {
        gm_stop(run, GM_LENS_LIMIT, "calls lie more than 2048 deep in one another");
        return NULL;
    }
    gm_frame *frame = NULL, **at = &w->frames_free;
    while (*at && (*at)->function != f)
        at = &(*at)->caller;
    if (*at) {
        frame = *at;
        *at = frame->caller;
    } else {
        size_t head = (sizeof *frame + GM_ALIGNMENT - 1) / GM_ALIGNMENT * GM_ALIGNMENT;
        size_t bytes = head + frame_bytes(run, f);
        frame = take_memory(run, bytes);
        if (frame == NULL)
            return NULL;
        memset(frame, 0, bytes);
        frame->bytes = bytes;
        frame->regs = (uint8_t *)frame + head;
        frame->all = w->frames_all;
        w->frames_all = frame;
    }
    frame->caller = caller;
    frame->function = f;
    frame->lanes = lanes;
    frame->depth = caller->depth + 1;
    frame->local_base = caller->local_base + caller->function->local_bytes;
    for (int z = 0; z < 2; z++)
        memset(frame->regs + f->zero[z].from, 0, f->zero[z].bytes);
    for (size_t i = 0; i < f->constant_count; i++)
        fill(w, frame->regs, &f->constants[i]);
    if (f->local_bytes && !grow_local(w, (uint64_t)frame->local_base + f->local_bytes)) {
        gm_frame_free(w, frame);
        return NULL;
    }
    if (f->local_slot)
        for (uint32_t lane = 0; lane < GM_LANES; lane++) {
            uint64_t base = frame->local_base;
            memcpy(frame->regs + f->local_slot + 8 * lane, &base, 8);
        }
    for (uint32_t rest = w->step && f->local_bytes ? lanes : 0; rest; rest &= rest - 1)
        memset(w->local + (GM_LANES + (uint32_t)__builtin_ctz(rest)) * w->local_bytes + frame->local_base, 0,
               f->local_bytes);
    if (w->step)
        gm_values_begin(frame);
    return frame;
}

void gm_frame_free(gm_warp *w, gm_frame *frame)
{
    frame->caller = w->frames_free;
    w->frames_free = frame;
}

/* --- units ----------------------------------------------------------------------------------------------------- */

static void free_unit(gm_worker *worker, gm_unit *unit)
{
    gm_run *run = worker->run;
    for (uint32_t i = 0; i < unit->warp_count; i++) {
        gm_warp *w = &unit->warps[i];
        for (gm_frame *f = w->frames_all, *next; f; f = next) {
            next = f->all;
            give_memory(run, f, f->bytes);
        }
        for (gm_join *j = w->joins_all, *next; j; j = next) {
            next = j->all;
            gm_free(j);
        }
        give_memory(run, w->local, w->local_bytes * local_lanes(run));
    }
    for (uint32_t i = 0; i < unit->block_count; i++)
        gm_watch_free(unit->blocks[i].watch);
    give_memory(run, unit->memory, unit->bytes);
    gm_free(unit);
}

static size_t round64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Room for a unit: everything that its blocks' threads share or own, with all that never changes filled in. */
static gm_unit *new_unit(gm_worker *worker)
{
    gm_run *run = worker->run;
    const gm_function *entry = &run->program->functions[0];
    uint32_t blocks = run->cluster_blocks, warps = blocks * run->warps;
    size_t regs = round64(frame_bytes(run, entry)), shared = round64(run->shared_bytes);
    size_t head = round64(blocks * sizeof(gm_block)) + round64(warps * sizeof(gm_warp));
    gm_unit *unit = gm_alloc(sizeof *unit);
    if (unit == NULL) {
        gm_stop(run, GM_NO_MEMORY, "a block");
        return NULL;
    }
    memset(unit, 0, sizeof *unit);
    unit->bytes = head + blocks * shared + warps * regs;
    unit->memory = take_memory(run, unit->bytes);
    if (unit->memory == NULL) {
        gm_free(unit);
        return NULL;
    }
    memset(unit->memory, 0, unit->bytes);
    uint8_t *at = unit->memory;
    unit->blocks = (gm_block *)(void *)at;
    at += round64(blocks * sizeof(gm_block));
    unit->warps = (gm_warp *)(void *)at;
    at += round64(warps * sizeof(gm_warp));
    unit->block_count = blocks, unit->warp_count = warps;
    for (uint32_t b = 0; b < blocks; b++) {
        gm_block *block = &unit->blocks[b];
        block->unit = unit;
        block->rank = b;
        block->shared = at;
        at += shared;
        block->warps = unit->warps + b * run->warps;
        block->warp_count = run->warps;
        if (run->launch->watch & GM_WATCH_SHARED && run->shared_bytes) {
            block->watch = gm_watch_new(&(gm_watch_setup){.site = run->program->site_places,
                                                          .findings = &worker->findings,
                                                          .block = {run->block[0], run->block[1], run->block[2]},
                                                          .shared_bytes = run->shared_bytes,
                                                          .grain = run->program->shared_grain});
            if (block->watch == NULL) {
                gm_stop(run, GM_NO_MEMORY, "watching shared memory");
                free_unit(worker, unit);
                return NULL;
            }
        }
        for (uint32_t i = 0; i < run->warps; i++) {
            gm_warp *w = &block->warps[i];
            w->sites = worker->sites;
            w->ran = worker->ran;
            w->shared = block->shared;
            w->shared_bytes = run->shared_bytes;
            w->watch = block->watch;
            w->lists = run->program->lists;
            w->code = run->code;
            w->block = block;
            w->worker = worker;
            w->index = i;
            w->step = follows_values(run) ? gm_values_loop : NULL;
            w->bottom.regs = at;
            w->bottom.function = entry;
            at += regs;
            for (size_t c = 0; c < entry->constant_count; c++)
                fill(w, w->bottom.regs, &entry->constants[c]);
            if (!grow_local(w, entry->local_bytes)) {
                free_unit(worker, unit);
                return NULL;
            }
        }
    }
    return unit;
}

/* Sets the unit to the blocks of number `number`, at their first instruction. */
static void begin(gm_worker *worker, gm_unit *unit, uint64_t number)
{
    gm_run *run = worker->run;
    const gm_function *entry = &run->program->functions[0];
    const uint32_t *c = run->cluster;
    uint32_t clusters[2] = {run->grid[0] / c[0], run->grid[1] / c[1]};
    uint32_t first[3] = {(uint32_t)(number % clusters[0]) * c[0], (uint32_t)(number / clusters[0] % clusters[1]) * c[1],
                         (uint32_t)(number / clusters[0] / clusters[1]) * c[2]};
    unit->number = number;
    unit->threads = unit->block_count * run->threads;
    unit->barrier_came = 0;
    unit->barrier_turn = 0;
    unit->turns = 0;
    for (uint32_t b = 0; b < unit->block_count; b++) {
        gm_block *block = &unit->blocks[b];
        block->ctaid[0] = first[0] + b % c[0];
        block->ctaid[1] = first[1] + b / c[0] % c[1];
        block->ctaid[2] = first[2] + b / c[0] / c[1];
        block->number = block->ctaid[0] + run->grid[0] * (block->ctaid[1] + (uint64_t)run->grid[1] * block->ctaid[2]);
        block->live = run->threads;
        memset(block->barriers, 0, sizeof block->barriers);
        memset(block->shared, 0, run->shared_bytes);
        if (block->watch)
            gm_watch_block(block->watch, block->ctaid, block->number);
        for (uint32_t i = 0; i < block->warp_count; i++) {
            gm_warp *w = &block->warps[i];
            uint32_t threads = run->threads - i * GM_LANES;
            for (size_t k = 0; k < entry->constant_count; k++)
                if (entry->constants[k].filler == GM_FILL_SPECIAL && differs_by_block(entry->constants[k].value))
                    fill(w, w->bottom.regs, &entry->constants[k]);
            for (int z = 0; z < 2; z++)
                memset(w->bottom.regs + entry->zero[z].from, 0, entry->zero[z].bytes);
            if (w->step)
                gm_values_begin(&w->bottom);
            if (w->local_bytes)
                memset(w->local, 0, w->local_bytes * local_lanes(run));
            memset(w->cluster_turn, 0, sizeof w->cluster_turn);
            w->live = threads >= GM_LANES ? GM_FULL : (1u << threads) - 1;
            w->bottom.lanes = w->live;
            w->now = (gm_split){.pc = w->code + entry->start, .frame = &w->bottom, .mask = w->live};
            w->active = w->live;
            w->has_now = 1;
            w->split_count = 0;
            w->done = w->polled = 0;
        }
    }
}

/* What everybody waits for, in words and as findings. */
static void deadlock(gm_worker *worker, gm_unit *unit)
{
    const gm_program *program = worker->run->program;
    const gm_insn *seen[4] = {NULL};
    uint32_t threads[4] = {0}, kinds = 0;
    const gm_block *where = NULL;
    for (uint32_t i = 0; i < unit->warp_count; i++) {
        gm_warp *w = &unit->warps[i];
        for (uint32_t k = 0; k < w->split_count; k++) {
            gm_split *s = &w->splits[k];
            const gm_insn *in = s->wait == GM_AT_SYNC ? s->pc : s->pc - 1;
            gm_found(w, in, GM_FINDING_DEADLOCK, s->mask, NULL);
            where = where ? where : w->block;
            uint32_t j = 0;
            while (j < kinds && seen[j] != in)
                j++;
            if (j == kinds && kinds < 4)
                seen[kinds++] = in;
            if (j < 4)
                threads[j] += (uint32_t)__builtin_popcount(s->mask);
        }
    }
    char text[600];
    int at = snprintf(text, sizeof text, "block (%u, %u, %u) can't go on:", where ? where->ctaid[0] : 0,
                      where ? where->ctaid[1] : 0, where ? where->ctaid[2] : 0);
    for (uint32_t j = 0; j < kinds && at > 0 && at < (int)sizeof text; j++) {
        const gm_place *p = &program->places[seen[j] - worker->run->code];
        at += snprintf(text + at, sizeof text - (size_t)at, "%s %u threads wait at %s (line %u)", j ? "," : "",
                       threads[j], p->opcode ? p->opcode : "?", p->line);
    }
    gm_stop(worker->run, GM_LENS_DEADLOCK, text);
}

/* Runs the unit's warps until they end, or some had their turn and ask memory for something: 1 when ended. */
static int take_turn(gm_worker *worker, gm_unit *unit)
{
    gm_run *run = worker->run;
    uint64_t limit = run->launch->instructions ? run->launch->instructions : GM_LENS_INSTRUCTIONS;
    for (;;) {
        int ran = 0, over = 0, asks = 0;
        uint32_t done = 0;
        for (uint32_t i = 0; i < unit->warp_count; i++) {
            gm_warp *w = &unit->warps[i];
            if (!w->done) {
                ran |= gm_warp_run(w);
                over |= w->turn_over;
                asks |= w->asked;
            }
            done += w->done;
        }
        uint64_t all = atomic_fetch_add(&run->instructions, worker->instructions - worker->reported) +
                       (worker->instructions - worker->reported);
        worker->reported = worker->instructions;
        if (all > limit) {
            char text[120];
            snprintf(text, sizeof text, "the kernel executed more than %llu warp instructions, the limit",
                     (unsigned long long)limit);
            gm_stop(run, GM_LENS_LIMIT, text);
        }
        if (done == unit->warp_count)
            return 1;
        if (atomic_load_explicit(&run->stop, memory_order_relaxed))
            return 0;
        if (!ran) {
            int any = 0;
            for (uint32_t i = 0; i < unit->warp_count; i++)
                any |= gm_warp_unstick(&unit->warps[i]);
            if (!any) {
                deadlock(worker, unit);
                return 0;
            }
        }
        if (over && (asks || ++unit->turns % PATIENCE == 0))
            return 0;
    }
}

/* Blocks that wait for others stay alive; so many that memory runs out are not begun. */
static int room_for_another(const gm_worker *worker)
{
    gm_run *run = worker->run;
    uint64_t limit = run->launch->memory ? run->launch->memory : GM_LENS_MEMORY;
    if (worker->free_units || !worker->resident)
        return 1;
    return atomic_load_explicit(&run->memory, memory_order_relaxed) + worker->resident->bytes <= limit;
}

void gm_worker_run(gm_worker *worker)
{
    gm_run *run = worker->run;
    for (;;) {
        if (atomic_load_explicit(&run->stop, memory_order_relaxed))
            break;
        gm_unit *unit = NULL;
        uint64_t index;
        if (room_for_another(worker) && worker->resident_count < MOST_RESIDENT &&
            (index = atomic_fetch_add(&run->next_unit, 1)) < run->unit_count) {
            unit = worker->free_units;
            if (unit)
                worker->free_units = unit->next;
            else if (!(unit = new_unit(worker)))
                break;
            worker->newest = run->unit_first + index * run->unit_step;
            begin(worker, unit, worker->newest);
            worker->resident_count++;
        } else if ((unit = worker->resident) != NULL) {
            worker->resident = unit->next;
            if (worker->resident == NULL)
                worker->last = NULL;
        } else {
            break;
        }
        unit->next = NULL;
        if (take_turn(worker, unit)) {
            worker->blocks += unit->block_count;
            worker->resident_count--;
            unit->next = worker->free_units;
            worker->free_units = unit;
        } else if (worker->last) {
            worker->last->next = unit;
            worker->last = unit;
        } else {
            worker->resident = worker->last = unit;
        }
    }
    for (gm_unit *unit = worker->resident, *next; unit; unit = next) {
        next = unit->next;
        free_unit(worker, unit);
    }
    for (gm_unit *unit = worker->free_units, *next; unit; unit = next) {
        next = unit->next;
        free_unit(worker, unit);
    }
    worker->resident = worker->last = worker->free_units = NULL;
}
