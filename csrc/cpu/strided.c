#include "strided.h"
#include <string.h>

/* One row of items; the size is a constant where it matters, so that a copy is a load and a store. */
#define ROW(name, size)                                                                                                \
    static void name(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n, int64_t item)          \
    {                                                                                                                  \
        (void)item;                                                                                                    \
        for (; n > 0; n--, dst += dst_step, src += src_step)                                                           \
            memcpy(dst, src, (size_t)(size));                                                                          \
    }
ROW(row_1, 1)
ROW(row_2, 2)
ROW(row_3, 3)
ROW(row_4, 4)
ROW(row_8, 8)
ROW(row_12, 12)
ROW(row_16, 16)
ROW(row_24, 24)
ROW(row_32, 32)
ROW(row_any, item)

typedef void row_fn(char *, int64_t, const char *, int64_t, int64_t, int64_t);

static row_fn *row_of(int64_t item)
{
    static row_fn *const table[33] = {[1] = row_1,   [2] = row_2,   [3] = row_3,   [4] = row_4,  [8] = row_8,
                                      [12] = row_12, [16] = row_16, [24] = row_24, [32] = row_32};
    return item <= 32 && table[item] ? table[item] : row_any;
}

void gm_copy_box(char *dst, const char *src, int64_t item, const gm_axis *axis, int naxes)
{
    int64_t index[GM_MAX_NDIM] = {0};
    row_fn *row = row_of(item);

    if (naxes == 0) {
        memcpy(dst, src, (size_t)item);
        return;
    }
    const gm_axis *last = &axis[naxes - 1];
    for (;;) {
        row(dst, last->dst, src, last->src, last->len, item);
        int i = naxes - 2;
        for (; i >= 0; i--) {
            dst += axis[i].dst;
            src += axis[i].src;
            if (++index[i] < axis[i].len)
                break;
            dst -= axis[i].dst * axis[i].len;
            src -= axis[i].src * axis[i].len;
            index[i] = 0;
        }
        if (i < 0)
            return;
    }
}
