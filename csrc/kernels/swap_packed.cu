/* Transposes many small squares where they lie, one behind the other without gaps.
 *
 * Must move 2 * items * itemsize bytes. A block has some squares as one run of words: it reads the run as it lies to
 * shared memory, waits, and writes the run as it lies, each word made of the items that belong there. A word at either
 * end of the run may be a neighbour's in part: of that it moves items.
 *
 * Limited by memory for items of 4 bytes and more: on an H200 0.88-1.03 of a copy's speed for 3 x 3 to 128 x 128, where
 * pairs of tiles, mostly empty, reach 0.002-0.5; for 1 and 2 bytes by instructions: by vectors (swap_gathered)
 * 0.57-0.88 and 0.57-0.92 for 33 to 300 rows, by words 0.35 and 0.53. Lost there: copies into scratch and back through
 * the second-level cache (0.4 at the most, in pieces of 32 MB).
 */
#include "async.cuh"
#include "swap.h"
#include "vector.cuh"
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

/* Where the item that belongs at place `item` of the block's squares lies. */
__device__ __forceinline__ unsigned int gm_swap_source(const gm_swap_packed &p, unsigned int item)
{
    unsigned int square = gm_divide(item, p.by_square.magic, p.by_square.shift), rest = item - square * p.square;
    unsigned int row = gm_divide(rest, p.by_n.magic, p.by_n.shift);
    return square * p.square + (rest - row * p.n) * p.n + row;
}

/* The same for items of one and two bytes in rows of a vector's items at least: each thread makes vectors, whose items
 * are of one row or of two. Lanes begin with different items, such that they are on different banks, and turn the
 * vector. */
template <typename T> __device__ void swap_gathered(char *data, const gm_swap_packed &p)
{
    enum { S = sizeof(T), V = 16 / S, LANES = 32 };
    extern __shared__ __align__(128) unsigned char shared[];
    long long run = blockIdx.x / p.pieces, first = (blockIdx.x - run * p.pieces) * p.each;
    int thread = threadIdx.x, threads = blockDim.x;
    int items = (int)min((long long)p.each, p.squares - first) * (int)p.square;

    data += gm_place_of(p.batch, run).src + first * p.square * S;
    int before = (int)((unsigned long long)data & 15) / S; /* items of the first vector that are not ours */
    data -= before * S;
    int vectors = (before + items + V - 1) / V;
    for (int v = thread; v < vectors; v += threads)
        if (int item = v * V; item >= before && item + V <= before + items)
            gm_async_copy(shared + v * 16, data + v * 16);
        else
            for (int k = max(item, before); k < min(item + V, before + items); k++)
                ((T *)shared)[k] = ((const T *)data)[k];
    gm_async_commit();
    gm_async_wait();
    __syncthreads();
    const T *image = (const T *)shared + before;
    int turn = (thread % LANES >> p.turn_shift) * p.turn_step & (V - 1);
    for (int v = thread; v < vectors; v += threads) {
        int item = v * V - before;
        if (item < 0 || item + V > items) {
            for (int k = max(item, 0); k < min(item + V, items); k++)
                ((T *)data)[before + k] = image[gm_swap_source(p, k)];
            continue;
        }
        unsigned int square = gm_divide(item, p.by_square.magic, p.by_square.shift);
        unsigned int rest = item - square * p.square, row = gm_divide(rest, p.by_n.magic, p.by_n.shift);
        int column = (int)(rest - row * p.n), left = (int)p.n - column;
        const T *here = image + square * p.square + column * p.n + row;
        const T *there = here + 1 - (int)(row + 1 == p.n ? p.n : p.square); /* of the items on the next row */
        T part[V];
#pragma unroll
        for (int i = 0; i < V; i++) {
            int k = (i + turn) & (V - 1);
            part[i] = (k < left ? here : there)[k * (int)p.n];
        }
        uint4 made;
        unsigned int *word = &made.x;
#pragma unroll
        for (int w = 0; w < 4; w++)
            if constexpr (S == 1)
                word[w] = __byte_perm(__byte_perm(part[4 * w], part[4 * w + 1], 0x0040),
                                      __byte_perm(part[4 * w + 2], part[4 * w + 3], 0x0040), 0x5410);
            else
                word[w] = __byte_perm(part[2 * w], part[2 * w + 1], 0x5410);
        *(uint4 *)(data + v * 16) = gm_later<S>(made, turn * S);
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
#undef GM_KERNEL
#define GM_KERNEL(size, type)                                                                                          \
    extern "C" __global__ void __launch_bounds__(512)                                                                  \
        swap_gathered_##size(char *data, const __grid_constant__ gm_swap_packed packed)                                \
    {                                                                                                                  \
        swap_gathered<type>(data, packed);                                                                             \
    }

GM_KERNEL(1, unsigned char)
GM_KERNEL(2, unsigned short)
