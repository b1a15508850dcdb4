/* Copies that a thread does not wait for: from global to shared memory, where chips before sm_80 copy at once, and to
 * the second-level cache, for which chips before sm_90 do nothing. */
#pragma once

/* Sixteen bytes; both places are aligned to 16. */
__device__ __forceinline__ void gm_async_copy(void *shared, const void *global)
{
#if __CUDA_ARCH__ >= 800
    unsigned int place = (unsigned int)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(global) : "memory");
#else
    *(uint4 *)shared = *(const uint4 *)global;
#endif
}

/* The same; the second-level cache reads all of the aligned 256 bytes around it from memory. */
__device__ __forceinline__ void gm_async_copy_wide(void *shared, const void *global)
{
#if __CUDA_ARCH__ >= 800
    unsigned int place = (unsigned int)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(place), "l"(global) : "memory");
#else
    *(uint4 *)shared = *(const uint4 *)global;
#endif
}

/* A word of 4, 8 or 16 bytes, aligned on both sides. */
template <typename W> __device__ __forceinline__ void gm_async_word(W *shared, const W *global)
{
#if __CUDA_ARCH__ >= 800
    unsigned int place = (unsigned int)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(global), "n"(sizeof(W)) : "memory");
#else
    *shared = *global;
#endif
}

__device__ __forceinline__ void gm_async_commit(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* For this thread's copies; a barrier makes them seen by the others. */
__device__ __forceinline__ void gm_async_wait(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* For all but this thread's last so many groups of copies. */
template <int GROUPS> __device__ __forceinline__ void gm_async_wait_but(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}

/* Has what another block will read brought to the second-level cache; both are multiples of 16. */
__device__ __forceinline__ void gm_async_prefetch(const char *from, int bytes)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
#else
    (void)from;
    (void)bytes;
#endif
}
