/* Finds batches of permutes of small arrays of bytes. */
#include "batch.h"
#include "../base/integers.h"
#include "tile.h"
#include "walk.h"
#include <string.h>

enum { VECTOR = 16, WARP = 32, BLOCKS = 2 /* of a multiprocessor */ };

static void append(gm_batch *batch, int64_t len, int64_t src)
{
    gm_batch_axis *axis = &batch->axis[batch->naxes++];
    axis->len = gm_divide_by(len, &axis->magic, &axis->shift);
    axis->src = (int)src;
}

/* Where a byte of the destination lies in the source. */
static int place_of(const gm_batch *batch, int byte)
{
    int place = 0, last = batch->naxes - 1; /* whose length may be any: that of the pieces */

    for (int k = 0; k < last; k++) {
        int len = (int)batch->axis[k].len;
        place += byte % len * batch->axis[k].src;
        byte /= len;
    }
    return place + byte * batch->axis[last].src;
}

static void choose_turn(gm_batch *batch)
{
    int place[WARP][VECTOR];

    for (int i = 0; i < WARP; i++)
        for (int k = 0; k < VECTOR; k++)
            place[i][k] = place_of(batch, i * VECTOR + k);
    gm_lanes_turn(place, VECTOR, &batch->turn_shift, &batch->turn_step);
}

int gm_batch_make(gm_batch_launch *launch, const gm_plan *plan, const char *dst, const char *src, int processors)
{
    gm_batch *batch = &launch->batch;
    const gm_axis *pieces = &plan->axis[0]; /* the outermost */
    int64_t piece = 1, span = 1;

    if (plan->item != 1 || plan->naxes < 3 || plan->naxes > GM_BATCH_AXES || ((uintptr_t)dst | (uintptr_t)src) % VECTOR)
        return 0;
    memset(batch, 0, sizeof *batch);
    for (int i = plan->naxes - 1; i > 0; i--) {
        const gm_axis *axis = &plan->axis[i];
        if (axis->dst != piece || axis->src < 0 || axis->len > GM_BATCH_THREADS * VECTOR / piece)
            return 0;
        piece *= axis->len;
        span += (axis->len - 1) * axis->src;
        append(batch, axis->len, axis->src);
    }
    if (span != piece || pieces->dst != piece || pieces->src != piece)
        return 0;
    append(batch, pieces->len, piece);
    int64_t vectors =
        piece / (int64_t)gm_common((uint64_t)piece, VECTOR); /* of the fewest pieces that are whole vectors */
    if (vectors > GM_BATCH_THREADS)
        return 0;
    vectors *= GM_BATCH_THREADS / vectors;
    batch->bytes = (unsigned long long)(piece * pieces->len);
    int64_t steps = gm_pieces((int64_t)batch->bytes, vectors * VECTOR);
    if (steps > INT32_MAX / 2)
        return 0;
    batch->steps = (unsigned)steps;
    batch->vectors = (unsigned)vectors;
    choose_turn(batch);
    launch->threads = (unsigned)gm_round_up((uint64_t)vectors, WARP);
    launch->blocks = (unsigned)gm_least(steps, (int64_t)BLOCKS * processors);
    launch->shared = (unsigned)(GM_BATCH_STAGES * vectors * VECTOR);
    return 1;
}

int gm_batch_suits(const gm_batch_launch *launch)
{
    enum { PIECE = 256, STEPS = 8 /* of a block */ };
    const gm_batch *batch = &launch->batch;

    return batch->axis[batch->naxes - 1].src >= PIECE && batch->steps >= STEPS * launch->blocks;
}
