/* The watch of global memory: races between blocks, and memory that is read through the read-only path and written.
 *
 * Races: each place keeps its last writer and two readers, as blocks. Nothing orders two blocks but what one releases
 * and the other acquires, so that in most kernels any two accesses of one place, one of them a write, are a race.
 *
 * Read-only path: two bits a place, "read by ld.global.nc" and "written". They are set in any order by any number of
 * host threads, and compared at the end, which makes the result independent of both. */
#include "watch.h"
#include "../base/memory.h"
#include "count_lanes.h"
#include "space.h"
#include <string.h>

enum {
    CHUNK_PLACES = 1 << 15, /* what is allocated at once, when it is first touched */
    WORDS = CHUNK_PLACES / 64,
    FLAG_ATOMIC = 1 << 0,
    MOST_PAIRS = 64, /* of instructions, for the read-only path */
};

/* An access of a place. */
typedef struct gm_visit {
    uint32_t block; /* its number + 1; 0: none */
    uint32_t time, site;
    uint32_t by; /* the thread, times 2, and FLAG_ATOMIC */
} gm_visit;

typedef struct gm_cell {
    gm_visit write, read[2];
} gm_cell;

typedef struct gm_chunk {
    uint64_t nc[WORDS], written[WORDS];
    gm_cell cell[]; /* CHUNK_PLACES of them where races are watched */
} gm_chunk;

/* Where a site went, from the lowest to behind the highest byte. */
typedef struct gm_reach {
    uint64_t low, high;
} gm_reach;

struct gm_watch_global {
    gm_watch_global_setup setup;
    gm_watch_range *buffer;
    gm_chunk ***chunk;     /* [buffer][place / CHUNK_PLACES] */
    gm_reach *nc, *stores; /* a site */
    unsigned shift;
    uint32_t now;                  /* counts releases and acquires */
    uint32_t *released, *acquired; /* when each block last did */
    uint64_t taken;                /* bytes */
    int short_of_memory;
};

static void *cleared(size_t size)
{
    void *memory = gm_alloc(size ? size : 1);
    return memory ? memset(memory, 0, size) : NULL;
}

static size_t chunks_of(const gm_watch_global *watch, size_t buffer)
{
    return (size_t)(watch->buffer[buffer].size >> watch->shift) / CHUNK_PLACES + 1;
}

gm_watch_global *gm_watch_global_new(const gm_watch_global_setup *setup)
{
    gm_watch_global *watch = cleared(sizeof *watch);
    if (!watch)
        return NULL;
    watch->setup = *setup;
    watch->shift = setup->grain == 1 ? 0 : setup->grain == 2 ? 1 : 2;
    watch->buffer = cleared(setup->buffers * sizeof *watch->buffer);
    watch->chunk = cleared(setup->buffers * sizeof *watch->chunk);
    watch->nc = cleared(setup->sites * sizeof *watch->nc);
    watch->stores = cleared(setup->sites * sizeof *watch->stores);
    int good = watch->buffer && watch->chunk && watch->nc && watch->stores;
    if (setup->races) {
        watch->released = cleared(setup->blocks * sizeof *watch->released);
        watch->acquired = cleared(setup->blocks * sizeof *watch->acquired);
        good = good && watch->released && watch->acquired;
    }
    for (size_t b = 0; good && b < setup->buffers; b++) {
        watch->buffer[b] = setup->buffer[b];
        watch->chunk[b] = cleared(chunks_of(watch, b) * sizeof **watch->chunk);
        good = watch->chunk[b] != NULL;
    }
    for (size_t s = 0; good && s < setup->sites; s++)
        watch->nc[s].low = watch->stores[s].low = UINT64_MAX;
    if (!good) {
        gm_watch_global_free(watch);
        return NULL;
    }
    return watch;
}

void gm_watch_global_free(gm_watch_global *watch)
{
    if (!watch)
        return;
    for (size_t b = 0; watch->chunk && b < watch->setup.buffers; b++) {
        for (size_t c = 0; watch->chunk[b] && c < chunks_of(watch, b); c++)
            gm_free(watch->chunk[b][c]);
        gm_free(watch->chunk[b]);
    }
    gm_free(watch->chunk);
    gm_free(watch->buffer);
    gm_free(watch->nc);
    gm_free(watch->stores);
    gm_free(watch->released);
    gm_free(watch->acquired);
    gm_free(watch);
}

/* The chunk of a place, made if need be by whichever host thread comes first; NULL without memory. */
static gm_chunk *chunk_of(gm_watch_global *watch, size_t buffer, size_t index)
{
    gm_chunk **at = &watch->chunk[buffer][index], *found = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    size_t size = sizeof *found + (watch->setup.races ? CHUNK_PLACES * sizeof *found->cell : 0);
    if (__atomic_fetch_add(&watch->taken, size, __ATOMIC_RELAXED) + size > watch->setup.memory ||
        !(found = cleared(size))) {
        __atomic_store_n(&watch->short_of_memory, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    gm_chunk *none = NULL;
    if (__atomic_compare_exchange_n(at, &none, found, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return found;
    gm_free(found);
    __atomic_fetch_sub(&watch->taken, size, __ATOMIC_RELAXED);
    return none;
}

/* The buffer that holds an address, or the number of buffers. */
static size_t buffer_of(const gm_watch_global *watch, uint64_t address)
{
    size_t low = 0, high = watch->setup.buffers;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (watch->buffer[middle].address + watch->buffer[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < watch->setup.buffers && watch->buffer[low].address <= address ? low : watch->setup.buffers;
}

static void reach(gm_reach *site, uint64_t low, uint64_t high)
{
    uint64_t seen = __atomic_load_n(&site->low, __ATOMIC_RELAXED);
    while (low < seen && !__atomic_compare_exchange_n(&site->low, &seen, low, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    seen = __atomic_load_n(&site->high, __ATOMIC_RELAXED);
    while (high > seen && !__atomic_compare_exchange_n(&site->high, &seen, high, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void set_bits(uint64_t *word, uint64_t bits)
{
    if (~__atomic_load_n(word, __ATOMIC_RELAXED) & bits)
        __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

typedef struct visitor {
    gm_watch_global *watch;
    gm_findings *findings;
    const uint32_t *block;
    uint64_t number;
    gm_visit now;
    uint32_t warp, bytes;
    unsigned how;
    int said;
} visitor;

static int before(const visitor *v, const gm_visit *earlier)
{
    if (earlier->block == 0 || earlier->block == v->now.block || earlier->by & v->now.by & FLAG_ATOMIC)
        return 1;
    return v->watch->released[earlier->block - 1] > earlier->time && v->watch->acquired[v->number] > earlier->time;
}

static void decompose(uint64_t number, const uint32_t size[3], uint32_t at[3])
{
    at[0] = (uint32_t)(number % size[0]);
    at[1] = (uint32_t)(number / size[0] % size[1]);
    at[2] = (uint32_t)(number / size[0] / size[1]);
}

static void report_race(visitor *v, const gm_visit *earlier, uint32_t lane, size_t buffer, uint64_t address)
{
    const gm_watch_global_setup *setup = &v->watch->setup;
    gm_finding what = {.kind = GM_FINDING_RACE_GLOBAL,
                       .space = GM_SPACE_GLOBAL,
                       .writes = v->how & GM_HOW_WRITE,
                       .bytes = (uint16_t)v->bytes,
                       .place = setup->site[v->now.site],
                       .other = setup->site[earlier->site]};
    gm_finding_example example = {.buffer = (int32_t)buffer,
                                  .address = address,
                                  .offset = (int64_t)(address - v->watch->buffer[buffer].address),
                                  .number = v->number};
    memcpy(example.block, v->block, sizeof example.block);
    decompose(v->warp * GM_LANES + lane, setup->block, example.thread);
    decompose(earlier->by >> 1, setup->block, example.other_thread);
    decompose(earlier->block - 1, setup->grid, example.other_block);
    gm_findings_add(v->findings, &what, &example, !v->said);
    v->said = 1;
}

/* Compares one place; 1 if there was a race. */
static int compare(visitor *v, const gm_cell *cell, uint32_t lane, size_t buffer, uint64_t address)
{
    const gm_visit *racing = NULL;
    if (!before(v, &cell->write))
        racing = &cell->write;
    else if (v->how & GM_HOW_WRITE && !before(v, &cell->read[0]))
        racing = &cell->read[0];
    else if (v->how & GM_HOW_WRITE && !before(v, &cell->read[1]))
        racing = &cell->read[1];
    if (racing)
        report_race(v, racing, lane, buffer, address);
    return racing != NULL;
}

static void note(const visitor *v, gm_cell *cell, uint32_t lane)
{
    gm_visit now = v->now;
    now.by |= (v->warp * GM_LANES + lane) << 1;
    if (v->how & GM_HOW_WRITE)
        cell->write = now;
    else
        cell->read[cell->read[0].block != now.block && !before(v, &cell->read[0])] = now;
}

/* One lane's places: bits for the read-only path, cells for races. */
static void visit_lane(visitor *v, uint32_t lane, uint64_t address, uint64_t nc_bit, uint64_t write_bit)
{
    gm_watch_global *watch = v->watch;
    size_t buffer = buffer_of(watch, address);
    if (buffer == watch->setup.buffers)
        return;
    uint64_t place = (address - watch->buffer[buffer].address) >> watch->shift;
    int raced = 0;
    for (uint32_t i = 0; i < v->bytes >> watch->shift; i++, place++) {
        if (place / CHUNK_PLACES >= chunks_of(watch, buffer))
            return;
        gm_chunk *chunk = chunk_of(watch, buffer, (size_t)(place / CHUNK_PLACES));
        uint32_t at = (uint32_t)(place % CHUNK_PLACES);
        if (!chunk)
            return;
        if (nc_bit)
            set_bits(&chunk->nc[at / 64], nc_bit << at % 64);
        if (write_bit)
            set_bits(&chunk->written[at / 64], write_bit << at % 64);
        if (watch->setup.races) {
            if (!raced)
                raced = compare(v, &chunk->cell[at], lane, buffer, address);
            note(v, &chunk->cell[at], lane);
        }
    }
}

/* The same for a warp's side-by-side lanes, where no races are watched: bits by the word. */
static void mark_run(gm_watch_global *watch, uint64_t low, uint64_t high, uint64_t nc_bit)
{
    size_t buffer = buffer_of(watch, low);
    if (buffer == watch->setup.buffers || high > watch->buffer[buffer].address + watch->buffer[buffer].size)
        return;
    uint64_t place = (low - watch->buffer[buffer].address) >> watch->shift;
    uint64_t end = (high - watch->buffer[buffer].address) >> watch->shift;
    while (place < end) {
        gm_chunk *chunk = chunk_of(watch, buffer, (size_t)(place / CHUNK_PLACES));
        uint32_t at = (uint32_t)(place % CHUNK_PLACES), bit = at % 64;
        uint32_t n = end - place < 64 - bit ? (uint32_t)(end - place) : 64 - bit;
        if (!chunk)
            return;
        set_bits(nc_bit ? &chunk->nc[at / 64] : &chunk->written[at / 64], (UINT64_MAX >> (64 - n)) << bit);
        place += n;
    }
}

void gm_watch_global_access(gm_watch_global *watch, gm_findings *findings, uint32_t site, unsigned how, int nc,
                            const uint32_t block[3], uint64_t number, uint32_t warp, const uint64_t addr[GM_LANES],
                            uint32_t active, uint32_t bytes)
{
    const gm_watch_global_setup *setup = &watch->setup;
    visitor v = {.watch = watch,
                 .findings = findings,
                 .block = block,
                 .number = number,
                 .now = {(uint32_t)number + 1, watch->now, site, how & GM_HOW_ATOMIC ? FLAG_ATOMIC : 0},
                 .warp = warp,
                 .bytes = bytes,
                 .how = how};
    uint64_t nc_bit = setup->read_only && nc, write_bit = setup->read_only && how & GM_HOW_WRITE;
    if (!active || site >= setup->sites || number >= setup->blocks || !(setup->races || nc_bit || write_bit))
        return;
    uint64_t low = UINT64_MAX, high = 0;
    if (!setup->races && active == UINT32_MAX && gm_steps64(addr, GM_LANES) && gm_step64(addr, GM_LANES) == bytes) {
        low = addr[0], high = addr[GM_LANES - 1] + bytes;
        mark_run(watch, low, high, nc_bit);
    } else {
        for (uint32_t rest = active; rest; rest &= rest - 1) {
            uint32_t lane = (uint32_t)gm_first_lane(rest);
            low = addr[lane] < low ? addr[lane] : low;
            high = addr[lane] + bytes > high ? addr[lane] + bytes : high;
            visit_lane(&v, lane, addr[lane], nc_bit, write_bit);
        }
    }
    if (nc_bit)
        reach(&watch->nc[site], low, high);
    if (write_bit)
        reach(&watch->stores[site], low, high);
}

void gm_watch_global_release(gm_watch_global *watch, uint64_t number)
{
    if (watch->setup.races && number < watch->setup.blocks)
        watch->released[number] = ++watch->now;
}

void gm_watch_global_acquire(gm_watch_global *watch, uint64_t number)
{
    if (watch->setup.races && number < watch->setup.blocks)
        watch->acquired[number] = ++watch->now;
}

/* Adds the places of [low, high) that were read by nc and written; what happens to be first is the example. */
static void report_pair(gm_watch_global *watch, gm_findings *findings, gm_finding *what, uint64_t low, uint64_t high)
{
    for (size_t b = 0; b < watch->setup.buffers; b++) {
        const gm_watch_range *buffer = &watch->buffer[b];
        uint64_t from = low > buffer->address ? low - buffer->address : 0;
        uint64_t to = high > buffer->address ? high - buffer->address : 0;
        to = to < buffer->size ? to : buffer->size;
        for (uint64_t p = from >> watch->shift; p << watch->shift < to; p++) {
            const gm_chunk *chunk = watch->chunk[b][p / CHUNK_PLACES];
            uint32_t at = (uint32_t)(p % CHUNK_PLACES);
            if (!chunk || !(chunk->nc[at / 64] & chunk->written[at / 64])) {
                p |= chunk ? 63 : CHUNK_PLACES - 1; /* nothing in this word, or in this chunk */
                continue;
            }
            if (!((chunk->nc[at / 64] & chunk->written[at / 64]) >> at % 64 & 1))
                continue;
            gm_finding_example example = {.block = {UINT32_MAX, 0, 0},
                                          .thread = {UINT32_MAX, 0, 0},
                                          .other_thread = {UINT32_MAX, 0, 0},
                                          .other_block = {UINT32_MAX, 0, 0},
                                          .buffer = (int32_t)b,
                                          .address = buffer->address + (p << watch->shift),
                                          .offset = (int64_t)(p << watch->shift)};
            gm_findings_add(findings, what, &example, 0);
        }
    }
}

int gm_watch_global_report(gm_watch_global *watch, gm_findings *findings)
{
    const gm_watch_global_setup *setup = &watch->setup;
    int pairs = 0;
    for (size_t n = 0; setup->read_only && n < setup->sites; n++) {
        for (size_t s = 0; s < setup->sites && pairs < MOST_PAIRS; s++) {
            uint64_t low = watch->nc[n].low > watch->stores[s].low ? watch->nc[n].low : watch->stores[s].low;
            uint64_t high = watch->nc[n].high < watch->stores[s].high ? watch->nc[n].high : watch->stores[s].high;
            if (low >= high)
                continue;
            gm_finding what = {.kind = GM_FINDING_READ_ONLY_PATH,
                               .space = GM_SPACE_GLOBAL,
                               .bytes = (uint16_t)(1u << watch->shift),
                               .place = setup->site[n],
                               .other = setup->site[s]};
            report_pair(watch, findings, &what, low, high);
            pairs++;
        }
    }
    return !watch->short_of_memory;
}
