/* Rows of strided items to one dense run, as the kernels take them. Plain C, for both compilers. */
#pragma once

enum { GM_STRIDE_THREADS = 256 };

typedef struct gm_stride {
    unsigned long long src_begin, src_end; /* no byte outside is read, but in the first item's vector */
    long long bytes;                       /* of the destination */
    long long row;                         /* of those, in a row */
    unsigned long long inverse; /* 2^64 / row and a little more: for n / row where `bytes` is too much for int */
    unsigned int magic, shift;  /* the same where it is not */
    long long pitch;            /* bytes from one row's first item to the next one's in the source */
} gm_stride;
