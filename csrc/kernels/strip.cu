/* Transposes matrices whose rows begin anywhere, strip by strip: no line of the source is read twice within a strip.
 *
 * Must move 2 * items * itemsize bytes. A block walks along some rows of the source, a line of 128 bytes of each at a
 * step. Every row is read in its own whole lines, wherever those begin, and stays in shared memory for two steps: what
 * a step leaves of a line is the next one's beginning. Columns of the destination are written in whole sectors of 32
 * bytes, for which the rows that complete a strip's first sector are read by two blocks, as in matrix.cu.
 *
 * A vector of the destination is gathered item by item, straight from the rows: each column starts elsewhere in its
 * vectors, so that words of two columns would not do. Free of bank conflicts: a row's place is congruent to its address
 * modulo 128, so that eight lanes, whose rows are a vector's items apart, find eight different 16-byte places if the
 * pitch is an odd number of items; the other eighths of a warp begin with other words of the vector, and turn it in
 * registers. Where the pitch is even, places move on by 16 bytes every vector's items of rows, and the quarters have
 * columns a word apart instead.
 *
 * Limited by memory and by the traffic between the halves of an H200's second-level cache, as matrix.cu is. In parts of
 * cudaMemcpyAsync's speed, that kernel's in the same run in brackets: 16383 x 16385 items of 2 bytes 0.933 (0.896),
 * 11519 x 11521 of 4 0.947 (0.926), 8191 x 8193 of 8 0.950 (0.940), bytes 0.864 (0.868), which stay there. A strip
 * is short: neighbours that drift apart open memory's rows anew (2 bytes: 3, 4, 5, 6, 16 steps 0.923, 0.933, 0.91,
 * 0.90, 0.83), and lines that come alone do too, so that the first half of 256 bytes asks the second-level cache for
 * both (0.90 without; if the hint stands in every load, memory reads 15 % more, 0.925). Lost: two lines in shared
 * memory, 0.83, or two of 256 bytes, 0.88; lines of 64 bytes, 0.81; 256 and 512 rows with two lines, 0.83 and 0.72, 192
 * rows 0.915; blocks that go along the source, 0.02-0.05; a strip brought to the second-level cache as a whole some
 * blocks before, 0.86-0.88.
 */
#include "async.cuh"
#include "matrix.cuh"
#include "strip.h"
#include "vector.cuh"

template <typename T, int ROWS, int THREADS> struct gm_strip_shape {
    enum {
        S = sizeof(T),
        V = 16 / S, /* items of a vector */
        AHEAD = GM_STRIP_SECTOR / S,
        READ = ROWS + AHEAD,
        LINE = GM_STRIP_LINE,
        STEP = LINE / S, /* columns */
        RING = GM_STRIP_RING,
        WIDTH = RING * LINE, /* bytes of a row in shared memory */
        CHUNKS = LINE / 16,  /* vectors of a line */
        GROUPS = THREADS / CHUNKS,
        LOADS = (READ + GROUPS - 1) / GROUPS,
        EIGHTS = ROWS / V / 8,    /* eight vectors each, of a column */
        PART = S < 4 ? 4 / S : 1, /* items of a word; at least one */
        PARTS = V / PART,
        ALONG = EIGHTS % 4 == 0 ? 4 : EIGHTS % 2 == 0 ? 2 : 1, /* quarters of a warp that have the same column */
        WARPS = THREADS / 32,
        UNITS = EIGHTS * STEP / 4 /* a warp's vectors at a time */
    };
};

/* Bytes [begin, end) of a vector, item by item: the ends of a column. */
template <typename T>
__device__ __forceinline__ void gm_strip_store_part(char *to, const uint4 &vector, int begin, int end)
{
    enum { S = sizeof(T) };

#pragma unroll
    for (int i = 0; i < 16; i += S)
        if (begin <= i && i < end)
            *(T *)(to + i) = ((const T *)&vector)[i / S];
}

/* How far a row's place is moved on. */
template <typename T, bool EVEN> __device__ __forceinline__ int gm_strip_moved(int row)
{
    return EVEN ? (row * (int)sizeof(T)) & ~15 : 0;
}

template <typename T, int ROWS, int THREADS, bool EVEN>
__device__ __forceinline__ void move_strip(char *__restrict__ out, const char *__restrict__ in, const gm_strip &p)
{
    typedef gm_strip_shape<T, ROWS, THREADS> shape;
    enum { S = shape::S, V = shape::V, AHEAD = shape::AHEAD, READ = shape::READ, LINE = shape::LINE };
    enum { STEP = shape::STEP, RING = shape::RING, WIDTH = shape::WIDTH, CHUNKS = shape::CHUNKS };
    enum { GROUPS = shape::GROUPS, LOADS = shape::LOADS, EIGHTS = shape::EIGHTS, PART = shape::PART };
    enum { PARTS = shape::PARTS, ALONG = shape::ALONG, WARPS = shape::WARPS, UNITS = shape::UNITS };
    static_assert(ROWS <= THREADS && ROWS % (8 * V) == 0 && THREADS % 32 == 0,
                  "eight vectors of a column to eight lanes");
    extern __shared__ __align__(128) unsigned char shared[];
    int thread = threadIdx.x, lane = thread % 32, quarter = lane / 8;

    /* Block after block goes down the source's columns: neighbours write the same parts of the destination. */
    unsigned int rest = gm_divide(blockIdx.x, p.row_tiles.magic, p.row_tiles.shift),
                 number = gm_divide(rest, p.strips.magic, p.strips.shift);
    unsigned int first_row = (blockIdx.x - rest * p.row_tiles.n) * ROWS,
                 first_column = (rest - number * p.strips.n) * (p.steps * STEP);
    gm_place at = gm_matrix_place(p.batch, p.nbatch, number);
    int columns = (int)min(p.columns - first_column, (unsigned int)(p.steps * STEP)), ahead = first_row ? AHEAD : 0;
    const char *first = in + at.src + ((long long)first_row - AHEAD) * p.src_pitch + (long long)first_column * S;
    char *target = out + at.dst + (long long)first_column * p.dst_pitch + (long long)first_row * S;

    /* A thread has the same place in the same rows' lines at each step: so many bytes after the row's first item. */
    int chunk = thread % CHUNKS, group = thread / CHUNKS, after[LOADS];
    const char *begin = first + group * p.src_pitch;
    bool near = (unsigned long long)first + max(0ll, (READ - 1) * p.src_pitch) + columns * S + 16 > p.src_end;
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        int row = group + k * GROUPS, skip = (int)(unsigned long long)(begin + k * (GROUPS * p.src_pitch)) & (LINE - 1);
        bool there = row >= AHEAD - ahead && row < READ && (long long)first_row + row - AHEAD < p.rows;
        after[k] = there ? chunk * 16 - skip : 1 << 30;
    }
    auto load = [&](int line) {
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            int row = group + k * GROUPS, here = after[k] + line * LINE;
            const char *from = begin + k * (GROUPS * p.src_pitch) + here;
            if (here <= -16 || here >= columns * S)
                continue;
            int place = ((int)(unsigned long long)from + gm_strip_moved<T, EVEN>(row)) & (WIDTH - 1);
            unsigned char *to = shared + row * WIDTH + place;
            if (near && (unsigned long long)from + 16 > p.src_end)
                for (int i = 0; (unsigned long long)from + i < p.src_end; i++)
                    to[i] = (unsigned char)from[i];
            else if (((unsigned long long)from & LINE) == 0 && here - chunk * 16 + LINE < columns * S)
                gm_async_copy_wide(to, from); /* the next line is the other half of 256 bytes */
            else
                gm_async_copy(to, from);
        }
        gm_async_commit();
    };
#pragma unroll
    for (int line = 0; line < RING - 1; line++)
        load(line);

    int turn = EVEN ? 0 : quarter % PARTS; /* parts of a vector that a lane begins later */
    unsigned int pitch = (unsigned int)p.src_pitch, lead = (unsigned int)(unsigned long long)first;
    bool whole = ahead && first_row + ROWS <= p.rows;
#pragma unroll 1
    for (int step = 0; step * STEP < columns; step++) {
        gm_async_wait_but<RING - 3>(); /* the step's second line has come */
        __syncthreads();
        load(step + RING - 1);
#pragma unroll 2
        for (int unit = thread / 32; unit < UNITS; unit += WARPS) {
            int eighth, column = step * STEP;
            if (EVEN) {
                int four = unit / EIGHTS;
                eighth = unit % EIGHTS;
                column += four / PART * (4 * PART) + four % PART + quarter * PART;
            } else { /* columns whose starts in a vector are the same */
                int some = unit / (EIGHTS / ALONG);
                eighth = unit % (EIGHTS / ALONG) * ALONG + quarter % ALONG;
                column += some / V * (V * (4 / ALONG)) + some % V + quarter / ALONG * V;
            }
            if (column >= columns)
                continue;
            char *to = target + column * p.dst_pitch;
            int v = eighth * 8 + lane % 8, line = (int)(unsigned long long)to & (GM_STRIP_SECTOR - 1),
                row = AHEAD + v * V - line / S;
            unsigned int from = lead + column * S + row * pitch;
            uint4 made;
#pragma unroll
            for (int w = 0; w < PARTS; w++) {
                T item[PART];
#pragma unroll
                for (int i = 0; i < PART; i++) {
                    int r = (w + turn) % PARTS * PART + i;
                    unsigned int place = (from + r * pitch + gm_strip_moved<T, EVEN>(row + r)) & (WIDTH - 1);
                    item[i] = *(const T *)(shared + (row + r) * WIDTH + place);
                }
                if constexpr (S == 2)
                    (&made.x)[w] = __byte_perm(item[0], item[1], 0x5410);
                else
                    ((T *)&made)[w] = item[0];
            }
            made = gm_words_later(made, turn * (4 / PARTS));
            to += v * 16 - line;
            long long before = v * 16 - line, left = ((long long)p.rows - first_row) * S - before;
            if (whole || (left >= 16 && (ahead || before >= 0)))
                *(uint4 *)to = made;
            else
                gm_strip_store_part<T>(to, made, ahead ? 0 : (int)max(-before, 0ll), (int)min(max(left, 0ll), 16ll));
        }
    }
}

/* Threads that a multiprocessor should have room for. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define GM_STRIP_ROOM 768
#else
#define GM_STRIP_ROOM 1152
#endif

#define GM_KERNEL(size, type, rows, threads)                                                                           \
    extern "C" __global__ void __launch_bounds__(threads, GM_STRIP_ROOM / threads)                                     \
        move_strip_##size(char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_strip strip) \
    {                                                                                                                  \
        if (strip.even)                                                                                                \
            move_strip<type, rows, threads, true>(out, in, strip);                                                     \
        else                                                                                                           \
            move_strip<type, rows, threads, false>(out, in, strip);                                                    \
    }
GM_STRIPS(GM_KERNEL)
#undef GM_KERNEL
