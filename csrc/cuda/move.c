/* Movement on a device: which kernels a plan gets. */
#include "../base/integers.h"
#include "backend.h"
#include "batch.h"
#include "fit.h"
#include "images.h"
#include "lesson.h"
#include "matrix.h"
#include "planes.h"
#include "prepared.h"
#include "rows.h"
#include "stride.h"
#include "strip.h"
#include "tile.h"
#include "walk.h"
#include "weave.h"

enum { VECTOR = 16, GENERAL_UNITS = 4, ROWS_PIECES = 2, SHORTEST_RUN = 256 };

/* What a family needs to know; src and dst are those of the plan's first item. */
typedef struct gm_movement {
    const gm_gpu *gpu;
    const gm_plan *plan;
    char *dst;
    const char *src;
    int unit; /* the widest access that fits both sides everywhere */
} gm_movement;

static int prepared(gm_prepared *to, int entry, int64_t blocks, unsigned threads, unsigned shared, int ends)
{
    gm_prepared_set(to, entry, blocks, threads, shared);
    to->ends = ends;
    return 1;
}

/* Each family either takes the plan, prepares its launch and returns 1, or leaves it to the next. */
typedef int gm_family_fn(const gm_movement *move, gm_prepared *to);

static int move_flat(const gm_movement *move, gm_prepared *to)
{
    enum { THREADS = 256 };

    if (move->plan->naxes || move->unit != VECTOR)
        return 0;
    to->parameter.vectors = move->plan->item / VECTOR;
    return prepared(to, gm_entry_find("move_vectors"), gm_pieces(to->parameter.vectors, THREADS), THREADS, 0, 0);
}

static int move_stride(const gm_movement *move, gm_prepared *to)
{
    gm_stride_launch made;

    if (move->unit == VECTOR || !gm_stride_make(&made, move->plan, move->unit, move->dst, move->src))
        return 0;
    to->parameter.stride = made.stride;
    return prepared(to, gm_entry_find(made.kernel), made.blocks, GM_STRIDE_THREADS, 0, 2);
}

static int move_rows(const gm_movement *move, gm_prepared *to)
{
    enum { THREADS = 256 };
    gm_rows *rows = &to->parameter.rows;

    if (move->plan->naxes && (move->plan->item < SHORTEST_RUN || move->unit == VECTOR))
        return 0;
    gm_rows_make(rows, move->plan, move->dst, move->src);
    return prepared(to, gm_entry_find("move_rows"), gm_pieces(rows->all, THREADS * ROWS_PIECES), THREADS, 0, 1);
}

static int move_weave(const gm_movement *move, gm_prepared *to)
{
    gm_weave_launch made;

    if (!gm_weave_make(&made, move->plan, move->dst, move->src))
        return 0;
    to->parameter.weave = made.weave;
    return prepared(to, gm_entry_sized(made.weaves ? "move_weave" : "move_unweave", made.fields), made.blocks,
                    made.threads, made.shared, 0);
}

static int move_batch(const gm_movement *move, gm_prepared *to)
{
    gm_batch_launch made;

    if (!gm_batch_make(&made, move->plan, move->dst, move->src, move->gpu->figures.processors) ||
        !gm_batch_suits(&made))
        return 0;
    to->parameter.batch = made.batch;
    return prepared(to, gm_entry_find("move_batch"), made.blocks, made.threads, made.shared, 0);
}

static int move_fit(const gm_movement *move, gm_prepared *to)
{
    gm_fit_launch made;

    if (!gm_fit_make(&made, move->plan, move->unit, move->dst, move->src) || !gm_fit_suits(&made))
        return 0;
    to->parameter.fit = made.fit;
    return prepared(to, gm_entry_sized(made.large ? "move_fit_large" : "move_fit", move->unit), made.blocks,
                    made.threads, made.shared, 0);
}

static int move_planes(const gm_movement *move, gm_prepared *to)
{
    gm_planes_launch made;

    if (!gm_planes_make(&made, move->plan, move->unit, move->dst, move->src) || !gm_planes_suits(&made, move->unit))
        return 0;
    if (made.to_planes) /* blocks on; half of them to three quarters are under way (planes.cu) */
        made.planes.further = move->gpu->figures.processors * (move->unit <= 2 ? 6 : 5) / 2;
    to->parameter.planes = made.planes;
    to->asynchronous = made.to_planes;
    return prepared(to, gm_entry_sized(made.to_planes ? "move_planes" : "move_records", move->unit), made.blocks,
                    made.threads, made.shared, 1);
}

static int move_strip(const gm_movement *move, gm_prepared *to)
{
    gm_strip_launch made;

    if (!gm_strip_make(&made, move->plan, move->unit, move->src) ||
        !gm_strip_suits(&made, move->plan, move->dst, move->src, move->gpu->figures.shared_bytes))
        return 0;
    to->parameter.strip = made.strip;
    to->asynchronous = 1;
    return prepared(to, gm_entry_sized("move_strip", move->unit), made.blocks, made.threads, made.shared, 1);
}

/* Whether what blocks further on will read lies in long runs. Among several axes, or in short rows, bringing it ahead
 * cost up to a third: (n, 32) bytes 0.62 of a copy for 0.94, 75 x 75 x 96 x 96 float32 to 1, 0, 3, 2 0.84 for 0.92. */
static int is_plain(const gm_matrix *matrix, int unit)
{
    enum { LONG = 2048 }; /* bytes */
    return matrix->nrow == 1 && matrix->ncolumn == 1 && (int64_t)matrix->rows * unit >= LONG &&
           (int64_t)matrix->columns * unit >= LONG;
}

static int move_matrix(const gm_movement *move, gm_prepared *to)
{
    enum { AHEAD = 32 << 10, ENOUGH = 8 }; /* bytes for each multiprocessor (even.cu) */
    gm_matrix_launch made;

    if (move->plan->item >= SHORTEST_RUN ||
        !gm_matrix_make(&made, move->plan, move->unit, move->dst, move->src, move->gpu->figures.shared_bytes))
        return 0;
    const gm_matrix_tile *tile = made.tile;
    int further = AHEAD * move->gpu->figures.processors / (tile->rows * tile->columns * tile->unit);
    if (tile->even && is_plain(&made.matrix, tile->unit) && made.blocks / ENOUGH >= (unsigned)further)
        made.matrix.further = further;
    to->parameter.matrix = made.matrix;
    to->asynchronous = tile->way != GM_MATRIX_HELD;
    return prepared(to, gm_entry_find(tile->kernel), made.blocks, made.threads, made.shared, 1);
}

static int move_tile(const gm_movement *move, gm_prepared *to)
{
    static const char *const names[2][2] = {{"move_tile", "move_tile_ragged"}, {"move_chain", "move_chain_ragged"}};
    gm_tile_launch made;

    if (move->plan->item >= SHORTEST_RUN ||
        !gm_tile_make(&made, move->plan, move->unit, move->dst, move->src, move->gpu->figures.shared_bytes))
        return 0;
    to->parameter.tile = made.tile;
    return prepared(to, gm_entry_sized(names[made.chain][made.ragged], move->unit), made.blocks, made.threads,
                    made.shared, 2);
}

static int move_general(const gm_movement *move, gm_prepared *to)
{
    enum { THREADS = 256 };
    gm_walk *walk = &to->parameter.walk;

    gm_walk_make(walk, move->plan, move->unit);
    return prepared(to, gm_entry_sized("move_general", move->unit), gm_pieces(walk->units, THREADS * GENERAL_UNITS),
                    THREADS, 0, 0);
}

/* The launch for a plan: only what bounds the source depends on more of an address than its place in a line. */
static gm_prepared *prepare(const gm_gpu *gpu, const gm_plan *plan, char *dst, const char *src)
{
    static gm_family_fn *const families[] = {move_flat,   move_stride, move_rows,   move_weave, move_batch,  move_fit,
                                             move_planes, move_strip,  move_matrix, move_tile,  move_general};
    const int64_t words[] = {plan->item, (uintptr_t)dst % GM_WORK_LINE, (uintptr_t)src % GM_WORK_LINE};
    gm_work work;
    size_t family = 0;

    gm_work_begin(&work, GM_WORK_MOVE);
    gm_work_add(&work, words, 3);
    gm_work_add(&work, plan->axis, 3 * plan->naxes);
    gm_prepared *made = gm_prepared_find(gpu, &work, src);
    if (made)
        return made;
    made = gm_prepared_new(gpu, &work, src);
    gm_movement move = {gpu, plan, dst, src, gm_walk_unit(plan, dst, src)};
    while (!families[family](&move, made))
        family++;
    return made;
}

gm_status gm_cuda_move(int device, void *stream, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                       gm_failure *failure)
{
    gm_visit visit;

    if (plan->family == GM_EMPTY)
        return GM_OK;
    if (stage != GM_STAGE_COUNT && stage != GM_CUDA_copy_tuned && stage != GM_CUDA_transpose_tuned)
        return gm_lesson_move(device, stream, plan, dst, src, stage, failure);
    gm_gpu *gpu = gm_visit_begin(&visit, device, failure);
    if (!gpu)
        return failure->status;
    dst += plan->dst_start;
    src += plan->src_start;
    gm_prepared *made = prepare(gpu, plan, dst, src);
    gm_status status = gm_prepared_launch(gpu, (CUstream)stream, made, dst, src, failure);
    gm_visit_end(&visit);
    return status;
}
