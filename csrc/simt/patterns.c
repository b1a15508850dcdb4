/* What a site's executions looked like: the first one of each cost, and the different accesses to shared memory of the
 * launch's first unit. A worker begins its units in the order of their numbers, so that what it meets first is its
 * first, but where units take turns; and the least of all workers' is the launch's. */
#include "machine.h"
#include "../base/memory.h"
#include <stdlib.h>
#include <string.h>

gm_when gm_when_now(gm_warp *w)
{
    return (gm_when){w->block->unit->number, w->worker->noted++, w->block->number, w->index};
}

void gm_pattern_met(gm_warp *w, gm_pattern *p, uint64_t at)
{
    uint64_t phase = at % GM_PHASES;
    gm_met now = {gm_when_now(w), at};
    if (p->hits[phase] == 1 || now.when.unit < p->met[phase].when.unit)
        p->met[phase] = now;
}

int gm_seen_all(const gm_warp *w, const gm_seen *seen)
{
    return seen->distinct == GM_LENS_DISTINCT || seen->looked_at == GM_LENS_LOOKED_AT ||
           w->block->unit->number != w->worker->run->unit_first;
}

static int is_earlier(const gm_lens_pattern *a, const gm_lens_pattern *b)
{
    return a->unit != b->unit ? a->unit < b->unit : a->order < b->order;
}

/* A row for one more; NULL stops the run. */
static gm_lens_pattern *add(gm_run *run, gm_seen *seen)
{
    if (seen->count == seen->capacity) {
        uint32_t capacity = seen->capacity ? 2 * seen->capacity : 4;
        gm_lens_pattern *list = gm_alloc(capacity * sizeof *list);
        if (list == NULL) {
            gm_stop(run, GM_NO_MEMORY, "what the accesses look like");
            return NULL;
        }
        if (seen->count)
            memcpy(list, seen->list, seen->count * sizeof *list);
        gm_free(seen->list);
        seen->list = list, seen->capacity = capacity;
    }
    return &seen->list[seen->count++];
}

static void set(gm_lens_pattern *row, const gm_lens_pattern *one, uint64_t times, const uint64_t address[GM_LANES],
                const uint32_t *target)
{
    *row = *one;
    row->times = times;
    for (int i = 0; i < GM_LANES; i++) {
        int here = one->active >> i & 1;
        row->address[i] = here ? address[i] : 0;
        row->target[i] = here && target ? target[i] : 0;
    }
}

void gm_see(gm_run *run, gm_seen *seen, const gm_lens_pattern *one, const uint64_t address[GM_LANES],
            const uint32_t *target)
{
    for (uint32_t i = 0; i < seen->count; i++) {
        gm_lens_pattern *row = &seen->list[i];
        if (row->distinct || row->cost != one->cost || row->space != one->space)
            continue;
        row->times += one->times;
        if (is_earlier(one, row))
            set(row, one, row->times, address, target);
        return;
    }
    gm_lens_pattern *row = add(run, seen);
    if (row)
        set(row, one, one->times, address, target);
}

static uint64_t hash_of(uint32_t active, const uint64_t address[GM_LANES])
{
    uint64_t hash = active;
    for (uint32_t left = active; left; left &= left - 1)
        hash = (hash ^ address[__builtin_ctz(left)]) * UINT64_C(0x9E3779B97F4A7C15);
    return hash;
}

static int looks_like(const gm_lens_pattern *row, uint32_t active, const uint64_t address[GM_LANES])
{
    int same = row->active == active;
    for (uint32_t left = active; left && same; left &= left - 1)
        same = row->address[__builtin_ctz(left)] == address[__builtin_ctz(left)];
    return same;
}

void gm_see_distinct(gm_run *run, gm_seen *seen, const gm_lens_pattern *one, const uint64_t address[GM_LANES])
{
    uint64_t hash = hash_of(one->active, address);
    uint32_t n = 0;
    seen->looked_at++;
    for (uint32_t i = 0; i < seen->count; i++) {
        gm_lens_pattern *row = &seen->list[i];
        if (!row->distinct)
            continue;
        if (seen->hash[n++] == hash && looks_like(row, one->active, address)) {
            row->times++;
            return;
        }
    }
    gm_lens_pattern *row = add(run, seen);
    if (row == NULL)
        return;
    set(row, one, 1, address, NULL);
    row->distinct = 1;
    seen->hash[seen->distinct++] = hash;
}

/* --- all workers' ---------------------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int in_order(const void *x, const void *y)
{
    const gm_lens_pattern *a = x, *b = y;
    int by = compare(a->site, b->site);
    by = by ? by : compare(a->distinct, b->distinct);
    by = by ? by : compare(a->space, b->space);
    by = by || a->distinct ? by : compare(a->cost, b->cost);
    by = by ? by : compare(a->unit, b->unit);
    return by ? by : compare(a->order, b->order);
}

gm_status gm_patterns_collect(gm_lens_result *result, const gm_run *run, const gm_worker *workers, int count)
{
    size_t sites = run->program->kernel.site_count, total = 0, n = 0;
    for (int i = 0; i < count; i++)
        for (size_t s = 0; s < sites; s++)
            total += workers[i].sites[s].seen.count;
    gm_lens_pattern *all = gm_alloc((total + 1) * sizeof *all);
    if (all == NULL)
        return GM_NO_MEMORY;
    for (int i = 0; i < count; i++)
        for (size_t s = 0; s < sites; s++) {
            const gm_seen *seen = &workers[i].sites[s].seen;
            if (seen->count)
                memcpy(all + n, seen->list, seen->count * sizeof *all);
            n += seen->count;
        }
    if (n)
        qsort(all, n, sizeof *all, in_order);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        gm_lens_pattern *last = kept ? &all[kept - 1] : NULL;
        if (last && !all[i].distinct && !last->distinct && last->site == all[i].site && last->space == all[i].space &&
            last->cost == all[i].cost)
            last->times += all[i].times;
        else
            all[kept++] = all[i];
    }
    result->patterns = all;
    result->pattern_count = kept;
    return GM_OK;
}
