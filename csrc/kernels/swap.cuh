/* Which two tiles of a square change places. */
#pragma once
#include "swap.h"
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
