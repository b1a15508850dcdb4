/* Records of few fields to planes, one for each field, and planes to records: (n, k) to (k, n), and back.
 *
 * Must move 2 * items * itemsize bytes. A block has some thousand records in shared memory, as they lie in global
 * memory: a lane gathers its 16 bytes of a plane there, or scatters them, item by item. The lanes of a warp have 512
 * bytes of one plane in a row, 16 * fields bytes of records apart, which is few banks; so lanes begin with different
 * items, such that all banks are in use (fields odd: quarters of a warp four bytes apart; even: eighths two bytes; a
 * multiple of four: sixteenths one byte), and turn the vector in registers. Planes are read and written in whole
 * aligned vectors, wherever each begins: the records before a block's own that complete its first line of 32 bytes are
 * read by two blocks.
 *
 * To planes, a block also has brought to the second-level cache what a block some 330 further on will read, 400 for items of
 * one and two bytes. Those gain 0.01 to 0.02 for any number of fields (26 fields of bytes 0.878 for 0.864, 20 0.918 for 0.904;
 * 660 further on 0 to 0.01, 990 -0.04 to -0.15) and 0.005 to 0.02 more by eight loads a thread, always eight warps and room
 * for four blocks; items of four and eight bytes 24 to 33 fields 0.92-0.95 for 0.90-0.92, 3, 5 and 13 fields 0.94-0.98 for
 * 0.925-0.965 (200 further on half of that).
 *
 * On an H200, in parts of cudaMemcpyAsync's speed, 512 MB each way, any number of fields up to 33: to planes 0.87-0.98
 * for bytes, 0.88-0.98 for items of two, 0.91-0.99 of four, 0.92-0.98 of eight bytes; to records 0.91-0.98, 0.94-0.98,
 * 0.94-0.98 and 0.94-0.98 (the tiles of tile.cu: bytes 0.67-0.96 to planes and 0.49-0.99 to records). To records it is
 * the loads under way that count: four for each thread instead of two are worth up to 0.06, six no more. What was
 * slower: 4 bytes left free after each lane's records instead of the turn (bytes 0.86 for 0.91: the loads' places cost
 * more than the turn); loads straight to shared memory (0.80-0.90 for 0.90-0.95 to planes); two rounds of loads where
 * one would do; sixteen warps (0.65-0.85); blocks of 27 to 38 KB to planes (0.82-0.88 for 0.87-0.92). Bytes to planes:
 * blocks in clusters of four or eight, each giving the next its last records, so that none is read twice (0.72-0.83 for
 * 0.87-0.90); planes in whole lines of 128 bytes (0.87-0.90: the same); blocks that stay, with bulk copies one to three
 * tiles ahead (0.67-0.87 for 0.86-0.90, also with fewer and larger tiles); four loads a thread and room for a sixth block
 * (26 fields 0.88 for 0.865, 24 and 25 +0.006, most others the same, 5, 10, 20, 27, 28, 33 fields -0.02 to -0.07).
 */
#include "async.cuh"
#include "matrix.cuh"
#include "planes.h"
#include "vector.cuh"

/* What a block has. */
typedef struct gm_planes_place {
    gm_place at;        /* of its batch */
    unsigned int first; /* its first record */
} gm_planes_place;

__device__ __forceinline__ gm_planes_place gm_planes_place_of(const gm_planes &p)
{
    unsigned int number = gm_divide(blockIdx.x, p.tiles.magic, p.tiles.shift);
    gm_planes_place place;

    place.first = (blockIdx.x - number * p.tiles.n) * p.tile;
    place.at = gm_matrix_place(p.batch, p.nbatch, number);
    return place;
}

/* How many bytes after its first a lane's vector begins in its order. */
__device__ __forceinline__ int gm_planes_begin(const gm_planes &p)
{
    return (int)(threadIdx.x % 32 >> p.lanes_shift << p.begin_shift);
}

/* Where the items of a vector lie, relative to the first, in the lane's order. */
template <typename T> __device__ __forceinline__ void gm_planes_order(int *place, int begin, int record)
{
    enum { S = sizeof(T), V = 16 / S };

#pragma unroll
    for (int i = 0; i < V; i++)
        place[i] = ((i * S + begin) & 15) / S * record;
}

template <typename T> __device__ __forceinline__ uint4 gm_planes_gather(const unsigned char *from, const int *place)
{
    uint4 made;
    unsigned int *word = &made.x;

#pragma unroll
    for (int w = 0; w < 4; w++)
        if constexpr (sizeof(T) == 1) {
            unsigned int a = from[place[4 * w]], b = from[place[4 * w + 1]];
            unsigned int c = from[place[4 * w + 2]], d = from[place[4 * w + 3]];
            word[w] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
        } else if constexpr (sizeof(T) == 2) {
            unsigned int a = *(const T *)(from + place[2 * w]), b = *(const T *)(from + place[2 * w + 1]);
            word[w] = __byte_perm(a, b, 0x5410);
        } else if constexpr (sizeof(T) == 4)
            word[w] = *(const unsigned int *)(from + place[w]);
        else if (w % 2 == 0)
            ((unsigned long long *)&made)[w / 2] = *(const unsigned long long *)(from + place[w / 2]);
    return made;
}

template <typename T>
__device__ __forceinline__ void gm_planes_scatter(unsigned char *to, const int *place, const uint4 &vector)
{
    enum { S = sizeof(T), V = 16 / S };
    const unsigned int *word = &vector.x;

#pragma unroll
    for (int i = 0; i < V; i++)
        if constexpr (S == 8)
            *(T *)(to + place[i]) = ((const T *)&vector)[i];
        else
            *(T *)(to + place[i]) = (T)(word[i * S / 4] >> (i * S % 4 * 8));
}

template <typename T>
__device__ void move_planes(char *__restrict__ out, const char *__restrict__ in, const gm_planes &p)
{
    enum { S = sizeof(T), V = 16 / S, LINE = GM_PLANES_LINE / S, LOADS = S <= 2 ? 8 : 6 };
    extern __shared__ __align__(128) unsigned char shared[];
    long long *planes = (long long *)shared;
    unsigned char *records = shared + GM_PLANES_TABLE(p.fields);
    gm_planes_place place = gm_planes_place_of(p);
    int thread = threadIdx.x, threads = blockDim.x, lane = thread % 32, fields = (int)p.fields, record = fields * S;

    /* The records: those of a line before the block's first, where there are any. */
    const char *source = in + place.at.src + ((long long)place.first - LINE) * record;
    int skip = (int)((unsigned long long)source & 15);
    source -= skip;
    int mine = (int)min(p.tile, p.records - min(p.records, place.first));
    int begin = place.first ? 0 : LINE * record / 16, end = (skip + (LINE + mine) * record + 15) / 16;
    if ((unsigned long long)source + end * 16ll <= p.src_end)
        for (int v = begin + thread; v < end; v += LOADS * threads) {
            uint4 vector[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (v + k * threads < end)
                    vector[k] = __ldg((const uint4 *)source + (v + k * threads));
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (v + k * threads < end)
                    *(uint4 *)(records + (v + k * threads) * 16) = vector[k];
        }
    else
        for (int b = begin * 16 + thread; b < end * 16 && (unsigned long long)source + b < p.src_end; b += threads)
            records[b] = (unsigned char)source[b];

    if (int bytes = (int)p.tile * record; p.further && thread == 0) {
        const char *later = source + LINE * record / 16 * 16 + (long long)p.further * bytes;
        if ((unsigned long long)later + bytes <= p.src_end)
            gm_async_prefetch(later, bytes);
    }
    char *target = out - ((unsigned long long)out & (GM_PLANES_LINE - 1));
    for (int field = thread; field < fields; field += threads)
        planes[field] = out - target + place.at.dst + (long long)place.first * S +
                        gm_matrix_place(p.field, p.nfield, (unsigned int)field).dst;
    __syncthreads();

    int tasks = fields << p.parts_shift, turn = gm_planes_begin(p), order[V];
    gm_planes_order<T>(order, turn, record);
    for (int task = thread / 32; task < tasks; task += threads / 32) {
        int field = task >> p.parts_shift, part = task - (field << p.parts_shift);
        long long at = planes[field];
        int line = (int)at & (GM_PLANES_LINE - 1), number = part * 32 * p.steps + lane; /* of the lane's vector */
        int before = number * V - line / S, row = (int)place.first + before;
        const unsigned char *from = records + (skip + field * S + (LINE + before) * record);
        char *to = target + (at - line + number * 16);

        for (int k = 0; k < p.steps; k++, row += 32 * V, from += 32 * V * record, to += 512)
            if ((unsigned int)row <= p.records - V)
                *(uint4 *)to = gm_later<S>(gm_planes_gather<T>(from, order), turn);
            else
#pragma unroll 1
                for (int i = max(-row, 0); i < V && row + i < (int)p.records; i++)
                    *(T *)(to + i * S) = *(const T *)(from + i * record);
    }
}

template <typename T>
__device__ void move_records(char *__restrict__ out, const char *__restrict__ in, const gm_planes &p)
{
    enum { S = sizeof(T), V = 16 / S, TASKS = 2 /* at a time */ };
    extern __shared__ __align__(128) unsigned char shared[];
    long long *planes = (long long *)shared;
    gm_planes_place place = gm_planes_place_of(p);
    int thread = threadIdx.x, threads = blockDim.x, lane = thread % 32, fields = (int)p.fields, record = fields * S;
    /* Before the records lies what precedes the block's first. */
    unsigned char *records = shared + GM_PLANES_TABLE(p.fields) + fields * 16;

    const char *source = in - ((unsigned long long)in & 15);
    for (int field = thread; field < fields; field += threads)
        planes[field] = in - source + place.at.src + (long long)place.first * S +
                        gm_matrix_place(p.field, p.nfield, (unsigned int)field).src;
    char *target = out + place.at.dst + (long long)place.first * record;
    int skip = (int)((unsigned long long)target & 15);
    target -= skip;
    int mine = (int)min(p.tile, p.records - place.first), tasks = fields << p.parts_shift;
    int turn = gm_planes_begin(p), order[V];
    gm_planes_order<T>(order, turn, record);
    __syncthreads();

    for (int first = thread / 32; first < tasks; first += TASKS * (threads / 32)) {
        const char *from[TASKS];
        unsigned char *to[TASKS];
        int left[TASKS]; /* bytes */
        uint4 vector[TASKS][GM_PLANES_STEPS] = {};
        bool inside = true;
#pragma unroll
        for (int j = 0; j < TASKS; j++) {
            int task = first + j * (threads / 32), field = task >> p.parts_shift,
                part = task - (field << p.parts_shift);
            long long at = planes[task < tasks ? field : 0];
            int before = (int)at & 15, number = part * 32 * p.steps + lane; /* of the lane's vector */
            from[j] = source + (at - before + number * 16);
            to[j] = records + (skip + field * S + (number * V - before / S) * record);
            left[j] = task < tasks ? mine * S + before - number * 16 : 0;
            inside = inside && (left[j] <= 0 || (unsigned long long)from[j] + (p.steps - 1) * 512 + 16 <= p.src_end);
        }
        if (inside) {
#pragma unroll
            for (int j = 0; j < TASKS; j++)
#pragma unroll
                for (int k = 0; k < GM_PLANES_STEPS; k++)
                    if (k < p.steps && left[j] > k * 512)
                        vector[j][k] = __ldg((const uint4 *)(from[j] + k * 512));
#pragma unroll
            for (int j = 0; j < TASKS; j++)
#pragma unroll
                for (int k = 0; k < GM_PLANES_STEPS; k++)
                    if (k < p.steps && left[j] > k * 512)
                        gm_planes_scatter<T>(to[j] + k * 32 * V * record, order, gm_earlier<S>(vector[j][k], turn));
        } else
#pragma unroll
            for (int j = 0; j < TASKS; j++)
#pragma unroll 1
                for (int k = 0; k < p.steps; k++, from[j] += 512, to[j] += 32 * V * record, left[j] -= 512)
#pragma unroll 1
                    for (int i = 0; i * S < left[j] && i < V && (unsigned long long)from[j] + i * S < p.src_end; i++)
                        *(T *)(to[j] + i * record) = *(const T *)(from[j] + i * S);
    }
    __syncthreads();

    int bytes = skip + mine * record;
    for (int v = thread; v * 16 < bytes; v += threads)
        if (v * 16 >= skip && v * 16 + 16 <= bytes)
            *(uint4 *)(target + v * 16) = *(const uint4 *)(records + v * 16);
        else
            for (int b = max(skip - v * 16, 0); b < min(bytes - v * 16, 16); b += S)
                *(T *)(target + v * 16 + b) = *(const T *)(records + v * 16 + b);
}

/* `blocks`: of them a multiprocessor should have room for; planes keep more vectors under way in registers. `few`: the
 * same for items of one and two bytes. */
#define GM_KERNEL(name, blocks, size, type)                                                                            \
    extern "C" __global__ void __launch_bounds__(GM_PLANES_WARPS * 32, blocks)                                         \
        name##_##size(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_planes planes)   \
    {                                                                                                                  \
        name<type>(out, in, planes);                                                                                   \
    }
#define GM_KERNELS(name, few, blocks)                                                                                  \
    GM_KERNEL(name, few, 1, unsigned char)                                                                             \
    GM_KERNEL(name, few, 2, unsigned short)                                                                            \
    GM_KERNEL(name, blocks, 4, unsigned int)                                                                           \
    GM_KERNEL(name, blocks, 8, unsigned long long)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 /* of these threads no more fit there */
GM_KERNELS(move_planes, 4, 4)
GM_KERNELS(move_records, 4, 4)
#else
GM_KERNELS(move_planes, 4, 5)
GM_KERNELS(move_records, 6, 6)
#endif
#undef GM_KERNELS
#undef GM_KERNEL
