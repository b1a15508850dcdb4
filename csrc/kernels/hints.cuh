/* Accesses for which the first-level cache gives no place up, of every size; there is no function for them. */
#pragma once

#ifdef __CUDA_ARCH__
#define GM_NO_ALLOCATE(type, code, letter, register_type)                                                              \
    __device__ __forceinline__ type gm_get_no_allocate(const type *from)                                               \
    {                                                                                                                  \
        register_type item;                                                                                            \
        asm volatile("ld.global.L1::no_allocate." code " %0, [%1];"                                                    \
                     : "=" letter(item)                                                                                \
                     : "l"(__cvta_generic_to_global(from)));                                                           \
        return (type)item;                                                                                             \
    }                                                                                                                  \
    __device__ __forceinline__ void gm_put_no_allocate(type *to, type item)                                            \
    {                                                                                                                  \
        asm volatile("st.global.L1::no_allocate." code " [%0], %1;"                                                    \
                     :                                                                                                 \
                     : "l"(__cvta_generic_to_global(to)), letter((register_type)item)                                  \
                     : "memory");                                                                                      \
    }
GM_NO_ALLOCATE(unsigned char, "u8", "h", unsigned short)
GM_NO_ALLOCATE(unsigned short, "u16", "h", unsigned short)
GM_NO_ALLOCATE(unsigned int, "u32", "r", unsigned int)
GM_NO_ALLOCATE(unsigned long long, "u64", "l", unsigned long long)

__device__ __forceinline__ uint4 gm_get_no_allocate(const uint4 *from)
{
    uint4 item;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(item.x), "=r"(item.y), "=r"(item.z), "=r"(item.w)
                 : "l"(__cvta_generic_to_global(from)));
    return item;
}

__device__ __forceinline__ void gm_put_no_allocate(uint4 *to, uint4 item)
{
    asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(to)), "r"(item.x), "r"(item.y), "r"(item.z), "r"(item.w)
                 : "memory");
}
#else
template <typename T> __device__ __forceinline__ T gm_get_no_allocate(const T *from)
{
    return *from;
}

template <typename T> __device__ __forceinline__ void gm_put_no_allocate(T *to, T item)
{
    *to = item;
}
#endif
