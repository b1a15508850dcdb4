/* A sum as the kernels take it: by value. Plain C, for both compilers.
 *
 * The blocks of a group make the same results; each is one slice of what is summed. A slice is a range of lines (the
 * outer summed axes, numbered) by a share of the inner summed axis. */
#pragma once
#include "walk.h"

enum {
    GM_SUM_AXES = 66, /* a plan's, the run that it moves as one item, and the parts of a complex number */
    GM_SUM_THREADS = 256,
    GM_SUM_WIDTH = 4, /* columns of a thread; items of one load where they are narrow */
    GM_SUM_IN_FLIGHT = 4,
    GM_SUM_PACKED = 16384 /* bytes that a block of packed lines takes at the most */
};

/* Rows that a thread has under way, by the bytes of a load. */
#define GM_SUM_ROWS(bytes) ((bytes) < 16 ? 8 : 4)

typedef struct gm_sum {
    unsigned long long src_begin, src_end; /* no byte outside is read */
    unsigned long long tag;                /* of this launch: marks what its blocks leave for one another */
    unsigned long long *scratch;           /* slices x groups x results of a group: a partial sum and a tag each */
    long long lines, lines_each;           /* in all; in a slice */
    long long inner;                       /* vectors of a line (lanes), rows (down), items (general) */
    long long chunk; /* flat, run: bytes that a slice has of a line; flat, 0: vectors in turn with all other slices */
    long long bytes; /* of a line (flat, run, lanes, packed) */
    unsigned int groups, inner_slices, slices;
    unsigned int bunch; /* flat: so many slices leave one part together, behind those of all slices; 0: each its own */
    unsigned int tiles; /* down, general: groups beside one another, for each index of the outer kept axes */
    int to;             /* gm_dtype of the results */
    int usual;          /* it is the one that such sums have if nobody asks for another */
    int is_unsigned;    /* how a 64-bit integer becomes a float */
    int team_shift;     /* run, lanes, packed: 1 << team_shift threads share a line */
    int share;          /* packed: lines of a block */
    int across, along;  /* down, general: threads of a block beside one another, and above one another */
    int along_first;    /* general: neighbouring threads are above one another */
    int bytewise;       /* general: items are misaligned */
    int dense;          /* down: results lie as the columns do, and vectors of them may be stored */
    long long columns;  /* down: items of a row; lanes, packed, general: results */
    long long step;     /* down: bytes from one row to the next */
    long long result_step; /* down: bytes from one column's result to the next */
    /* down, folded: `fold` rows of `folded` columns are one row here */
    int folded;     /* 0: not */
    int head, rest; /* items before the first row, after the last */
} gm_sum;

/* Innermost first: the kept axes of a result's number, then the summed ones of a line's (general: of an item's). */
typedef struct gm_sum_axes {
    int kept, summed;
    int wide; /* 64-bit division is needed */
    gm_walk_axis axis[GM_SUM_AXES];
} gm_sum_axes;
