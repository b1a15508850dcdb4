/* What the kernels of the lesson `reduce` are told. Plain C, for both compilers. */
#pragma once

enum {
    GM_REDUCE_THREADS = 256,
    GM_REDUCE_VECTORS = 4 /* vectorised: 16-byte vectors of a thread */
};

typedef struct gm_reduce {
    long long n;    /* items */
    long long head; /* vectorised: items before the first whole vector */
    long long vectors;
} gm_reduce;
