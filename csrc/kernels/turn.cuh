/* Turns rows into columns in registers: words of several rows become 16-byte vectors of as many columns as a word has.
 */
#pragma once

/* How a tile's words and vectors lie: items of type T, rows of COLUMNS items. */
template <typename T, int COLUMNS> struct gm_turn_shape {
    enum {
        S = sizeof(T),
        V = 16 / S,            /* items of a vector */
        WORD = S < 4 ? 4 : S,  /* bytes */
        WIDE = WORD / S,       /* columns of a word */
        WORDS = COLUMNS / WIDE /* of a row */
    };
};

/* Four-byte words of V rows become a vector for each column: bytes, or pairs of bytes, are dealt out. */
template <typename T> __device__ __forceinline__ void gm_turn(uint4 *made, const unsigned int *word)
{
    if constexpr (sizeof(T) == 1) {
#pragma unroll
        for (int g = 0; g < 4; g++) {
            unsigned int a = word[4 * g], b = word[4 * g + 1], c = word[4 * g + 2], d = word[4 * g + 3];
            unsigned int ab = __byte_perm(a, b, 0x5140), cd = __byte_perm(c, d, 0x5140);
            unsigned int ab_high = __byte_perm(a, b, 0x7362), cd_high = __byte_perm(c, d, 0x7362);
            ((unsigned int *)&made[0])[g] = __byte_perm(ab, cd, 0x5410);
            ((unsigned int *)&made[1])[g] = __byte_perm(ab, cd, 0x7632);
            ((unsigned int *)&made[2])[g] = __byte_perm(ab_high, cd_high, 0x5410);
            ((unsigned int *)&made[3])[g] = __byte_perm(ab_high, cd_high, 0x7632);
        }
    } else {
#pragma unroll
        for (int g = 0; g < 4; g++) {
            ((unsigned int *)&made[0])[g] = __byte_perm(word[2 * g], word[2 * g + 1], 0x5410);
            ((unsigned int *)&made[1])[g] = __byte_perm(word[2 * g], word[2 * g + 1], 0x7632);
        }
    }
}

/* A vector for each column of a word that lies in V rows of shared memory, PITCH vectors apart. A row begins `shift`
 * bytes later than its place says; EVEN: none does. */
template <typename T, bool EVEN, int PITCH>
__device__ __forceinline__ void gm_turn_gather(uint4 *made, const unsigned char *from, const int *shift)
{
    enum { S = sizeof(T), V = 16 / S };

    if constexpr (S < 4) {
        unsigned int word[V];
#pragma unroll
        for (int i = 0; i < V; i++, from += PITCH * 16) {
            const unsigned int *at = (const unsigned int *)(from + (EVEN ? 0 : shift[i] & ~3));
            word[i] = EVEN ? at[0] : __funnelshift_r(at[0], at[1], shift[i] * 8);
        }
        gm_turn<T>(made, word);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++, from += PITCH * 16)
            ((T *)made)[i] = *(const T *)(from + (EVEN ? 0 : shift[i]));
    }
}

/* The same of rows `pitch` bytes apart, the first of which begins `at` bytes after the image. */
template <typename T>
__device__ __forceinline__ void gm_turn_gather_steady(uint4 *made, const uint4 *image, int at, int pitch)
{
    enum { V = 16 / sizeof(T) };
    unsigned int word[V];

#pragma unroll
    for (int i = 0; i < V; i++, at += pitch) {
        const unsigned int *from = (const unsigned int *)((const unsigned char *)image + (at & ~3));
        word[i] = __funnelshift_r(from[0], from[1], at * 8);
    }
    gm_turn<T>(made, word);
}
