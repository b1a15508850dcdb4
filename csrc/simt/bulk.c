/* Bulk copies between global memory and the shared memory of a block or of another one of its cluster, plain or by a
 * tensor map. They are carried out at once, and the barrier that they were given learns of their bytes. */
#include "machine.h"
#include "../base/integers.h"
#include <string.h>

static uint64_t value_at(const gm_warp *w, uint32_t slot, uint32_t bytes, uint32_t lane)
{
    uint64_t value = 0;
    memcpy(&value, w->now.frame->regs + slot + bytes * lane, bytes);
    return value;
}

/* The blocks that a copy goes to: that of the address, or those of a multicast mask. */
static uint32_t targets(const gm_warp *w, const gm_insn *in, uint32_t lane)
{
    return in->e == GM_NOWHERE ? 0 : (uint32_t)value_at(w, in->e, 2, lane);
}

static uint64_t in_block(uint64_t address, uint32_t rank)
{
    return (address & ((1u << GM_RANK_SHIFT) - 1)) | (uint64_t)(rank + 1) << GM_RANK_SHIFT;
}

static void arrived(gm_warp *w, const gm_insn *in, uint32_t lane, uint64_t barrier, uint64_t bytes)
{
    uint8_t *at = gm_reach_bytes(w, in, lane, GM_SPACE_SHARED, barrier, 8, 8, 1);
    if (at)
        gm_mbarrier_complete(at, bytes);
}

/* The watch of the block whose shared memory it is. The bytes have been reached. */
static void watch_arrived(const gm_warp *w, uint64_t address, uint32_t bytes)
{
    uint64_t rank = address >> GM_RANK_SHIFT & 0xff;
    const gm_block *block = rank ? &w->block->unit->blocks[rank - 1] : w->block;
    if (block->watch)
        gm_watch_arrived(block->watch, (uint32_t)(address & ((1u << GM_RANK_SHIFT) - 1)), bytes);
}

/* d to, a from, b how many bytes, c the barrier or GM_NOWHERE, e a multicast mask or GM_NOWHERE; k a gm_bulk. */
const gm_insn *gm_bulk_copy(gm_warp *w, const gm_insn *in, uint32_t lanes, gm_bulk_reduce *reduce)
{
    gm_space to_space = in->k == GM_BULK_OUT ? GM_SPACE_GLOBAL : GM_SPACE_SHARED;
    gm_space from_space = in->k == GM_BULK_IN ? GM_SPACE_GLOBAL : GM_SPACE_SHARED;
    gm_site_state *site = &w->sites[in->x];
    site->counts.executions++;
    site->counts.lanes += (uint64_t)__builtin_popcount(lanes);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), mask = targets(w, in, lane);
        uint64_t to = value_at(w, in->d, 8, lane), from = value_at(w, in->a, 8, lane);
        uint64_t bytes = value_at(w, in->b, 4, lane);
        if (bytes % 16) {
            gm_found(w, in, GM_FINDING_MISALIGNED, 1u << lane, NULL);
            continue;
        }
        const uint8_t *source = gm_reach_bytes(w, in, lane, from_space, from, bytes, 16, 0);
        if (source == NULL)
            continue;
        for (uint32_t rank = 0; rank < (mask ? w->block->unit->block_count : 1); rank++) {
            if (mask && !(mask >> rank & 1))
                continue;
            uint64_t there = mask ? in_block(to, rank) : to;
            uint8_t *target = gm_reach_bytes(w, in, lane, to_space, there, bytes, 16, 1);
            if (target && reduce)
                reduce(in, target, source, bytes);
            else if (target)
                memmove(target, source, bytes);
            if (target && to_space == GM_SPACE_SHARED)
                watch_arrived(w, there, (uint32_t)bytes);
            if (in->c != GM_NOWHERE) {
                uint64_t barrier = value_at(w, in->c, 8, lane);
                arrived(w, in, lane, mask ? in_block(barrier, rank) : barrier, bytes);
            }
        }
    }
    return in + 1;
}

/* Where an item of a box lies in shared memory: 16-byte pieces are exchanged by bits 7 and up of the address. */
static uint64_t swizzled(uint64_t at, uint32_t swizzle)
{
    uint64_t bits = swizzle == 1 ? 1 : swizzle == 2 ? 3 : swizzle == 3 ? 7 : 0;
    return at ^ ((at >> 7 & bits) << 4);
}

/* d shared address, a the map's, the list at imm: coordinates (32 bits each); c the barrier or GM_NOWHERE. */
const gm_insn *gm_bulk_tensor(gm_warp *w, const gm_insn *in, uint32_t lanes)
{
    gm_site_state *site = &w->sites[in->x];
    site->counts.executions++;
    site->counts.lanes += (uint64_t)__builtin_popcount(lanes);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), mask = targets(w, in, lane);
        uint64_t shared = value_at(w, in->d, 8, lane), map_at = value_at(w, in->a, 8, lane);
        gm_tensor_map map;
        const uint8_t *bytes = gm_reach_bytes(w, in, lane, GM_SPACE_GENERIC, map_at, sizeof map, 64, 0);
        if (bytes == NULL)
            continue;
        memcpy(&map, bytes, sizeof map);
        int64_t first[5] = {0};
        for (uint32_t i = 0; i < in->n; i++)
            first[i] = (int32_t)value_at(w, w->lists[in->imm + i], 4, lane);
        uint64_t items = 1;
        for (uint32_t i = 0; i < map.rank && i < 5; i++)
            items *= map.box[i];
        if (map.magic != GM_TENSOR_MAGIC || map.rank != in->n || map.rank == 0 || map.item_bytes == 0 ||
            map.item_bytes > 16 || items == 0 || items * map.item_bytes > (1u << 20)) {
            gm_found(w, in, GM_FINDING_WRONG_SPACE, 1u << lane, NULL);
            continue;
        }
        for (uint32_t rank = 0; rank < (mask ? w->block->unit->block_count : 1); rank++) {
            if (mask && !(mask >> rank & 1))
                continue;
            uint64_t there = mask ? in_block(shared, rank) : shared;
            uint8_t *target = gm_reach_bytes(w, in, lane, GM_SPACE_SHARED, there, items * map.item_bytes,
                                             map.swizzle ? 128 : 16, in->k == GM_BULK_IN);
            if (target == NULL)
                continue;
            uint64_t index[5] = {0};
            for (uint64_t item = 0; item < items; item++) {
                uint64_t at = map.address;
                int inside = 1;
                for (uint32_t i = 0; i < map.rank; i++) {
                    int64_t c = first[i] + (int64_t)index[i] * (map.step[i] ? map.step[i] : 1);
                    inside &= c >= 0 && c < (int64_t)map.size[i];
                    at += (uint64_t)c * (i ? map.stride[i - 1] : map.item_bytes);
                }
                uint64_t place = item * map.item_bytes;
                place = swizzled((there & 1023) + place, map.swizzle) - (there & 1023);
                uint8_t *global = inside ? gm_reach_bytes(w, in, lane, GM_SPACE_GLOBAL, at, map.item_bytes,
                                                          map.item_bytes, in->k == GM_BULK_OUT)
                                         : NULL;
                if (place + map.item_bytes > items * map.item_bytes)
                    continue; /* a box that is no whole number of swizzled rows */
                if (in->k == GM_BULK_IN && global)
                    memcpy(target + place, global, map.item_bytes);
                else if (in->k == GM_BULK_IN)
                    memset(target + place, 0, map.item_bytes);
                else if (global)
                    memcpy(global, target + place, map.item_bytes);
                for (uint32_t i = 0; i < map.rank && ++index[i] == map.box[i]; i++)
                    index[i] = 0;
            }
            if (in->k == GM_BULK_IN)
                watch_arrived(w, there, (uint32_t)(items * map.item_bytes));
            if (in->c != GM_NOWHERE) {
                uint64_t barrier = value_at(w, in->c, 8, lane);
                arrived(w, in, lane, mask ? in_block(barrier, rank) : barrier, items * map.item_bytes);
            }
        }
    }
    return in + 1;
}

/* st.async and red.async: d to, a the values (n items of k bytes in slots of e), c the barrier. */
const gm_insn *gm_store_async(gm_warp *w, const gm_insn *in, uint32_t lanes, gm_bulk_reduce *reduce)
{
    uint32_t bytes = (uint32_t)in->n * in->k;
    gm_site_state *site = &w->sites[in->x];
    site->counts.executions++;
    site->counts.lanes += (uint64_t)__builtin_popcount(lanes);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint8_t items[32];
        for (uint32_t j = 0; j < in->n; j++) {
            uint64_t item = value_at(w, in->n == 1 ? in->a : w->lists[in->a + j], in->e, lane);
            memcpy(items + j * in->k, &item, in->k);
        }
        uint64_t to = value_at(w, in->d, 8, lane);
        uint8_t *target = gm_reach_bytes(w, in, lane, GM_SPACE_SHARED, to, bytes, bytes, 1);
        if (target == NULL)
            continue;
        if (reduce)
            reduce(in, target, items, bytes);
        else
            memcpy(target, items, bytes);
        watch_arrived(w, to, bytes);
        arrived(w, in, lane, value_at(w, in->c, 8, lane), bytes);
    }
    return in + 1;
}
