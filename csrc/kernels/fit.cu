/* Transposes matrices by tiles that are cut to them, where all is whole vectors and the columns of a matrix follow
 * one another in the destination.
 *
 * Must move 2 * items * itemsize bytes. A tile is as high as short columns are, whatever that is, so that the
 * destination is written in runs as long as the tile is wide; or it has all of a few columns, so that the source is
 * read in such runs; its other side is what makes some 16 KB. Four steps, between which a block waits:
 *   1 the rows come to shared memory asynchronously;
 *   2 vectors of columns are made of the words of as many rows as a vector has items, in registers (turn.cuh);
 *   3 they go to shared memory in the destination's order, swizzled;
 *   4 and from there to the destination, whose vectors lie side by side for lanes side by side.
 * Tiles of other kernels that are higher than such columns are empty in part, and write them piece by piece; those of
 * tile.cu look every item up.
 *
 * Limited by memory. On an H200, in parts of the faster copy's speed, beside what took them before: 48 columns of
 * bytes 0.86-0.88 for 0.79-0.81 (28 x 28 x 48 x 28 x 48 to 1, 3, 0, 4, 2), 32 of bytes 0.94-0.97 for 0.87, 96 of
 * bytes 0.86-0.91 for 0.83-0.87, 48 of 4 bytes 0.92-0.94 for 0.88-0.91, 64 of 2 bytes (NCDHW to NDHWC) 0.97 for 0.88,
 * batches of 32 x 32 of 2 bytes 0.95-0.975 for 0.87-0.88 and of 4 bytes 0.96-0.97 for 0.94; (16, n), (32, n), (64, n)
 * of 1 and 2 bytes to columns 0.955-0.97 for 0.91-0.93; (n, 32) and (n, 64) of 2 bytes to rows 0.92-0.93 for 0.88;
 * large tiles 16384 x 16384 of 2 bytes 0.971 for 0.963, 11520 x 11520 of 4 bytes 0.965 for 0.955, 355 x 384 x 384 of
 * 4 bytes 0.985 for 0.96.
 *
 * Rows of 448 bytes whole, where they would be cut in 256 and 192 and columns do not follow one another: 0.860 for
 * 0.855 (32 x 15 x 15 x 15 x 5 x 112 reversed), elsewhere the same.
 *
 * Lost there: batches of 32 x 32 bytes (batch.cu 0.92, here 0.87); parts of columns that are no whole lines (384
 * bytes in two 0.93 for 0.945, 20 columns in parts of 800 bytes 0.915 for 0.94); all of 256 columns of bytes, four
 * vectors high (0.90 for 0.93); large tiles of bytes (0.94 for 0.945, 8192 x 8192 0.92 for 0.94), and for matrices more
 * than eight times as high as wide (43408 x 1216 of 4 bytes 0.917 for 0.933). Within 0.01 of each other: tiles of 8 to
 * 24 KB, 128 and 256 threads, two images instead of vectors held in registers, two to eight blocks a multiprocessor,
 * what the blocks go along first; all of the parameters asked for at once at the start.
 */
#include "async.cuh"
#include "fit.h"
#include "matrix.cuh"
#include "turn.cuh"

/* Where the n-th vector of a tile's columns lies: eight lanes that store vectors 1 to 32 apart are on different banks
 * as far as that goes, as are eight that load neighbours. */
__device__ __forceinline__ unsigned int gm_fit_place(unsigned int n)
{
    unsigned int eight = n >> 3;
    return n ^ ((eight ^ eight >> 3) & 7);
}

/* The vectors of a word's columns, of as many rows as they have items. */
template <typename T>
__device__ __forceinline__ void gm_fit_gather(uint4 *made, const unsigned char *from, unsigned int pitch)
{
    enum { S = sizeof(T), V = 16 / S };

    if constexpr (S < 4) {
        unsigned int word[V];
#pragma unroll
        for (int i = 0; i < V; i++, from += pitch)
            word[i] = *(const unsigned int *)from;
        gm_turn<T>(made, word);
    } else
#pragma unroll
        for (int i = 0; i < V; i++, from += pitch)
            ((T *)made)[i] = *(const T *)from;
}

template <typename T, int THREADS>
__device__ __forceinline__ void move_fit(char *__restrict__ out, const char *__restrict__ in, const gm_fit &p)
{
    enum {
        S = sizeof(T),
        V = 16 / S,
        WORD = S < 4 ? 4 : S,
        WIDE = WORD / S, /* columns of a word */
        TURNS = GM_FIT_HELD / WIDE
    };
    extern __shared__ __align__(128) unsigned char shared[];
    uint4 *image = (uint4 *)shared;
    long long *column_dst = (long long *)(image + GM_FIT_HELD * THREADS);
    unsigned int thread = threadIdx.x, rest = blockIdx.x, first = 0, parts = p.parts;
    const char *source = in;
    char *target = out;

#pragma unroll 1
    for (int k = 0; k < p.ngrid; k++) {
        const gm_walk_axis &axis = p.grid[k];
        unsigned int next = gm_divide(rest, axis.magic, axis.shift), index = rest - next * axis.len;
        source += index * axis.src;
        target += index * axis.dst;
        if (k == p.column_grid)
            first = index * p.tile;
        if (k == p.part_grid)
            parts = min(p.parts_in_all - index * p.parts, p.parts);
        rest = next;
    }
    unsigned int columns = min(p.columns - first, p.tile), height = p.tall.n;
    if (p.piece)
        parts = columns / p.piece;
    else
        height = parts * p.part_tall;

    unsigned int row = gm_divide(thread, p.vectors.magic, p.vectors.shift), v = thread - row * p.vectors.n;
    if (row < p.rows_at_a_time && (p.piece || v * V < columns))
#pragma unroll 1
        for (; row < parts * p.row.n; row += p.rows_at_a_time) {
            unsigned int part = gm_divide(row, p.row.magic, p.row.shift), i = row - part * p.row.n;
            gm_async_copy(shared + i * p.pitch + part * p.part_pitch + v * 16,
                          source + (long long)i * p.row_src + (long long)part * p.part_src + v * 16);
        }
    gm_async_commit();
    for (unsigned int c = thread; c < columns; c += THREADS)
        column_dst[c] = gm_matrix_place(p.column, p.ncolumn, first + c).dst;
    gm_async_wait();
    __syncthreads();

    unsigned int units = p.words.n * p.tall.n;
    uint4 made[TURNS][WIDE];
#pragma unroll
    for (int k = 0; k < TURNS; k++)
        if (unsigned int unit = k * THREADS + thread; unit < units) {
            unsigned int tall = gm_divide(unit, p.words.magic, p.words.shift), word = unit - tall * p.words.n;
            gm_fit_gather<T>(made[k], shared + tall * V * p.pitch + word * WORD, p.pitch);
        }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TURNS; k++)
        if (unsigned int unit = k * THREADS + thread; unit < units) {
            unsigned int tall = gm_divide(unit, p.words.magic, p.words.shift), word = unit - tall * p.words.n;
#pragma unroll
            for (int c = 0; c < WIDE; c++)
                image[gm_fit_place((word * WIDE + c) * p.tall.n + tall)] = made[k][c];
        }
    __syncthreads();
#pragma unroll 1
    for (unsigned int n = thread; n < columns * p.tall.n; n += THREADS) {
        unsigned int column = gm_divide(n, p.tall.magic, p.tall.shift), tall = n - column * p.tall.n;
        if (tall < height)
            *(uint4 *)(target + column_dst[column] + tall * 16) = image[gm_fit_place(n)];
    }
}

#define GM_KERNEL(name, size, type, threads)                                                                           \
    extern "C" __global__ void __launch_bounds__(threads, 1024 / threads)                                              \
        name##_##size(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_fit fit)         \
    {                                                                                                                  \
        move_fit<type, threads>(out, in, fit);                                                                         \
    }
GM_KERNEL(move_fit, 1, unsigned char, GM_FIT_THREADS)
GM_KERNEL(move_fit, 2, unsigned short, GM_FIT_THREADS)
GM_KERNEL(move_fit, 4, unsigned int, GM_FIT_THREADS)
GM_KERNEL(move_fit, 8, unsigned long long, GM_FIT_THREADS)
GM_KERNEL(move_fit_large, 2, unsigned short, GM_FIT_LARGE_THREADS)
GM_KERNEL(move_fit_large, 4, unsigned int, GM_FIT_LARGE_THREADS)
#undef GM_KERNEL
