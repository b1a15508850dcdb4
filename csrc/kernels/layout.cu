/* Layout: records of k fields of equal size, one record after the other (AoS: (n, k)) or one field's plane after the
 * other (SoA: (k, n)).
 *
 * Must move 2 * n * sizeof(T) bytes to take one field out, 2 * n * k * sizeof(T) to convert. Limited by the sectors that
 * a warp touches: among records a field's neighbour is k items away.
 * Counts beside a stage are per warp instruction for records of four 4-byte fields, aligned arrays.
 */
#include "access.cuh"
#include "layout.h"

/* A record that one access moves, and its fields. */
template <typename T, typename V> union gm_record {
    V whole;
    T field[sizeof(V) / sizeof(T)];
};

/* aos_field: plane[i] = records[i][field]. Load 16 sectors, store 4: a quarter of what is fetched is used. */
template <typename T> __device__ void layout_aos_field(T *__restrict__ out, const T *__restrict__ in, const gm_layout &p)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < p.n)
        out[i] = in[i * p.fields + p.field];
}

/* soa_field: plane[i] = planes[field][i]. Load 4 sectors, store 4. */
template <typename T> __device__ void layout_soa_field(T *__restrict__ out, const T *__restrict__ in, const gm_layout &p)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < p.n)
        out[i] = in[p.field * p.n + i];
}

/* aos_fields: planes[f][i] = records[i][f]. Four loads of 16 sectors, the same 16: all but the first find them in the
 * first-level cache, as long as they stay there, which they do on an H200 for records up to 32 bytes at least. Stores
 * of 4. */
template <typename T> __device__ void layout_aos_fields(T *__restrict__ out, const T *__restrict__ in, const gm_layout &p)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < p.n)
#pragma unroll 4
        for (int f = 0; f < p.fields; f++)
            out[f * p.n + i] = in[i * p.fields + f];
}

/* soa_fields, the way back: records[i][f] = planes[f][i]. Loads of 4 sectors; four stores of the same 16, which the
 * second-level cache has to put together: on an H200 1.4 times as long as in one store, 3 times for eight fields. */
template <typename T> __device__ void layout_soa_fields(T *__restrict__ out, const T *__restrict__ in, const gm_layout &p)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < p.n)
#pragma unroll 4
        for (int f = 0; f < p.fields; f++)
            out[i * p.fields + f] = in[f * p.n + i];
}

/* aos_vector: the record as one value, a float4 say. One load of 16 sectors; stores of 4. `V` is as large as a record. */
template <typename T, typename V> __device__ void layout_aos_vector(T *__restrict__ out, const V *__restrict__ in, const gm_layout &p)
{
    enum { FIELDS = sizeof(V) / sizeof(T) };
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= p.n)
        return;
    gm_record<T, V> record = {in[i]};
#pragma unroll
    for (int f = 0; f < FIELDS; f++)
        out[f * p.n + i] = record.field[f];
}

/* soa_vector, the way back: loads of 4 sectors; one store of 16. */
template <typename T, typename V> __device__ void layout_soa_vector(V *__restrict__ out, const T *__restrict__ in, const gm_layout &p)
{
    enum { FIELDS = sizeof(V) / sizeof(T) };
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    gm_record<T, V> record;

    if (i >= p.n)
        return;
#pragma unroll
    for (int f = 0; f < FIELDS; f++)
        record.field[f] = in[f * p.n + i];
    out[i] = record.whole;
}

/* Where item i of a block's records lies in shared memory: one word more in every 128 bytes puts the same field of
 * neighbouring records, k items apart, on banks of their own where k is a power of two. */
template <typename T> __device__ __forceinline__ int layout_place(int i)
{
    enum { LINE = 128 / sizeof(T), PAD = sizeof(T) < 4 ? 4 / sizeof(T) : 1 };
    return i + i / LINE * PAD;
}

/* aos_staged: planes[f][i] = records[i][f]. The block's records come in as they lie, in loads of 4 sectors, are turned in
 * shared memory (1 wavefront a load), and leave in stores of 4. */
template <typename T> __device__ void layout_aos_staged(T *__restrict__ out, const T *__restrict__ in, const gm_layout &p)
{
    enum { PIECES = 4 }; /* loads that a thread has under way before it stores the first */
    extern __shared__ __align__(128) unsigned char shared[];
    T *tile = (T *)shared, piece[PIECES];
    long long first = (long long)blockIdx.x * p.records;
    int count = (int)min(p.n - first, (long long)p.records);

    for (int i = threadIdx.x; i < count * p.fields; i += PIECES * blockDim.x) {
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            if (int j = i + k * blockDim.x; j < count * p.fields)
                piece[k] = in[first * p.fields + j];
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            if (int j = i + k * blockDim.x; j < count * p.fields)
                gm_put(&tile[layout_place<T>(j)], piece[k]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < p.records * p.fields; i += blockDim.x) {
        int f = i >> p.log2_records, r = i & (p.records - 1);
        if (r < count)
            out[f * p.n + first + r] = gm_get(&tile[layout_place<T>(r * p.fields + f)]);
    }
}

/* soa_staged, the way back: records[i][f] = planes[f][i]. Loads and stores of 4 sectors, 1 wavefront a shared store. */
template <typename T> __device__ void layout_soa_staged(T *__restrict__ out, const T *__restrict__ in, const gm_layout &p)
{
    enum { PIECES = 4 }; /* loads that a thread has under way before it stores the first */
    extern __shared__ __align__(128) unsigned char shared[];
    T *tile = (T *)shared, piece[PIECES];
    long long first = (long long)blockIdx.x * p.records;
    int count = (int)min(p.n - first, (long long)p.records);

    for (int i = threadIdx.x; i < p.records * p.fields; i += PIECES * blockDim.x) {
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            int j = i + k * blockDim.x, f = j >> p.log2_records, r = j & (p.records - 1);
            if (f < p.fields && r < count)
                piece[k] = in[f * p.n + first + r];
        }
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            int j = i + k * blockDim.x, f = j >> p.log2_records, r = j & (p.records - 1);
            if (f < p.fields && r < count)
                gm_put(&tile[layout_place<T>(r * p.fields + f)], piece[k]);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count * p.fields; i += blockDim.x)
        out[first * p.fields + i] = gm_get(&tile[layout_place<T>(i)]);
}

#define GM_KERNEL(name, size, type)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) name##_##size(type *__restrict__ out, const type *__restrict__ in, const __grid_constant__ gm_layout p) \
    {                                                                                                                  \
        name<type>(out, in, p);                                                                                        \
    }
#define GM_KERNELS(size, type)                \
    GM_KERNEL(layout_aos_field, size, type)   \
    GM_KERNEL(layout_soa_field, size, type)         \
    GM_KERNEL(layout_aos_fields, size, type)  \
    GM_KERNEL(layout_soa_fields, size, type)  \
    GM_KERNEL(layout_aos_staged, size, type)  \
    GM_KERNEL(layout_soa_staged, size, type)

GM_KERNELS(1, unsigned char)
GM_KERNELS(2, unsigned short)
GM_KERNELS(4, unsigned int)
GM_KERNELS(8, unsigned long long)
GM_KERNELS(16, uint4)

/* By the size of a field and how many a record has. */
#define GM_VECTOR(size, fields, type, record)                                                                          \
    extern "C" __global__ void __launch_bounds__(256) layout_aos_vector_##size##x##fields(type *__restrict__ out, const record *__restrict__ in, const __grid_constant__ gm_layout p) \
    {                                                                                                                  \
        layout_aos_vector<type>(out, in, p);                                                                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) layout_soa_vector_##size##x##fields(record *__restrict__ out, const type *__restrict__ in, const __grid_constant__ gm_layout p) \
    {                                                                                                                  \
        layout_soa_vector<type>(out, in, p);                                                                           \
    }

GM_VECTOR(1, 1, unsigned char, unsigned char)
GM_VECTOR(2, 1, unsigned short, unsigned short)
GM_VECTOR(4, 1, unsigned int, unsigned int)
GM_VECTOR(8, 1, unsigned long long, unsigned long long)
GM_VECTOR(16, 1, uint4, uint4)
GM_VECTOR(1, 2, unsigned char, unsigned short)
GM_VECTOR(1, 4, unsigned char, unsigned int)
GM_VECTOR(1, 8, unsigned char, unsigned long long)
GM_VECTOR(1, 16, unsigned char, uint4)
GM_VECTOR(2, 2, unsigned short, unsigned int)
GM_VECTOR(2, 4, unsigned short, unsigned long long)
GM_VECTOR(2, 8, unsigned short, uint4)
GM_VECTOR(4, 2, unsigned int, unsigned long long)
GM_VECTOR(4, 4, unsigned int, uint4)
GM_VECTOR(8, 2, unsigned long long, uint4)
