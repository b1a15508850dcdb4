/* Transposes and permutes, tile by tile through shared memory, for every alignment, stride and length.
 *
 * Must move 2 * items * itemsize bytes. The source's runs arrive as aligned 16-byte vectors, asynchronously and
 * therefore all at once; every 16-byte vector of the destination is gathered item by item and stored whole. Limited by
 * memory as long as the gathering takes fewer than some 200 instructions for 512 bytes.
 *
 * The image of a tile in shared memory keeps the source's misalignment: a row's place is congruent to its address
 * modulo 16, so that no byte is shifted. Where a run of the destination starts inside a vector, the tile's part of it
 * starts at that vector: the items before come from a few more rows (`ahead`), and no vector is stored in two parts.
 *
 * Lanes whose vectors begin on the same banks take their units in different orders (tile_turn.c) and turn the vector
 * afterwards: 17 x 33 in bytes 0.64 for 0.45, 0.83 for 0.42 in a permute of five axes, reversed bytes 0.85 for 0.75. Where
 * that would save few passes it costs more: never turned, up to 32 for 512 bytes.
 *
 * Tried on an H200 and lost, in parts of a copy's speed: streaming stores (0.933 for 0.948: aligned 4-byte items,
 * 16384^2), loads through the first-level cache (0.955 there, but 0.73 for 0.85 at 16383 x 16385), loads into registers,
 * four a thread at a time (0.967 there, but 0.79 for 0.85 and less wherever a thread has more than four).
 *
 * Blocks go along a long axis between two that change places first, since it is near on both sides (96 x 75 x 96 x 80 to
 * 2, 1, 0, 3: items of two bytes 0.92 for 0.87, bytes 0.90 for 0.87). Short ones first lost 0.01-0.03, and in a reversal
 * of bits 0.03-0.07.
 */
#include "tile.cuh"

template <typename T, bool TABLE, bool RAGGED>
__device__ void move_tile(char *__restrict__ out, const char *__restrict__ in, const gm_tile &p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    gm_tile_place at = gm_tile_place_of(p, blockIdx.x);

    gm_tile_load(shared, in, p, at);
    gm_tile_tables<sizeof(T), TABLE>(shared, p, at); /* while the loads are under way */
    gm_async_wait();
    __syncthreads();
    if (sizeof(T) < 16 && p.turn_step)
        gm_tile_store<T, TABLE, RAGGED, true>(shared, out, in, p, at);
    else
        gm_tile_store<T, TABLE, RAGGED, false>(shared, out, in, p, at);
}

/* Blocks that a multiprocessor should have room for: what limits the registers of a thread. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define GM_TILE_BLOCKS(size) 4
#else
#define GM_TILE_BLOCKS(size) (size < 2 ? 5 : 6)
#endif

#define GM_KERNEL(name, size, type, table, ragged)                                                            \
    extern "C" __global__ void __launch_bounds__(256, GM_TILE_BLOCKS(size))                                   \
        name##_##size(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_tile tile) \
    {                                                                                                         \
        move_tile<type, table, ragged>(out, in, tile);                                                        \
    }
#define GM_KERNELS(name, table, ragged)                  \
    GM_KERNEL(name, 1, unsigned char, table, ragged)     \
    GM_KERNEL(name, 2, unsigned short, table, ragged)    \
    GM_KERNEL(name, 4, unsigned int, table, ragged)      \
    GM_KERNEL(name, 8, unsigned long long, table, ragged) \
    GM_KERNEL(name, 16, uint4, table, ragged)

GM_KERNELS(move_tile, false, false)
GM_KERNELS(move_tile_ragged, false, true)
GM_KERNELS(move_chain, true, false)
GM_KERNELS(move_chain_ragged, true, true)
