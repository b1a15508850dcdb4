/* How items are added, by type: what an item is, which word adds nothing, and the sum of a vector of them.
 *
 * Integers and bool are added in 64 bits, wrapping; floats in float64, but that four float16 or bfloat16 are first
 * added in float32. Four large bfloat16 would overflow there, so a quarter of each is added: a power of two costs no
 * digit, as their smallest number is far above float32's. */
#pragma once
#include "../base/dtype.h"

typedef unsigned long long gm_sum_int;

__device__ __forceinline__ float gm_half_value(unsigned short bits)
{
#ifdef __CUDA_ARCH__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    return gm_emulated_half(bits);
#endif
}

/* Rounds to nearest even, once, to a 16-bit float of `digits` stored digits and least normal exponent `least`. */
__device__ __forceinline__ unsigned short gm_sum_narrow(double x, int digits, int least)
{
    unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    unsigned int sign = (unsigned int)(bits >> 48) & 0x8000;
    unsigned int inf = 0x7fffu >> digits << digits;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;

    if (exponent > 1 - least) /* too large, inf or NaN */
        return (unsigned short)(sign | inf | (unsigned int)(x != x) << (digits - 1));
    exponent = exponent < least ? least : exponent;
    /* In units of the last stored digit: the leading one, where there is one, carries into the exponent's field. */
    double unit = __longlong_as_double((long long)(1023 - exponent + digits) << 52);
    double scaled = __fma_rn(x < 0 ? -x : x, unit, 4503599627370496.0);
    unsigned int units = (unsigned int)__double_as_longlong(scaled);
    return (unsigned short)(sign | (((unsigned int)(exponent - least) << digits) + units));
}

/* ---- integers: BITS as it is in memory ---- */

template <typename BITS> __device__ __forceinline__ gm_sum_int gm_sum_word(unsigned int word)
{
    if constexpr (sizeof(BITS) == 4)
        return (gm_sum_int)(BITS)word;
    else if constexpr (sizeof(BITS) == 2)
        return (gm_sum_int)(BITS)word + (gm_sum_int)(BITS)(word >> 16);
    else
        return 0;
}

template <typename BITS> struct gm_sum_integer {
    typedef BITS bits;
    typedef gm_sum_int acc, usual; /* usual: of the result */

    static __device__ __forceinline__ unsigned int nothing(int)
    {
        return 0;
    }
    static __device__ __forceinline__ acc value(BITS item)
    {
        return (acc)item;
    }
    static __device__ __forceinline__ usual result(acc sum)
    {
        return sum;
    }
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        if constexpr (sizeof(BITS) == 8)
            return ((acc)v.y << 32 | v.x) + ((acc)v.w << 32 | v.z);
        else
            return (gm_sum_word<BITS>(v.x) + gm_sum_word<BITS>(v.y)) +
                   (gm_sum_word<BITS>(v.z) + gm_sum_word<BITS>(v.w));
    }
};

struct gm_sum_int8 : gm_sum_integer<signed char> {
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        const int ones = 0x01010101;
        return (acc)__dp4a((int)v.x, ones, __dp4a((int)v.y, ones, __dp4a((int)v.z, ones, __dp4a((int)v.w, ones, 0))));
    }
};

struct gm_sum_uint8 : gm_sum_integer<unsigned char> {
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        const unsigned int ones = 0x01010101;
        return __dp4a(v.x, ones, __dp4a(v.y, ones, __dp4a(v.z, ones, __dp4a(v.w, ones, 0u))));
    }
};

/* A bool is true whatever bit is set: it is carried into the highest. */
struct gm_sum_bool : gm_sum_integer<unsigned char> {
    static __device__ __forceinline__ acc value(unsigned char item)
    {
        return item != 0;
    }
    static __device__ __forceinline__ unsigned int counted(unsigned int word)
    {
        return (((word & 0x7f7f7f7f) + 0x7f7f7f7f) | word) >> 7 & 0x01010101;
    }
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        /* Sixteen counts of 4 at the most fit into a byte. */
        return __dp4a(counted(v.x) + counted(v.y) + counted(v.z) + counted(v.w), 0x01010101u, 0u);
    }
};

struct gm_sum_int16 : gm_sum_integer<short> {
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        const int ones = 0x0101;
        return (acc)__dp2a_lo((int)v.x, ones,
                              __dp2a_lo((int)v.y, ones, __dp2a_lo((int)v.z, ones, __dp2a_lo((int)v.w, ones, 0))));
    }
};

struct gm_sum_uint16 : gm_sum_integer<unsigned short> {
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        const unsigned int ones = 0x0101;
        return __dp2a_lo(v.x, ones, __dp2a_lo(v.y, ones, __dp2a_lo(v.z, ones, __dp2a_lo(v.w, ones, 0u))));
    }
};

struct gm_sum_int32 : gm_sum_integer<int> {
};
struct gm_sum_uint32 : gm_sum_integer<unsigned int> {
};
struct gm_sum_int64 : gm_sum_integer<unsigned long long> {
};

/* ---- floats: -0.0 adds nothing, +0.0 would make +0.0 of -0.0 ---- */

struct gm_sum_float16 {
    typedef unsigned short bits, usual;
    typedef double acc;

    static __device__ __forceinline__ unsigned int nothing(int)
    {
        return 0x80008000u;
    }
    static __device__ __forceinline__ usual result(acc sum)
    {
        return gm_sum_narrow(sum, 10, -14);
    }
    static __device__ __forceinline__ acc value(bits item)
    {
        return gm_half_value(item);
    }
    static __device__ __forceinline__ acc four(unsigned int a, unsigned int b)
    {
        return (gm_half_value((bits)a) + gm_half_value((bits)(a >> 16))) +
               (gm_half_value((bits)b) + gm_half_value((bits)(b >> 16)));
    }
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        return four(v.x, v.y) + four(v.z, v.w);
    }
};

struct gm_sum_bfloat16 {
    typedef unsigned short bits, usual;
    typedef double acc;

    static __device__ __forceinline__ unsigned int nothing(int)
    {
        return 0x80008000u;
    }
    static __device__ __forceinline__ usual result(acc sum)
    {
        return gm_sum_narrow(sum, 7, -126);
    }
    static __device__ __forceinline__ acc value(bits item)
    {
        return __uint_as_float((unsigned int)item << 16);
    }
    static __device__ __forceinline__ float two(unsigned int word)
    {
        return __fmaf_rn(__uint_as_float(word << 16), 0.25f, __uint_as_float(word & 0xffff0000u) * 0.25f);
    }
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        return __fma_rn(4.0, (double)(two(v.x) + two(v.y)), 4.0 * (double)(two(v.z) + two(v.w)));
    }
};

struct gm_sum_float32 {
    typedef float bits, usual;
    typedef double acc;

    static __device__ __forceinline__ unsigned int nothing(int)
    {
        return 0x80000000u;
    }
    static __device__ __forceinline__ usual result(acc sum)
    {
        return (float)sum;
    }
    static __device__ __forceinline__ acc value(bits item)
    {
        return item;
    }
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        return ((acc)__uint_as_float(v.x) + (acc)__uint_as_float(v.y)) +
               ((acc)__uint_as_float(v.z) + (acc)__uint_as_float(v.w));
    }
};

struct gm_sum_float64 {
    typedef double bits, usual;
    typedef double acc;

    static __device__ __forceinline__ unsigned int nothing(int word)
    {
        return word & 1 ? 0x80000000u : 0;
    }
    static __device__ __forceinline__ usual result(acc sum)
    {
        return sum;
    }
    static __device__ __forceinline__ acc value(bits item)
    {
        return item;
    }
    static __device__ __forceinline__ acc vector(const uint4 &v)
    {
        return __longlong_as_double((long long)((gm_sum_int)v.y << 32 | v.x)) +
               __longlong_as_double((long long)((gm_sum_int)v.w << 32 | v.z));
    }
};

/* What a sum of nothing holds; an integer's is 0. */
template <typename A> __device__ __forceinline__ A gm_sum_zero()
{
    return (A)-0.0;
}

/* An item from any address. */
template <class S> __device__ __forceinline__ typename S::acc gm_sum_item(const char *at)
{
    return S::value(*(const typename S::bits *)at);
}

template <class S> __device__ __forceinline__ typename S::acc gm_sum_item_bytewise(const char *at)
{
    typename S::bits item;
    for (int i = 0; i < (int)sizeof item; i++)
        ((char *)&item)[i] = at[i];
    return S::value(item);
}

/* ---- results ---- */

__device__ __forceinline__ void gm_sum_store_float(char *at, int to, double x)
{
    switch (to) {
    case GM_float16:
        *(unsigned short *)at = gm_sum_narrow(x, 10, -14);
        break;
    case GM_bfloat16:
        *(unsigned short *)at = gm_sum_narrow(x, 7, -126);
        break;
    case GM_float32:
        *(float *)at = (float)x;
        break;
    case GM_float64:
        *(double *)at = x;
        break;
    case GM_complex64: /* of a real sum */
        ((float *)at)[0] = (float)x;
        ((float *)at)[1] = 0;
        break;
    default:
        ((double *)at)[0] = x;
        ((double *)at)[1] = 0;
    }
}

__device__ __forceinline__ void gm_sum_store_any(char *at, const gm_sum &sum, double x)
{
    gm_sum_store_float(at, sum.to, x);
}

__device__ __forceinline__ void gm_sum_store_any(char *at, const gm_sum &sum, gm_sum_int x)
{
    switch (sum.to) {
    case GM_bool:
        *at = x != 0;
        break;
    case GM_int8:
    case GM_uint8:
        *(unsigned char *)at = (unsigned char)x;
        break;
    case GM_int16:
    case GM_uint16:
        *(unsigned short *)at = (unsigned short)x;
        break;
    case GM_int32:
    case GM_uint32:
        *(unsigned int *)at = (unsigned int)x;
        break;
    case GM_int64:
    case GM_uint64:
        *(gm_sum_int *)at = x;
        break;
    case GM_float32: /* rounded once: not by way of float64 */
    case GM_complex64:
        ((float *)at)[0] = sum.is_unsigned ? (float)x : (float)(long long)x;
        if (sum.to == GM_complex64)
            ((float *)at)[1] = 0;
        break;
    default:
        gm_sum_store_float(at, sum.to, sum.is_unsigned ? (double)x : (double)(long long)x);
    }
}

template <class S> __device__ __forceinline__ void gm_sum_store(char *at, const gm_sum &sum, typename S::acc x)
{
    if (sum.usual)
        *(typename S::usual *)at = S::result(x);
    else
        gm_sum_store_any(at, sum, x);
}
