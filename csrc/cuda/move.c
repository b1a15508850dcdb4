/* Movement on a device: which kernels a plan gets, and the last few launches of each thread. */
#include "../base/integers.h"
#include "backend.h"
#include "batch.h"
#include "gpu.h"
#include "images.h"
#include "lesson.h"
#include "matrix.h"
#include "rows.h"
#include "planes.h"
#include "tile.h"
#include "walk.h"
#include "weave.h"
#include <stdio.h>
#include <string.h>

enum { VECTOR = 16, GENERAL_UNITS = 4, ROWS_PIECES = 2, SHORTEST_RUN = 256, ALIGNMENT = 128, KEPT = 4 };

/* What a launch depends on, and what it is. Choosing a tile takes some microseconds, which is much for a small array
 * that is moved again and again. */
typedef struct gm_prepared {
    const gm_gpu *gpu;
    gm_plan plan;
    unsigned dst_bits, src_bits; /* of the addresses of the plan's first item */
    const char *src;             /* which this launch was made for */
    int entry;
    unsigned blocks, threads, shared;
    int ends; /* so many addresses at the parameter's start are places in the source */
    union {
        unsigned long long end[2];
        long long vectors;
        gm_rows rows;
        gm_weave weave;
        gm_batch batch;
        gm_planes planes;
        gm_matrix matrix;
        gm_tile tile;
        gm_walk walk;
    } parameter;
} gm_prepared;

/* What a family needs to know; src and dst are those of the plan's first item. */
typedef struct gm_movement {
    const gm_gpu *gpu;
    const gm_plan *plan;
    char *dst;
    const char *src;
    int unit; /* the widest access that fits both sides everywhere */
} gm_movement;

/* One kernel for each width of access, or number of fields: name_1 ... name_16. */
static int sized(const char *name, int size)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%d", name, size);
    return gm_entry_find(full);
}

static int prepared(gm_prepared *to, int entry, int64_t blocks, unsigned threads, unsigned shared, int ends)
{
    to->entry = entry;
    to->blocks = (unsigned)blocks;
    to->threads = threads;
    to->shared = shared;
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
    return prepared(to, sized(made.weaves ? "move_weave" : "move_unweave", made.fields), made.blocks, made.threads,
                    made.shared, 0);
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

static int move_planes(const gm_movement *move, gm_prepared *to)
{
    gm_planes_launch made;

    if (!gm_planes_make(&made, move->plan, move->unit, move->dst, move->src) || !gm_planes_suits(&made, move->unit))
        return 0;
    if (made.to_planes && move->unit <= 2) /* half as far as blocks are under way (planes.cu) */
        made.planes.further = move->gpu->figures.processors * 5 / 2;
    to->parameter.planes = made.planes;
    return prepared(to, sized(made.to_planes ? "move_planes" : "move_records", move->unit), made.blocks, made.threads,
                    made.shared, 1);
}

static int move_matrix(const gm_movement *move, gm_prepared *to)
{
    gm_matrix_launch made;

    if (move->plan->item >= SHORTEST_RUN ||
        !gm_matrix_make(&made, move->plan, move->unit, move->dst, move->src, move->gpu->figures.shared_bytes))
        return 0;
    to->parameter.matrix = made.matrix;
    return prepared(to, gm_entry_find(made.kernel), made.blocks, made.threads, made.shared, 1);
}

static int move_tile(const gm_movement *move, gm_prepared *to)
{
    static const char *const names[2][2] = {{"move_tile", "move_tile_ragged"}, {"move_chain", "move_chain_ragged"}};
    gm_tile_launch made;

    if (move->plan->item >= SHORTEST_RUN ||
        !gm_tile_make(&made, move->plan, move->unit, move->dst, move->src, move->gpu->figures.shared_bytes))
        return 0;
    to->parameter.tile = made.tile;
    return prepared(to, sized(names[made.chain][made.ragged], move->unit), made.blocks, made.threads, made.shared, 2);
}

static int move_general(const gm_movement *move, gm_prepared *to)
{
    enum { THREADS = 256 };
    gm_walk *walk = &to->parameter.walk;

    gm_walk_make(walk, move->plan, move->unit);
    return prepared(to, sized("move_general", move->unit), gm_pieces(walk->units, THREADS * GENERAL_UNITS), THREADS, 0,
                    0);
}

static int is_for(const gm_prepared *made, const gm_gpu *gpu, const gm_plan *plan, const char *dst, const char *src)
{
    return made->gpu == gpu && made->plan.naxes == plan->naxes && made->plan.item == plan->item &&
           made->dst_bits == (uintptr_t)dst % ALIGNMENT && made->src_bits == (uintptr_t)src % ALIGNMENT &&
           memcmp(made->plan.axis, plan->axis, (size_t)plan->naxes * sizeof *plan->axis) == 0;
}

/* The launch for a plan: of the thread's last few the one that fits, otherwise a new one in the oldest's place. Kernels
 * look at no more of an address than its place in a line of memory; only what bounds the source moves with it. */
static gm_prepared *prepare(const gm_gpu *gpu, const gm_plan *plan, char *dst, const char *src)
{
    static gm_family_fn *const families[] = {move_flat,   move_rows,   move_weave, move_batch,
                                             move_planes, move_matrix, move_tile,  move_general};
    static _Thread_local gm_prepared kept[KEPT];
    static _Thread_local unsigned oldest;

    for (size_t i = 0; i < KEPT; i++)
        if (is_for(&kept[i], gpu, plan, dst, src)) {
            for (int k = 0; k < kept[i].ends; k++)
                kept[i].parameter.end[k] += (uintptr_t)src - (uintptr_t)kept[i].src;
            kept[i].src = src;
            return &kept[i];
        }
    gm_prepared *made = &kept[oldest++ % KEPT];
    gm_movement move = {gpu, plan, dst, src, gm_walk_unit(plan, dst, src)};
    size_t family = 0;
    while (!families[family](&move, made))
        family++;
    made->gpu = gpu;
    made->plan = *plan;
    made->dst_bits = (uintptr_t)dst % ALIGNMENT;
    made->src_bits = (uintptr_t)src % ALIGNMENT;
    made->src = src;
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
    gm_gpu *gpu = gm_gpu_get(device, failure);
    if (!gpu || gm_visit_begin(&visit, gpu, failure) != GM_OK)
        return failure->status;
    dst += plan->dst_start;
    src += plan->src_start;
    gm_prepared *made = prepare(gpu, plan, dst, src);
    gm_launch launch = {.entry = made->entry,
                        .grid = {made->blocks, 1, 1},
                        .block = {made->threads, 1, 1},
                        .shared = made->shared,
                        .stream = (CUstream)stream};
    void *arguments[] = {&dst, &src, &made->parameter};
    gm_status status = gm_gpu_launch(gpu, &launch, arguments, failure);
    gm_visit_end(&visit);
    return status;
}
