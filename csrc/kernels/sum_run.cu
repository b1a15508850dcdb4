/* Sums along the axis that is contiguous in memory.
 *
 * Must read every byte once. Lines are read in aligned 16-byte vectors, several under way for each thread; what lies
 * before the first and behind the last is read item by item, a lane each. Limited by memory; float64 additions and the
 * conversions to it (16 a cycle on an H200's multiprocessor) take a third of the time.
 *
 *   flat    one sum of one line, over any number of blocks: nothing to look up
 *   run     a sum to a block or to several, of one line or of many
 *   lanes   lines of up to 128 vectors: one or more to a warp, four loads of a lane under way across lines
 */
#include "sum.cuh"

template <bool ONCE> __device__ __forceinline__ uint4 gm_sum_load(const uint4 *from)
{
#ifdef __CUDA_ARCH__
    if (ONCE) {
        uint4 v;
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(__cvta_generic_to_global(from)));
        return v;
    }
#endif
    return __ldg(from);
}

template <class S> __device__ __forceinline__ uint4 gm_sum_nothing()
{
    return make_uint4(S::nothing(0), S::nothing(1), S::nothing(0), S::nothing(1));
}

/* Adds a line's vectors from the lane-th on, `lanes` apart, and the items before and behind the whole vectors. */
template <class S, bool ONCE>
__device__ __forceinline__ void gm_sum_line(typename S::acc *a, const char *line, long long bytes, int lane, int lanes)
{
    enum { N = GM_SUM_IN_FLIGHT, ITEM = sizeof(typename S::bits) };
    int head = (int)(-(unsigned long long)line & 15);
    long long last = (bytes - head) >> 4, i = lane;
    const uint4 *from = (const uint4 *)(line + head) + lane;

    for (; i + (N - 1ll) * lanes < last; i += (long long)N * lanes, from += (long long)N * lanes) {
        uint4 v[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = gm_sum_load<ONCE>(from + (long long)k * lanes);
#pragma unroll
        for (int k = 0; k < N; k++)
            *a += S::vector(v[k]);
    }
    if (i < last) {
        uint4 v[N - 1];
#pragma unroll
        for (int k = 0; k < N - 1; k++) {
            v[k] = gm_sum_nothing<S>();
            if (i + (long long)k * lanes < last)
                v[k] = gm_sum_load<ONCE>(from + (long long)k * lanes);
        }
#pragma unroll
        for (int k = 0; k < N - 1; k++)
            *a += S::vector(v[k]);
    }
    if (lane >= 32)
        return;
    int others = min(lanes, 32);
    for (long long k = lane * ITEM; k < min((long long)head, bytes); k += others * ITEM)
        *a += gm_sum_item<S>(line + k);
    for (long long k = max(head + 16 * last, 0ll) + lane * ITEM; last >= 0 && k < bytes; k += others * ITEM)
        *a += gm_sum_item<S>(line + k);
}

/* Adds the i-th chunk of a line; chunks begin with whole vectors. */
template <class S, bool ONCE>
__device__ __forceinline__ void gm_sum_chunk(typename S::acc *a, const char *line, const gm_sum &sum, unsigned int i,
                                             int lane, int lanes)
{
    long long begin = i * sum.chunk - (long long)((unsigned long long)line & 15), end = begin + sum.chunk;

    begin = max(begin, 0ll);
    end = min(end, sum.bytes);
    if (begin < end)
        gm_sum_line<S, ONCE>(a, line + begin, end - begin, lane, lanes);
}

template <class S, bool ONCE> __device__ __forceinline__ void sum_flat(char *out, const char *in, const gm_sum &sum)
{
    extern __shared__ __align__(128) unsigned char shared[];
    typename S::acc a = gm_sum_zero<typename S::acc>(), *room = (typename S::acc *)shared;

    if (sum.chunk)
        gm_sum_chunk<S, ONCE>(&a, in, sum, blockIdx.x, (int)threadIdx.x, (int)blockDim.x);
    else
        gm_sum_line<S, ONCE>(&a, in, sum.bytes, (int)(blockIdx.x * blockDim.x + threadIdx.x),
                             (int)(gridDim.x * blockDim.x));
    gm_sum_finish<S>(out, gm_sum_block(a, room), room, sum, 0, blockIdx.x);
}

template <class S>
__device__ __forceinline__ void sum_run(char *out, const char *in, const gm_sum &sum, const gm_sum_axes &axes)
{
    extern __shared__ __align__(128) unsigned char shared[];
    typename S::acc a = gm_sum_zero<typename S::acc>(), *room = (typename S::acc *)shared;
    unsigned int slice = blockIdx.x / sum.groups, group = blockIdx.x - slice * sum.groups;
    unsigned int outer = slice / sum.inner_slices, inner = slice - outer * sum.inner_slices;
    int lanes = 1 << sum.team_shift, lane = (int)threadIdx.x & (lanes - 1), teams = (int)blockDim.x >> sum.team_shift;
    gm_place place = gm_sum_place(axes.axis, axes.kept, axes.wide, group);
    long long line = outer * sum.lines_each, last = min(line + sum.lines_each, sum.lines);

    for (line += threadIdx.x >> sum.team_shift; line < last; line += teams) {
        gm_place at = gm_sum_place(axes.axis + axes.kept, axes.summed, axes.wide, line);
        gm_sum_chunk<S, false>(&a, in + place.src + at.src, sum, inner, lane, lanes);
    }
    gm_sum_finish<S>(out + place.dst, gm_sum_block(a, room), room, sum, group, slice);
}

/* Bytes [begin, end) of a vector, and nothing in place of the others. */
template <class S> __device__ __forceinline__ uint4 gm_sum_masked(uint4 v, int begin, int end)
{
    unsigned int *word = &v.x;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int from = min(max(begin - 4 * k, 0), 4) * 8, to = min(max(end - 4 * k, 0), 4) * 8;
        unsigned int mask = (unsigned int)((1ull << to) - (1ull << from));
        word[k] = (word[k] & mask) | (S::nothing(k) & ~mask);
    }
    return v;
}

/* PER vectors of a line to a lane. EVEN: every line is whole vectors. */
template <class S, int PER, bool EVEN>
__device__ __forceinline__ void sum_lanes(char *out, const char *in, const gm_sum &sum, const gm_sum_axes &axes)
{
    enum { LINES = GM_SUM_IN_FLIGHT / PER, ITEM = sizeof(typename S::bits) };
    int lanes = 1 << sum.team_shift, lane = (int)threadIdx.x & (lanes - 1), teams = (int)blockDim.x >> sum.team_shift;
    long long first = (long long)blockIdx.x * teams * LINES + (threadIdx.x >> sum.team_shift);
    gm_place place[LINES];
    uint4 v[LINES][PER];
    bool left = false;

#pragma unroll
    for (int k = 0; k < LINES; k++) {
        long long i = first + k * teams;
        bool there = i < sum.columns;
        place[k] = gm_sum_place(axes.axis, axes.kept, axes.wide, there ? i : 0);
        const char *line = in + place[k].src;
        int head = EVEN ? 0 : (int)((unsigned long long)line & 15);
#pragma unroll
        for (int j = 0; j < PER; j++) {
            int from = (lane + j * lanes) * 16 - head; /* bytes from the line's start to the vector's */
            unsigned long long at = (unsigned long long)(line + from);
            bool some = there && from < (int)sum.bytes;
            bool whole = EVEN || (at >= sum.src_begin && at + 16 <= sum.src_end);
            v[k][j] = gm_sum_nothing<S>();
            if (some && whole)
                v[k][j] = __ldg((const uint4 *)at);
            left |= some && !whole;
        }
    }
#pragma unroll
    for (int k = 0; k < LINES; k++) {
        const char *line = in + place[k].src;
        int head = EVEN ? 0 : (int)((unsigned long long)line & 15), bytes = (int)sum.bytes;
        typename S::acc a = gm_sum_zero<typename S::acc>();
#pragma unroll
        for (int j = 0; j < PER; j++) {
            int from = (lane + j * lanes) * 16 - head;
            if (!EVEN && (from < 0 || from + 16 > bytes))
                v[k][j] = gm_sum_masked<S>(v[k][j], max(-from, 0), max(min(bytes - from, 16), 0));
            a += S::vector(v[k][j]);
        }
        /* A vector that reaches beyond the array: at its very start and end. */
        if (!EVEN && left && first + k * teams < sum.columns)
            for (int j = 0; j < PER; j++) {
                int from = (lane + j * lanes) * 16 - head;
                unsigned long long at = (unsigned long long)(line + from);
                if (at < sum.src_begin || at + 16 > sum.src_end)
                    for (int b = max(from, 0); b < min(from + 16, bytes); b += ITEM)
                        a += gm_sum_item<S>(line + b);
            }
        a = gm_sum_lanes(a, lanes);
        if (lane == 0 && first + k * teams < sum.columns)
            gm_sum_store<S>(out + place[k].dst, sum, a);
    }
}

/* Short lines one behind the other, of any length: a block's share goes to shared memory in aligned vectors, and comes
 * back line by line. */
template <class S> __device__ __forceinline__ void sum_packed(char *out, const char *in, const gm_sum &sum)
{
    extern __shared__ __align__(128) unsigned char shared[];
    enum { N = GM_SUM_PACKED / GM_SUM_THREADS / 16, ITEM = sizeof(typename S::bits) };
    int lanes = 1 << sum.team_shift, lane = (int)threadIdx.x & (lanes - 1), team = (int)threadIdx.x >> sum.team_shift;
    int teams = GM_SUM_THREADS >> sum.team_shift, bytes = (int)sum.bytes;
    long long first = (long long)blockIdx.x * sum.share;
    int lines = (int)min((long long)sum.share, sum.columns - first), share = lines * bytes;
    const char *start = in + first * bytes;
    int head = (int)((unsigned long long)start & 15);
    unsigned long long from = (unsigned long long)start - head, end = (unsigned long long)start + share;
    uint4 v[N + 1];

#pragma unroll
    for (int k = 0; k <= N; k++) {
        unsigned long long at = from + (threadIdx.x + k * GM_SUM_THREADS) * 16ull;
        if (at < end && at >= sum.src_begin && at + 16 <= sum.src_end)
            v[k] = __ldg((const uint4 *)at);
    }
#pragma unroll
    for (int k = 0; k <= N; k++) {
        unsigned int place = (threadIdx.x + k * GM_SUM_THREADS) * 16;
        unsigned long long at = from + place;
        if (at < end && at >= sum.src_begin && at + 16 <= sum.src_end)
            *(uint4 *)(shared + place) = v[k];
        else if (at < end)
            for (int b = 0; b < 16; b++)
                if (at + b >= sum.src_begin && at + b < sum.src_end)
                    shared[place + b] = *(const unsigned char *)(at + b);
    }
    __syncthreads();
    /* All teams go the same number of times: lanes of a warp add up together. */
    for (int line = team; line - team < lines; line += teams) {
        typename S::acc a = gm_sum_zero<typename S::acc>();
        if (line < lines)
            for (int b = lane * ITEM; b < bytes; b += lanes * ITEM)
                a += gm_sum_item<S>((const char *)shared + head + line * bytes + b);
        a = gm_sum_lanes(a, lanes);
        if (lane == 0 && line < lines)
            gm_sum_store<S>(out + (first + line) * sum.result_step, sum, a);
    }
}

#define GM_SUM_FLAT_KERNEL(name, call, threads, type)                                                                  \
    extern "C" __global__ void __launch_bounds__(threads)                                                              \
        name##_##type(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_sum sum)         \
    {                                                                                                                  \
        call(out, in, sum);                                                                                            \
    }
#define GM_SUM_RUN_KERNELS(type)                                                                                       \
    GM_SUM_FLAT_KERNEL(sum_flat, (sum_flat<gm_sum_##type, false>), 512, type)                                          \
    GM_SUM_FLAT_KERNEL(sum_flat_once, (sum_flat<gm_sum_##type, true>), 512, type)                                      \
    GM_SUM_FLAT_KERNEL(sum_packed, sum_packed<gm_sum_##type>, GM_SUM_THREADS, type)                                    \
    GM_SUM_KERNEL(sum_run, sum_run<gm_sum_##type>, 4, type)                                                            \
    GM_SUM_KERNEL(sum_lanes_1, (sum_lanes<gm_sum_##type, 1, false>), 1, type)                                          \
    GM_SUM_KERNEL(sum_lanes_4, (sum_lanes<gm_sum_##type, 4, false>), 1, type)                                          \
    GM_SUM_KERNEL(sum_lanes_even_1, (sum_lanes<gm_sum_##type, 1, true>), 1, type)                                      \
    GM_SUM_KERNEL(sum_lanes_even_4, (sum_lanes<gm_sum_##type, 4, true>), 1, type)

GM_SUM_TYPES(GM_SUM_RUN_KERNELS)
