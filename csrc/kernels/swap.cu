/* Transposes squares where they lie: x[i][j] and x[j][i] change places.
 *
 * Must move 2 * items * itemsize bytes. A block has two tiles, one on either side of the diagonal: it reads both before
 * it writes either. Limited by memory for items of 4 bytes and more; smaller ones by the number of accesses.
 */
#include "swap.h"
#include "walk.cuh"

/* Which pair: they are numbered row by row in the lower triangle, the diagonal included. */
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

template <typename T, int TILE> __device__ void swap_axes(char *data, const gm_swap &swap)
{
    enum { S = sizeof(T), PAD = S < 4 ? 4 / S : 1, STEP = 256 / TILE }; /* one word, so that columns lie across the banks */
    __shared__ T upper[TILE][TILE + PAD], lower[TILE][TILE + PAD];
    long long square = blockIdx.x / swap.pairs, low, high;
    int column = threadIdx.x % TILE, first = threadIdx.x / TILE;

    gm_swap_pair(blockIdx.x - square * swap.pairs, &high, &low);
    data += gm_place_of(swap.batch, square).src;
    low *= TILE;
    high *= TILE;
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

#define GM_KERNEL(size, type, tile)                                                                        \
    extern "C" __global__ void __launch_bounds__(256)                                                      \
        swap_axes_##size(char *data, const __grid_constant__ gm_swap swap)                                 \
    {                                                                                                      \
        swap_axes<type, tile>(data, swap);                                                                 \
    }

GM_KERNEL(1, unsigned char, 64)
GM_KERNEL(2, unsigned short, 64)
GM_KERNEL(4, unsigned int, 64)
GM_KERNEL(8, unsigned long long, 32)
GM_KERNEL(16, uint4, 32)
