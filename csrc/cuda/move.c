/* Movement on a device: which kernels a plan gets. */
#include "../base/integers.h"
#include "backend.h"
#include "gpu.h"
#include "images.h"
#include "lesson.h"
#include "matrix.h"
#include "rows.h"
#include "tile.h"
#include "walk.h"
#include <stdio.h>

enum { VECTOR = 16, GENERAL_UNITS = 4, ROWS_PIECES = 2, SHORTEST_RUN = 256 };

/* What a family needs to know; src and dst are those of the plan's first item. */
typedef struct gm_movement {
    gm_gpu *gpu;
    CUstream stream;
    const gm_plan *plan;
    char *dst;
    const char *src;
    int unit; /* the widest access that fits both sides everywhere */
    gm_failure *failure;
} gm_movement;

/* One kernel for each width of access: name_1 ... name_16. */
static int sized(const char *name, int size)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%d", name, size);
    return gm_entry_find(full);
}

static gm_status launch(const gm_movement *move, int entry, int64_t blocks, unsigned threads, unsigned shared,
                        void *parameter)
{
    gm_launch launch = {.entry = entry,
                        .grid = {(unsigned)blocks, 1, 1},
                        .block = {threads, 1, 1},
                        .shared = shared,
                        .stream = move->stream};
    void *arguments[] = {(void *)&move->dst, (void *)&move->src, parameter};
    return gm_gpu_launch(move->gpu, &launch, arguments, move->failure);
}

/* Each family either takes the plan, says in `status` how that went and returns 1, or leaves it to the next. */
typedef int gm_family_fn(const gm_movement *move, gm_status *status);

static int move_flat(const gm_movement *move, gm_status *status)
{
    enum { THREADS = 256 };
    long long vectors = move->plan->item / VECTOR;

    if (move->plan->naxes || move->unit != VECTOR)
        return 0;
    *status = launch(move, gm_entry_find("move_vectors"), gm_pieces(vectors, THREADS), THREADS, 0, &vectors);
    return 1;
}

static int move_rows(const gm_movement *move, gm_status *status)
{
    enum { THREADS = 256 };
    gm_rows rows;

    if (move->plan->naxes && (move->plan->item < SHORTEST_RUN || move->unit == VECTOR))
        return 0;
    gm_rows_make(&rows, move->plan, move->dst, move->src);
    *status = launch(move, gm_entry_find("move_rows"), gm_pieces(rows.all, THREADS * ROWS_PIECES), THREADS, 0, &rows);
    return 1;
}

static int move_matrix(const gm_movement *move, gm_status *status)
{
    gm_matrix_launch made;

    if (move->plan->item >= SHORTEST_RUN || !gm_matrix_make(&made, move->plan, move->unit, move->dst, move->src))
        return 0;
    *status = launch(move, gm_entry_find(made.kernel), made.blocks, made.threads, made.shared, &made.matrix);
    return 1;
}

static int move_tile(const gm_movement *move, gm_status *status)
{
    static const char *const names[2][2] = {{"move_tile", "move_tile_ragged"}, {"move_chain", "move_chain_ragged"}};
    gm_tile_launch made;

    if (move->plan->item >= SHORTEST_RUN ||
        !gm_tile_make(&made, move->plan, move->unit, move->dst, move->src, move->gpu->figures.shared_bytes))
        return 0;
    *status = launch(move, sized(names[made.chain][made.ragged], move->unit), made.blocks, made.threads, made.shared,
                     &made.tile);
    return 1;
}

static int move_general(const gm_movement *move, gm_status *status)
{
    enum { THREADS = 256 };
    gm_walk walk;

    gm_walk_make(&walk, move->plan, move->unit);
    *status = launch(move, sized("move_general", move->unit), gm_pieces(walk.units, THREADS * GENERAL_UNITS), THREADS,
                     0, &walk);
    return 1;
}

gm_status gm_cuda_move(int device, void *stream, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                       gm_failure *failure)
{
    static gm_family_fn *const families[] = {move_flat, move_rows, move_matrix, move_tile, move_general};
    gm_visit visit;

    if (plan->family == GM_EMPTY)
        return GM_OK;
    if (stage != GM_STAGE_COUNT && stage != GM_CUDA_copy_tuned && stage != GM_CUDA_transpose_tuned)
        return gm_lesson_move(device, stream, plan, dst, src, stage, failure);
    gm_gpu *gpu = gm_gpu_get(device, failure);
    if (!gpu || gm_visit_begin(&visit, gpu, failure) != GM_OK)
        return failure->status;
    gm_movement move = {gpu, (CUstream)stream, plan, dst + plan->dst_start, src + plan->src_start, 0, failure};
    move.unit = gm_walk_unit(plan, move.dst, move.src);
    gm_status status = GM_OK;
    size_t i = 0;
    while (!families[i](&move, &status))
        i++;
    gm_visit_end(&visit);
    return status;
}
