/* The types that gpumem computes with, from dtype.def. */
#pragma once

typedef enum gm_dtype {
#define GM_DTYPE(name, code, bits, kind) GM_##name,
#include "dtype.def"
#undef GM_DTYPE
    GM_DTYPE_COUNT
} gm_dtype;

typedef struct gm_dtype_info {
    const char *name;
    int bits;
    char kind; /* b bool, i signed, u unsigned, f float, c complex */
} gm_dtype_info;

const gm_dtype_info *gm_dtype_get(gm_dtype dtype);
