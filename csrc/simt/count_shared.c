/* Requests to shared memory: how many passes over the banks they take.
 *
 * Lanes are served in groups that together ask for at most 128 bytes: all 32 for up to 4 bytes a lane, half-warps for
 * 8, quarter-warps for 16. Within a group, an access of w bytes lies in one of 128 / w columns as wide as itself, and
 * the group takes as many wavefronts as there are different addresses in its fullest column. */
#include "count.h"
#include "count_lanes.h"
#include "../base/integers.h"
#include <stddef.h>

enum { ROW_BYTES = 128, WORD_BYTES = 4, TABLE_BITS = 6, TABLE = 1 << TABLE_BITS };

/* A lane's address in units of its own width, 4 bytes at least: 1- and 2-byte accesses count as the word they lie in.
 */
static unsigned shift_of(uint32_t bytes)
{
    return bytes <= WORD_BYTES ? 2 : bytes == 8 ? 3 : 4;
}

/* The largest number of different units in one of `columns`, among the active lanes. `served`, where it is wanted: a
 * lane's unit is the so many-th of its column, and is served in that wavefront of the group. */
static uint32_t fullest(const uint32_t *unit, uint32_t active, uint32_t columns, uint8_t *served)
{
    uint32_t hit = 0;
    for (uint32_t rest = active; rest; rest &= rest - 1)
        hit |= UINT32_C(1) << (unit[gm_first_lane(rest)] & (columns - 1));
    if (gm_lane_count(hit) == gm_lane_count(active))
        return active != 0;

    /* Units already seen are kept in a hash table, where a column that all lanes want is no worse than others. */
    uint32_t slot[TABLE], most = 0;
    uint64_t used = 0;
    uint8_t length[GM_LANES] = {0}, turn[TABLE];
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int lane = gm_first_lane(rest);
        uint32_t wanted = unit[lane], at = wanted * UINT32_C(0x9E3779B1) >> (32 - TABLE_BITS);
        while (used >> at & 1 && slot[at] != wanted)
            at = (at + 1) % TABLE;
        if (!(used >> at & 1)) {
            used |= UINT64_C(1) << at;
            slot[at] = wanted;
            turn[at] = length[wanted & (columns - 1)]++;
            most = turn[at] >= most ? turn[at] + 1u : most;
        }
        if (served)
            served[lane] = turn[at];
    }
    return most;
}

/* The same, each lane counted: what wants to change memory is not served together. */
static uint32_t most_crowded(const uint32_t *unit, uint32_t active, uint32_t columns, uint8_t *served)
{
    uint8_t crowd[GM_LANES] = {0};
    uint32_t most = 0;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int lane = gm_first_lane(rest);
        uint8_t in = ++crowd[unit[lane] & (columns - 1)];
        most = in > most ? in : most;
        if (served)
            served[lane] = (uint8_t)(in - 1);
    }
    return most;
}

/* Every active lane agrees with the lane whose number differs in `bit`, or is alone. */
static int pairs_agree(const uint32_t *unit, uint32_t active, int bit)
{
    uint32_t low = bit == 1 ? 0x55555555u : 0x33333333u;
    for (uint32_t both = active & active >> bit & low; both; both &= both - 1) {
        int lane = gm_first_lane(both);
        if (unit[lane] != unit[lane + bit])
            return 0;
    }
    return 1;
}

typedef uint32_t group_count(const uint32_t *unit, uint32_t active, uint32_t columns, uint8_t *served);

static gm_shared_count count_groups(group_count *count, const uint32_t *unit, uint32_t active, uint32_t columns,
                                    uint32_t size, uint8_t *served)
{
    gm_shared_count all = {active != 0, 0, 0, 0};
    for (uint32_t from = 0; from < GM_LANES; from += size) {
        uint32_t group = active & (UINT32_MAX >> (GM_LANES - size)) << from;
        uint32_t before = all.wavefronts;
        all.wavefronts += count(unit, group, columns, served);
        for (uint32_t rest = served ? group : 0; rest; rest &= rest - 1)
            served[gm_first_lane(rest)] += (uint8_t)before;
        all.ideal += group != 0;
    }
    all.conflicts = all.wavefronts - all.ideal;
    return all;
}

gm_shared_count gm_count_shared_steps(gm_access access, int32_t step, uint32_t bytes)
{
    uint32_t units = (step < 0 ? 0 - (uint32_t)step : (uint32_t)step) >> shift_of(bytes), lanes = ROW_BYTES / bytes;
    uint32_t groups = GM_LANES / lanes, each;
    if (access == GM_ACCESS_ATOM || access == GM_ACCESS_CAS)
        each = (uint32_t)gm_common(units, lanes); /* of 0: all lanes */
    else
        each = units ? (uint32_t)gm_common(units, lanes) : 1;
    if (access == GM_ACCESS_LOAD && step == 0 && groups > 1)
        groups /= 2; /* neighbours agree, so that groups merge */
    if (access == GM_ACCESS_CAS)
        return (gm_shared_count){1, 2 * groups * each, 2 * groups, groups * each - groups};
    return (gm_shared_count){1, groups * each, groups, groups * each - groups};
}

gm_shared_count gm_count_shared(gm_access access, const uint32_t addr[GM_LANES], uint32_t active, uint32_t bytes)
{
    if (!active)
        return (gm_shared_count){0};
    if (active == UINT32_MAX && bytes >= WORD_BYTES && gm_steps32(addr, GM_LANES))
        return gm_count_shared_steps(access, gm_step32(addr, GM_LANES), bytes);
    return gm_place_shared(access, addr, active, bytes, NULL);
}

gm_shared_count gm_place_shared(gm_access access, const uint32_t addr[GM_LANES], uint32_t active, uint32_t bytes,
                                uint8_t *served)
{
    unsigned shift = shift_of(bytes);
    uint32_t unit[GM_LANES], columns = ROW_BYTES >> shift, size = columns;
    for (int i = 0; i < GM_LANES; i++)
        unit[i] = addr[i] >> shift;
    if (access == GM_ACCESS_LOAD && size < GM_LANES && (pairs_agree(unit, active, 1) || pairs_agree(unit, active, 2)))
        size *= 2;
    int crowded = access == GM_ACCESS_ATOM || access == GM_ACCESS_CAS;
    gm_shared_count all = count_groups(crowded ? most_crowded : fullest, unit, active, columns, size, served);
    if (access == GM_ACCESS_CAS) {
        all.wavefronts *= 2;
        all.ideal *= 2;
        for (int i = 0; i < GM_LANES && served; i++)
            served[i] *= 2;
    }
    return all;
}

gm_shared_count gm_place_matrix(const uint32_t row[GM_LANES], uint32_t matrices, uint8_t *served)
{
    enum { ROWS = 8, ROW_SHIFT = 4 };
    uint32_t unit[GM_LANES];
    for (uint32_t i = 0; i < ROWS * matrices; i++)
        unit[i] = row[i] >> ROW_SHIFT;
    return count_groups(fullest, unit, UINT32_MAX >> (GM_LANES - ROWS * matrices), ROWS, ROWS, served);
}

gm_shared_count gm_place_copy_shared(const uint32_t dst[GM_LANES], uint32_t active, uint32_t bytes, uint8_t *served)
{
    uint32_t unit[GM_LANES], shift = shift_of(bytes), columns = ROW_BYTES >> shift;
    for (int i = 0; i < GM_LANES; i++)
        unit[i] = dst[i] >> shift;
    return count_groups(most_crowded, unit, active, columns, columns, served);
}

gm_shared_count gm_count_matrix(const uint32_t row[GM_LANES], uint32_t matrices)
{
    return gm_place_matrix(row, matrices, NULL);
}

gm_shared_count gm_count_copy_shared(const uint64_t src[GM_LANES], uint32_t reads, const uint32_t dst[GM_LANES],
                                     uint32_t writes, uint32_t bytes)
{
    uint32_t from[GM_LANES], to[GM_LANES], shift = shift_of(bytes), columns = ROW_BYTES >> shift;
    gm_shared_count all = {writes != 0, 0, 0, 0};
    for (int i = 0; i < GM_LANES; i++) {
        from[i] = (uint32_t)(src[i] >> shift);
        to[i] = dst[i] >> shift;
    }
    for (uint32_t at = 0; at < GM_LANES; at += columns) {
        uint32_t group = (UINT32_MAX >> (GM_LANES - columns)) << at;
        uint32_t taken = most_crowded(to, writes & group, columns, NULL);
        uint32_t fetched = most_crowded(from, reads & writes & group, columns, NULL);
        all.wavefronts += taken > fetched ? taken : fetched;
        all.ideal += (writes & group) != 0;
    }
    all.conflicts = all.wavefronts - all.ideal;
    return all;
}
