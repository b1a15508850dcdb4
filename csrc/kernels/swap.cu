/* Transposes squares where they lie: x[i][j] and x[j][i] change places.
 *
 * Must move 2 * items * itemsize bytes. A block has two tiles, one on either side of the diagonal: it reads both before
 * it writes either. Blocks go through groups of tiles, so that both of their places are near those of their neighbours
 * (8 x 8 of them beside one row after the other: 0.01 to 0.05). Limited by memory in vectors: on an H200 0.92-0.97 of a
 * copy's speed for items of 2 bytes and more (2 bytes in tiles of 64 rows, which are better for small squares, 0.85),
 * 0.86 for 1 (swap_rows.cu has larger tiles for large squares); by the number of accesses where columns lie apart or
 * items are no unit of a machine. Rows that begin anywhere in a vector are swap_rows.cu's; 16 bytes, which are whole
 * vectors and yet may begin inside a sector, 0.85.
 */
#include "swap.cuh"
#include "turn.cuh"

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
