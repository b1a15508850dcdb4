/* What a warp's addresses reach: the long way, taken when a site's lanes lie as they did not before, or where they must
 * not. Wrong accesses become findings, and the others go on. */
#include "machine.h"
#include <string.h>

/* --- findings -------------------------------------------------------------------------------------------------- */

static const gm_place *place_of(const gm_warp *w, const gm_insn *in)
{
    return &w->worker->run->program->places[in - w->code];
}

static void thread_of(const gm_warp *w, uint32_t lane, uint32_t thread[3])
{
    const gm_run *run = w->worker->run;
    uint32_t at = w->index * GM_LANES + lane;
    thread[0] = at % run->block[0];
    thread[1] = at / run->block[0] % run->block[1];
    thread[2] = at / run->block[0] / run->block[1];
}

/* The buffer whose bytes lie nearest to the address. */
static int32_t nearest(const gm_run *run, uint64_t address, int64_t *offset)
{
    const gm_segment *best = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < run->segment_count; i++) {
        const gm_segment *s = &run->segments[i];
        if (s->buffer < 0)
            continue;
        uint64_t away = address < s->start ? s->start - address : address < s->end ? 0 : address - s->end + 1;
        if (away < least)
            least = away, best = s;
    }
    *offset = best ? (int64_t)(address - best->start) : 0;
    return best ? best->buffer : -1;
}

static void found_in(gm_warp *w, const gm_insn *in, gm_finding_kind kind, gm_space space, uint32_t bytes, int writes,
                     uint32_t lanes, const uint64_t *address)
{
    gm_finding what = {.kind = kind, .space = (uint8_t)space, .writes = (uint8_t)writes, .bytes = (uint16_t)bytes};
    int first = 1;
    what.place = *place_of(w, in);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        gm_finding_example example = {.buffer = -1, .number = w->block->number};
        memcpy(example.block, w->block->ctaid, sizeof example.block);
        memset(example.other_thread, 0xff, sizeof example.other_thread);
        memset(example.other_block, 0xff, sizeof example.other_block);
        thread_of(w, lane, example.thread);
        if (address) {
            example.address = address[lane];
            example.offset = (int64_t)address[lane];
            if (space == GM_SPACE_GLOBAL)
                example.buffer = nearest(w->worker->run, address[lane], &example.offset);
        }
        gm_findings_add(&w->worker->findings, &what, &example, first);
        first = 0;
    }
}

void gm_found(gm_warp *w, const gm_insn *in, gm_finding_kind kind, uint32_t lanes, const uint64_t *address)
{
    found_in(w, in, kind, GM_SPACE_GENERIC, 0, 0, lanes, address);
}

void gm_stop(gm_run *run, gm_status status, const char *text)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&run->stop, &none, (int)status)) {
        run->failure->status = status;
        size_t length = strlen(text);
        length = length < sizeof run->failure->text ? length : sizeof run->failure->text - 1;
        memcpy(run->failure->text, text, length);
        run->failure->text[length] = 0;
    }
}

/* --- reaching -------------------------------------------------------------------------------------------------- */

static const gm_segment *segment_at(const gm_run *run, uint64_t address)
{
    size_t low = 0, high = run->segment_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (address < run->segments[mid].start)
            high = mid;
        else if (address >= run->segments[mid].end)
            low = mid + 1;
        else
            return &run->segments[mid];
    }
    return NULL;
}

/* The space that a generic address names, and the address in it. */
static gm_space space_of(gm_space space, uint64_t *address)
{
    if (space != GM_SPACE_GENERIC)
        return space;
    uint64_t a = *address;
    if (a - GM_SHARED_WINDOW < GM_WINDOW) {
        *address = a - GM_SHARED_WINDOW;
        return GM_SPACE_SHARED;
    }
    if (a - GM_LOCAL_WINDOW < GM_WINDOW) {
        *address = a - GM_LOCAL_WINDOW;
        return GM_SPACE_LOCAL;
    }
    if (a - GM_PARAM_WINDOW < GM_WINDOW) {
        *address = a - GM_PARAM_WINDOW;
        return GM_SPACE_PARAM;
    }
    return GM_SPACE_GLOBAL;
}

static uint8_t *shared_at(gm_warp *w, uint64_t address, uint32_t bytes)
{
    uint64_t rank = address >> GM_RANK_SHIFT, at = address & ((1u << GM_RANK_SHIFT) - 1);
    gm_unit *unit = w->block->unit;
    gm_block *block = w->block;
    if (rank > unit->block_count)
        return NULL;
    if (rank)
        block = &unit->blocks[rank - 1];
    if (at >= w->shared_bytes || bytes > w->shared_bytes - at)
        return NULL;
    return block->shared + at;
}

/* Keeps what is done with a buffer where the kernel has volatile loads; ends a run on several threads whose blocks may
 * see one another so. */
static void meet(gm_run *run, const gm_segment *s, unsigned met)
{
    if (run->met == NULL || met == 0)
        return;
    size_t at = s->buffer >= 0 ? (size_t)s->buffer : run->launch->buffer_count;
    unsigned all = atomic_fetch_or(&run->met[at], (uint8_t)met) | met;
    int none = 0;
    if (all == GM_MET_BOTH && run->many)
        atomic_compare_exchange_strong(&run->stop, &none, GM_STOP_TALK);
}

/* Host memory of one lane's access, or NULL and the finding. */
static uint8_t *reach_one(gm_warp *w, gm_space space, uint32_t lane, uint64_t address, uint32_t bytes, int writes,
                          unsigned met, gm_segment *cached, gm_finding_kind *why)
{
    gm_run *run = w->worker->run;
    *why = GM_FINDING_OUT_OF_BOUNDS;
    uint8_t *host = NULL;
    if (space == GM_SPACE_SHARED) {
        host = shared_at(w, address, bytes);
    } else if (space == GM_SPACE_LOCAL) {
        if (address < w->local_bytes && bytes <= w->local_bytes - address)
            host = w->local + lane * w->local_bytes + address;
    } else if (space == GM_SPACE_PARAM) {
        uint64_t size = run->program->kernel.parameter_bytes;
        if (!writes && address < size && bytes <= size - address)
            host = (uint8_t *)(uintptr_t)run->parameters + address;
    } else {
        const gm_segment *s = cached;
        if (address < s->start || address >= s->end)
            s = segment_at(run, address);
        if (s && bytes <= s->end - address) {
            if (writes && !s->writable) {
                *why = GM_FINDING_READ_ONLY;
                return NULL;
            }
            host = s->host + (address - s->start);
            if (s != cached) { /* a site meets each buffer here first */
                meet(run, s, met);
                *cached = *s;
            }
        }
    }
    if (host && address & (bytes - 1)) {
        *why = GM_FINDING_MISALIGNED;
        return NULL;
    }
    return host;
}

enum { STRONG = GM_HOW_ATOMIC | GM_HOW_VOLATILE | GM_HOW_ORDERS };

uint32_t gm_reach(gm_warp *w, const gm_insn *in, gm_space space, uint32_t mask, const uint64_t address[GM_LANES],
                  uint32_t bytes, int writes, uint8_t *where[GM_LANES])
{
    gm_worker *worker = w->worker;
    gm_segment none = {0}, *cached = in->x == GM_NOWHERE ? &none : &worker->sites[in->x].segment;
    const int listens = in->x != GM_NOWHERE && worker->run->program->site_how[in->x] & GM_HOW_VOLATILE;
    const unsigned met = writes ? GM_MET_STORE : listens ? GM_MET_VOLATILE_LOAD : 0;
    uint64_t own[GM_LANES];
    uint32_t in_space[GM_SPACE_COUNT] = {0}, wrong[GM_FINDING_KINDS] = {0}, ok = 0, wrongs = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        gm_finding_kind why;
        own[i] = address[i];
        gm_space s = space_of(space, &own[i]);
        where[i] = reach_one(w, s, i, own[i], bytes, writes, met, cached, &why);
        if (where[i])
            in_space[s] |= 1u << i, ok |= 1u << i;
        else
            wrong[why] |= 1u << i, wrongs |= 1u << i;
    }
    if (wrongs)
        for (int kind = 0; kind < GM_FINDING_KINDS; kind++)
            for (uint32_t left = wrong[kind]; left;) {
                /* lanes of one space together */
                uint32_t i = (uint32_t)__builtin_ctz(left), same = 0;
                uint64_t a = address[i];
                gm_space s = space_of(space, &a);
                for (uint32_t rest = left; rest; rest &= rest - 1) {
                    uint64_t b = address[__builtin_ctz(rest)];
                    same |= space_of(space, &b) == s ? rest & -rest : 0;
                }
                found_in(w, in, (gm_finding_kind)kind, s, bytes, writes, same, own);
                left &= ~same;
            }
    if (in->x == GM_NOWHERE || ok == 0) {
        if (in->x != GM_NOWHERE)
            worker->sites[in->x].idle++;
        return ok;
    }
    /* The fast paths tell the watch of shared memory of accesses to it, but not of what goes with fences; and go by the
     * segment that is remembered: it must hold every lane. */
    int fast = ok == mask && !worker->run->watch_global &&
               !(w->watch && worker->run->program->fences && worker->run->program->site_how[in->x] & STRONG) &&
               (!in_space[GM_SPACE_SHARED] || gm_seen_all(w, &worker->sites[in->x].seen));
    for (uint32_t left = in_space[GM_SPACE_GLOBAL]; left && fast; left &= left - 1) {
        uint64_t a = own[__builtin_ctz(left)];
        fast = a >= cached->start && a < cached->end && bytes <= cached->end - a;
    }
    int spaces = 0;
    if (in_space[GM_SPACE_GLOBAL])
        gm_tally(w, in->x, GM_SPACE_GLOBAL, in_space[GM_SPACE_GLOBAL], own, bytes,
                 fast && in_space[GM_SPACE_GLOBAL] == mask && space != GM_SPACE_SHARED),
            spaces++;
    if (in_space[GM_SPACE_SHARED])
        gm_tally(w, in->x, GM_SPACE_SHARED, in_space[GM_SPACE_SHARED], own, bytes,
                 fast && in_space[GM_SPACE_SHARED] == mask && space == GM_SPACE_SHARED),
            spaces++;
    if (in_space[GM_SPACE_CONST] | in_space[GM_SPACE_PARAM]) {
        worker->sites[in->x].counts.executions++;
        worker->sites[in->x].counts.lanes += (uint64_t)__builtin_popcount(ok);
        spaces++;
    }
    if (in_space[GM_SPACE_LOCAL])
        gm_tally_local(w, in->x, in_space[GM_SPACE_LOCAL], own, bytes), spaces++;
    if (spaces > 1) /* one instruction, whatever its lanes meant */
        worker->sites[in->x].counts.executions -= (uint64_t)spaces - 1;
    gm_watch_accesses(w, in, in_space, own, bytes);
    return ok;
}

uint32_t gm_reach_copy(gm_warp *w, const gm_insn *in, uint32_t lanes, uint32_t reads, const uint64_t source[GM_LANES],
                       const uint64_t target[GM_LANES], uint32_t bytes, uint8_t *from[GM_LANES], uint8_t *to[GM_LANES])
{
    gm_worker *worker = w->worker;
    gm_site_state *s = &worker->sites[in->x];
    uint32_t ok = 0, wrong[2][GM_FINDING_KINDS] = {{0}}, narrow[GM_LANES];
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left), bit = left & -left;
        gm_finding_kind why;
        uint64_t a = source[i], b = target[i];
        narrow[i] = (uint32_t)target[i];
        from[i] = NULL;
        gm_space kind = space_of(GM_SPACE_GENERIC, &a);
        if (reads & bit) {
            from[i] = kind == GM_SPACE_GLOBAL ? reach_one(w, kind, i, a, bytes, 0, 0, &s->segment, &why) : NULL;
            if (kind != GM_SPACE_GLOBAL)
                why = GM_FINDING_WRONG_SPACE;
            if (!from[i]) {
                wrong[0][why] |= bit;
                continue;
            }
        }
        to[i] = reach_one(w, GM_SPACE_SHARED, i, b, bytes, 1, 0, &s->segment, &why);
        if (to[i])
            ok |= bit;
        else
            wrong[1][why] |= bit;
    }
    for (int kind = 0; kind < GM_FINDING_KINDS; kind++) {
        if (wrong[0][kind])
            found_in(w, in, (gm_finding_kind)kind, GM_SPACE_GLOBAL, bytes, 0, wrong[0][kind], source);
        if (wrong[1][kind])
            found_in(w, in, (gm_finding_kind)kind, GM_SPACE_SHARED, bytes, 1, wrong[1][kind], target);
    }
    gm_tally_copy(w, in->x, (in->e & 1) != 0, ok, ok & reads, source, narrow, bytes);
    if (w->watch && ok)
        gm_watch_copy(w->watch, in->x, w->index, narrow, ok, bytes);
    if (worker->run->watch_global && ok & reads)
        gm_watch_global_access(worker->run->watch_global, &worker->findings, in->x, GM_HOW_READ, 0, w->block->ctaid,
                               w->block->number, w->index, source, ok & reads, bytes);
    return ok;
}

uint8_t *gm_reach_bytes(gm_warp *w, const gm_insn *in, uint32_t lane, gm_space space, uint64_t address, uint64_t bytes,
                        uint32_t align, int writes)
{
    gm_run *run = w->worker->run;
    gm_finding_kind why = GM_FINDING_OUT_OF_BOUNDS;
    uint64_t shown[GM_LANES], own = address;
    uint8_t *host = NULL;
    gm_space at = space_of(space, &own);
    if (at == GM_SPACE_SHARED && own - GM_SHARED_WINDOW < GM_WINDOW)
        own -= GM_SHARED_WINDOW; /* an address that is generic all the same */
    if (bytes == 0)
        return NULL;
    if (at == GM_SPACE_SHARED && bytes <= UINT32_MAX) {
        host = shared_at(w, own, (uint32_t)bytes);
    } else if (at == GM_SPACE_PARAM) {
        uint64_t size = run->program->kernel.parameter_bytes;
        if (!writes && own < size && bytes <= size - own)
            host = (uint8_t *)(uintptr_t)run->parameters + own;
    } else if (at == GM_SPACE_GLOBAL) {
        const gm_segment *s = segment_at(run, own);
        if (s && bytes <= s->end - own) {
            host = s->host + (own - s->start);
            if (writes && !s->writable)
                host = NULL, why = GM_FINDING_READ_ONLY;
            else if (writes)
                meet(run, s, GM_MET_STORE);
        }
    }
    if (host && own % align)
        host = NULL, why = GM_FINDING_MISALIGNED;
    if (host == NULL) {
        shown[lane] = own;
        found_in(w, in, why, at, bytes > UINT16_MAX ? 0 : (uint32_t)bytes, writes, 1u << lane, shown);
    }
    return host;
}

/* Orders what came before with everybody who did so earlier. Which access sees which is not looked at: so no race is
 * made up where warps or blocks hand over in a way of their own, and some may be missed. */
void gm_fence(gm_warp *w, uint32_t lanes)
{
    gm_watch_global *watch = w->worker->run->watch_global;
    if (watch) {
        gm_watch_global_release(watch, w->block->number);
        gm_watch_global_acquire(watch, w->block->number);
    }
    if (w->watch)
        gm_watch_fence(w->watch, w->index, lanes);
}

void gm_copy_commit(gm_warp *w, uint32_t lanes)
{
    if (w->watch)
        gm_watch_copy_commit(w->watch, w->index, lanes);
}

void gm_copy_wait(gm_warp *w, uint32_t lanes, uint32_t left, int all)
{
    if (w->watch)
        gm_watch_copy_wait(w->watch, w->index, lanes, left, all);
}

/* --- the watch ------------------------------------------------------------------------------------------------- */

static void watch_shared(gm_warp *w, const gm_insn *in, const uint32_t address[GM_LANES], uint32_t lanes,
                         uint32_t bytes)
{
    unsigned how = w->worker->run->program->site_how[in->x];
    uint32_t unwritten = gm_watch_shared(w->watch, in->x, how, w->index, address, lanes, bytes);
    if (w->step)
        gm_values_shared(w, in, address, lanes, bytes, unwritten);
    else if (unwritten)
        gm_watch_unwritten(w->watch, in->x, w->index, address, unwritten, bytes);
}

void gm_watch_pattern(gm_warp *w, const gm_insn *in, const gm_pattern *p, uint32_t first, uint32_t bytes)
{
    uint32_t address[GM_LANES];
    for (int i = 0; i < GM_LANES; i++)
        address[i] = first + p->narrow[i];
    watch_shared(w, in, address, p->mask, bytes);
}

void gm_watch_accesses(gm_warp *w, const gm_insn *in, const uint32_t in_space[GM_SPACE_COUNT],
                       const uint64_t address[GM_LANES], uint32_t bytes)
{
    gm_run *run = w->worker->run;
    unsigned how = run->program->site_how[in->x];
    uint32_t lanes = in_space[GM_SPACE_SHARED] | in_space[GM_SPACE_GLOBAL];
    if (how & GM_HOW_ORDERS)
        gm_fence(w, lanes);
    if (w->watch && in_space[GM_SPACE_SHARED]) {
        uint32_t narrow[GM_LANES] = {0}, mine = 0;
        for (uint32_t left = in_space[GM_SPACE_SHARED]; left; left &= left - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(left);
            narrow[i] = (uint32_t)address[i];
            /* Other blocks' shared memory is not watched. */
            uint32_t rank = narrow[i] >> GM_RANK_SHIFT;
            mine |= rank == 0 || rank - 1 == w->block->rank ? left & -left : 0;
            narrow[i] &= (1u << GM_RANK_SHIFT) - 1;
        }
        if (mine)
            watch_shared(w, in, narrow, mine, bytes);
    }
    if (w->watch && how & STRONG)
        gm_watch_strong(w->watch, w->index, lanes, how);
    if (how & GM_HOW_ORDERS)
        gm_fence(w, lanes);
    if (run->watch_global && in_space[GM_SPACE_GLOBAL])
        gm_watch_global_access(run->watch_global, &w->worker->findings, in->x, how, run->program->site_nc[in->x],
                               w->block->ctaid, w->block->number, w->index, address, in_space[GM_SPACE_GLOBAL], bytes);
}

/* --- atomics of several host threads --------------------------------------------------------------------------- */

static atomic_flag locks[64];

static atomic_flag *lock_of(const void *at)
{
    return &locks[(uintptr_t)at / 16 % 64];
}

void gm_lock(const void *at)
{
    while (atomic_flag_test_and_set_explicit(lock_of(at), memory_order_acquire))
        ;
}

void gm_unlock(const void *at)
{
    atomic_flag_clear_explicit(lock_of(at), memory_order_release);
}
