/* One item as what it is accumulated in. */
#pragma once
#include "sum_half.h"

#define GM_SUM_READ(dtype, type, sum, value)                                                                           \
    static inline sum gm_sum_read_##dtype(const char *src)                                                             \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, src, sizeof x);                                                                                     \
        return value;                                                                                                  \
    }
GM_SUM_READ(bool, uint8_t, uint64_t, x != 0)
GM_SUM_READ(int8, int8_t, uint64_t, (uint64_t)x)
GM_SUM_READ(int16, int16_t, uint64_t, (uint64_t)x)
GM_SUM_READ(int32, int32_t, uint64_t, (uint64_t)x)
GM_SUM_READ(int64, uint64_t, uint64_t, x)
GM_SUM_READ(uint8, uint8_t, uint64_t, x)
GM_SUM_READ(uint16, uint16_t, uint64_t, x)
GM_SUM_READ(uint32, uint32_t, uint64_t, x)
GM_SUM_READ(uint64, uint64_t, uint64_t, x)
GM_SUM_READ(float16, uint16_t, double, (double)gm_half_to_float(x))
GM_SUM_READ(bfloat16, uint16_t, double, (double)gm_bfloat_to_float(x))
GM_SUM_READ(float32, float, double, (double)x)
GM_SUM_READ(float64, double, double, x)
#undef GM_SUM_READ
