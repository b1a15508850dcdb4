/* What the kernels of the lesson `banks` are told. Plain C, for both compilers. */
#pragma once

enum {
    GM_BANKS_THREADS = 256,
    GM_BANKS_TILE = 1024 /* accesses of a block: 32 rows of 32 */
};

typedef struct gm_banks {
    long long n;         /* accesses */
    unsigned int stride; /* between the accesses of neighbouring lanes, 0 to GM_BANKS_TILE - 1 */
    unsigned int tail;   /* bytes behind the last access, which are copied as they are */
} gm_banks;
