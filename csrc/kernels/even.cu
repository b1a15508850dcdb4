/* Transposes matrices whose rows and columns are whole 16-byte vectors on both sides, tile by tile.
 *
 * Must move 2 * items * itemsize bytes. Two steps, between which a block waits:
 *   1 the tile's rows come as vectors to registers, all loads before the first store, and go to shared memory, where a
 *     vector's place in its row is swizzled by the row: place ^ (row / items of a vector) % 8;
 *   2 vectors of the destination are made of the words of one column in registers (turn.cuh) and written: eight lanes
 *     write 128 bytes of a column.
 * Both are free of bank conflicts: eight lanes read words of eight vectors' rows, which the swizzle puts in eight
 * different places, and the other lanes the other words of the same vectors. A warp reads rows of 128 to 256 bytes and
 * writes 4 columns of 128 (2 for items of 8 bytes, 1 for 16).
 *
 * Where a row lies is found once by a lane of each warp, and where a column lies once for the block: with axes in chains
 * that is most of the instructions (six axes of 4 bytes: 116-128 for 512 bytes instead of 170, 0.87 for 0.85).
 *
 * Limited by memory: matrix.cu, which takes every alignment, moves its tile through shared memory once more. On an
 * H200, in parts of cudaMemcpyAsync's speed, 512 MB each way: items of 4 bytes 0.97, of 2 and 16 0.98, of 8 0.99, bytes
 * 0.95 (matrix.cu: 0.96, 0.97, 0.98, 0.93); batches of 1024 x 1024 1.00-1.01. Lost there: tiles of
 * 128 x 32 items of 4 bytes, 256 x 128 bytes, and more threads than those for items of 8 and 16 bytes (0.86). Bytes of 64
 * columns have a tile of as many, of whose rows two share a swizzle's places: 0.905 for 0.88 with half of the threads idle
 * (512 rows 0.90; eight loads a thread instead of four 0.68-0.72).
 *
 * A block has brought to the second-level cache what a block further on will read, as far as 32 KB for each multiprocessor
 * (4.3 MB): items of 1, 2, 4, 8 and 16 bytes 0.959, 0.969-0.974, 0.980-0.986, 0.992 and 0.986-0.997 instead of 0.950,
 * 0.959-0.962, 0.954-0.963, 0.978 and 0.962-0.969. Half as far is worth half as much, twice as far as much again for
 * items of 8 bytes and otherwise less than nothing (2 bytes 0.90, three times 0.81). In matrix.cu it is worth nothing.
 *
 * Where rows or columns lie megabytes apart, permutes stay at 0.86-0.94 whatever the tile, since memory opens a row for
 * every 256 bytes: sectors, requests and traffic between the halves of the second-level cache are a copy's to within a
 * per cent, and only memory takes longer. Runs read from eight regions or more in turns cost a plain copy 5 %, written
 * to them 6 %, both 7 %, be they of 256 bytes or of 8 KB; of 128 bytes, or 256 that lie across two such pieces, 10-15 %.
 * Forty shapes up to 64 KB, 4 to 8 loads a thread, 2 to 6 blocks a multiprocessor and 80 random orders of the blocks for
 * each differ by 0.01 there. Nor is it the translation of addresses: having it found before the launch changes nothing,
 * and a step through 512 pages of 2 MB takes no longer than through 4. Hints for either cache change nothing;
 * prefetching the destination's first lines costs 1 to 40 us. What helps is to write in the destination's order, as far
 * as whole tiles allow (csrc/cuda/matrix.c): what lies between two columns of the last axis comes before the next tile of
 * columns (75 x 96 x 75 x 96 to 2, 0, 3, 1: 0.94 for 0.90); and sides that a tile takes whole, so that runs are not cut
 * (48 columns of 2 bytes: 0.95 for 0.89).
 */
#include "async.cuh"
#include "matrix.cuh"
#include "turn.cuh"

template <typename T, int ROWS, int COLUMNS, int THREADS>
__device__ __forceinline__ void move_even(char *__restrict__ out, const char *__restrict__ in, const gm_matrix &p)
{
    enum {
        S = sizeof(T),
        V = 16 / S, /* items of a vector */
        WORD = S < 4 ? 4 : S,
        WIDE = WORD / S,            /* columns of a word */
        VECTORS = COLUMNS / V,      /* of a row */
        TALL = ROWS / V,            /* vectors of a column */
        WORDS = COLUMNS / WIDE,     /* of a row */
        GROUPS = THREADS / VECTORS, /* rows at a time */
        LOADS = ROWS / GROUPS,
        TURNS = TALL * WORDS / THREADS,
        SHARE = 32 / VECTORS, /* rows of a warp at a time */
        SWIZZLE = 8,          /* places that a quarter of a warp's accesses may have at once */
        SHORT = VECTORS < SWIZZLE ? SWIZZLE / VECTORS : 1 /* rows that share them */
    };
    static_assert(THREADS % VECTORS == 0 && ROWS % GROUPS == 0 && TALL * WORDS % THREADS == 0, "every thread as many");
    static_assert(COLUMNS <= THREADS && ROWS <= THREADS, "a place to a thread");
    static_assert(SHARE * LOADS <= 32 && SHARE * VECTORS == 32, "a row to a lane");
    static_assert(SHORT * VECTORS % SWIZZLE == 0 && TALL % SWIZZLE == 0, "the swizzle stays in its row");
    extern __shared__ __align__(128) unsigned char shared[];
    uint4 *image = (uint4 *)shared;
    long long *column_dst = (long long *)(image + ROWS * VECTORS);
    int thread = threadIdx.x, lane = thread % 32;
    gm_matrix_tile_place tile = gm_matrix_tile_of(p, blockIdx.x, ROWS, COLUMNS);
    int rows = (int)min(p.rows - tile.row, (unsigned int)ROWS),
        columns = (int)min(p.columns - tile.column, (unsigned int)COLUMNS);
    const char *source = in + (tile.at.src + (long long)tile.column * S);
    char *target = out + (tile.at.dst + (long long)tile.row * S);

    int place = thread % VECTORS, group = thread / VECTORS;
    /* Where a row lies takes longer to find than to tell: each lane finds it for one of its warp's. */
    int found = lane / SHARE * GROUPS + thread / 32 * SHARE + lane % SHARE;
    long long row_src = p.nrow == 1 ? 0 : gm_matrix_place(p.row, p.nrow, tile.row + found).src;
    uint4 vector[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        long long at = p.nrow == 1 ? (tile.row + k * GROUPS + group) * p.row[0].src
                                   : __shfl_sync(0xffffffffu, row_src, k * SHARE + lane / VECTORS);
        if (k * GROUPS + group < rows && place * V < columns)
            vector[k] = __ldg((const uint4 *)(source + at) + place);
    }
    if (p.further && blockIdx.x + p.further < gridDim.x) {
        gm_matrix_tile_place later = gm_matrix_tile_of(p, blockIdx.x + p.further, ROWS, COLUMNS);
        int bytes = (int)min(p.columns - later.column, (unsigned int)COLUMNS) * S;
        if (thread < (int)min(p.rows - later.row, (unsigned int)ROWS)) {
            long long at = gm_matrix_place(p.row, p.nrow, later.row + thread).src + (long long)later.column * S;
            gm_async_prefetch(in + (later.at.src + at), bytes);
        }
    }
    if (thread < COLUMNS)
        column_dst[thread] = gm_matrix_place(p.column, p.ncolumn, tile.column + thread).dst;
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        int row = k * GROUPS + group;
        image[row / SHORT * SHORT * VECTORS + ((row % SHORT * VECTORS + place) ^ (row / V % SWIZZLE))] = vector[k];
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < TURNS; k++) {
        int unit = k * THREADS + thread, low = unit % SWIZZLE, word = unit / SWIZZLE % (16 / WORD),
            rest = unit / SWIZZLE / (16 / WORD), v = rest % (TALL / SWIZZLE) * SWIZZLE + low,
            from = rest / (TALL / SWIZZLE), column = from * V + word * WIDE;
        uint4 made[WIDE];
        if constexpr (SHORT == 1)
            gm_turn_gather<T, true, VECTORS>(
                made, (const unsigned char *)&image[v * V * VECTORS + (from ^ low)] + word * WORD, NULL);
        else {
            unsigned int words[V];
#pragma unroll
            for (int i = 0; i < V; i++) {
                int at = i / SHORT * SHORT * VECTORS + ((i % SHORT * VECTORS + from) ^ low);
                words[i] = ((const unsigned int *)&image[v * V * VECTORS + at])[word];
            }
            gm_turn<T>(made, words);
        }
        if (v * V < rows && column < columns)
#pragma unroll
            for (int c = 0; c < WIDE; c++)
                *(uint4 *)(target + column_dst[column + c] + v * 16) = made[c];
    }
}

/* Threads that a multiprocessor should have room for. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define GM_EVEN_ROOM 1024
#else
#define GM_EVEN_ROOM 1536
#endif

#define GM_KERNEL(size, type, rows, columns, threads)                                                                  \
    extern "C" __global__ void __launch_bounds__(threads, GM_EVEN_ROOM / threads)                                      \
        move_even_##size##_##rows##x##columns##_##threads(char *__restrict__ out, const char *__restrict__ in,         \
                                                          const __grid_constant__ gm_matrix matrix)                    \
    {                                                                                                                  \
        move_even<type, rows, columns, threads>(out, in, matrix);                                                      \
    }
GM_EVEN_TILES(GM_KERNEL)
GM_WHOLE_TILES(GM_KERNEL)
#undef GM_KERNEL
