/* Transposes matrices of any shape, alignment and pitch, tile by tile; rows and columns may be chains of axes.
 *
 * Must move 2 * items * itemsize bytes. Three steps, between which a block waits:
 *   1 every aligned 16-byte vector that holds an item of the tile goes to registers, all loads before the first store,
 *     and from there to shared memory, row by row;
 *   2 vectors of the destination are made of them in registers (turn.cuh), and go to shared memory column by column;
 *   3 each column is written in whole vectors, shifted to where the destination has them.
 * A tile's part of a column begins and ends at the destination's lines of 32 bytes: the rows before the tile's own that
 * complete its first line are read by two blocks, and no line is written by two.
 *
 * Limited by the traffic between the two halves of an H200's second-level cache (ltcfabric2ltc_cycles_active is 92 % in
 * a copy and 91 % here), so that what is read or written twice counts although memory never sees it, and so does each
 * request for less than a line of 128 bytes; and, for items of one and two bytes, by shared memory, whose passes are 75 %
 * of the time where rows come in registers. In parts of a copy's speed: aligned, 16 K x 16 K 0.96-0.97 for items of 2 to
 * 16 bytes and 0.94-0.95 for bytes; 16383 x 16385 0.92 for items of 4 bytes, 0.90 for 2 (in registers 0.88) and 0.86-0.87
 * for 1 (0.82), 0.93 for 8 and 16 (8191 x 8193).
 *
 * Asynchronous rows save the pass from registers, and a steady pitch the table of where rows begin, which is five of
 * some forty passes. What both need is that a row's place is congruent to its address modulo 32: a sector that goes to
 * two places of 32 bytes costs as much as two (modulo 16 alone 23039 x 23041 bytes 0.83 for 0.86; modulo 64 0.855, since
 * only three blocks fit). With a place for each row, where rows are of several axes: a reversal of four odd axes 0.76 for
 * 0.73. 4 bytes 0.88 for 0.92; bytes in tiles of 256 x 128 0.83, 192 x 192 0.85, with 384 threads 0.85 to 0.86.
 *
 * Tried there and lost: columns that end where the tile does, so that two blocks write one line (4 bytes 0.90, bytes
 * 0.61; with the same stores moved to whole lines 0.93 and 0.86); tiles with rows of 256 bytes rather than 512 where rows
 * are odd (0.90 for 0.92); larger tiles, and blocks of few threads with many vectors each, which leave a multiprocessor
 * too few blocks in different steps (bytes 0.75 for 0.83); packed rows as one run also in the tiles for many columns
 * (2 bytes, aligned: 0.96 for 0.98); tiles of 192 rows, which read fewer rows twice (bytes 0.81 for 0.83, 2 bytes 0.87 for
 * 0.88). Blocks that do several tiles one below the other and keep each column's last line in registers, so that no row
 * is read twice: 4 bytes 0.88 for 0.90, bytes no faster, since fewer neighbours are written at a time. Two tiles to a
 * block with barriers of their own, to share rows in the first-level cache: bytes 0.59. 256 x 256 bytes: 0.74. Tables of
 * where each row's words and each column's vectors lie, and one branch a warp for the shift of a column: a third fewer
 * instructions, 2 bytes 0.88 for 0.87, 4 and 8 bytes as before, bytes 0.73 for 0.82, whose tables left no room for the
 * fourth block: loads on their way to registers pass through the first-level cache, so shared memory must leave it some
 * 60 KB (0.67 with 28). Blocks in clusters of two, four or eight, each giving the next its last rows, so that none is read
 * twice: bytes 0.66-0.73 for 0.82, 2 bytes 0.71-0.78 for 0.88, 4 bytes 0.74-0.80 for 0.92, 8 bytes 0.81 for 0.93: they
 * start and wait together (what does save reading twice, in large matrices, is to go along the rows: strip.cu). Hints to
 * either cache: 0 to 0.15 slower. What made the first version slow (0.92 where it is 0.97 now) were addresses that did not
 * come from the kernel's parameters, so that every store was a generic one, and divisions in every loop.
 */
#include <limits.h>
#include "async.cuh"
#include "matrix.cuh"
#include "turn.cuh"
#include "vector.cuh"

#define GM_MATRIX_NONE (-1ll << 63)

template <typename T, int ROWS, int COLUMNS, int WAY> struct gm_matrix_block {
    enum {
        S = sizeof(T),
        V = 16 / S,                 /* items of a vector */
        AHEAD = GM_MATRIX_LINE / S, /* rows before the tile's first */
        READ = GM_MATRIX_READ(S, ROWS),
        VECTORS = GM_MATRIX_PITCH(S, COLUMNS),       /* of a row, whatever its alignment */
        PITCH = VECTORS + (WAY == GM_MATRIX_LISTED), /* of a row's place, but at a steady pitch */
        WORD = S < 4 ? 4 : S,
        WIDE = WORD / S,        /* columns of a word */
        WORDS = COLUMNS / WIDE, /* of a row */
        COLUMN_PITCH = GM_MATRIX_COLUMN_PITCH(S, ROWS)
    };
    uint4 image[GM_MATRIX_IMAGE(S, ROWS, COLUMNS, WAY)];
    long long row_src[READ]; /* bytes from a vector's start, as in `source`; GM_MATRIX_NONE: there is no such row */
    long long column_dst[COLUMNS]; /* bytes from a line's start, as in `target` */
    /* Bytes from a row's place in the image to its first item. */
    __align__(16) int shift[WAY == GM_MATRIX_STEADY ? 4 : READ];
};

/* Those bytes of a vector that are in [begin, end), in words where there is a whole one. */
template <typename T>
__device__ __forceinline__ void gm_matrix_store_part(char *to, const uint4 &vector, int begin, int end)
{
    constexpr int S = sizeof(T), WORD = S < 4 ? 4 : S;
    const unsigned int word[4] = {vector.x, vector.y, vector.z, vector.w};

#pragma unroll
    for (int w = 0; w < 4; w++) {
        if (begin <= w * 4 && w * 4 + 4 <= end)
            *(unsigned int *)(to + 4 * w) = word[w];
        else if (WORD > S)
#pragma unroll
            for (int i = 0; i < WORD; i += S)
                if (begin <= w * 4 + i && w * 4 + i < end)
                    *(T *)(to + w * 4 + i) = (T)(word[w] >> (8 * i));
    }
}

/* Where a column's part begins: at the start of a line of 32 bytes, `line` before its first item; if not SHIFTED, at
 * it.
 */
template <bool SHIFTED> __device__ __forceinline__ int gm_matrix_line(long long at)
{
    return SHIFTED ? (int)at & (GM_MATRIX_LINE - 1) : 0;
}

/* The vector at place `v` of a column's part. */
template <bool SHIFTED, typename TILE>
__device__ __forceinline__ uint4 gm_matrix_vector(const TILE &tile, int line, int column, int v)
{
    int from = GM_MATRIX_LINE - line;
    const uint4 *place =
        tile.image + ((column % TILE::WIDE) * TILE::WORDS + column / TILE::WIDE) * TILE::COLUMN_PITCH + v + from / 16;
    return SHIFTED && TILE::S < 16 ? gm_shifted<TILE::S>(place[0], place[1], from & 15) : place[0];
}

/* Columns `store`, `store + STORE` ...: the vectors at place `v` of them, which all belong to the tile. */
template <bool SHIFTED, int STORE, int COLUMNS, typename TILE>
__device__ __forceinline__ void gm_matrix_store(char *target, const TILE &tile, int columns, int store, int v,
                                                long long offset)
{
#pragma unroll
    for (int k = 0; k < (COLUMNS + STORE - 1) / STORE; k++) {
        int column = min(k * STORE + store, columns - 1); /* those behind have no place */
        long long at = tile.column_dst[column];
        int line = gm_matrix_line<SHIFTED>(at);
        uint4 vector = gm_matrix_vector<SHIFTED>(tile, line, column, v);
        gm_store_if(k * STORE + store < columns, target + (at - line + offset), vector);
    }
}

/* What the last bytes of the source allow: a vector that goes beyond them comes byte by byte. */
__device__ __forceinline__ void gm_matrix_read_end(uint4 *image, const char *from, unsigned long long end)
{
    if ((unsigned long long)from + 16 <= end)
        *image = __ldg((const uint4 *)from);
    else
        for (int i = 0; (unsigned long long)from + i < end; i++)
            ((char *)image)[i] = from[i];
}

/* Rows that lie side by side are one run, and come as one. `end`: what they may reach, or 0. */
template <int THREADS, int MOST>
__device__ __forceinline__ void gm_matrix_read_packed(uint4 *image, const char *from, int vectors,
                                                      unsigned long long end)
{
    enum { LOADS = (MOST + THREADS - 1) / THREADS };
    int thread = threadIdx.x;

    if (end) {
        for (int i = thread; i < vectors; i += THREADS)
            gm_matrix_read_end(&image[i], from + i * 16, end);
        return;
    }
    uint4 vector[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++)
        if (k * THREADS + thread < vectors)
            vector[k] = __ldg((const uint4 *)from + k * THREADS + thread);
#pragma unroll
    for (int k = 0; k < LOADS; k++)
        if (k * THREADS + thread < vectors)
            image[k * THREADS + thread] = vector[k];
}

template <typename T, int ROWS, int COLUMNS, int THREADS, int WAY>
__device__ void move_matrix(char *__restrict__ out, const char *__restrict__ in, const gm_matrix &p)
{
    typedef gm_matrix_block<T, ROWS, COLUMNS, WAY> tile_type;
    enum {
        S = tile_type::S,
        V = tile_type::V,
        AHEAD = tile_type::AHEAD,
        READ = tile_type::READ,
        VECTORS = tile_type::VECTORS,
        PITCH = tile_type::PITCH
    };
    enum { WORDS = tile_type::WORDS, WIDE = tile_type::WIDE, COLUMN_PITCH = tile_type::COLUMN_PITCH };
    enum { GROUPS = THREADS / VECTORS, LOADS = (READ + GROUPS - 1) / GROUPS }; /* rows at a time */
    enum { TURN = THREADS / WORDS, TURNS = (READ / V + TURN - 1) / TURN };     /* vectors of a column at a time */
    enum { TALL = ROWS / V, STORE = THREADS / TALL, STORES = (COLUMNS + STORE - 1) / STORE }; /* columns at a time */
    enum { NARROW = GM_MATRIX_NARROW(S, COLUMNS) };
    static_assert(COLUMNS * S % 16 == 0, "rows of whole vectors");
    static_assert(sizeof(tile_type) <= GM_MATRIX_SHARED(S, ROWS, COLUMNS, WAY), "what the launch asks for");
    static_assert(TURN >= AHEAD / V, "the idle vectors are in the first turn");
    static_assert(THREADS % WORDS == 0 && THREADS % TALL == 0,
                  "a thread has one word of rows, and one vector of columns");
    extern __shared__ __align__(128) unsigned char shared[];
    tile_type &tile = *(tile_type *)shared;
    int thread = threadIdx.x, near = 0;

    gm_matrix_tile_place begin = gm_matrix_tile_of(p, blockIdx.x, ROWS, COLUMNS);
    unsigned int first_row = begin.row, first_column = begin.column;
    gm_place matrix = begin.at;
    int columns = (int)min(p.columns - first_column, (unsigned int)COLUMNS);
    int ahead = p.line > 1 && first_row ? AHEAD : 0;

    /* Addresses whose low bits are those of the offsets from them. */
    const char *source = in - ((unsigned long long)in & 127);
    char *target = out - ((unsigned long long)out & (GM_MATRIX_LINE - 1));
    matrix.src += in - source;
    matrix.dst += out - target;
    long long flat = matrix.src + (long long)(first_row - ahead) * p.row[0].src; /* the rows, where they are packed */

    for (int i = thread; i < READ; i += THREADS) {
        long long row = (long long)first_row + i - AHEAD, at = GM_MATRIX_NONE;
        int shift = 0;
        if (i >= AHEAD - ahead && row < p.rows) {
            at = matrix.src + gm_matrix_place(p.row, p.nrow, (unsigned int)row).src + (long long)first_column * S;
            near |= (unsigned long long)source + at + columns * S + 16 > p.src_end;
            shift = NARROW && p.packed ? (int)(at - (flat & ~15ll)) - i * PITCH * 16
                                       : (int)(at & (WAY == GM_MATRIX_LISTED ? 31 : 15));
        }
        tile.row_src[i] = at;
        if (WAY != GM_MATRIX_STEADY)
            tile.shift[i] = shift;
    }
    long long start = p.stacked ? 0 : (long long)first_row * S;
    for (int i = thread; i < columns; i += THREADS)
        tile.column_dst[i] = matrix.dst + start + gm_matrix_place(p.column, p.ncolumn, first_column + i).dst;
    near = __syncthreads_or(near);

    /* Where the first row's first byte lies in the image, and where a row's vectors do. */
    int pitch = WAY == GM_MATRIX_STEADY ? p.pitch : PITCH * 16, lead = 0;
    if (WAY == GM_MATRIX_STEADY)
        lead = (int)(matrix.src + ((long long)first_row - AHEAD) * p.row[0].src + (long long)first_column * S) &
               (GM_MATRIX_STEADY - 1);
    auto image_of = [&](int row, long long at) {
        int begin = WAY == GM_MATRIX_STEADY ? (row * pitch + lead) & ~15
                                            : row * pitch + (WAY == GM_MATRIX_LISTED ? (int)at & 16 : 0);
        return (uint4 *)((unsigned char *)tile.image + begin);
    };
    if (NARROW && p.packed) {
        int bytes = (int)min((long long)(READ - AHEAD + ahead), (long long)p.rows - first_row + ahead) * columns * S;
        gm_matrix_read_packed<THREADS, PITCH * READ>(tile.image, source + (flat & ~15ll),
                                                     ((int)(flat & 15) + bytes + 15) / 16, near ? p.src_end : 0);
    } else if (int v = thread % VECTORS, group = thread / VECTORS, beyond = v * 16 - columns * S; group < GROUPS) {
        if (!near && WAY != GM_MATRIX_HELD) {
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (k < READ / GROUPS || k * GROUPS + group < READ)
                    if (long long at = tile.row_src[k * GROUPS + group];
                        (int)(at >> 32) > INT_MIN && beyond < (int)(at & 15))
                        gm_async_copy(image_of(k * GROUPS + group, at) + v, source + ((at & ~15ll) + v * 16));
            gm_async_commit();
            gm_async_wait();
        } else if (!near) {
            uint4 vector[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (k < READ / GROUPS || k * GROUPS + group < READ)
                    if (long long at = tile.row_src[k * GROUPS + group];
                        (int)(at >> 32) > INT_MIN && beyond < (int)(at & 15))
                        vector[k] = __ldg((const uint4 *)(source + ((at & ~15ll) + v * 16)));
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (k < READ / GROUPS || k * GROUPS + group < READ)
                    tile.image[(k * GROUPS + group) * PITCH + v] = vector[k];
        } else
            for (int row = group; row < READ; row += GROUPS)
                if (long long at = tile.row_src[row]; (int)(at >> 32) > INT_MIN && beyond < (int)(at & 15))
                    gm_matrix_read_end(image_of(row, at) + v, source + ((at & ~15ll) + v * 16), p.src_end);
    }
    __syncthreads();

    int w = thread % WORDS, turn = thread / WORDS, idle = p.line > 1 ? 0 : AHEAD / V; /* vectors that nobody wants */
    bool used = !NARROW || w * WIDE < columns;
    uint4 made[TURNS][WIDE];
    const unsigned char *image = (const unsigned char *)(tile.image + turn * V * PITCH) + w * tile_type::WORD;
    if constexpr (WAY == GM_MATRIX_STEADY && S < 4) {
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            if ((k < READ / V / TURN || k * TURN + turn < READ / V) && (k > 0 || turn >= idle) && used)
                gm_turn_gather_steady<T>(made[k], tile.image,
                                         w * tile_type::WORD + lead + (k * TURN + turn) * V * pitch, pitch);
    } else if (p.even >= 0) {
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            if ((k < READ / V / TURN || k * TURN + turn < READ / V) && (k > 0 || turn >= idle) && used)
                gm_turn_gather<T, true, PITCH>(made[k], image + p.even + k * TURN * V * PITCH * 16, NULL);
    } else {
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            if ((k < READ / V / TURN || k * TURN + turn < READ / V) && (k > 0 || turn >= idle) && used)
                gm_turn_gather<T, false, PITCH>(made[k], image + k * TURN * V * PITCH * 16,
                                                tile.shift + (k * TURN + turn) * V);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TURNS; k++)
        if ((k < READ / V / TURN || k * TURN + turn < READ / V) && (k > 0 || turn >= idle) && used)
#pragma unroll
            for (int c = 0; c < WIDE; c++) /* columns of one word lie far apart, those of lanes side by side */
                tile.image[(c * WORDS + w) * COLUMN_PITCH + k * TURN + turn] = made[k][c];
    __syncthreads();

    int v = thread % TALL, store = thread / TALL;
    long long offset = p.stacked ? gm_matrix_place(p.row, p.nrow, first_row + v * V).dst : v * 16;
    if (p.line == 1) {
        if (first_row + v * V < p.rows)
            gm_matrix_store<false, STORE, COLUMNS>(target, tile, columns, store, v, offset);
    } else if (ahead && first_row + ROWS <= p.rows) {
        gm_matrix_store<true, STORE, COLUMNS>(target, tile, columns, store, v, offset);
    } else {
#pragma unroll 1
        for (int column = store; column < columns; column += STORE) {
            long long at = tile.column_dst[column];
            int line = gm_matrix_line<true>(at);
            uint4 vector = gm_matrix_vector<true>(tile, line, column, v);
            char *to = target + (at - line + offset);
            long long begin = v * 16 - line, left = ((long long)p.rows - first_row) * S - begin;
            int low = ahead || begin >= 0 ? 0 : (int)-begin;
            if (low == 0 && left >= 16)
                *(uint4 *)to = vector;
            else if constexpr (S < 16)
                if (left > low)
                    gm_matrix_store_part<T>(to, vector, low, (int)min(left, 16ll));
        }
    }
}

#define GM_KERNEL(size, type, rows, columns, threads)                                                                  \
    extern "C" __global__ void __launch_bounds__(threads) move_matrix_##size##_##rows##x##columns##_##threads(         \
        char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_matrix matrix)                 \
    {                                                                                                                  \
        move_matrix<type, rows, columns, threads, GM_MATRIX_HELD>(out, in, matrix);                                    \
    }
GM_MATRIX_TILES(GM_KERNEL)
#undef GM_KERNEL
#define GM_KERNEL(size, type, rows, columns, threads, name, way)                                                       \
    extern "C" __global__ void __launch_bounds__(threads) move_##name##_##size##_##rows##x##columns##_##threads(       \
        char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_matrix matrix)                 \
    {                                                                                                                  \
        move_matrix<type, rows, columns, threads, way>(out, in, matrix);                                               \
    }
GM_MATRIX_ASYNC_TILES(GM_KERNEL)
