/* Records of k fields as the kernels of the lesson `layout` take them. Plain C, for both compilers. */
#pragma once

typedef struct gm_layout {
    long long n; /* records */
    int fields;  /* k */
    int field;   /* the one that is read, where a stage reads one */
    int records; /* staged: records of a block, a power of two */
    int log2_records;
} gm_layout;
