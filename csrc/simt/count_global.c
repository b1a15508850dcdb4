/* Requests to global memory: which sectors and lines the active lanes touch.
 *
 * Most requests of real kernels are a run of lanes that step evenly through memory; those are counted without a look
 * at each sector. */
#include "count.h"
#include "count_lanes.h"

enum { SECTOR_SHIFT = 5, LINE_SHIFT = 7 };

/* `n` lanes, lane i at first + i * step: how many blocks of 1 << shift bytes they touch. Steps below a block's size
 * leave no block out, from that size on each lane has its own. */
static uint32_t blocks_of_steps(uint64_t first, int64_t step, uint32_t n, unsigned shift)
{
    uint64_t size = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    if (size >= UINT64_C(1) << shift)
        return n;
    uint64_t last = first + (uint64_t)step * (n - 1);
    uint64_t low = step < 0 ? last : first, high = step < 0 ? first : last;
    return (uint32_t)((high >> shift) - (low >> shift)) + 1;
}

/* Distinct values among n. */
static uint32_t distinct(const uint64_t *id, uint32_t n)
{
    enum { BITS = 6, TABLE = 1 << BITS };
    uint64_t slot[TABLE], used = 0;
    for (uint32_t i = 0; i < n; i++) {
        unsigned at = (unsigned)(id[i] * UINT64_C(0x9E3779B97F4A7C15) >> (64 - BITS));
        while (used >> at & 1 && slot[at] != id[i])
            at = (at + 1) % TABLE;
        used |= UINT64_C(1) << at;
        slot[at] = id[i];
    }
    return (uint32_t)__builtin_popcountll(used);
}

/* Distinct sectors and lines. Where all addresses are within 64 sectors, as swizzled ones are, a bit stands for each.
 */
static uint32_t touched(const uint64_t *address, uint32_t n, uint32_t *lines)
{
    enum { NEAR = 64, PER_LINE = 1 << (LINE_SHIFT - SECTOR_SHIFT) };
    uint64_t bits = 0, far = 0, first = ((address[0] >> SECTOR_SHIFT) - NEAR / 2) / PER_LINE * PER_LINE;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = (address[i] >> SECTOR_SHIFT) - first;
        bits |= UINT64_C(1) << at % NEAR;
        far |= at;
    }
    if (far < NEAR) {
        uint64_t pairs = bits | bits >> 1;
        *lines = (uint32_t)__builtin_popcountll((pairs | pairs >> 2) & UINT64_C(0x1111111111111111));
        return (uint32_t)__builtin_popcountll(bits);
    }
    uint64_t id[GM_LANES];
    for (uint32_t i = 0; i < n; i++)
        id[i] = address[i] >> LINE_SHIFT;
    *lines = distinct(id, n);
    for (uint32_t i = 0; i < n; i++)
        id[i] = address[i] >> SECTOR_SHIFT;
    return distinct(id, n);
}

/* Each sector counts as often as the address in it that most lanes want: those are served one after another. */
static uint32_t sectors_of_atomics(const uint64_t *address, uint32_t n)
{
    uint32_t sectors = 0, seen = 0; /* bit i: lane i's sector is done */
    for (uint32_t i = 0; i < n; i++) {
        if (seen >> i & 1)
            continue;
        uint32_t inside = 0, most = 0; /* lanes in lane i's sector; the most of them at one address */
        for (uint32_t j = i; j < n; j++)
            inside |= (uint32_t)(address[j] >> SECTOR_SHIFT == address[i] >> SECTOR_SHIFT) << j;
        seen |= inside;
        for (uint32_t left = inside; left;) {
            uint64_t one = address[gm_first_lane(left)];
            uint32_t same = 0;
            for (uint32_t rest = left; rest; rest &= rest - 1)
                same |= (uint32_t)(address[gm_first_lane(rest)] == one) << gm_first_lane(rest);
            most = gm_lane_count(same) > most ? gm_lane_count(same) : most;
            left &= ~same;
        }
        sectors += most;
    }
    return sectors;
}

static gm_global_count finish(uint32_t sectors, uint32_t lines, uint32_t lanes, uint32_t bytes)
{
    uint32_t packed = (lanes * bytes + GM_SECTOR_BYTES - 1) / GM_SECTOR_BYTES;
    return (gm_global_count){1, sectors, packed < sectors ? packed : sectors, lines};
}

static gm_global_count count_steps(gm_access access, uint64_t first, int64_t step, uint32_t lanes, uint32_t bytes)
{
    uint32_t sectors =
        access >= GM_ACCESS_ATOM && step == 0 ? lanes : blocks_of_steps(first, step, lanes, SECTOR_SHIFT);
    return finish(sectors, blocks_of_steps(first, step, lanes, LINE_SHIFT), lanes, bytes);
}

gm_global_count gm_count_global_steps(gm_access access, uint64_t first, int64_t step, uint32_t bytes)
{
    return count_steps(access, first, step, GM_LANES, bytes);
}

gm_global_count gm_count_global(gm_access access, const uint64_t addr[GM_LANES], uint32_t active, uint32_t bytes)
{
    if (!active)
        return (gm_global_count){0};
    int first = gm_first_lane(active);
    uint32_t lanes = gm_lane_count(active);
    if (gm_lanes_adjacent(active) && gm_steps64(addr + first, lanes))
        return count_steps(access, addr[first], gm_step64(addr + first, lanes), lanes, bytes);

    uint64_t packed[GM_LANES];
    const uint64_t *address = addr;
    if (lanes < GM_LANES) {
        gm_pack64(packed, addr, active);
        address = packed;
    }
    uint32_t lines, sectors = touched(address, lanes, &lines);
    if (access >= GM_ACCESS_ATOM)
        sectors = sectors_of_atomics(address, lanes);
    return finish(sectors, lines, lanes, bytes);
}

/* Where several lanes copy to one place the last one's bytes arrive, and only those are fetched. What is counted then
 * is how often a line meets 32 bytes of shared memory. */
gm_global_count gm_count_copy(const uint64_t src[GM_LANES], const uint32_t dst[GM_LANES], uint32_t active)
{
    enum { BYTES = 16 };
    if (!active)
        return (gm_global_count){0};
    uint64_t line[GM_LANES], pair[GM_LANES];
    uint32_t n = 0, kept = 0;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int lane = gm_first_lane(rest);
        uint32_t later = 0;
        line[n++] = src[lane] >> LINE_SHIFT;
        for (uint32_t after = rest & (rest - 1); after; after &= after - 1)
            later |= dst[gm_first_lane(after)] == dst[lane];
        if (!later)
            pair[kept++] = (src[lane] >> LINE_SHIFT) << 27 | dst[lane] >> SECTOR_SHIFT;
    }
    return finish(distinct(pair, kept), distinct(line, n), n, BYTES);
}
