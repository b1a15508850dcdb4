/* What accesses cost, summed by site. Lanes that lie to one another as they did before are a pattern, which only counts
 * how often it is met at each place in a line; its cost is worked out when the run ends, or when it makes room. */
#include "machine.h"
#include "../base/integers.h"
#include "../base/memory.h"
#include <string.h>

/* An access to global or shared memory as it is counted: in machine code it may be another one than was written. */
typedef struct as_counted {
    gm_access access;
    uint32_t mask, bytes;
    int matrices; /* so many; 0: lanes */
} as_counted;

static as_counted as_written(const gm_run *run, uint32_t site, gm_space space, uint32_t mask, uint32_t bytes)
{
    const gm_lens_site *s = &run->program->kernel.sites[site];
    as_counted how = {(gm_access)run->program->site_access[site], mask, bytes, 0};
    if (run->launch->counted) {
        const gm_lens_counted *as = &run->launch->counted[site];
        how.bytes = as->lane_bytes, how.access = (gm_access)as->access;
        how.mask = as->elected ? mask & (0 - mask) : mask;
    }
    if (space == GM_SPACE_SHARED && (s->kind == GM_SITE_LDMATRIX || s->kind == GM_SITE_STMATRIX))
        how.matrices = (39 - __builtin_clz(mask)) / 8;
    if (space == GM_SPACE_SHARED && how.bytes > 16)
        how.bytes = 16;
    return how;
}

static const char *const global_rules[] = {
    [GM_ACCESS_LOAD] = "global load", [GM_ACCESS_STORE] = "global store", [GM_ACCESS_ATOM] = "global atom",
    [GM_ACCESS_CAS] = "global cas",   [GM_ACCESS_INC] = "global atom",
};
static const char *const shared_rules[] = {
    [GM_ACCESS_LOAD] = "shared load", [GM_ACCESS_STORE] = "shared store", [GM_ACCESS_ATOM] = "shared atom",
    [GM_ACCESS_CAS] = "shared cas",   [GM_ACCESS_INC] = "shared inc",
};
static const char *const matrix_rules[] = {[1] = "matrix x1", [2] = "matrix x2", [3] = "matrix x3", [4] = "matrix x4"};

/* All of a pattern but its cost and its addresses. */
static void describe(gm_lens_pattern *one, uint32_t site, gm_space space, const char *rule, uint32_t active,
                     uint32_t bytes, uint64_t times, const gm_when *when)
{
    one->site = site, one->space = (uint8_t)space, one->distinct = 0, one->rule = rule;
    one->active = active, one->bytes = (uint16_t)bytes, one->times = times;
    one->unit = when->unit, one->order = when->order, one->block = when->block, one->warp = when->warp;
}

static void add_shared(gm_lens_counts *counts, gm_shared_count c, uint64_t times)
{
    counts->shared += c.requests * times;
    counts->wavefronts += c.wavefronts * times;
    counts->wavefronts_ideal += c.ideal * times;
    counts->conflicts += c.conflicts * times;
}

static void add_global(gm_lens_counts *counts, gm_global_count c, uint64_t times)
{
    counts->requests += c.requests * times;
    counts->sectors += c.sectors * times;
    counts->sectors_ideal += c.ideal * times;
    counts->lines += c.lines * times;
}

static gm_shared_count look_at_shared(uint32_t site, const as_counted *how, const uint64_t address[GM_LANES],
                                      uint64_t times, const gm_when *when, gm_lens_pattern *one, uint64_t at[GM_LANES])
{
    uint32_t narrow[GM_LANES], first = (uint32_t)address[__builtin_ctz(how->mask)];
    for (int i = 0; i < GM_LANES; i++) /* rows of matrices that could not be reached add nothing */
        at[i] = narrow[i] = how->matrices && !(how->mask >> i & 1) ? first : (uint32_t)address[i];
    describe(one, site, GM_SPACE_SHARED, shared_rules[how->access], how->mask, how->bytes, times, when);
    gm_shared_count c;
    if (how->matrices) {
        c = gm_count_matrix(narrow, (uint32_t)how->matrices);
        one->rule = matrix_rules[how->matrices];
        one->active = GM_FULL >> (GM_LANES - 8 * how->matrices);
    } else {
        c = gm_count_shared(how->access, narrow, how->mask, how->bytes);
    }
    one->cost = c.wavefronts;
    return c;
}

/* What one execution costs, `times` over, the first of them at `when`. */
static void charge(gm_run *run, uint32_t site, gm_site_state *s, gm_space space, const uint64_t address[GM_LANES],
                   uint32_t mask, uint32_t bytes, uint64_t times, const gm_when *when)
{
    as_counted how = as_written(run, site, space, mask, bytes);
    gm_lens_pattern one;
    uint64_t at[GM_LANES];
    if (how.bytes == 0)
        return;
    if (space == GM_SPACE_SHARED) {
        add_shared(&s->counts, look_at_shared(site, &how, address, times, when, &one, at), times);
        gm_see(run, &s->seen, &one, at, NULL);
    } else {
        gm_global_count c = gm_count_global(how.access, address, how.mask, how.bytes);
        add_global(&s->counts, c, times);
        describe(&one, site, space, global_rules[how.access], how.mask, how.bytes, times, when);
        one.cost = c.sectors;
        gm_see(run, &s->seen, &one, address, NULL);
    }
}

static int fits(const gm_pattern *p, gm_space space, uint32_t mask, const uint64_t address[GM_LANES], uint64_t first)
{
    if (p->space != space || p->mask != mask)
        return 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        uint64_t relative = address[i] - first;
        if (space == GM_SPACE_SHARED ? (uint32_t)relative != p->narrow[i] : relative != p->wide[i])
            return 0;
    }
    return 1;
}

static void settle_pattern(gm_run *run, uint32_t site, gm_site_state *s, gm_pattern *p)
{
    uint64_t address[GM_LANES];
    uint32_t bytes = run->program->kernel.sites[site].lane_bytes;
    for (uint64_t phase = 0; phase < GM_PHASES; phase++) {
        uint64_t times = p->hits[phase];
        if (times == 0)
            continue;
        const gm_met *met = &p->met[phase];
        for (int i = 0; i < GM_LANES; i++)
            address[i] = p->space == GM_SPACE_SHARED ? (uint32_t)met->at + p->narrow[i] : met->at + p->wide[i];
        s->counts.executions += times;
        s->counts.lanes += times * (uint64_t)__builtin_popcount(p->mask);
        charge(run, site, s, (gm_space)p->space, address, p->mask, bytes, times, &met->when);
        p->hits[phase] = 0;
    }
}

/* Keeps the pattern, in the place of the oldest if there are many. NULL: it is too wide, or there is no memory. */
static gm_pattern *keep(gm_worker *worker, uint32_t site, gm_space space, uint32_t mask,
                        const uint64_t address[GM_LANES], uint32_t bytes)
{
    gm_site_state *s = &worker->sites[site];
    uint64_t first = address[__builtin_ctz(mask)];
    int64_t low = 0, high = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        int64_t relative = (int64_t)(address[__builtin_ctz(left)] - first);
        low = gm_least(low, relative), high = gm_most(high, relative);
    }
    if (low < -INT32_MAX || high > INT32_MAX)
        return NULL;
    gm_pattern *p;
    if (s->used < GM_PATTERNS) {
        p = gm_alloc(sizeof *p);
        if (p == NULL)
            return NULL;
        s->patterns[s->used++] = p;
    } else {
        p = s->patterns[s->oldest];
        s->oldest = (uint8_t)((s->oldest + 1) % GM_PATTERNS);
        settle_pattern(worker->run, site, s, p);
    }
    memset(p, 0, offsetof(gm_pattern, met));
    p->mask = mask, p->space = (uint8_t)space, p->low = low, p->span = (uint64_t)(high - low) + bytes;
    int row = mask == GM_FULL, same = 1;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        uint64_t relative = address[i] - first;
        if (space == GM_SPACE_SHARED)
            p->narrow[i] = (uint32_t)relative;
        else
            p->wide[i] = relative;
        p->low_bits |= (uint32_t)relative;
        row &= relative == (uint64_t)i * bytes;
        same &= relative == 0;
    }
    p->shape = row ? GM_SHAPE_ROW : same ? GM_SHAPE_SAME : GM_SHAPE_ANY;
    return p;
}

static void meet(gm_warp *w, gm_pattern *p, uint64_t first)
{
    if ((p->hits[first % GM_PHASES]++ == 0) | w->overtaken)
        gm_pattern_met(w, p, first);
}

void gm_tally(gm_warp *w, uint32_t site, gm_space space, uint32_t mask, const uint64_t address[GM_LANES],
              uint32_t bytes, int fast)
{
    gm_worker *worker = w->worker;
    gm_site_state *s = &worker->sites[site];
    uint64_t first = address[__builtin_ctz(mask)];
    if (space == GM_SPACE_SHARED && !gm_seen_all(w, &s->seen)) {
        as_counted how = as_written(worker->run, site, space, mask, bytes);
        gm_when now = gm_when_now(w);
        gm_lens_pattern one;
        uint64_t at[GM_LANES];
        if (how.bytes) {
            look_at_shared(site, &how, address, 1, &now, &one, at);
            gm_see_distinct(worker->run, &s->seen, &one, at);
        }
    }
    for (uint32_t k = 0; k < s->used; k++)
        if (fits(s->patterns[k], space, mask, address, first)) {
            meet(w, s->patterns[k], first);
            s->last = fast ? s->patterns[k] : s->last;
            return;
        }
    int twice = s->missed_mask == mask && s->missed_space == space;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        twice &= s->missed[i] == address[i] - first;
        s->missed[i] = address[i] - first;
    }
    s->missed_mask = mask, s->missed_space = (uint8_t)space;
    gm_pattern *p = twice ? keep(worker, site, space, mask, address, bytes) : NULL;
    if (p) {
        meet(w, p, first);
        s->last = fast ? p : s->last;
        return;
    }
    gm_when now = gm_when_now(w);
    s->counts.executions++;
    s->counts.lanes += (uint64_t)__builtin_popcount(mask);
    charge(worker->run, site, s, space, address, mask, bytes, 1, &now);
}

/* Local memory lies so that the same word of 32 lanes is one line. */
static void interleave(uint64_t address[GM_LANES], uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        address[i] = address[i] / 4 * 128 + i * 4 + address[i] % 4;
    }
}

void gm_tally_local(gm_warp *w, uint32_t site, uint32_t mask, const uint64_t address[GM_LANES], uint32_t bytes)
{
    gm_run *run = w->worker->run;
    gm_site_state *s = &w->worker->sites[site];
    gm_access access = (gm_access)run->program->site_access[site];
    gm_when now = gm_when_now(w);
    gm_global_count all = {1, 0, 0, 0};
    gm_lens_pattern one;
    uint64_t word[GM_LANES];
    for (uint32_t at = 0; at < bytes; at += 4) {
        for (int i = 0; i < GM_LANES; i++)
            word[i] = address[i] + at;
        interleave(word, mask);
        gm_global_count c = gm_count_global(access, word, mask, bytes < 4 ? bytes : 4);
        all.sectors += c.sectors, all.ideal += c.ideal, all.lines += c.lines;
    }
    s->counts.executions++;
    s->counts.lanes += (uint64_t)__builtin_popcount(mask);
    add_global(&s->counts, all, 1);
    describe(&one, site, GM_SPACE_LOCAL, "local", mask, bytes, 1, &now);
    one.cost = all.sectors;
    gm_see(run, &s->seen, &one, address, NULL);
}

void gm_tally_copy(gm_warp *w, uint32_t site, int bypasses, uint32_t writes, uint32_t reads,
                   const uint64_t source[GM_LANES], const uint32_t target[GM_LANES], uint32_t bytes)
{
    gm_site_state *s = &w->worker->sites[site];
    gm_when now = gm_when_now(w);
    gm_lens_pattern one;
    s->counts.executions++;
    s->counts.lanes += (uint64_t)__builtin_popcount(writes);
    if (reads) {
        gm_global_count g =
            bypasses ? gm_count_copy(source, target, reads) : gm_count_global(GM_ACCESS_LOAD, source, reads, bytes);
        add_global(&s->counts, g, 1);
        describe(&one, site, GM_SPACE_GLOBAL, bypasses ? "copy" : "global load", reads, bytes, 1, &now);
        one.cost = g.sectors;
        gm_see(w->worker->run, &s->seen, &one, source, bypasses ? target : NULL);
    }
    if (writes) {
        uint64_t at[GM_LANES];
        gm_shared_count c = gm_place_copy_shared(target, writes, bytes, NULL);
        /* A pattern shows the destinations alone. */
        add_shared(&s->counts, bypasses ? c : gm_count_copy_shared(source, reads, target, writes, bytes), 1);
        describe(&one, site, GM_SPACE_SHARED, "copy shared", writes, bytes, 1, &now);
        one.cost = c.wavefronts;
        for (int i = 0; i < GM_LANES; i++)
            at[i] = target[i];
        gm_see(w->worker->run, &s->seen, &one, at, NULL);
        if (!gm_seen_all(w, &s->seen))
            gm_see_distinct(w->worker->run, &s->seen, &one, at);
    }
}

void gm_site_settle(gm_run *run, uint32_t site, gm_site_state *s)
{
    for (uint32_t k = 0; k < s->used; k++)
        settle_pattern(run, site, s, s->patterns[k]);
    s->counts.executions += s->idle;
    s->idle = 0;
}
