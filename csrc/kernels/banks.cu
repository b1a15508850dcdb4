/* Banks of shared memory. A block brings 1024 items there, and then lane l of its warp j reads item
 * (l * stride + j) % 1024, or % m in the last block, which has m items: with a stride of 32 that is a column of a 32 x 32
 * tile, so that full blocks are transposed.
 *
 * Must move 2 * n * sizeof(T) bytes of global memory, 4 sectors an access of 4 bytes; limited by it until the shared
 * memory's answer takes longer: on an H200 up to 8 wavefronts a load go unnoticed, 16 take 1.4 times and 32 take 2.3
 * times as long as 1. 32 banks answer one 4-byte word each in a wavefront: words of one bank have to wait for one
 * another, lanes that want the same word have not. A warp's 8-byte accesses are served as two halves, 16-byte accesses
 * as four quarters, so that 2 and 4 wavefronts carry twice and four times the bytes: no conflict.
 * Counts beside a stage are wavefronts of the shared load for 4-byte items, stride > 0; the shared store takes 1.
 */
#include "access.cuh"
#include "banks.h"

/* Where item i lies: all that sets the stages apart. */
struct gm_dense {
    static __device__ __forceinline__ unsigned int place(unsigned int i) { return i; }
};
struct gm_padded {
    static __device__ __forceinline__ unsigned int place(unsigned int i) { return i + i / 32; }
};
struct gm_swizzled {
    static __device__ __forceinline__ unsigned int place(unsigned int i) { return i ^ (i / 32 & 31); }
};

template <typename T, typename P> __device__ __forceinline__ void banks(T *__restrict__ out, const T *__restrict__ in, const gm_banks &p, unsigned int stride)
{
    enum { PIECES = GM_BANKS_TILE / GM_BANKS_THREADS };
    __shared__ T tile[GM_BANKS_TILE + GM_BANKS_TILE / 32];
    long long first = (long long)blockIdx.x * GM_BANKS_TILE;
    unsigned int count = (unsigned int)min(p.n - first, (long long)GM_BANKS_TILE);
    T piece[PIECES];

#pragma unroll
    for (int k = 0; k < PIECES; k++)
        if (unsigned int i = threadIdx.x + k * GM_BANKS_THREADS; i < count)
            piece[k] = in[first + i];
#pragma unroll
    for (int k = 0; k < PIECES; k++)
        if (unsigned int i = threadIdx.x + k * GM_BANKS_THREADS; i < count)
            gm_put(&tile[P::place(i)], piece[k]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < PIECES; k++)
        if (unsigned int i = threadIdx.x + k * GM_BANKS_THREADS; i < count) {
            unsigned int from = i % 32 * stride + i / 32;
            from = count == GM_BANKS_TILE ? from % GM_BANKS_TILE : from % count;
            out[first + i] = gm_get(&tile[P::place(from)]);
        }
}

/* strided: gcd(stride, 32), so 1 for every odd stride and 32 for 32. */
template <typename T> __device__ void banks_strided(T *__restrict__ out, const T *__restrict__ in, const gm_banks &p)
{
    banks<T, gm_dense>(out, in, p, p.stride);
}

/* broadcast: 1, a stride of 0: all lanes want the same word. */
template <typename T> __device__ void banks_broadcast(T *__restrict__ out, const T *__restrict__ in, const gm_banks &p)
{
    banks<T, gm_dense>(out, in, p, 0);
}

/* padded: 1 for strides of 1 and 32. An item more in each row of 32 moves a column's items to 32 banks. */
template <typename T> __device__ void banks_padded(T *__restrict__ out, const T *__restrict__ in, const gm_banks &p)
{
    banks<T, gm_padded>(out, in, p, p.stride);
}

/* swizzled: 1 for strides of 1 and 32. Each row is put in another order, and no memory is spent. */
template <typename T> __device__ void banks_swizzled(T *__restrict__ out, const T *__restrict__ in, const gm_banks &p)
{
    banks<T, gm_swizzled>(out, in, p, p.stride);
}

/* access4, access8, access16: items of any size, that many bytes at a time: with a stride of 1, 1, 2 and 4; with others
 * gcd(stride, 32), 2 * gcd(stride, 16) and 4 * gcd(stride, 8). */
template <typename T> __device__ void banks_access(T *__restrict__ out, const T *__restrict__ in, const gm_banks &p)
{
    if (blockIdx.x == 0 && threadIdx.x < p.tail)
        ((unsigned char *)(out + p.n))[threadIdx.x] = ((const unsigned char *)(in + p.n))[threadIdx.x];
    banks<T, gm_dense>(out, in, p, p.stride);
}

#define GM_KERNEL(name, kernel, type)                                                                                  \
    extern "C" __global__ void __launch_bounds__(GM_BANKS_THREADS) name(type *__restrict__ out, const type *__restrict__ in, const __grid_constant__ gm_banks p) \
    {                                                                                                                  \
        kernel<type>(out, in, p);                                                                                      \
    }
#define GM_KERNELS(name)                         \
    GM_KERNEL(name##_1, name, unsigned char)     \
    GM_KERNEL(name##_2, name, unsigned short)    \
    GM_KERNEL(name##_4, name, unsigned int)      \
    GM_KERNEL(name##_8, name, unsigned long long) \
    GM_KERNEL(name##_16, name, uint4)

GM_KERNELS(banks_strided)
GM_KERNELS(banks_broadcast)
GM_KERNELS(banks_padded)
GM_KERNELS(banks_swizzled)
GM_KERNEL(banks_access4, banks_access, unsigned int)
GM_KERNEL(banks_access8, banks_access, unsigned long long)
GM_KERNEL(banks_access16, banks_access, uint4)
