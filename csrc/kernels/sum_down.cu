/* Sums across the axis that is contiguous in memory, and of items that lie anywhere.
 *
 * Must read every byte once. A block has `across` threads beside one another and `along` above one another; each adds
 * up its own column or columns, the block adds up the threads above one another in shared memory, and the last of a
 * group's blocks what they all found.
 *
 *   down      the columns lie side by side: a thread reads up to four of them at once, four to sixteen rows under way
 *             Narrow dense matrices are folded: several rows are one long row, until the very end.
 *   general   any strides: a thread's item is where its index says
 */
#include "sum.cuh"

/* From the accumulators of a block, [along][width] in shared memory, to `width` sums in its first row. */
template <typename A> __device__ __forceinline__ void gm_sum_rows(A *room, int width, int along)
{
    __syncthreads();
    while (along > 1) {
        int half = (along + 1) / 2, lower = half * width, count = along * width - lower;
        for (int q = (int)threadIdx.x; q < count; q += (int)blockDim.x)
            room[q] += room[lower + q];
        __syncthreads();
        along = half;
    }
}

/* Makes `width` results, room[0 ...], out of all slices of a group; 0 in all slices but the one that has them. */
template <typename A>
__device__ __forceinline__ bool gm_sum_join(A *room, int width, const gm_sum &sum, unsigned int group,
                                            unsigned int slice)
{
    int threads = (int)blockDim.x, me = (int)threadIdx.x;
    long long row = (long long)sum.groups * width, first = (long long)group * width;

    if (sum.slices == 1)
        return true;
    for (int q = me; q < width; q += threads)
        gm_sum_share(sum.scratch, slice * row + first + q, room[q], sum.tag);
    if (slice + 1 < sum.slices)
        return false;
    __syncthreads();
    int strands = max(threads / width, 1), slices = (int)sum.slices;
    for (int i = me; i < strands * width; i += threads) {
        int strand = i / width, q = i - strand * width;
        int mine = strand < slices ? (slices - strand - 1) / strands + 1 : 0;
        room[i] = gm_sum_collect<A>(sum.scratch, strand * row + first + q, strands * row, mine, sum.tag);
    }
    gm_sum_rows(room, width, strands);
    return true;
}

/* Up to GM_SUM_WIDTH items that lie side by side and are loaded at once. */
template <class S, int WIDTH> struct alignas(sizeof(typename S::bits) * WIDTH) gm_sum_items {
    typename S::bits item[WIDTH];
};

/* And so many results, up to 16 bytes aligned. */
template <class S, int WIDTH>
struct alignas(sizeof(typename S::usual) * WIDTH < 16 ? sizeof(typename S::usual) * WIDTH : 16) gm_sum_results {
    typename S::usual item[WIDTH];
};

template <class S, int WIDTH>
__device__ __forceinline__ void sum_down(char *out, const char *in, const gm_sum &sum, const gm_sum_axes &axes)
{
    extern __shared__ __align__(128) unsigned char shared[];
    enum { ITEM = sizeof(typename S::bits), N = GM_SUM_ROWS(ITEM * WIDTH) };
    typedef typename S::acc acc;
    typedef gm_sum_items<S, WIDTH> items;
    unsigned int slice = blockIdx.x / sum.groups, group = blockIdx.x - slice * sum.groups;
    unsigned int outer = slice / sum.inner_slices, inner = slice - outer * sum.inner_slices;
    unsigned int result = group / sum.tiles, tile = group - result * sum.tiles;
    int b = (int)threadIdx.x / sum.across, u = (int)threadIdx.x - b * sum.across;
    int width = sum.across * WIDTH;
    long long left = (long long)tile * width, column = left + u * WIDTH;
    gm_place place = gm_sum_place(axes.axis, axes.kept, axes.wide, result);
    acc a[WIDTH], *room = (acc *)shared;

#pragma unroll
    for (int w = 0; w < WIDTH; w++)
        a[w] = gm_sum_zero<acc>();
    if (b < sum.along && column < sum.columns) {
        long long line = outer * sum.lines_each, last_line = min(line + sum.lines_each, sum.lines);
        long long begin = (long long)inner * sum.along + b, last = sum.inner, apart = sum.along * sum.inner_slices;
        long long hop = apart * sum.step;
        const char *base = in + place.src + (column + sum.head) * ITEM + begin * sum.step;

        for (; line < last_line; line++) {
            const char *from = base + gm_sum_place(axes.axis + axes.kept, axes.summed, axes.wide, line).src;
            long long i = begin;
            items v[N];

            for (; i + (N - 1) * apart < last; i += N * apart, from += N * hop) {
#pragma unroll
                for (int k = 0; k < N; k++)
                    v[k] = *(const items *)(from + k * hop);
#pragma unroll
                for (int k = 0; k < N; k++)
#pragma unroll
                    for (int w = 0; w < WIDTH; w++)
                        a[w] += S::value(v[k].item[w]);
            }
            if (i < last) {
#pragma unroll
                for (int k = 0; k < N - 1; k++)
                    if (i + k * apart < last)
                        v[k] = *(const items *)(from + k * hop);
#pragma unroll
                for (int k = 0; k < N - 1; k++)
                    if (i + k * apart < last)
#pragma unroll
                        for (int w = 0; w < WIDTH; w++)
                            a[w] += S::value(v[k].item[w]);
            }
        }
    }
    if (sum.dense && sum.along == 1 && sum.slices == 1) {
        gm_sum_results<S, WIDTH> made;
#pragma unroll
        for (int w = 0; w < WIDTH; w++)
            made.item[w] = S::result(a[w]);
        if (b == 0 && column < sum.columns)
            *(gm_sum_results<S, WIDTH> *)(out + place.dst + column * sum.result_step) = made;
        return;
    }
    if (b < sum.along)
#pragma unroll
        for (int w = 0; w < WIDTH; w++)
            room[b * width + u * WIDTH + w] = a[w];
    gm_sum_rows(room, width, sum.along);

    if (sum.folded) {
        /* What is left of the matrix before its first long row and behind the last. */
        const char *matrix = in + place.src, *rest = matrix + sum.head * ITEM + sum.inner * sum.step;
        long long columns = sum.columns;
        for (long long q = threadIdx.x; q < columns && slice == 0; q += blockDim.x) {
            if (q < sum.rest)
                room[q] += gm_sum_item<S>(rest + q * ITEM);
            if (q >= columns - sum.head)
                room[q] += gm_sum_item<S>(matrix + (q - columns + sum.head) * ITEM);
        }
        __syncthreads();
        /* Each column is in the row every `folded` places, turned by what came before it. */
        acc found = gm_sum_zero<acc>();
        if ((int)threadIdx.x < sum.folded) {
            int q = (int)(threadIdx.x + sum.folded - sum.head % sum.folded) % sum.folded;
            for (; q < columns; q += sum.folded)
                found += room[q];
        }
        __syncthreads();
        if ((int)threadIdx.x < sum.folded)
            room[threadIdx.x] = found;
        __syncthreads();
        width = sum.folded;
    }
    if (gm_sum_join(room, width, sum, group, slice))
        for (long long q = threadIdx.x; q < width && (sum.folded || left + q < sum.columns); q += blockDim.x)
            gm_sum_store<S>(out + place.dst + (left + q) * sum.result_step, sum, room[q]);
}

template <class S>
__device__ __forceinline__ void sum_general(char *out, const char *in, const gm_sum &sum, const gm_sum_axes &axes)
{
    extern __shared__ __align__(128) unsigned char shared[];
    enum { N = GM_SUM_IN_FLIGHT };
    typedef typename S::acc acc;
    unsigned int slice = blockIdx.x / sum.groups, group = blockIdx.x - slice * sum.groups;
    int me = (int)threadIdx.x;
    int b = sum.along_first ? me % sum.along : me / sum.across, u = sum.along_first ? me / sum.along : me % sum.across;
    long long result = (long long)group * sum.across + u;
    bool there = b < sum.along && u < sum.across && result < sum.columns;
    gm_place place = gm_sum_place(axes.axis, axes.kept, axes.wide, there ? result : 0);
    const gm_walk_axis *summed = axes.axis + axes.kept;
    acc a = gm_sum_zero<acc>(), *room = (acc *)shared;

    if (there) {
        long long i = (long long)slice * sum.along + b, last = sum.inner, apart = (long long)sum.along * sum.slices;
        const char *from = in + place.src;

        if (sum.bytewise)
            for (; i < last; i += apart)
                a += gm_sum_item_bytewise<S>(from + gm_sum_place(summed, axes.summed, axes.wide, i).src);
        else
            for (; i < last; i += N * apart) {
                typename S::bits item[N];
#pragma unroll
                for (int k = 0; k < N; k++)
                    if (long long j = i + k * apart; j < last)
                        item[k] =
                            *(const typename S::bits *)(from + gm_sum_place(summed, axes.summed, axes.wide, j).src);
#pragma unroll
                for (int k = 0; k < N; k++)
                    a += i + k * apart < last ? S::value(item[k]) : gm_sum_zero<acc>();
            }
    }
    if (b < sum.along && u < sum.across)
        room[b * sum.across + u] = a;
    gm_sum_rows(room, sum.across, sum.along);
    if (gm_sum_join(room, sum.across, sum, group, slice)) {
        result = (long long)group * sum.across + me;
        if (me < sum.across && result < sum.columns)
            gm_sum_store<S>(out + gm_sum_place(axes.axis, axes.kept, axes.wide, result).dst, sum, room[me]);
    }
}

#define GM_SUM_DOWN_KERNELS(type)                                                                                      \
    GM_SUM_KERNEL(sum_down, (sum_down<gm_sum_##type, (sizeof(gm_sum_##type::bits) > 4 ? 2 : GM_SUM_WIDTH)>), 4, type)  \
    GM_SUM_KERNEL(sum_down_one, (sum_down<gm_sum_##type, 1>), 4, type)                                                 \
    GM_SUM_KERNEL(sum_general, sum_general<gm_sum_##type>, 1, type)

GM_SUM_TYPES(GM_SUM_DOWN_KERNELS)
