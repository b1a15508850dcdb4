/* Launches of the lesson `transpose`: a tile a block. */
#include "lesson.h"
#include "../base/integers.h"
#include "../kernels/transpose.h"
#include <stdio.h>

typedef struct gm_tile_size {
    int rows, columns;
    unsigned threads;
} gm_tile_size;

static gm_tile_size tile_of(gm_stage_id stage, int item)
{
    if (stage == GM_CUDA_transpose_vectorised)
        return (gm_tile_size){GM_TRANSPOSE_ROWS(item), GM_TRANSPOSE_COLUMNS(item), GM_TRANSPOSE_WIDE};
    if (stage == GM_CUDA_transpose_bulk)
        return (gm_tile_size){GM_TRANSPOSE_BOX_ROWS(item), GM_TRANSPOSE_BOX / item, GM_TRANSPOSE_THREADS};
    return (gm_tile_size){GM_TRANSPOSE_TILE, GM_TRANSPOSE_TILE, GM_TRANSPOSE_THREADS};
}

/* Refuses rows, or matrices, that do not all start at a multiple of so many bytes; `count` of them. */
static gm_status steps_of(const gm_lesson_run *run, const char *of, int64_t step, int64_t count, int bytes)
{
    return count < 2 || step % bytes == 0
               ? GM_OK
               : gm_lesson_refuse(run, "an access takes %d bytes at a multiple of %d, and %s are %lld bytes apart",
                                  bytes, bytes, of, (long long)step);
}

static gm_status source_in(const gm_lesson_run *run, int bytes)
{
    const gm_lesson_call *call = run->call;
    gm_status status = gm_lesson_aligned(run, "x", run->src, bytes);

    if (status == GM_OK)
        status = steps_of(run, "the rows of x", call->src_pitch, call->rows, bytes);
    return status == GM_OK ? steps_of(run, "the matrices of x", call->src_batch, call->batches, bytes) : status;
}

static gm_status result_in(const gm_lesson_run *run, int bytes)
{
    const gm_lesson_call *call = run->call;
    gm_status status = gm_lesson_aligned(run, "the result", run->dst, bytes);

    if (status == GM_OK)
        status = steps_of(run, "the rows of the result", call->dst_pitch, call->columns, bytes);
    return status == GM_OK ? steps_of(run, "the matrices of the result", call->dst_batch, call->batches, bytes)
                           : status;
}

/* Vectors must not go beyond a row: what is there belongs to others, or to nobody. */
static gm_status whole_vectors(const gm_lesson_run *run)
{
    const gm_lesson_call *call = run->call;

    if (call->rows * call->item % 16 || call->columns * call->item % 16)
        return gm_lesson_refuse(run, "rows of %lld and %lld bytes are not whole vectors of 16",
                                (long long)(call->columns * call->item), (long long)(call->rows * call->item));
    gm_status status = source_in(run, 16);
    return status == GM_OK ? result_in(run, 16) : status;
}

/* The source as the copy engine is told of it. */
static gm_status map_of(const gm_lesson_run *run, gm_tile_size tile, gm_tensor_map *map)
{
    static const CUtensorMapDataType types[9] = {[1] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                                 [2] = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                                 [4] = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                                 [8] = CU_TENSOR_MAP_DATA_TYPE_UINT64};
    const gm_lesson_call *call = run->call;
    const gm_cuda_figures *figures = &run->gpu->figures;
    int item = call->item < 16 ? call->item : 8, parts = call->item / item;
    const int64_t most = (INT64_C(1) << 31) - 1024;

    if (figures->capability < 90)
        return gm_lesson_refuse(run, "bulk tensor copies are there from compute capability 9.0 on: %s has %d.%d",
                                figures->name, figures->capability / 10, figures->capability % 10);
    gm_status status = source_in(run, 16);
    if (status != GM_OK)
        return status;
    int64_t whole = gm_pieces(call->columns * call->item, 16) * 16;
    int64_t pitch = call->rows > 1 ? call->src_pitch : whole;
    int64_t batch = call->batches > 1 ? call->src_batch : pitch * call->rows;
    if (pitch < whole - 15 || batch <= 0 || pitch >> 40 || batch >> 40)
        return gm_lesson_refuse(run,
                                "the copy engine steps forward by less than 2^40 bytes: x has steps of %lld and "
                                "%lld",
                                (long long)pitch, (long long)batch);
    if (call->columns * parts > most || call->rows > most || call->batches > most)
        return gm_lesson_refuse(run, "the copy engine counts rows and columns in 31 bits: x has %lld x %lld",
                                (long long)call->rows, (long long)call->columns);
    const cuuint64_t lengths[] = {(cuuint64_t)(call->columns * parts), (cuuint64_t)call->rows,
                                  (cuuint64_t)call->batches},
                     steps[] = {(cuuint64_t)pitch, (cuuint64_t)batch};
    const cuuint32_t box[] = {(cuuint32_t)(tile.columns * parts), (cuuint32_t)tile.rows, 1}, ones[] = {1, 1, 1};
    return GM_CU(run->gpu->driver, run->failure, cuTensorMapEncodeTiled, (CUtensorMap *)map, types[item], 3,
                 (void *)(uintptr_t)run->src, lengths, steps, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                 CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

gm_status gm_lesson_transpose(const gm_lesson_run *run)
{
    const gm_lesson_call *call = run->call;
    gm_tile_size tile = tile_of(call->stage, call->item);
    int64_t down = gm_pieces(call->rows, tile.rows), across = gm_pieces(call->columns, tile.columns);
    int is_bulk = call->stage == GM_CUDA_transpose_bulk;
    gm_tensor_map map;
    char suffix[8];

    gm_status status = call->stage == GM_CUDA_transpose_vectorised ? whole_vectors(run)
                       : is_bulk                                   ? map_of(run, tile, &map)
                                                                   : source_in(run, call->item);
    if (status == GM_OK)
        status = result_in(run, call->item);
    if (status != GM_OK)
        return status;
    if (down > INT32_MAX / across || down * across > INT32_MAX / call->batches)
        return gm_lesson_refuse(run, "%lld matrices of %lld x %lld are more tiles than a launch has blocks",
                                (long long)call->batches, (long long)call->rows, (long long)call->columns);
    gm_transpose transpose = {call->rows,      call->columns,   call->src_pitch, call->dst_pitch,
                              call->src_batch, call->dst_batch, (unsigned)down,  (unsigned)across};
    gm_lesson_grid grid = {down * across * call->batches, 1, tile.threads, 0};
    void *arguments[] = {(void *)&run->dst, is_bulk ? (void *)&map : (void *)&run->src, &transpose};
    snprintf(suffix, sizeof suffix, "_%d", call->item);
    return gm_lesson_launch(run, suffix, grid, arguments);
}
