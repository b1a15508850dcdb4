/* Copies from global to shared memory that a thread does not wait for; chips before sm_80 copy at once. */
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
