/* Walks over a matrix: out[r][c] = in[r][c], and only the axis along which neighbouring lanes lie changes.
 *
 * Must move 2 * rows * columns * sizeof(T) bytes. Limited by the sectors that a warp touches.
 * Counts beside a stage are per warp instruction, 4-byte items, rows of 32 items or more.
 */
#include "walk2d.h"
#include "walk.cuh"

/* Item i of the walk is item `at` of a line; lines are columns if `DOWN`, and that is all that sets the two stages
 * apart. */
template <typename T, bool DOWN> __device__ void walk2d(T *__restrict__ out, const T *__restrict__ in, const gm_walk2d &m)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long length = DOWN ? m.rows : m.columns;

    if (i >= m.items)
        return;
    long long line = m.items >> 31 ? i / length : gm_divide((unsigned int)i, m.magic, m.shift);
    long long at = i - line * length;
    long long row = DOWN ? at : line, column = DOWN ? line : at;
    out[row * m.columns + column] = in[row * m.columns + column];
}

/* columns: load 32 sectors, store 32. Each carries one item; the others are fetched again for the next columns. */
template <typename T> __device__ void walk2d_columns(T *__restrict__ out, const T *__restrict__ in, const gm_walk2d &m)
{
    walk2d<T, true>(out, in, m);
}

/* rows: load 4 sectors, store 4, or 5 where rows do not start at a multiple of 32 bytes. */
template <typename T> __device__ void walk2d_rows(T *__restrict__ out, const T *__restrict__ in, const gm_walk2d &m)
{
    walk2d<T, false>(out, in, m);
}

#define GM_KERNEL(name, size, type)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) name##_##size(type *__restrict__ out, const type *__restrict__ in, const __grid_constant__ gm_walk2d m) \
    {                                                                                                                  \
        name<type>(out, in, m);                                                                                        \
    }
#define GM_KERNELS(name)                 \
    GM_KERNEL(name, 1, unsigned char)    \
    GM_KERNEL(name, 2, unsigned short)   \
    GM_KERNEL(name, 4, unsigned int)     \
    GM_KERNEL(name, 8, unsigned long long) \
    GM_KERNEL(name, 16, uint4)

GM_KERNELS(walk2d_columns)
GM_KERNELS(walk2d_rows)
