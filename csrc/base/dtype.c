#include "dtype.h"

static const gm_dtype_info table[GM_DTYPE_COUNT] = {
#define GM_DTYPE(name, code, bits, kind) {#name, bits, kind},
#include "dtype.def"
#undef GM_DTYPE
};

const gm_dtype_info *gm_dtype_get(gm_dtype dtype)
{
    return &table[dtype];
}
