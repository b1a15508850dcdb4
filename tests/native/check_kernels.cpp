// Runs the movement kernels on the CPU, on random plans, and compares every byte with a plain loop.
// usage: check_kernels SEED COUNT
#include "cuda_on_cpu.h"

#include "../../csrc/kernels/general.cu"
#undef GM_KERNEL
#include "../../csrc/kernels/even.cu"
#include "../../csrc/kernels/matrix.cu"
#undef GM_KERNEL
#include "../../csrc/kernels/rows.cu"
#include "../../csrc/kernels/stride.cu"
#undef GM_KERNEL
#undef GM_KERNELS
#include "../../csrc/kernels/sum_down.cu"
#include "../../csrc/kernels/sum_run.cu"
#include "../../csrc/kernels/planes.cu"
#include "../../csrc/kernels/batch.cu"
#include "../../csrc/kernels/fit.cu"
#include "../../csrc/kernels/tile.cu"
#undef GM_KERNEL
#undef GM_KERNELS
#include "../../csrc/kernels/weave.cu"
#undef GM_KERNEL
#undef GM_KERNELS
#include "../../csrc/kernels/strip.cu"

extern "C" {
#include "../../csrc/cuda/matrix.h"
#include "../../csrc/cuda/rows.h"
#include "../../csrc/cuda/strip.h"
#include "../../csrc/cuda/stride.h"
#include "../../csrc/cuda/planes.h"
#include "../../csrc/cuda/batch.h"
#include "../../csrc/cuda/fit.h"
#include "../../csrc/cuda/tile.h"
#include "../../csrc/cuda/walk.h"
#include "../../csrc/cuda/weave.h"
}

#include <cstdio>
#include <map>
#include <random>
#include <string>

static std::mt19937 generator;

static int draw(int low, int high)
{
    return low + (int)(generator() % (unsigned)(high - low + 1));
}

struct gm_case {
    int64_t item;
    int ndim;
    int64_t shape[8], src[8], dst[8];      // of the destination's axes, in bytes
    int64_t src_span, dst_span, src_first; // bytes of the buffers; of the first item in the source's
    int src_shift, dst_shift;              // from an aligned address
};

// Shapes that tiles, thin arrays, small matrices and long rows are made for; steps with gaps, reversed axes, any start.
// From kind 6 on dense permutations that move the last axis: matrices; kind 8 has whole vectors everywhere, kind 9
// records of few fields, kind 10 bytes of two to four fields in whole vectors, perhaps with an axis beside them, kind
// 11 batches of small permutes of bytes, kind 12 matrices of short columns of whole vectors.
static gm_case draw_case()
{
    static const int items[] = {1, 2, 4, 8, 16, 3, 12, 24, 6, 32, 80, 300};
    enum { MOST_BYTES = 400000 };
    gm_case made = {};
    int64_t count = 1, shape[8], step[8];
    int drawn = draw(0, 21), kind = drawn > 15 ? 12 : drawn > 11 ? 10 + drawn % 2 : std::min(drawn, 9), order[8];
    bool dense = kind >= 6;

    bool apart = kind == 12 && draw(0, 2) == 0; // whose columns do not follow one another
    made.item = items[apart ? 2 : kind == 12 ? draw(0, 3) : kind >= 10 ? 0 : draw(0, kind == 9 ? 3 : dense ? 4 : 11)];
    made.ndim = kind == 12 ? draw(2, 5)
                : kind == 8  ? 2
                : kind == 11 ? draw(3, 4)
                : kind >= 9  ? 2 + !draw(0, 2)
                : dense      ? draw(2, 5)
                             : draw(1, 5);
    int long_axis = kind == 10 ? made.ndim - 1 - draw(0, 1) : draw(0, made.ndim - 1);
    int row = kind == 12 ? draw(0, made.ndim - 2) : 0, vector = std::max(16 / (int)made.item, 1);
    for (int i = 0; i < made.ndim; i++) {
        bool longest = (kind == 3 && i == 0) || (kind == 4 && i == made.ndim - 1) || (kind == 9 && i == long_axis);
        shape[i] = kind == 10   ? i == long_axis ? 16 * draw(1, 100) : draw(2, 4)
                     : kind == 11 ? i ? draw(2, 12) : draw(20, 300)
                     : kind == 12 ? i == row               ? vector * (draw(0, 1) || apart ? draw(1, 16) : draw(17, 60))
                                    : i < made.ndim - 1 ? draw(1, 8)
                                    : apart             ? vector * draw(15, 34)
                                    : draw(0, 2)        ? vector * draw(1, draw(0, 1) ? 4 : 40)
                                                        : draw(2, 60)
                     : longest ? draw(500, 6000)
                   : kind == 0  ? draw(1, 9)
                   : kind == 5  ? 16 * draw(1, 4)
                   : kind == 9  ? draw(2, made.ndim == 2 ? 40 : 6)
                   : kind == 8  ? std::max(16 / (int)made.item, 1) * (draw(0, 1) ? draw(1, 40) : 16 * draw(1, 2) - 1)
                   : dense      ? draw(3, i ? 60 : 700)
                                : draw(1, kind == 2 ? 200 : 33);
        while (count * shape[i] * made.item > MOST_BYTES && shape[i] > 1)
            shape[i] = (shape[i] + 1) / 2;
        count *= shape[i];
        order[i] = i;
    }
    if (kind == 12) { // the columns follow one another
        std::shuffle(order, order + made.ndim, generator);
        std::swap(*std::find(order, order + made.ndim, row), order[made.ndim - 1]);
        if (!apart)
            std::swap(*std::find(order, order + made.ndim, made.ndim - 1), order[made.ndim - 2]);
    } else if (kind >= 10)
        std::swap(order[made.ndim - 1], order[made.ndim - 2]);
    else
        do
            std::shuffle(order, order + made.ndim, generator);
        while (dense && order[made.ndim - 1] == made.ndim - 1);
    int64_t next = made.item;
    for (int i = made.ndim - 1; i >= 0; i--) {
        int gap = dense ? 9 : draw(0, 9);
        step[i] = next * (gap == 0 ? 2 : gap == 1 && i == made.ndim - 1 ? 3 : 1);
        next = step[i] * shape[i] + (draw(0, dense ? 20 : 5) == 0 ? draw(0, 3) * (draw(0, 1) ? 16 : 1) : 0);
    }
    made.src_span = next;
    for (int i = 0; i < made.ndim; i++)
        if (draw(0, dense ? 40 : 11) == 0) {
            made.src_first += (shape[i] - 1) * step[i];
            step[i] = -step[i];
        }
    next = made.item;
    for (int i = made.ndim - 1; i >= 0; i--) {
        made.shape[i] = shape[order[i]];
        made.src[i] = step[order[i]];
        made.dst[i] = next;
        next = next * made.shape[i] + (draw(0, dense ? 20 : 9) == 0 ? draw(0, 3) * (draw(0, 1) ? 16 : 1) : 0);
    }
    made.dst_span = next;
    made.src_shift = draw(0, 2) || kind == 8 || kind >= 10 ? 0 : draw(0, 15);
    made.dst_shift = draw(0, 2) || kind == 8 || kind >= 10 ? 0 : draw(0, 15);
    return made;
}

static void move_plainly(const gm_case &test, char *dst, const char *src, int axis)
{
    if (axis == test.ndim) {
        memcpy(dst, src, (size_t)test.item);
        return;
    }
    for (int64_t i = 0; i < test.shape[axis]; i++)
        move_plainly(test, dst + i * test.dst[axis], src + i * test.src[axis], axis + 1);
}

#define SIZED(kernel)                                                                                                  \
    [unit](auto... arguments) {                                                                                        \
        switch (unit) {                                                                                                \
        case 1:                                                                                                        \
            return kernel##_1(arguments...);                                                                           \
        case 2:                                                                                                        \
            return kernel##_2(arguments...);                                                                           \
        case 4:                                                                                                        \
            return kernel##_4(arguments...);                                                                           \
        case 8:                                                                                                        \
            return kernel##_8(arguments...);                                                                           \
        default:                                                                                                       \
            return kernel##_16(arguments...);                                                                          \
        }                                                                                                              \
    }

enum gm_way { GENERAL, ROWS, STRIDES, MATRICES, STRIPS, PLANES, WEAVES, BATCHES, FITS, TILES, WAYS };

// In the order of gm_matrix_tiles.
static void (*const matrix_kernels[])(char *, const char *, const gm_matrix) = {
#define ANY(unit, type, rows, columns, threads)        move_matrix_##unit##_##rows##x##columns##_##threads,
#define EVEN(unit, type, rows, columns, threads)       move_even_##unit##_##rows##x##columns##_##threads,
#define ASYNC(unit, type, rows, columns, threads, name, way) move_##name##_##unit##_##rows##x##columns##_##threads,
    GM_MATRIX_TILES(ANY) GM_EVEN_TILES(EVEN) GM_WHOLE_TILES(EVEN) GM_MATRIX_ASYNC_TILES(ASYNC)
#undef ASYNC
#undef ANY
#undef EVEN
};

#define BOTH(name, unit) {#name "_" #unit, name##_##unit}, {#name "_wide_" #unit, name##_wide_##unit}
static const std::map<std::string, void (*)(char *, const char *, const gm_stride)> stride_kernels = {
    {"move_run", move_run}, BOTH(move_forwards, 1),  BOTH(move_backwards, 1), BOTH(move_backwards, 2),
    BOTH(move_backwards, 4), BOTH(move_backwards, 8), BOTH(move_second, 1),    BOTH(move_second, 2),
    BOTH(move_second, 4),    BOTH(move_second, 8)};
#undef BOTH

// Whether that way takes the plan; moves it if so.
static bool move(gm_way way, const gm_plan &plan, char *dst, const char *src)
{
    int unit = gm_walk_unit(&plan, dst, src);
    static gm_matrix_launch matrix;
    static gm_tile_launch tile;
    static gm_planes_launch planes;
    static gm_strip_launch strip;
    static gm_weave_launch weave;
    static gm_batch_launch batch;
    static gm_fit_launch fit;
    static gm_rows rows;
    static gm_stride_launch stride;
    static int strides;
    std::string name;
    static gm_walk walk;

    switch (way) {
    case GENERAL:
        gm_walk_make(&walk, &plan, unit);
        launch((unsigned)((walk.units + 1023) / 1024), 256, [&] { SIZED(move_general)(dst, src, walk); });
        return true;
    case ROWS:
        if (plan.item < 64)
            return false;
        gm_rows_make(&rows, &plan, dst, src);
        launch((unsigned)((rows.all + 511) / 512), 256, [&] { move_rows(dst, src, rows); });
        return true;
    case STRIDES:
        if (!gm_stride_make(&stride, &plan, unit, dst, src))
            return false;
        name = stride.kernel;
        if (name != "move_run" && strides++ % 2) // as for arrays too large to be had here
            name.insert(name.rfind('_'), "_wide");
        launch((unsigned)stride.blocks, GM_STRIDE_THREADS, [&] { stride_kernels.at(name)(dst, src, stride.stride); });
        return true;
    case MATRICES: {
        gm_matrix_shape shape;
        int tile;
        if (!gm_matrix_read(&shape, &plan, unit, dst, src))
            return false;
        do
            tile = draw(0, gm_matrix_tile_count - 1);
        while (gm_matrix_tiles[tile].unit != unit || (gm_matrix_tiles[tile].even && !shape.whole) ||
               (gm_matrix_tiles[tile].way == GM_MATRIX_STEADY && shape.rows.n > 1));
        gm_matrix_lay_out(&matrix, &gm_matrix_tiles[tile], &shape, &plan, src);
        launch(matrix.blocks, (unsigned)matrix.threads, [&] { matrix_kernels[tile](dst, src, matrix.matrix); });
        return true;
    }
    case STRIPS:
        if (!gm_strip_make(&strip, &plan, unit, src))
            return false;
        launch(strip.blocks, strip.threads, [&] {
            auto kernel = unit == 2 ? move_strip_2 : unit == 4 ? move_strip_4 : move_strip_8;
            kernel(dst, src, strip.strip);
        });
        return true;
    case PLANES:
        if (!gm_planes_make(&planes, &plan, unit, dst, src))
            return false;
        launch(planes.blocks, planes.threads, [&] {
            auto kernel = planes.to_planes ? unit == 1   ? move_planes_1
                                             : unit == 2 ? move_planes_2
                                             : unit == 4 ? move_planes_4
                                                         : move_planes_8
                          : unit == 1      ? move_records_1
                          : unit == 2      ? move_records_2
                          : unit == 4      ? move_records_4
                                           : move_records_8;
            kernel(dst, src, planes.planes);
        });
        return true;
    case WEAVES:
        if (!gm_weave_make(&weave, &plan, dst, src))
            return false;
        launch(weave.blocks, weave.threads, [&] {
            static void (*const kernels[2][3])(char *, const char *, const gm_weave) = {
                {move_unweave_2, move_unweave_3, move_unweave_4}, {move_weave_2, move_weave_3, move_weave_4}};
            kernels[weave.weaves][weave.fields - 2](dst, src, weave.weave);
        });
        return true;
    case BATCHES:
        if (!gm_batch_make(&batch, &plan, dst, src, draw(1, 3)))
            return false;
        if (draw(0, 1)) { // any turn is right, and few are chosen
            batch.batch.turn_shift = draw(0, 5);
            batch.batch.turn_step = draw(0, 15);
        }
        launch(batch.blocks, batch.threads, [&] { move_batch(dst, src, batch.batch); });
        return true;
    case FITS:
        if (!gm_fit_make(&fit, &plan, unit, dst, src))
            return false;
        launch(fit.blocks, fit.threads, [&] {
            auto kernel = fit.large   ? unit == 2 ? move_fit_large_2 : move_fit_large_4
                          : unit == 1 ? move_fit_1
                          : unit == 2 ? move_fit_2
                          : unit == 4 ? move_fit_4
                                      : move_fit_8;
            kernel(dst, src, fit.fit);
        });
        return true;
    default:
        if (!gm_tile_make(&tile, &plan, unit, dst, src, 227 * 1024))
            return false;
        if (draw(0, 1)) { // any turn is right, and few are chosen
            tile.tile.turn_shift = draw(0, 5);
            tile.tile.turn_step = draw(0, 15);
        }
        launch(tile.blocks, tile.threads, [&] {
            if (tile.chain && tile.ragged)
                SIZED(move_chain_ragged)(dst, src, tile.tile);
            else if (tile.chain)
                SIZED(move_chain)(dst, src, tile.tile);
            else if (tile.ragged)
                SIZED(move_tile_ragged)(dst, src, tile.tile);
            else
                SIZED(move_tile)(dst, src, tile.tile);
        });
        return true;
    }
}

int main(int argc, char **argv)
{
    enum { GUARD = 64 };
    int count = argc > 2 ? atoi(argv[2]) : 50, taken[WAYS] = {};

    generator.seed(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    for (int i = 0; i < count; i++) {
        gm_case test = draw_case();
        size_t src_bytes = (size_t)(test.src_span + GUARD * 2), dst_bytes = (size_t)(test.dst_span + GUARD * 2);
        char *source = (char *)aligned_alloc(GUARD, (src_bytes + GUARD) / GUARD * GUARD);
        char *result = (char *)aligned_alloc(GUARD, (dst_bytes + GUARD) / GUARD * GUARD);
        std::vector<char> wanted(dst_bytes, 0x5A);
        gm_plan plan;

        std::generate(source, source + src_bytes, [] { return (char)generator(); });
        const char *src = source + GUARD / 2 + test.src_shift + test.src_first;
        size_t first = (size_t)(GUARD / 2 + test.dst_shift);
        move_plainly(test, wanted.data() + first, src, 0);
        gm_plan_make(&plan, test.item, test.ndim, test.shape, test.src, test.dst);
        for (int way = 0; way < WAYS && plan.items; way++) {
            memset(result, 0x5A, dst_bytes);
            if (!move((gm_way)way, plan, result + first + plan.dst_start, src + plan.src_start))
                continue;
            taken[way]++;
            if (memcmp(result, wanted.data(), dst_bytes) == 0)
                continue;
            static const char *const names[] = {"general", "rows",   "strides", "matrices", "strips",
                                                "planes",  "weaves", "batches", "fits",     "tiles"};
            printf("%s, case %d: items of %lld bytes, shifts %d and %d, axes (length, src, dst)", names[way], i,
                   (long long)test.item, test.src_shift, test.dst_shift);
            for (int k = 0; k < test.ndim; k++)
                printf(" (%lld, %lld, %lld)", (long long)test.shape[k], (long long)test.src[k], (long long)test.dst[k]);
            printf("\n");
            return 1;
        }
        free(source);
        free(result);
    }
    printf("%d general, %d rows, %d strides, %d matrices, %d strips, %d planes, %d weaves, %d batches, %d fits, "
           "%d tiles\n",
           taken[GENERAL], taken[ROWS], taken[STRIDES], taken[MATRICES], taken[STRIPS], taken[PLANES], taken[WEAVES],
           taken[BATCHES], taken[FITS], taken[TILES]);
    return !taken[TILES] || !taken[STRIDES] || !taken[MATRICES] || !taken[STRIPS] || !taken[PLANES] || !taken[WEAVES] ||
           !taken[BATCHES] || !taken[FITS];
}
