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
