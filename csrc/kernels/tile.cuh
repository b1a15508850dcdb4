/* The steps of the tile kernels. */
#pragma once
#include <limits.h>
#include "async.cuh"
#include "tile.h"
#include "vector.cuh"
#include "walk.cuh"

/* Which tile a block has, and what of it lies inside the array. */
typedef struct gm_tile_place {
    long long src, dst; /* bytes to the tile's first item */
    long long left;     /* indices from the tile's first to the end of `along` */
    int low, high;      /* local indices along that are there: [low, high), `ahead` is the tile's first */
    int columns;        /* indices across that are there */
} gm_tile_place;

/* Where a run starts in global memory and in the image. */
typedef struct __align__(16) gm_tile_run {
    long long dst;
    int image, there;
} gm_tile_run;

__device__ __forceinline__ unsigned int gm_tile_over(unsigned int n, const gm_tile_divisor &by)
{
    return gm_divide(n, by.magic, by.shift);
}

__device__ __forceinline__ gm_tile_place gm_tile_place_of(const gm_tile &p, unsigned int tile)
{
    gm_tile_place at = {0, 0, 0, 0, 0};
    unsigned int along = 0, across = 0;

    for (int k = 0; k < p.ngrid; k++) {
        const gm_tile_axis &axis = p.grid[k];
        unsigned int next = gm_divide(tile, axis.magic, axis.shift), index = tile - next * axis.len;
        at.src += index * axis.src;
        at.dst += index * axis.dst;
        if (k == p.along_grid)
            along = index;
        if (k == p.across_grid)
            across = index;
        tile = next;
    }
    at.left = p.along_len - (long long)along * p.along_step;
    at.low = along == 0 ? p.ahead : 0;
    at.high = p.ahead + (int)min(at.left, (long long)p.along_step);
    at.columns = (int)min(p.across_len - (long long)across * p.across_step, (long long)p.across_step);
    return at;
}

__device__ __forceinline__ const char *gm_tile_source(const char *in, const gm_tile &p, const gm_tile_place &at)
{
    return in + at.src - p.ahead * p.along_src;
}

/* The image is congruent to the source modulo 16. */
__device__ __forceinline__ int gm_tile_image(const char *src, const gm_tile &p)
{
    return p.image_start + (int)((unsigned long long)src & 15);
}

/* Where a row lies on both sides; false for rows beyond the array. AXES: as many as there are, 0 for any number. */
template <int AXES>
__device__ __forceinline__ bool gm_tile_row(const gm_tile &p, const gm_tile_place &at, unsigned int row, long long *src, int *image)
{
    int axes = AXES ? AXES : p.nrows_axes;
    bool there = true;

    *src = 0;
    *image = 0;
#pragma unroll
    for (int k = 0; k < axes; k++) {
        const gm_tile_axis &axis = p.rows[k];
        unsigned int next = 0, index = row;
        if (k + 1 < axes) { /* the last one is never divided by: it may be clipped */
            next = gm_divide(row, axis.magic, axis.shift);
            index = row - next * axis.len;
        }
        *src += (long long)axis.src * (int)index;
        *image += (int)index * axis.image;
        if (k == 0 && p.group_shift < 0)
            *image += (index >> p.skew_shift) << 4;
        if (AXES != 1)
            there = there && (k != p.rows_across || (int)index < at.columns);
        row = next;
    }
    return there;
}

/* Where the rows lie that the whole block is about to read, once for each: worth a barrier where there are many axes. */
__device__ __forceinline__ void gm_tile_list_rows(unsigned char *shared, const gm_tile &p, const gm_tile_place &at, unsigned int first, unsigned int rows)
{
    gm_tile_run *list = (gm_tile_run *)(shared + p.row_list);

    for (unsigned int row = first + threadIdx.x; row < rows; row += blockDim.x) {
        gm_tile_run made;
        made.there = gm_tile_row<0>(p, at, row, &made.dst, &made.image);
        list[row] = made;
    }
    __syncthreads();
}

/* The i-th vector of the rows from `first` on: where it comes from, and where it lies behind `image`. False if no item is
 * in it. */
template <int AXES>
__device__ __forceinline__ bool gm_tile_vector(const unsigned char *shared, const gm_tile &p, const gm_tile_place &at,
                                               unsigned int first, unsigned int i, int run, unsigned long long *from, int *place)
{
    unsigned int row = gm_tile_over(i, p.row_vectors);
    int vector = (int)(i - row * p.row_vectors.n) * 16;
    long long offset;
    bool there;

    if (AXES) {
        there = gm_tile_row<AXES>(p, at, row + first, &offset, place);
    } else {
        gm_tile_run found = ((const gm_tile_run *)(shared + p.row_list))[row + first];
        offset = found.dst;
        *place = found.image;
        there = found.there;
    }
    *from += offset;
    vector -= (int)(*from & 15);
    *from += vector;
    *place += vector;
    return there && vector < run;
}

template <int AXES>
__device__ __forceinline__ void gm_tile_load_rows(unsigned char *shared, const char *src, const gm_tile &p, const gm_tile_place &at,
                                                  unsigned int first, unsigned int rows, int low, int high)
{
    unsigned char *image = shared + gm_tile_image(src, p) + low;
    unsigned int work = (rows - first) * p.row_vectors.n;
    unsigned long long start = (unsigned long long)src + low;
    bool inside = (unsigned long long)src + p.reach_low >= p.src_begin && (unsigned long long)src + p.reach_high <= p.src_end;
    int run = high - low, place;

    if (inside) {
#pragma unroll 2
        for (unsigned int i = threadIdx.x; i < work; i += blockDim.x) {
            unsigned long long from = start;
            if (gm_tile_vector<AXES>(shared, p, at, first, i, run, &from, &place))
                gm_async_copy(image + place, (const void *)from);
        }
        return;
    }
#pragma unroll 1
    for (unsigned int i = threadIdx.x; i < work; i += blockDim.x) {
        unsigned long long from = start;
        if (!gm_tile_vector<AXES>(shared, p, at, first, i, run, &from, &place) || from + 16 <= p.src_begin)
            continue;
        if (from + 16 <= p.src_end)
            gm_async_copy(image + place, (const void *)from);
        else /* not as a copy of fewer bytes that fills up with zeros: tools take that for a read of all sixteen */
#pragma unroll 1
            for (int b = 0; from + b < p.src_end; b++)
                image[place + b] = *(const unsigned char *)(from + b);
    }
}

/* Has every vector of the source that holds an item of the tile brought to its place in the image. */
__device__ __forceinline__ void gm_tile_load(unsigned char *shared, const char *in, const gm_tile &p, const gm_tile_place &at)
{
    const char *src = gm_tile_source(in, p, at);
    int low = p.run_low, high = p.run_high;
    unsigned int first = 0, rows = p.rows_fixed;

    if (p.rows_along >= 0) {
        first = rows * at.low;
        rows *= at.high;
    }
    if (p.run_clipped) {
        int begin = p.run_clipped == 1 ? 0 : at.low, end = (p.run_clipped == 1 ? at.columns : at.high) - 1;
        low += p.run_src > 0 ? begin * p.run_src : end * p.run_src;
        high += p.run_src > 0 ? end * p.run_src : begin * p.run_src;
    }
    if (p.group_shift >= 0) {
        first = at.low >> p.group_shift;
        rows = (at.high + (1 << p.group_shift) - 1) >> p.group_shift;
    }
    if (p.nrows_axes <= 1)
        gm_tile_load_rows<1>(shared, src, p, at, first, rows, low, high);
    else if (p.nrows_axes == 2)
        gm_tile_load_rows<2>(shared, src, p, at, first, rows, low, high);
    else {
        gm_tile_list_rows(shared, p, at, first, rows);
        gm_tile_load_rows<0>(shared, src, p, at, first, rows, low, high);
    }
    gm_async_commit();
}

__device__ __forceinline__ unsigned int gm_tile_runs(const gm_tile &p, const gm_tile_place &at)
{
    return p.runs_fixed * (p.runs_clipped ? at.columns : 1);
}

/* Where each run starts on both sides, and where the units of a period lie in the image. */
template <int S, bool TABLE> __device__ __forceinline__ void gm_tile_tables(unsigned char *shared, const gm_tile &p, const gm_tile_place &at)
{
    gm_tile_run *table_of_runs = (gm_tile_run *)shared;
    int *table = (int *)(shared + p.table);
    unsigned int runs = gm_tile_runs(p, at);

    for (unsigned int run = threadIdx.x; run < runs; run += blockDim.x) {
        unsigned int n = run;
        gm_tile_run made = {0, 0, 0};
        for (int k = 0; k < p.nruns_axes; k++) {
            const gm_tile_axis &axis = p.runs[k];
            unsigned int next = 0, index = n;
            if (k + 1 < p.nruns_axes) {
                next = gm_divide(n, axis.magic, axis.shift);
                index = n - next * axis.len;
            }
            made.dst += index * axis.dst;
            made.image += (int)index * axis.image;
            n = next;
        }
        table_of_runs[run] = made;
    }
    for (unsigned int unit = threadIdx.x; TABLE && unit < p.period.n + 16 / S; unit += blockDim.x) {
        unsigned int periods = gm_tile_over(unit, p.period), n = unit - periods * p.period.n;
        int place = (int)periods * p.along_image;
        for (int k = 0; k < p.chain; k++) {
            const gm_tile_axis &axis = p.period_axis[k];
            unsigned int next = gm_divide(n, axis.magic, axis.shift), index = n - next * axis.len;
            place += (int)index * axis.image;
            if (k == 0)
                place += (index >> p.skew_shift) << 4;
            n = next;
        }
        table[unit + (unit >> 5)] = place; /* lanes read it 16 / S units apart: all banks */
    }
}

/* Where `N` units from `local` on lie in the image, relative to the run's place there; the one `turn` further on first. */
template <bool TABLE, int N>
__device__ __forceinline__ void gm_tile_order(int *place, const unsigned char *shared, const gm_tile &p, int local, int turn)
{
    const int *table = (const int *)(shared + p.table);
    unsigned int rest = (unsigned int)local;
    int base = 0;

    if (TABLE) {
        unsigned int periods = gm_tile_over(rest, p.period);
        rest -= periods * p.period.n;
        base = (int)periods * p.along_image;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        unsigned int unit = rest + ((i + turn) & (N - 1));
        if (TABLE)
            place[i] = base + table[unit + (unit >> 5)];
        else if (p.skew_shift == 31)
            place[i] = (int)unit * p.along_image;
        else
            place[i] = (int)unit * p.along_image + ((int)unit >> p.skew_shift << 4);
    }
}

/* Sixteen bytes from 16 / sizeof(T) places. */
template <typename T> __device__ __forceinline__ uint4 gm_tile_gather(const unsigned char *from, const int *place)
{
    constexpr int V = 16 / sizeof(T);
    union {
        unsigned int word[4];
        T item[V];
        uint4 all;
    } vector;

    if constexpr (sizeof(T) == 1) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            unsigned int a = from[place[4 * w]], b = from[place[4 * w + 1]];
            unsigned int c = from[place[4 * w + 2]], d = from[place[4 * w + 3]];
            vector.word[w] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
        }
    } else if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            unsigned int a = *(const T *)(from + place[2 * w]), b = *(const T *)(from + place[2 * w + 1]);
            vector.word[w] = __byte_perm(a, b, 0x5410);
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            vector.item[i] = *(const T *)(from + place[i]);
    }
    return vector.all;
}

/* The units of the tile's part of a run: [begin, end), of which it stores the vectors that start before `stop`. */
typedef struct gm_tile_bounds {
    int begin, end, stop;
} gm_tile_bounds;

/* Those of a vector's units that are in [begin, end), in words where there is a whole one. */
template <typename T> __device__ __forceinline__ void gm_tile_store_part(char *place, uint4 vector, int begin, int end)
{
    constexpr int S = sizeof(T), WORD = S < 4 ? 4 : S;
    const unsigned int word[4] = {vector.x, vector.y, vector.z, vector.w};

#pragma unroll
    for (int w = 0; w < 4; w++) {
        if (begin * S <= w * 4 && w * 4 + 4 <= end * S)
            *(unsigned int *)(place + 4 * w) = word[w];
        else if (WORD > S)
#pragma unroll
            for (int i = 0; i < WORD / S; i++)
                if (int unit = w * (WORD / S) + i; begin <= unit && unit < end)
                    *(T *)(place + unit * S) = (T)(word[w] >> (8 * S * i));
    }
}

/* The vector of units [unit, unit + V), of which the lane takes the one `turn` further on first: whole, but at the ends of a
 * run. */
template <typename T, bool TURNED>
__device__ __forceinline__ void gm_tile_store_vector(char *row, const unsigned char *from, const int *place, int unit, int turn, const gm_tile_bounds &bounds)
{
    constexpr int S = sizeof(T), V = 16 / S;
    uint4 vector = gm_tile_gather<T>(from, place);

    if (TURNED)
        vector = gm_later<S>(vector, turn * S);

    if (unit >= bounds.begin && unit + V <= bounds.end)
        *(uint4 *)(row + unit * S) = vector;
    else if constexpr (S < 16) {
        int begin = bounds.begin - unit, end = bounds.end - unit;
        asm volatile("" : "+r"(begin), "+r"(end)); /* or all that depends on them is found for every vector, whole or not */
        gm_tile_store_part<T>(row + unit * S, vector, begin, end);
    }
}

/* Every vector of the tile's part of the destination. A thread's vectors lie at one place of many runs, or whole periods
 * apart in one run, so that where their units lie in the image is found once. Where runs start at different places in a
 * vector, a thread's all start at the same one; only RAGGED runs cannot be dealt out so, and it is found for each. */
template <typename T, bool TABLE, bool RAGGED, bool TURNED>
__device__ __forceinline__ void gm_tile_store(const unsigned char *shared, char *out, const char *in, const gm_tile &p, const gm_tile_place &at)
{
    constexpr int S = sizeof(T), V = 16 / S;
    const gm_tile_run *table_of_runs = (const gm_tile_run *)shared;
    const unsigned char *image = shared + gm_tile_image(gm_tile_source(in, p, at), p);
    char *dst = out + at.dst;
    int period = TABLE ? (int)p.period.n : 1, ahead = p.ahead * period, place[V];
    int turn = TURNED ? (int)((threadIdx.x % 32 >> p.turn_shift) * p.turn_step) & (V - 1) : 0;
    bool last = at.left <= p.along_step;
    gm_tile_bounds bounds;

    bounds.begin = at.low == p.ahead ? 0 : -V; /* the first tile along has nothing before it */
    bounds.stop = last ? INT_MAX : p.along_step * period;
    bounds.end = last ? (int)at.left * period : bounds.stop;

    unsigned int runs = gm_tile_runs(p, at), rest = threadIdx.x >> p.lanes_shift, team = gm_tile_over(rest, p.vector_threads);
    int first = (int)(rest - team * p.vector_threads.n), step = (int)p.vector_threads.n;
    if (team >= p.teams)
        return;
    team = (team << p.lanes_shift) + (threadIdx.x & ((1u << p.lanes_shift) - 1));

    if (RAGGED) {
        for (unsigned int run = team; run < runs; run += p.teams << p.lanes_shift) {
            gm_tile_run found = table_of_runs[run];
            char *row = dst + found.dst;
            int unit = first * V - (int)((unsigned long long)row & 15) / S, steady = 0;
            for (int vector = first; vector < p.run_vectors && vector * V < bounds.stop && unit < bounds.end;
                 vector += step, unit += step * V, steady += p.steady_step) {
                if (vector == first || !p.steady)
                    gm_tile_order<TABLE, V>(place, shared, p, unit + ahead, turn);
                gm_tile_store_vector<T, TURNED>(row, image + found.image + steady, place, unit, turn, bounds);
            }
        }
        return;
    }
    if (team >= runs)
        return;
    int unit = first * V - (int)((unsigned long long)(dst + table_of_runs[team].dst) & 15) / S, steady = 0;
    for (int vector = first; vector < p.run_vectors && vector * V < bounds.stop && unit < bounds.end;
         vector += step, unit += step * V, steady += p.steady_step) {
        if (vector == first || !p.steady)
            gm_tile_order<TABLE, V>(place, shared, p, unit + ahead, turn);
        for (unsigned int run = team; run < runs; run += p.teams << p.lanes_shift) {
            gm_tile_run found = table_of_runs[run];
            gm_tile_store_vector<T, TURNED>(dst + found.dst, image + found.image + steady, place, unit, turn, bounds);
        }
    }
}
