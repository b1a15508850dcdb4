/* What the kernels of the lesson `copy` are told. Plain C, for both compilers. */
#pragma once

enum {
    GM_COPY_THREADS = 256,
    GM_COPY_FLIGHT = 4,   /* in_flight: 16-byte vectors of a thread */
    GM_COPY_BULK = 16384, /* bulk: bytes of a block */
    GM_COPY_PIECE = 4096, /* of which one bulk copy takes so many */
};

typedef struct gm_copy {
    long long head;  /* bytes before the destination's first whole vector */
    long long count; /* accesses: items, or whole vectors */
    long long tail;  /* bytes behind the last one */
} gm_copy;
