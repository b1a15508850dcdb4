/* Weaving: k rows of items become one interleaved stream, (k, n) -> (n, k), and unweaving: the way back. Streams in
 * both directions are read and written as whole, aligned cache lines, and only once.
 *
 * A tile is one vector of each row: L items each, k vectors on either side. In lane q of the stream's vectors, item
 * after item belongs to row after row. So a vector's lanes are permuted, every lane is rotated through the vectors by
 * an amount of its own, and the lanes are permuted again; the two permutations of bytes also draw from two neighbouring
 * lines what lies across them, for any alignment of either side. With c the power of two in k (at most L) and
 * k = c * m, the vectors form a c x m table that is rotated along both of its axes. See weave.c for the amounts.
 * (After B. Catanzaro, A. Keller, M. Garland: A Decomposition for In-place Matrix Transposition, 2014.) */
#pragma once
#include "cpu.h"

enum { GM_WEAVE_MOST = 33, GM_WEAVE_STAGES = 6 };

/* What a kernel needs to know of the tiles of one stream and its rows. */
typedef struct gm_weave {
    _Alignas(64) uint8_t before[GM_WEAVE_MOST][64]; /* picks out of a line and the next one: bytes 0 .. 127 */
    _Alignas(64) uint8_t after[GM_WEAVE_MOST][64];  /* picks out of a vector of the tile before and this one's */
    _Alignas(64) uint8_t carried[GM_WEAVE_MOST][64];
    uint8_t *carry; /* the former: the vectors of the last tile, which there are too few registers for */
    uint64_t turns[GM_WEAVE_STAGES]; /* stage by stage, the bytes that move on by 1, 2, 4 ... vectors */
    int streams;                     /* past the caches */
    int aligned;                     /* every row begins with a line */
    int64_t row[GM_WEAVE_MOST];      /* where the row of each vector starts, rounded down to a line */
} gm_weave;

/* Moves the lines of `tiles` tiles but for the first, which only provides what the second one's lines begin with.
 * `src` and `dst` are aligned to lines; from the stream a kernel reads one line more than the tiles have, and one from
 * each row. */
typedef void gm_weave_fn(const gm_weave *weave, char *dst, const char *src, int64_t tiles);

typedef struct gm_weave_kernel {
    int c, m;
    gm_weave_fn *weave, *unweave;
} gm_weave_kernel;

/* Weaves of k rows, or unweaves, wherever they lie: the tables of tiles whose stream and rows begin with a line. */
typedef struct gm_weave_shape {
    const gm_weave_kernel *kernel;
    int unweaves;
    int64_t item, k;
    int row[GM_WEAVE_MOST]; /* of each vector */
    uint64_t turns[GM_WEAVE_STAGES];
    uint8_t before[GM_WEAVE_MOST][64];
    uint8_t after[GM_WEAVE_MOST][2 * 64]; /* of the vector before, and of this one */
} gm_weave_shape;

/* 0 if there is no such kernel here. */
int gm_weave_shape_make(gm_weave_shape *shape, const gm_cpu *cpu, int64_t item, int64_t k, int unweaves);

/* The tables for one stream and its rows, `pitch` bytes apart: the shape's, moved to where those lie in their lines. */
void gm_weave_place(gm_weave *weave, const gm_weave_shape *shape, const char *dst, const char *src, int64_t pitch,
                    int streams);

/* Whether gm_move_weave is the better way to execute a plan. */
int gm_weave_suits(const gm_cpu *cpu, const gm_plan *plan);

/* Executes a plan that suits; `streams` past the caches. */
void gm_move_weave(const gm_cpu *cpu, const gm_plan *plan, char *dst, const char *src, int streams);
