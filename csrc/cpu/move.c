/* The stages of copy and transpose, from cache blocks to all threads. Each takes any plan; where its idea does not
 * apply, it does what the stage before it does. */
#include "comb.h"
#include "compact.h"
#include "deal.h"
#include "rows.h"
#include "thin.h"
#include "tile_move.h"
#include "matrices.h"
#include "middle.h"
#include "weave.h"
#include <stdatomic.h>

/* Rows this long need no blocks: either side reads, or writes, long runs as it is. */
enum { LONG_ROW = 1 << 10 }; /* bytes */

static int is_long_rows(const gm_plan *plan)
{
    return plan->naxes == 0 || plan->item >= LONG_ROW;
}

/* What is no comb. */
static gm_status move_other(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how)
{
    if (plan->family == GM_EMPTY)
        return GM_OK;
    if (how->staged && gm_deal_suits(cpu, plan))
        return gm_move_deal(cpu, plan, dst, src, how->threads);
    if (is_long_rows(plan)) {
        gm_move_rows(cpu, plan, dst, src, how->staged, how->threads);
        return GM_OK;
    }
    return gm_move_blocks(cpu, plan, dst, src, how);
}

static gm_status move(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, const gm_tile_how *how)
{
    if (!how->simd || !gm_comb_suits(cpu, plan))
        return move_other(cpu, plan, dst, src, how);
    gm_move_comb(cpu, plan, dst, src, how->staged, how->threads);
    return GM_OK;
}

gm_status gm_move_blocked(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    return move(cpu, plan, dst, src, &(gm_tile_how){.threads = 1});
}

gm_status gm_move_simd(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    return move(cpu, plan, dst, src, &(gm_tile_how){.simd = 1, .threads = 1});
}

gm_status gm_move_streaming(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    return move(cpu, plan, dst, src, &(gm_tile_how){.simd = 1, .staged = 1, .threads = 1});
}

gm_status gm_move_tuned(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src)
{
    if (gm_small_suits(plan)) {
        gm_move_matrices(cpu, plan, dst, src, 1);
        return GM_OK;
    }
    int64_t total = plan->items * plan->item;
    if (gm_weave_suits(cpu, plan)) {
        gm_move_weave(cpu, plan, dst, src, gm_goes_past(total, cpu->l3_bytes / 2));
        return GM_OK;
    }
    int large = gm_goes_past(total, cpu->l3_bytes / 16 * 3);
    gm_tile_how how = {.simd = 1, .staged = large, .threads = atomic_load(&cpu->threads)};
    if (plan->family != GM_TILE && plan->family != GM_GENERAL)
        return move_other(cpu, plan, dst, src, &how);
    if (gm_comb_suits(cpu, plan)) {
        gm_move_comb(cpu, plan, dst, src, large, how.threads);
        return GM_OK;
    }
    if (!large && gm_matrices_suit(cpu, plan)) {
        gm_move_matrices(cpu, plan, dst, src, how.threads);
        return GM_OK;
    }
    if (gm_middle_suits(cpu, plan))
        return gm_move_middle(cpu, plan, dst, src, large, how.threads);
    if (gm_thin_suits(plan))
        return gm_move_thin(cpu, plan, dst, src);
    if (gm_compact_suits(plan))
        return gm_move_compact(cpu, plan, dst, src, &how);
    return move_other(cpu, plan, dst, src, &how);
}
