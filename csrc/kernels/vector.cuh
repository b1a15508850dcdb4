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
