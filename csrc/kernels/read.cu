/* Reads: a warp's store is coalesced in every stage, and only where its load goes changes.
 *
 * Must move 2 * n * sizeof(T) bytes, `gather` the index besides. Memory answers in sectors of 32 bytes, so what limits a
 * stage is how many of them a warp touches for the 32 items that it wants.
 * Counts beside a stage are sectors of one warp's load, 4-byte items, aligned arrays; the store takes 4.
 */
#include "read.h"

/* strided: out[i] = in[i * stride]. 4, 8, 12, 16 sectors for strides of 1 to 4, and 32 from 8 on: a lane has a sector of
 * its own then, and a longer stride adds none. */
template <typename T> __device__ void read_strided(T *__restrict__ out, const T *__restrict__ in, const gm_read &read)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < read.n)
        out[i] = in[i * read.stride];
}

/* offset: out[i] = in[i], with `in` that starts anywhere. 5 sectors where it starts inside one, otherwise 4. */
template <typename T> __device__ void read_offset(T *__restrict__ out, const T *__restrict__ in, const gm_read &read)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < read.n)
        out[i] = in[i];
}

/* gather: out[i] = in[index[i]]. Up to 32 sectors; the load waits for the index (4 sectors, or 8 of 64 bits). An index
 * below 0 counts from the end; one that is in no case an item's gives 0 and reads nothing. */
template <typename T, typename I> __device__ void read_gather(T *__restrict__ out, const T *__restrict__ in, const I *__restrict__ index, const gm_read &read)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= read.n)
        return;
    long long from = index[i];
    if (from < 0)
        from += read.items;
    if (from >= 0 && from < read.items)
        out[i] = in[from];
    else
        out[i] = T();
}

/* coalesced: out[i] = in[i]. 4 sectors, all of their bytes used. */
template <typename T> __device__ void read_coalesced(T *__restrict__ out, const T *__restrict__ in, const gm_read &read)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < read.n)
        out[i] = in[i];
}

#define GM_KERNEL(name, size, type)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) name##_##size(type *__restrict__ out, const type *__restrict__ in, const __grid_constant__ gm_read read) \
    {                                                                                                                  \
        name<type>(out, in, read);                                                                                     \
    }
#define GM_GATHER(name, size, type, index_type)                                                                        \
    extern "C" __global__ void __launch_bounds__(256) name##_##size(type *__restrict__ out, const type *__restrict__ in, const index_type *__restrict__ index, const __grid_constant__ gm_read read) \
    {                                                                                                                  \
        read_gather<type>(out, in, index, read);                                                                       \
    }
#define GM_KERNELS(size, type)                         \
    GM_KERNEL(read_strided, size, type)                \
    GM_KERNEL(read_offset, size, type)                 \
    GM_KERNEL(read_coalesced, size, type)              \
    GM_GATHER(read_gather, size, type, int)            \
    GM_GATHER(read_gather_int64, size, type, long long)

GM_KERNELS(1, unsigned char)
GM_KERNELS(2, unsigned short)
GM_KERNELS(4, unsigned int)
GM_KERNELS(8, unsigned long long)
GM_KERNELS(16, uint4)
