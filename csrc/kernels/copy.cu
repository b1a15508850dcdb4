/* Copies of one dense run: out[i] = in[i].
 *
 * Must move 2 * n * sizeof(T) bytes. Every stage touches each sector once on either side; what sets them apart is how many
 * bytes a multiprocessor has under way, as memory answers after some 600 ns: by Little's law 4.8 TB/s want about 20 KB a
 * multiprocessor at any time, loads and stores.
 * On an H200, in parts of the fastest copy: items of 1, 4 and 8 bytes one by one 0.20, 0.64 and 0.91, two by two 0.36, 0.91
 * and 1.00; from 16 bytes an access on 1.00, and several of them a thread (0.99) or the copy engine (0.98) add nothing.
 * Counts beside a stage are per warp instruction, aligned arrays.
 */
#include "access.cuh"
#include "bulk.cuh"
#include "copy.h"
#include "vector.cuh"

/* scalar: an item an access; 1, 2, 4, 8, 16 sectors for items of 1, 2, 4, 8, 16 bytes. */
template <typename T> __device__ __forceinline__ void copy_one(T *__restrict__ out, const T *__restrict__ in, const gm_copy &p)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < p.count)
        gm_put(out + i, gm_get(in + i));
}

/* vector2, vector4: 2 or 4 items an access, which must start at a multiple of its own bytes; what is left over at the end
 * goes item by item. Twice, and four times, the sectors of `scalar`. */
template <typename V, typename T> __device__ __forceinline__ void copy_vector(T *__restrict__ out, const T *__restrict__ in, const gm_copy &p)
{
    enum { WIDTH = sizeof(V) / sizeof(T) };
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < p.count)
        ((V *)out)[i] = ((const V *)in)[i];
    else if (i - p.count < p.tail)
        gm_put(out + p.count * WIDTH + (i - p.count), gm_get(in + p.count * WIDTH + (i - p.count)));
}

#define GM_KERNEL(name, body, type)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) name(type *__restrict__ out, const type *__restrict__ in, const __grid_constant__ gm_copy p) \
    {                                                                                                                  \
        body(out, in, p);                                                                                              \
    }
GM_KERNEL(copy_scalar_1, copy_one, unsigned char)
GM_KERNEL(copy_scalar_2, copy_one, unsigned short)
GM_KERNEL(copy_scalar_4, copy_one, unsigned int)
GM_KERNEL(copy_scalar_8, copy_one, unsigned long long)
GM_KERNEL(copy_scalar_16, copy_one, uint4)
GM_KERNEL(copy_vector2_uchar2, copy_vector<uchar2>, unsigned char)
GM_KERNEL(copy_vector2_short2, copy_vector<short2>, short)
GM_KERNEL(copy_vector2_int2, copy_vector<int2>, int)
GM_KERNEL(copy_vector2_float2, copy_vector<float2>, float)
GM_KERNEL(copy_vector2_longlong2, copy_vector<longlong2>, long long)
GM_KERNEL(copy_vector2_double2, copy_vector<double2>, double)
GM_KERNEL(copy_vector4_uchar4, copy_vector<uchar4>, unsigned char)
GM_KERNEL(copy_vector4_short4, copy_vector<short4>, short)
GM_KERNEL(copy_vector4_int4, copy_vector<int4>, int)
GM_KERNEL(copy_vector4_float4, copy_vector<float4>, float)

/* The bytes before the first whole vector and behind the last, by the first block. */
__device__ __forceinline__ void copy_ends(char *__restrict__ out, const char *__restrict__ in, const gm_copy &p)
{
    long long end = p.head + p.count * 16;

    if (blockIdx.x != 0)
        return;
    for (int i = threadIdx.x; i < p.head; i += blockDim.x)
        gm_put(out + i, gm_get(in + i));
    for (int i = threadIdx.x; i < p.tail; i += blockDim.x)
        gm_put(out + end + i, gm_get(in + end + i));
}

/* The destination's vector i, put together of two of the source's where that is not aligned alike. The second comes from
 * the first-level cache, where the neighbouring lane brings it. */
__device__ __forceinline__ uint4 copy_shifted(const char *in, const gm_copy &p, long long i)
{
    const char *from = in + p.head + i * 16;
    int shift = (int)((unsigned long long)from & 15);
    uint4 low = __ldg((const uint4 *)(from - shift));

    return shift == 0 ? low : gm_shifted<1>(low, __ldg((const uint4 *)(from - shift) + 1), shift);
}

/* peeled: 16 bytes an access, wherever both sides start: head and tail go byte by byte, and the stores are aligned. 16
 * sectors, and 17 on a misaligned source's side. */
extern "C" __global__ void __launch_bounds__(256) copy_peeled(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_copy p)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    copy_ends(out, in, p);
    if (i < p.count)
        *(uint4 *)(out + p.head + i * 16) = copy_shifted(in, p, i);
}

/* in_flight: as peeled, four vectors a thread, and no store before all loads are under way. */
extern "C" __global__ void __launch_bounds__(256) copy_in_flight(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_copy p)
{
    enum { FLIGHT = GM_COPY_FLIGHT };
    long long first = (long long)blockIdx.x * FLIGHT * blockDim.x + threadIdx.x;
    uint4 vector[FLIGHT];

    copy_ends(out, in, p);
#pragma unroll
    for (int k = 0; k < FLIGHT; k++)
        if (first + k * blockDim.x < p.count)
            vector[k] = copy_shifted(in, p, first + k * blockDim.x);
#pragma unroll
    for (int k = 0; k < FLIGHT; k++)
        if (first + k * blockDim.x < p.count)
            *(uint4 *)(out + p.head + (first + k * blockDim.x) * 16) = vector[k];
}

/* bulk: one thread of a block asks the copy engine for 16 KB in four pieces, and for each to be written as soon as it has
 * come; no register holds an item. Needs both sides to be aligned alike, and compute capability 9.0. */
extern "C" __global__ void __launch_bounds__(32) copy_bulk(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_copy p)
{
    enum { PIECES = GM_COPY_BULK / GM_COPY_PIECE };
    __shared__ __align__(128) unsigned char piece[PIECES][GM_COPY_PIECE];
    __shared__ unsigned long long come[PIECES];
    long long first = (long long)blockIdx.x * GM_COPY_BULK, bytes = p.count * 16;

    copy_ends(out, in, p);
    if (threadIdx.x != 0)
        return;
    for (int k = 0; k < PIECES; k++)
        gm_bulk_begin(&come[k]);
    gm_bulk_visible();
    for (int k = 0; k < PIECES; k++)
        if (long long at = first + k * GM_COPY_PIECE; at < bytes)
            gm_bulk_load(piece[k], in + p.head + at, (int)min(bytes - at, (long long)GM_COPY_PIECE), &come[k]);
    for (int k = 0; k < PIECES; k++)
        if (long long at = first + k * GM_COPY_PIECE; at < bytes) {
            gm_bulk_wait(&come[k]);
            gm_bulk_store(out + p.head + at, piece[k], (int)min(bytes - at, (long long)GM_COPY_PIECE));
        }
    gm_bulk_stored();
}
