/* Transposes squares where they lie, whose rows begin and end anywhere in a vector.
 *
 * Must move 2 * items * itemsize bytes. A block has two tiles, one on either side of the diagonal, and goes through the
 * steps of the matrix kernels with both: asynchronous copies of all vectors that hold an item of theirs, each row to a
 * place congruent to its address modulo a sector; vectors of columns made of them, and put column by column; and these,
 * shifted to where the other tile's rows have them. What is left at either end of a row, sixteen bytes in all, goes
 * item by item: vectors there are the neighbours' in part, and may be read and written by them at the same time.
 *
 * On an H200, in parts of a copy's speed: 1 byte 0.69, 2 0.75, 4 0.80, 8 0.83 (item by item, in swap.cu, 0.30, 0.48,
 * 0.66, 0.75). Limited by the sectors that a tile writes in part, two of each row: with whole lines written instead
 * (which is wrong) bytes take as long as where rows are aligned, with misaligned reads or without; half as many
 * instructions make no difference, memory moves no byte more than it must. Hence large tiles: bytes in tiles of 128
 * 0.64-0.66, of 256, which leave room for one block, 0.66. Lost too: ends in words where they have one (0.61 for 0.64:
 * more requests); vectors gathered from the rows' items without a second image (0.60); rows not divided among warps
 * (the same); three blocks by fewer registers. Whole sectors would need what neighbours have yet to move.
 *
 * EVEN: where rows are whole aligned vectors, bytes in tiles of 256, whose runs are twice as long: 0.90 for 0.86.
 */
#include "async.cuh"
#include "swap.cuh"
#include "turn.cuh"
#include "vector.cuh"

/* Words at `at`, `at + pitch` ...: four rows on, alignments are the same again. */
template <typename T, bool EVEN>
__device__ __forceinline__ void gm_swap_gather(uint4 *made, const unsigned char *image, int at, int pitch)
{
    enum { S = sizeof(T), V = 16 / S };

    if constexpr (S < 4 && EVEN) {
        unsigned int word[V];
#pragma unroll
        for (int i = 0; i < V; i++, at += pitch)
            word[i] = *(const unsigned int *)(image + at);
        gm_turn<T>(made, word);
    } else if constexpr (S < 4) {
        const unsigned char *row[4];
        unsigned int word[V];
        int shift[4];
#pragma unroll
        for (int i = 0; i < 4; i++, at += pitch) {
            row[i] = image + (at & ~3);
            shift[i] = at * 8;
        }
#pragma unroll
        for (int i = 0; i < V; i++, row[(i - 1) & 3] += 4 * pitch) {
            const unsigned int *from = (const unsigned int *)row[i & 3];
            word[i] = __funnelshift_r(from[0], from[1], shift[i & 3]);
        }
        gm_turn<T>(made, word);
    } else
#pragma unroll
        for (int i = 0; i < V; i++, at += pitch)
            ((T *)made)[i] = *(const T *)(image + at);
}

template <typename T, int TILE, int THREADS, bool EVEN> struct gm_swap_block {
    typedef gm_turn_shape<T, TILE> shape;
    enum { S = shape::S, V = shape::V, WORD = shape::WORD, WORDS = shape::WORDS, WIDE = shape::WIDE };
    enum {
        ROW = TILE * S,
        TALL = ROW / 16,
        VECTORS = EVEN ? TALL : TALL + 1,
        COLUMN = TALL | 1 /* vectors of a column's place */
    };
    enum { GROUPS = THREADS / VECTORS, LOADS = (TILE + GROUPS - 1) / GROUPS }; /* rows at a time */
    enum { TURN = THREADS / WORDS, TURNS = (TALL + TURN - 1) / TURN };
    enum { STORE = THREADS / TALL, STORES = (TILE + STORE - 1) / STORE };
    enum { ENDS = THREADS / V }; /* rows whose ends are written at a time */
    static_assert(THREADS % WORDS == 0 && THREADS % TALL == 0 && STORE % WIDE == 0 && ENDS % WIDE == 0,
                  "a thread has one word of rows, one vector of columns, and columns at one place of a word");

    char *place[2]; /* of the tiles' first items, the upper one's first */
    int rows[2];
    long long row;
    int pitch;
    unsigned char *image[2]; /* congruent to `place` */

    /* A column's first vector. */
    __device__ __forceinline__ const uint4 *column_at(const uint4 *turned, int column) const
    {
        return turned + ((column % WIDE) * WORDS + column / WIDE) * COLUMN;
    }

    /* All rows and all vectors, but one that a row of a multiple of vectors does not have. */
    __device__ __forceinline__ void read_whole(int t) const
    {
        int v = threadIdx.x % VECTORS, group = threadIdx.x / VECTORS;
        const char *from = place[t] + group * row + v * 16;
        unsigned char *to = image[t] + group * pitch + v * 16;

#pragma unroll
        for (int k = 0; k < LOADS; k++, from += GROUPS * row, to += GROUPS * pitch)
            if (int in = EVEN ? 0 : (int)(unsigned long long)from & 15;
                group < GROUPS && (k < TILE / GROUPS || k * GROUPS + group < TILE) && (EVEN || v < TALL || in))
                gm_async_copy(to - in, from - in);
    }

    /* What there is of rows, up to `end`. */
    __device__ __forceinline__ void read_part(const char *source, unsigned char *to, int count, int bytes,
                                              unsigned long long end) const
    {
        int v = threadIdx.x % VECTORS, group = threadIdx.x / VECTORS;

#pragma unroll 1
        for (int r = group; r < (group < GROUPS ? count : 0); r += GROUPS) {
            const char *from = source + r * row;
            int at = v * 16 - ((int)(unsigned long long)from & 15);
            if (at >= bytes)
                continue;
            if ((unsigned long long)from + at + 16 <= end)
                gm_async_copy(to + r * pitch + at, from + at);
            else
                for (int i = at; (unsigned long long)from + i < end; i++)
                    to[r * pitch + i] = (unsigned char)from[i];
        }
    }

    __device__ __forceinline__ void write_whole(char *target, const uint4 *turned) const
    {
        int v = threadIdx.x % TALL, store = threadIdx.x / TALL, item = threadIdx.x % V, end = threadIdx.x / V;
        char *last = target + store * row + v * 16 + 15; /* the byte before `v`'s successor, were it aligned */
        const uint4 *from = column_at(turned, store) + v;

#pragma unroll
        for (int k = 0; k < STORES; k++, last += STORE * row, from += STORE / WIDE * COLUMN) {
            int in = EVEN ? 15 : (int)(unsigned long long)last & 15, head = 15 - in;
            gm_store_if((v < TALL - 1 || head == 0) && (k < TILE / STORE || k * STORE + store < TILE), last - in,
                        EVEN ? from[0] : gm_shifted<S>(from[0], from[1], head));
        }
        if (EVEN)
            return;
        char *to = target + end * row;
        const unsigned char *bytes = (const unsigned char *)column_at(turned, end);
#pragma unroll 4
        for (; end < TILE; end += ENDS, to += ENDS * row, bytes += ENDS / WIDE * COLUMN * 16) {
            /* Those before the first whole vector, and then those behind the last. */
            int head = -(int)(unsigned long long)to & 15, at = item * S < head ? item * S : item * S + ROW - 16;
            if (head)
                *(T *)(to + at) = *(const T *)(bytes + at);
        }
    }

    __device__ __forceinline__ void write_part(char *target, const uint4 *turned, int count, int bytes) const
    {
        int v = threadIdx.x % TALL, more = bytes % 16 != 0;

#pragma unroll 1
        for (int column = threadIdx.x / TALL; column < count; column += STORE) {
            char *to = target + column * row;
            int head = -(int)(unsigned long long)to & 15;
            const uint4 *from = column_at(turned, column) + v;
            if (head + v * 16 + 16 <= bytes)
                *(uint4 *)(to + head + v * 16) = EVEN ? from[0] : gm_shifted<S>(from[0], from[1], head);
        }
        /* Before the first whole vector and behind the last: a vector's items in all, if rows are whole vectors. */
#pragma unroll 1
        for (int e = threadIdx.x; e < count * V << more; e += THREADS) {
            int column = e / V >> more, i = (e & ((V << more) - 1)) * S;
            char *to = target + column * row;
            int head = min(-(int)(unsigned long long)to & 15, bytes), tail = head + ((bytes - head) & ~15);
            i += i < head ? 0 : tail - head;
            if (i < bytes)
                *(T *)(to + i) = *(const T *)((const unsigned char *)column_at(turned, column) + i);
        }
    }
};

template <typename T, int TILE, int THREADS, bool EVEN> __device__ void swap_rows(char *data, const gm_swap &swap)
{
    typedef gm_swap_block<T, TILE, THREADS, EVEN> block;
    enum { S = block::S, V = block::V, TALL = block::TALL, TURN = block::TURN, TURNS = block::TURNS };
    enum { WORDS = block::WORDS, WIDE = block::WIDE };
    extern __shared__ __align__(128) unsigned char shared[];
    long long square = blockIdx.x / swap.pairs, low, high;

    if (!gm_swap_tiles(swap, blockIdx.x - square * swap.pairs, TILE, &high, &low))
        return;
    data += gm_place_of(swap.batch, square).src;
    block b = {{data + low * swap.row + high * S, data + high * swap.row + low * S},
               {(int)min(swap.n - low, (long long)TILE), (int)min(swap.n - high, (long long)TILE)},
               swap.row,
               swap.pitch};
    unsigned char *turned[2] = {shared, shared + swap.image};
    for (int t = 0; t < 2; t++)
        b.image[t] = turned[t] + (unsigned long long)b.place[t] % GM_SWAP_SECTOR;
    bool two = low != high;
    unsigned long long last = (unsigned long long)(two && swap.row > 0 ? b.place[1] : b.place[0]);
    bool whole =
        high + TILE <= swap.n && last + (swap.row > 0 ? (TILE - 1) * swap.row : 0) + block::VECTORS * 16 <= swap.end;

    if (whole) {
        b.read_whole(0);
        if (two)
            b.read_whole(1);
    } else {
        b.read_part(b.place[0], b.image[0], b.rows[0], b.rows[1] * S, swap.end);
        if (two)
            b.read_part(b.place[1], b.image[1], b.rows[1], b.rows[0] * S, swap.end);
    }
    gm_async_commit();
    gm_async_wait();
    __syncthreads();

    int w = threadIdx.x % WORDS, turn = threadIdx.x / WORDS;
    uint4 made[2][TURNS][WIDE];
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            if ((t == 0 || two) && (k < TALL / TURN || k * TURN + turn < TALL))
                gm_swap_gather<T, EVEN>(
                    made[t][k], turned[t],
                    (int)(b.image[t] - turned[t]) + (k * TURN + turn) * V * swap.pitch + w * block::WORD, swap.pitch);
    __syncthreads();
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int k = 0; k < TURNS; k++)
            if ((t == 0 || two) && (k < TALL / TURN || k * TURN + turn < TALL))
#pragma unroll
                for (int c = 0; c < WIDE; c++) /* columns of one word lie far apart, those of lanes side by side */
                    ((uint4 *)turned[t])[(c * WORDS + w) * block::COLUMN + k * TURN + turn] = made[t][k][c];
    __syncthreads();

    if (whole) {
        b.write_whole(two ? b.place[1] : b.place[0], (uint4 *)turned[0]);
        if (two)
            b.write_whole(b.place[0], (uint4 *)turned[1]);
    } else {
        b.write_part(two ? b.place[1] : b.place[0], (uint4 *)turned[0], b.rows[1], b.rows[0] * S);
        if (two)
            b.write_part(b.place[0], (uint4 *)turned[1], b.rows[0], b.rows[1] * S);
    }
}

#define GM_KERNEL(name, size, type, tile, threads, least, blocks)                                                      \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                                      \
        name##_##size##_##tile(char *data, const __grid_constant__ gm_swap swap)                                       \
    {                                                                                                                  \
        swap_rows<type, tile, threads, GM_EVEN_##name>(data, swap);                                                    \
    }

#define GM_EVEN_swap_rows false
#define GM_EVEN_swap_even true
GM_SWAP_ROWS_TILES(GM_KERNEL)
