/* Bulk asynchronous copies, by the engine that chips have from sm_90 on, between global and shared memory. On a CPU they
 * are done at once; earlier chips get no such launch (csrc/cuda/lesson_copy.c, lesson_transpose.c). */
#pragma once

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
#define GM_SHARED(pointer) ((unsigned int)__cvta_generic_to_shared(pointer))

/* A barrier in shared memory that one load is waited for at. */
__device__ __forceinline__ void gm_bulk_begin(unsigned long long *come)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(GM_SHARED(come)) : "memory");
}

/* What this thread wrote to shared memory, and its barriers, as the engine and the block's other threads see them. */
__device__ __forceinline__ void gm_bulk_visible(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void gm_bulk_expect(unsigned long long *come, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(GM_SHARED(come)), "r"(bytes) : "memory");
}

/* `bytes` and both places are multiples of 16. */
__device__ __forceinline__ void gm_bulk_load(void *to, const void *from, int bytes, unsigned long long *come)
{
    gm_bulk_expect(come, bytes);
    asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     GM_SHARED(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(GM_SHARED(come))
                 : "memory");
}

/* The box of a tensor map that begins at this column, row and matrix, of so many bytes. */
__device__ __forceinline__ void gm_bulk_load_tile(void *to, const void *map, int column, int row, int matrix, int bytes, unsigned long long *come)
{
    gm_bulk_expect(come, bytes);
    asm volatile("cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
                     GM_SHARED(to)),
                 "l"(map), "r"(column), "r"(row), "r"(matrix), "r"(GM_SHARED(come))
                 : "memory");
}

/* Until the barrier's first phase is over. */
__device__ __forceinline__ void gm_bulk_wait(unsigned long long *come)
{
    asm volatile("{\n.reg .pred done;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra wait;\n\t}" ::"r"(
                     GM_SHARED(come))
                 : "memory");
}

__device__ __forceinline__ void gm_bulk_store(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(
                     __cvta_generic_to_global(to)),
                 "r"(GM_SHARED(from)), "r"(bytes)
                 : "memory");
}

/* Until this thread's stores have read what they write. */
__device__ __forceinline__ void gm_bulk_stored(void)
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#else
__device__ __forceinline__ void gm_bulk_begin(unsigned long long *) {}
__device__ __forceinline__ void gm_bulk_visible(void) {}
__device__ __forceinline__ void gm_bulk_wait(unsigned long long *) {}
__device__ __forceinline__ void gm_bulk_stored(void) {}
#endif

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
__device__ __forceinline__ void gm_bulk_load(void *, const void *, int, unsigned long long *) {}
__device__ __forceinline__ void gm_bulk_load_tile(void *, const void *, int, int, int, int, unsigned long long *) {}
__device__ __forceinline__ void gm_bulk_store(void *, const void *, int) {}
#elif !defined __CUDA_ARCH__
__device__ __forceinline__ void gm_bulk_load(void *to, const void *from, int bytes, unsigned long long *)
{
    memcpy(to, from, (size_t)bytes);
}

/* A map as tests/native/fake_cuda.cpp makes it: address, item size, columns, rows, matrices, pitch, step, box. */
__device__ __forceinline__ void gm_bulk_load_tile(void *to, const void *map, int column, int row, int matrix, int, unsigned long long *)
{
    const long long *of = (const long long *)map;
    long long size = of[1], wide = of[7], high = of[8];

    for (long long r = 0; r < high; r++)
        for (long long c = 0; c < wide; c++) {
            char *place = (char *)to + r * 128 + ((c * size / 16 ^ (r & 7)) * 16) + c * size % 16;
            if (column + c < of[2] && row + r < of[3] && matrix < of[4])
                memcpy(place, (const char *)of[0] + matrix * of[6] + (row + r) * of[5] + (column + c) * size, (size_t)size);
            else
                memset(place, 0, (size_t)size);
        }
}

__device__ __forceinline__ void gm_bulk_store(void *to, const void *from, int bytes)
{
    memcpy(to, from, (size_t)bytes);
}
#endif
