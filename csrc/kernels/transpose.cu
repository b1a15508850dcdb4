/* Transposition: out[c][r] = in[r][c], matrix by matrix.
 *
 * Must move 2 * rows * columns * sizeof(T) bytes; the floor is a copy of as many. On an H200, in parts of a copy's speed
 * for items of 4 bytes (16 K x 16 K): naive 0.13, tiled 0.37, padded 0.62, swizzled 0.60, bulk 0.93, vectorised 0.96.
 * Padding and swizzling are worth the same; what the last two add is bytes under way. Single bytes stay at 0.20 in the
 * tiled stages, conflicts or not, at 0.70 in bulk, and reach 0.95 where whole vectors are moved.
 * Counts beside a stage are per warp instruction, 4-byte items, aligned rows.
 */
#include "access.cuh"
#include "bulk.cuh"
#include "transpose.h"
#include "turn.cuh"

/* Where a block's tile begins. Blocks walk down the source's columns first: neighbours write the same destination rows. */
struct gm_transpose_place {
    long long row, column;
    const char *in;
    char *out;
};

__device__ __forceinline__ gm_transpose_place gm_transpose_place_of(char *out, const char *in, const gm_transpose &m, int rows, int columns)
{
    unsigned int column_tile = blockIdx.x / m.row_tiles, batch = column_tile / m.column_tiles;

    return {(long long)(blockIdx.x - column_tile * m.row_tiles) * rows,
            (long long)(column_tile - batch * m.column_tiles) * columns, in + batch * m.in_batch, out + batch * m.out_batch};
}

/* naive: load 4 sectors, store 32. Every store moves 32 bytes to deliver 4. */
template <typename T> __device__ __forceinline__ void transpose_naive(char *__restrict__ out, const char *__restrict__ in, const gm_transpose &m)
{
    enum { TILE = GM_TRANSPOSE_TILE, STEP = GM_TRANSPOSE_THREADS / TILE };
    gm_transpose_place at = gm_transpose_place_of(out, in, m, TILE, TILE);
    long long column = at.column + threadIdx.x % TILE, first = at.row + threadIdx.x / TILE;

#pragma unroll
    for (int j = 0; j < TILE; j += STEP)
        if (long long row = first + j; row < m.rows && column < m.columns)
            gm_put((T *)(at.out + column * m.out_pitch) + row, gm_get((const T *)(at.in + row * m.in_pitch) + column));
}

/* Where an item lies in the tile: all that sets the next three stages apart. */
struct gm_transpose_dense {
    enum { PITCH = GM_TRANSPOSE_TILE };
    static __device__ __forceinline__ int place(int row, int column) { return row * PITCH + column; }
};
struct gm_transpose_padded {
    enum { PITCH = GM_TRANSPOSE_TILE + 1 };
    static __device__ __forceinline__ int place(int row, int column) { return row * PITCH + column; }
};
struct gm_transpose_swizzled {
    enum { PITCH = GM_TRANSPOSE_TILE };
    static __device__ __forceinline__ int place(int row, int column) { return row * PITCH + (column ^ row); }
};

/* Both directions through a tile. */
template <typename T, typename P> __device__ __forceinline__ void transpose_tile(char *__restrict__ out, const char *__restrict__ in, const gm_transpose &m)
{
    enum { TILE = GM_TRANSPOSE_TILE, STEP = GM_TRANSPOSE_THREADS / TILE };
    __shared__ T tile[TILE * P::PITCH];
    gm_transpose_place at = gm_transpose_place_of(out, in, m, TILE, TILE);
    int lane = threadIdx.x % TILE, first = threadIdx.x / TILE;

#pragma unroll
    for (int j = 0; j < TILE; j += STEP)
        if (long long row = at.row + first + j; row < m.rows && at.column + lane < m.columns)
            gm_put(&tile[P::place(first + j, lane)], gm_get((const T *)(at.in + row * m.in_pitch) + at.column + lane));
    __syncthreads();

    /* Lanes now run along the source's rows, so that the store is coalesced too. */
#pragma unroll
    for (int j = 0; j < TILE; j += STEP)
        if (long long column = at.column + first + j; column < m.columns && at.row + lane < m.rows)
            gm_put((T *)(at.out + column * m.out_pitch) + at.row + lane, gm_get(&tile[P::place(lane, first + j)]));
}

/* tiled: load 4 sectors, store 4; the column read takes 32 wavefronts, all on one bank. */
template <typename T> __device__ __forceinline__ void transpose_tiled(char *__restrict__ out, const char *__restrict__ in, const gm_transpose &m)
{
    transpose_tile<T, gm_transpose_dense>(out, in, m);
}

/* padded: the column read takes 1 wavefront; costs an item a row. */
template <typename T> __device__ __forceinline__ void transpose_padded(char *__restrict__ out, const char *__restrict__ in, const gm_transpose &m)
{
    transpose_tile<T, gm_transpose_padded>(out, in, m);
}

/* swizzled: the same 1 wavefront, and no memory spent: each row lies in another order. Now limited by bytes in flight. */
template <typename T> __device__ __forceinline__ void transpose_swizzled(char *__restrict__ out, const char *__restrict__ in, const gm_transpose &m)
{
    transpose_tile<T, gm_transpose_swizzled>(out, in, m);
}

/* vectorised: load and store 16 sectors, 16 bytes a lane; all of a thread's loads are under way before it stores one. A
 * tile's vectors lie in an order of their own for each V rows, so that 8 lanes that read as many vectors of rows of one
 * column find them on different banks: every access to shared memory is without conflict. Narrow items are read as words
 * and dealt out in registers (turn.cuh). */
template <typename T> __device__ __forceinline__ void transpose_vectorised(char *__restrict__ out, const char *__restrict__ in, const gm_transpose &m)
{
    typedef gm_turn_shape<T, GM_TRANSPOSE_COLUMNS(sizeof(T))> shape;
    enum { S = shape::S, V = shape::V, WORD = shape::WORD, WIDE = shape::WIDE, WORDS = shape::WORDS };
    enum { THREADS = GM_TRANSPOSE_WIDE, ROWS = GM_TRANSPOSE_ROWS(S), COLUMNS = GM_TRANSPOSE_COLUMNS(S) };
    enum { ACROSS = COLUMNS / V, LOADS = ROWS * ACROSS / THREADS, DOWN = ROWS / V, TURNS = DOWN * WORDS / THREADS };
    static_assert(ROWS * ACROSS % THREADS == 0 && (DOWN * WORDS) % THREADS == 0 && DOWN % 8 == 0, "every thread has work");
    __shared__ uint4 tile[ROWS * ACROSS];
    gm_transpose_place at = gm_transpose_place_of(out, in, m, ROWS, COLUMNS);
    int thread = threadIdx.x, v = thread % ACROSS, first = thread / ACROSS;
    uint4 vector[LOADS];

#pragma unroll
    for (int k = 0; k < LOADS; k++)
        if (long long row = at.row + first + k * (THREADS / ACROSS), column = at.column + v * V; row < m.rows && column < m.columns)
            vector[k] = __ldg((const uint4 *)(at.in + row * m.in_pitch + column * S));
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        int row = first + k * (THREADS / ACROSS);
        tile[row * ACROSS + (v ^ (row / V & 7))] = vector[k];
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < TURNS; k++) {
        int i = k * THREADS + thread, group = i % 8 + i / (8 * WORDS) * 8, w = i / 8 % WORDS;
        int place = (w * WORD / 16) ^ (group & 7);
        uint4 made[WIDE];
        gm_turn_gather<T, true, ACROSS>(made, (const unsigned char *)&tile[group * V * ACROSS + place] + w * WORD % 16, NULL);
        long long row = at.row + group * V, column = at.column + w * WIDE;
#pragma unroll
        for (int c = 0; c < WIDE; c++)
            if (row < m.rows && column + c < m.columns)
                *(uint4 *)(at.out + (column + c) * m.out_pitch + row * S) = made[c];
    }
}

#define GM_KERNEL(stage, size, type, threads)                                                                          \
    extern "C" __global__ void __launch_bounds__(threads) stage##_##size(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_transpose m) \
    {                                                                                                                  \
        stage<type>(out, in, m);                                                                           \
    }
#define GM_KERNELS(stage, threads)                         \
    GM_KERNEL(stage, 1, unsigned char, threads)            \
    GM_KERNEL(stage, 2, unsigned short, threads)           \
    GM_KERNEL(stage, 4, unsigned int, threads)             \
    GM_KERNEL(stage, 8, unsigned long long, threads)       \
    GM_KERNEL(stage, 16, uint4, threads)

GM_KERNELS(transpose_naive, 256)
GM_KERNELS(transpose_tiled, 256)
GM_KERNELS(transpose_padded, 256)
GM_KERNELS(transpose_swizzled, 256)
GM_KERNELS(transpose_vectorised, 512)

/* bulk: one thread asks the copy engine for the tile, by a map of the source that the driver made (a tensor map); the
 * engine swizzles it, exchanging the 16-byte parts of a row of 128 bytes by row % 8: a column then lies on 8 of 32 banks
 * in place of 1, and its read takes 4 wavefronts. Store 4 sectors; no load instruction at all. Beyond the matrix the
 * engine delivers zeros, which are not stored. Items of 16 bytes are two of 8 to the engine. */
template <typename T> __device__ __forceinline__ void transpose_bulk(char *__restrict__ out, const gm_tensor_map *map, const gm_transpose &m)
{
    enum { S = sizeof(T), ROWS = GM_TRANSPOSE_BOX_ROWS(S), COLUMNS = GM_TRANSPOSE_BOX / S, STEP = GM_TRANSPOSE_THREADS / 32 };
    __shared__ __align__(1024) unsigned char tile[ROWS * GM_TRANSPOSE_BOX];
    __shared__ unsigned long long come[1];
    gm_transpose_place at = gm_transpose_place_of(out, NULL, m, ROWS, COLUMNS);
    unsigned int batch = blockIdx.x / m.row_tiles / m.column_tiles;

    if (threadIdx.x == 0) {
        gm_bulk_begin(come);
        gm_bulk_visible();
        gm_bulk_load_tile(tile, map, (int)at.column * (S == 16 ? 2 : 1), (int)at.row, (int)batch, ROWS * GM_TRANSPOSE_BOX, come);
    }
    __syncthreads(); /* the barrier is there */
    gm_bulk_wait(come);
    int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int i = 0; i < COLUMNS; i += STEP)
#pragma unroll
        for (int j = 0; j < ROWS; j += 32)
            if (int row = j + lane, column = i + threadIdx.x / 32; at.column + column < m.columns && at.row + row < m.rows) {
                int place = row * GM_TRANSPOSE_BOX + ((column * S / 16 ^ (row & 7)) * 16) + column * S % 16;
                gm_put((T *)(at.out + (at.column + column) * m.out_pitch) + at.row + row, gm_get((const T *)(tile + place)));
            }
}

#define GM_BULK(size, type)                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) transpose_bulk_##size(char *__restrict__ out, const __grid_constant__ gm_tensor_map map, const __grid_constant__ gm_transpose m) \
    {                                                                                                                  \
        transpose_bulk<type>(out, &map, m);                                                                            \
    }
GM_BULK(1, unsigned char)
GM_BULK(2, unsigned short)
GM_BULK(4, unsigned int)
GM_BULK(8, unsigned long long)
GM_BULK(16, uint4)
