/* What the kernels of the lesson `read` are told. Plain C, for both compilers. */
#pragma once

typedef struct gm_read {
    long long n;      /* items written */
    long long stride; /* strided: items of the source from one that is read to the next */
    long long items;  /* gather: items of the source */
} gm_read;
