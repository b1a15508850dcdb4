/* float16 and bfloat16 by integer arithmetic: for processors without the instructions, and for rounding from float64,
 * which they cannot do in one step. */
#pragma once
#include <stdint.h>
#include <string.h>

static inline float gm_bfloat_to_float(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float gm_half_to_float(uint16_t h)
{
    /* Shifted into place the exponent is 112 too small; a product puts that right for subnormals too. */
    uint32_t bits = (uint32_t)(h & 0x7fff) << 13;
    float f, scale = 0x1p112f;
    memcpy(&f, &bits, sizeof f);
    f *= scale;
    memcpy(&bits, &f, sizeof f);
    if ((h & 0x7c00) == 0x7c00)
        bits |= 0x7f800000;
    bits |= (uint32_t)(h & 0x8000) << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Rounds to nearest even, once, to a 16-bit float of `digits` stored digits and least normal exponent `least`. */
static inline uint16_t gm_narrow(double x, int digits, int least)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof x);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    uint16_t inf = (uint16_t)(0x7fff >> digits << digits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;

    if (exponent > 1 - least) /* too large, inf or NaN */
        return (uint16_t)(sign | inf | (x != x) << (digits - 1));
    if (exponent < least)
        exponent = least;
    /* In units of the last stored digit: the leading one, where there is one, carries into the exponent's field. */
    uint64_t unit_bits = (uint64_t)(1023 - exponent + digits) << 52;
    double per_unit, magic = 0x1p52;
    memcpy(&per_unit, &unit_bits, sizeof per_unit);
    double scaled = (x < 0 ? -x : x) * per_unit + magic;
    uint64_t units;
    memcpy(&units, &scaled, sizeof units);
    units &= ((uint64_t)1 << 52) - 1;
    return (uint16_t)(sign | (((uint64_t)(exponent - least) << digits) + units));
}

static inline uint16_t gm_double_to_half(double x)
{
    return gm_narrow(x, 10, -14);
}

static inline uint16_t gm_double_to_bfloat(double x)
{
    return gm_narrow(x, 7, -126);
}
