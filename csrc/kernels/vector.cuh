/* What 16-byte vectors need. */
#pragma once

/* Bytes [shift, shift + 16) of two vectors; shift is a multiple of GRAIN. */
template <int GRAIN> __device__ __forceinline__ uint4 gm_shifted(uint4 low, uint4 high, int shift)
{
    unsigned int word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    int bits = (shift & 3) * 8;

#pragma unroll
    for (int i = 0; i < 6; i++)
        word[i] = shift & 8 ? word[i + 2] : word[i];
#pragma unroll
    for (int i = 0; i < 5; i++)
        word[i] = GRAIN <= 4 && shift & 4 ? word[i + 1] : word[i];
    if (GRAIN >= 4)
        return make_uint4(word[0], word[1], word[2], word[3]);
    return make_uint4(__funnelshift_r(word[0], word[1], bits), __funnelshift_r(word[1], word[2], bits),
                      __funnelshift_r(word[2], word[3], bits), __funnelshift_r(word[3], word[4], bits));
}

/* A vector's words, each `by` places further on, the last ones first. */
__device__ __forceinline__ uint4 gm_words_later(const uint4 &v, int by)
{
    uint4 one = by & 1 ? make_uint4(v.w, v.x, v.y, v.z) : v;
    return by & 2 ? make_uint4(one.z, one.w, one.x, one.y) : one;
}

/* Its bytes, each `by` places further on, the last ones first; GRAIN divides `by`. */
template <int GRAIN> __device__ __forceinline__ uint4 gm_later(const uint4 &vector, int by)
{
    uint4 v = gm_words_later(vector, by >> 2);
    int bits = 32 - (by & 3) * 8;

    if (GRAIN >= 4 || (by & 3) == 0) /* a shift by 32 would be one by 0 */
        return v;
    return make_uint4(__funnelshift_r(v.w, v.x, bits), __funnelshift_r(v.x, v.y, bits), __funnelshift_r(v.y, v.z, bits),
                      __funnelshift_r(v.z, v.w, bits));
}

/* And back again. */
template <int GRAIN> __device__ __forceinline__ uint4 gm_earlier(const uint4 &vector, int by)
{
    uint4 v = gm_words_later(vector, -(by >> 2) & 3);
    int bits = (by & 3) * 8;

    if (GRAIN >= 4)
        return v;
    return make_uint4(__funnelshift_r(v.x, v.y, bits), __funnelshift_r(v.y, v.z, bits), __funnelshift_r(v.z, v.w, bits),
                      __funnelshift_r(v.w, v.x, bits));
}

/* Its items of UNIT bytes, the last one first. */
template <int UNIT> __device__ __forceinline__ uint4 gm_reversed(const uint4 &v)
{
    constexpr unsigned int ORDER = UNIT == 1 ? 0x0123 : 0x1032;

    if (UNIT == 8)
        return make_uint4(v.z, v.w, v.x, v.y);
    if (UNIT == 4)
        return make_uint4(v.w, v.z, v.y, v.x);
    return make_uint4(__byte_perm(v.w, 0, ORDER), __byte_perm(v.z, 0, ORDER), __byte_perm(v.y, 0, ORDER),
                      __byte_perm(v.x, 0, ORDER));
}

/* Every second item of UNIT bytes of two vectors, from the first on. */
template <int UNIT> __device__ __forceinline__ uint4 gm_every_second(const uint4 &low, const uint4 &high)
{
    constexpr unsigned int ORDER = UNIT == 1 ? 0x6420 : 0x5410;

    if (UNIT == 8)
        return make_uint4(low.x, low.y, high.x, high.y);
    if (UNIT == 4)
        return make_uint4(low.x, low.z, high.x, high.z);
    return make_uint4(__byte_perm(low.x, low.y, ORDER), __byte_perm(low.z, low.w, ORDER),
                      __byte_perm(high.x, high.y, ORDER), __byte_perm(high.z, high.w, ORDER));
}

/* The first `count` bytes of one vector, and the others of the next; count < 16. */
__device__ __forceinline__ uint4 gm_joined(const uint4 &one, const uint4 &next, int count)
{
    const unsigned int a[4] = {one.x, one.y, one.z, one.w}, b[4] = {next.x, next.y, next.z, next.w};
    unsigned int word[4];

#pragma unroll
    for (int k = 0; k < 4; k++) {
        unsigned int kept = (unsigned int)((1ull << min(max(count - 4 * k, 0), 4) * 8) - 1);
        word[k] = (a[k] & kept) | (b[k] & ~kept);
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* A store under a condition, of which the compiler makes no branch: what is stored is made in any case, together with
 * what comes before and after. */
__device__ __forceinline__ void gm_store_if(bool there, void *to, const uint4 &vector)
{
#ifdef __CUDA_ARCH__
    asm volatile("{\n.reg .pred there;\nsetp.ne.s32 there, %0, 0;\n@there st.global.v4.u32 [%1], {%2, %3, %4, %5};\n}"
                 :
                 : "r"((int)there), "l"(__cvta_generic_to_global(to)), "r"(vector.x), "r"(vector.y), "r"(vector.z),
                   "r"(vector.w));
#else
    if (there)
        *(uint4 *)to = vector;
#endif
}
