/* Copies of runs that are contiguous on both sides, wherever they start.
 *
 * Must move 2 * bytes. The destination is written in whole aligned 16-byte vectors; where the source is misaligned to
 * them, two of its aligned vectors are shifted into one: the second comes from the first-level cache, where the
 * neighbouring lane brings it. Limited by memory; the ends of a run, byte by byte, cost more the shorter it is.
 */
#include "rows.h"
#include "vector.cuh"
#include "walk.cuh"

/* One vector of the destination and what it is made of. */
typedef struct gm_rows_piece {
    char *out;
    const char *in;
    int begin, end; /* bytes of the vector that belong to the run */
    uint4 low, high;
} gm_rows_piece;

__device__ __forceinline__ void gm_rows_load(gm_rows_piece *piece, char *out, const char *in, const gm_rows &rows, long long i)
{
    long long row = 0;
    gm_place at = {0, 0};

    if (rows.walk.naxes) {
        row = rows.all >> 31 ? i / rows.vectors : gm_divide((unsigned int)i, rows.magic, rows.shift);
        at = gm_place_of(rows.walk, row);
    }
    char *run = out + at.dst;
    long long from = (i - row * rows.vectors) * 16 - (long long)((unsigned long long)run & 15);
    piece->out = run + from;
    piece->in = in + at.src + from;
    piece->begin = from < 0 ? (int)-from : 0;
    piece->end = (int)min(rows.run - from, 16ll);
    unsigned long long start = (unsigned long long)piece->in & ~15ull;
    int shift = (int)((unsigned long long)piece->in & 15);
    if (shift && start + 32 > rows.src_end)
        piece->begin |= 16; /* not to be read in vectors: byte by byte, whatever belongs to the run */
    if (piece->begin == 0 && piece->end == 16) {
        piece->low = __ldg((const uint4 *)start);
        if (shift)
            piece->high = __ldg((const uint4 *)(start + 16));
    }
}

__device__ __forceinline__ void gm_rows_store(const gm_rows_piece *piece)
{
    if (piece->begin == 0 && piece->end == 16) {
        int shift = (int)((unsigned long long)piece->in & 15);
        *(uint4 *)piece->out = shift ? gm_shifted<1>(piece->low, piece->high, shift) : piece->low;
        return;
    }
    for (int i = piece->begin & 15; i < piece->end; i++)
        piece->out[i] = piece->in[i];
}

extern "C" __global__ void __launch_bounds__(256) move_rows(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_rows rows)
{
    enum { PIECES = 2 };
    long long first = (long long)blockIdx.x * PIECES * blockDim.x + threadIdx.x;
    gm_rows_piece piece[PIECES];

#pragma unroll
    for (int k = 0; k < PIECES; k++)
        if (first + k * blockDim.x < rows.all)
            gm_rows_load(&piece[k], out, in, rows, first + k * blockDim.x);
#pragma unroll
    for (int k = 0; k < PIECES; k++)
        if (first + k * blockDim.x < rows.all)
            gm_rows_store(&piece[k]);
}

/* One run of aligned vectors: nothing to compute but the place. One vector a thread in blocks of 256 was the fastest on an
 * H200, 1.00-1.03 of cudaMemcpyAsync; two, four and eight a thread 0.97-0.99, streaming hints 0.93-0.95. */
extern "C" __global__ void __launch_bounds__(256) move_vectors(uint4 *__restrict__ out, const uint4 *__restrict__ in, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = in[i];
}
