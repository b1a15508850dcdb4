/* Transposes squares where they lie: x[i][j] and x[j][i] change places.
 *
 * Must move 2 * items * itemsize bytes. A block has two tiles, one on either side of the diagonal: it reads both before
 * it writes either. Blocks go through groups of tiles, so that both of their places are near those of their neighbours
 * (8 x 8 of them beside one row after the other: 0.01 to 0.05). Limited by memory in vectors: on an H200 0.90-0.97 of a
 * copy's speed for items of 4 bytes and more, 0.92 for 2 (0.85 in tiles of 64 rows, which are better for small
 * squares), 0.86 for 1 (0.84 in tiles of 192 rows); by the number of accesses where rows are not whole aligned vectors:
 * 0.25, 0.45, 0.6, 0.75 and 0.85 for 1 to 16 bytes. Lines that two tiles share cannot be completed by either, as the
 * matrix kernels do: what they would read may be written already.
 */
#include "swap.h"
#include "turn.cuh"
#include "walk.cuh"

/* Which pair of groups: they are numbered row by row in the lower triangle, the diagonal included. */
__device__ __forceinline__ void gm_swap_pair(long long pair, long long *high, long long *low)
{
    long long j = (long long)((sqrt(8.0 * (double)pair + 1) - 1) / 2);
    while (j * (j + 1) / 2 > pair)
        j--;
    while ((j + 1) * (j + 2) / 2 <= pair)
        j++;
    *high = j;
    *low = pair - j * (j + 1) / 2;
}

/* Which pair of tiles, by their first items; false for one above the diagonal or beyond the square. */
__device__ __forceinline__ bool gm_swap_tiles(const gm_swap &swap, long long pair, int tile, long long *high,
                                              long long *low)
{
    long long area = swap.side * swap.side, group = pair / area, within = pair - group * area, row = within / swap.side;

    gm_swap_pair(group, high, low);
    *high = (*high * swap.side + row) * tile;
    *low = (*low * swap.side + within - row * swap.side) * tile;
    return *low <= *high && *high < swap.n;
}

template <typename T, int TILE, int THREADS> __device__ void swap_axes(char *data, const gm_swap &swap)
{
    enum {
        S = sizeof(T),
        PAD = S < 4 ? 4 / S : 1, /* one word, so that columns lie across the banks */
        STEP = THREADS / TILE
    };
    extern __shared__ __align__(128) unsigned char shared[];
    T(*upper)[TILE + PAD] = (T(*)[TILE + PAD]) shared, (*lower)[TILE + PAD] = upper + TILE;
    long long square = blockIdx.x / swap.pairs, low, high;
    int column = threadIdx.x % TILE, first = threadIdx.x / TILE;

    if (!gm_swap_tiles(swap, blockIdx.x - square * swap.pairs, TILE, &high, &low))
        return;
    data += gm_place_of(swap.batch, square).src;
    for (int row = first; row < TILE; row += STEP) {
        if (low + row < swap.n && high + column < swap.n)
            upper[row][column] = *(const T *)(data + (low + row) * swap.row + (high + column) * swap.column);
        if (high + row < swap.n && low + column < swap.n)
            lower[row][column] = *(const T *)(data + (high + row) * swap.row + (low + column) * swap.column);
    }
    __syncthreads();
    for (int row = first; row < TILE; row += STEP) {
        if (low + row < swap.n && high + column < swap.n)
            *(T *)(data + (low + row) * swap.row + (high + column) * swap.column) = lower[column][row];
        if (low != high && high + row < swap.n && low + column < swap.n)
            *(T *)(data + (high + row) * swap.row + (low + column) * swap.column) = upper[column][row];
    }
}

/* The same where rows are whole aligned vectors, in the steps of the matrix kernels: rows to shared memory, vectors of
 * columns from there and back, and these to their rows. */
template <typename T, int TILE, int THREADS> __device__ void swap_vectors(char *data, const gm_swap &swap)
{
    typedef gm_turn_shape<T, TILE> shape;
    enum { S = shape::S, V = shape::V, WORDS = shape::WORDS, WIDE = shape::WIDE };
    enum { TALL = TILE / V, PITCH = TALL | 1, MOVES = TILE * TALL / THREADS, TURNS = TALL * WORDS / THREADS };
    extern __shared__ __align__(128) unsigned char shared[];
    uint4(*image)[TILE * PITCH] = (uint4(*)[TILE * PITCH]) shared;
    long long square = blockIdx.x / swap.pairs, low, high;
    int thread = threadIdx.x, v = thread % TALL, first = thread / TALL, w = thread % WORDS, turn = thread / WORDS;

    if (!gm_swap_tiles(swap, blockIdx.x - square * swap.pairs, TILE, &high, &low))
        return;
    data += gm_place_of(swap.batch, square).src;
    int tiles = low == high ? 1 : 2,
        rows[2] = {(int)min(swap.n - low, (long long)TILE), (int)min(swap.n - high, (long long)TILE)};
    char *place[2] = {data + low * swap.row + high * S, data + high * swap.row + low * S};
    uint4 vector[2][MOVES];

#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int k = 0; k < MOVES; k++)
            if (int row = first + k * (THREADS / TALL); t < tiles && row < rows[t] && v * V < rows[1 - t])
                vector[t][k] = *(const uint4 *)(place[t] + row * swap.row + v * 16);
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int k = 0; k < MOVES; k++)
            image[t][(first + k * (THREADS / TALL)) * PITCH + v] = vector[t][k];
    __syncthreads();
    uint4 made[2][TURNS][WIDE];
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            gm_turn_gather<T, true, PITCH>(
                made[t][k],
                (const unsigned char *)&image[t][(k * (THREADS / WORDS) + turn) * V * PITCH] + w * shape::WORD, NULL);
    __syncthreads();
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int k = 0; k < TURNS; k++)
#pragma unroll
            for (int c = 0; c < WIDE; c++)
                image[t][(c * WORDS + w) * PITCH + k * (THREADS / WORDS) + turn] = made[t][k][c];
    __syncthreads();
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int k = 0; k < MOVES; k++)
            if (int column = first + k * (THREADS / TALL); t < tiles && column < rows[1 - t] && v * V < rows[t])
                *(uint4 *)((t == 0 && tiles == 2 ? place[1] : place[0]) + column * swap.row + v * 16) =
                    image[t][((column % WIDE) * WORDS + column / WIDE) * PITCH + v];
}

#define GM_KERNEL(name, size, type, tile, threads, least)                                                              \
    extern "C" __global__ void __launch_bounds__(threads)                                                              \
        name##_##size##_##tile(char *data, const __grid_constant__ gm_swap swap)                                       \
    {                                                                                                                  \
        name<type, tile, threads>(data, swap);                                                                         \
    }

GM_SWAP_TILES(GM_KERNEL)
