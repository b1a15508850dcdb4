/* Transposes many small squares where they lie, one behind the other without gaps.
 *
 * Must move 2 * items * itemsize bytes. A block has some squares as one run of words: it reads the run as it lies to
 * shared memory, waits, and writes the run as it lies, each word made of the items that belong there. A word at either
 * end of the run may be a neighbour's in part: of that it moves items.
 *
 * Limited by memory for items of 4 bytes and more: on an H200 0.88-1.03 of a copy's speed for 3 x 3 to 128 x 128, where
 * pairs of tiles, mostly empty, reach 0.002-0.5; by instructions for 2 bytes (0.55) and 1 (0.37). Lost there: copies
 * into scratch and back through the second-level cache (0.4 at the most, in pieces of 32 MB).
 */
#include "async.cuh"
#include "swap.h"
#include "walk.cuh"

template <typename T, typename W> __device__ void swap_packed(char *data, const gm_swap_packed &p)
{
    enum { S = sizeof(T), WORD = sizeof(W), ITEMS = WORD / S, LINE = GM_SWAP_LINE / WORD };
    extern __shared__ __align__(128) unsigned char shared[];
    W *image = (W *)shared;
    long long run = blockIdx.x / p.pieces, first = (blockIdx.x - run * p.pieces) * p.each;
    int thread = threadIdx.x, threads = blockDim.x;
    int items = (int)min((long long)p.each, p.squares - first) * (int)p.square;

    data += gm_place_of(p.batch, run).src + first * p.square * S;
    int before = (int)((unsigned long long)data % WORD) / S; /* items of the first word that are not ours */
    data -= before * S;
    int words = (before + items + ITEMS - 1) / ITEMS;
    for (int w = thread; w < words; w += threads)
        if (int item = w * ITEMS; item >= before && item + ITEMS <= before + items)
            gm_async_word(&image[w + w / LINE], (const W *)data + w);
        else
            for (int k = item; k < item + ITEMS; k++)
                if (k >= before && k < before + items)
                    ((T *)&image[w + w / LINE])[k - item] = ((const T *)data)[k];
    gm_async_commit();
    gm_async_wait();
    __syncthreads();
#pragma unroll 4
    for (int w = thread; w < words; w += threads) {
        int item = w * ITEMS - before, start = max(item, 0);
        unsigned int square = gm_divide(start, p.by_square.magic, p.by_square.shift);
        unsigned int rest = start - square * p.square, row = gm_divide(rest, p.by_n.magic, p.by_n.shift);
        unsigned int column = rest - row * p.n, from = before + square * p.square + column * p.n + row;
        W made;
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            if (ITEMS == 1 || (item + k >= 0 && item + k < items)) {
                unsigned int word = from / ITEMS;
                ((T *)&made)[k] = ((const T *)&image[word + word / LINE])[from % ITEMS];
                from += p.n;
                if (++column == p.n) { /* the next row, or the next square's first */
                    column = 0;
                    from -= p.square - 1;
                    if (++row == p.n) {
                        row = 0;
                        from += p.square - p.n;
                    }
                }
            }
        if (ITEMS == 1 || (item >= 0 && item + ITEMS <= items))
            ((W *)data)[w] = made;
        else
            for (int k = 0; k < ITEMS; k++)
                if (item + k >= 0 && item + k < items)
                    ((T *)data)[w * ITEMS + k] = ((const T *)&made)[k];
    }
}

#define GM_KERNEL(size, type, word)                                                                                    \
    extern "C" __global__ void __launch_bounds__(512)                                                                  \
        swap_packed_##size(char *data, const __grid_constant__ gm_swap_packed packed)                                  \
    {                                                                                                                  \
        swap_packed<type, word>(data, packed);                                                                         \
    }

GM_KERNEL(1, unsigned char, unsigned int)
GM_KERNEL(2, unsigned short, unsigned int)
GM_KERNEL(4, unsigned int, unsigned int)
GM_KERNEL(8, unsigned long long, unsigned long long)
GM_KERNEL(16, uint4, uint4)
