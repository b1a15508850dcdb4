/* Accesses of which the assembler makes one instruction each: it merges two plain ones whose items lie side by side, and
 * then a stage would no longer show what its source says. */
#pragma once

template <typename T> __device__ __forceinline__ T gm_get(const T *from)
{
    return *(const volatile T *)from;
}

template <typename T> __device__ __forceinline__ void gm_put(T *to, T value)
{
    *(volatile T *)to = value;
}

/* Sixteen bytes are the most that one access moves; there is nothing to merge them with. */
template <> __device__ __forceinline__ uint4 gm_get(const uint4 *from)
{
    return *from;
}

template <> __device__ __forceinline__ void gm_put(uint4 *to, uint4 value)
{
    *to = value;
}
