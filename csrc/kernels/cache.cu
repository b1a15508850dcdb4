/* Copies of one item a thread whose load, or whose store, tells the caches something: out[i] = in[i].
 *
 * Must move 2 * n * sizeof(T) bytes. A warp's load and its store touch 4 sectors each for 4-byte items, whatever the hint:
 * hints change what the caches keep, never how much moves, so that a copy, which uses nothing twice, shows next to no
 * difference: on an H200 every stage reaches 0.63-0.65 of the fastest copy. Limited by bytes in flight: one item a thread.
 */
#include "access.cuh"
#include "hints.cuh"

/* How an item is loaded, or stored: all that sets the stages apart. */
struct gm_plain {
    template <typename T> static __device__ __forceinline__ T get(const T *from) { return gm_get(from); }
    template <typename T> static __device__ __forceinline__ void put(T *to, T item) { gm_put(to, item); }
};
#define GM_LOAD(name, load)                                                                                            \
    struct name : gm_plain {                                                                                           \
        template <typename T> static __device__ __forceinline__ T get(const T *from) { return load(from); }            \
    };
#define GM_STORE(name, store)                                                                                          \
    struct name : gm_plain {                                                                                           \
        template <typename T> static __device__ __forceinline__ void put(T *to, T item) { store(to, item); }           \
    };
GM_LOAD(gm_ldg, __ldg)    /* ld.global.nc: data that nobody writes meanwhile */
GM_LOAD(gm_ld_ca, __ldca) /* cached at all levels: what a plain load does */
GM_LOAD(gm_ld_cg, __ldcg) /* in the second level only */
GM_LOAD(gm_ld_cs, __ldcs) /* first to go: used once */
GM_LOAD(gm_ld_cv, __ldcv) /* fetched again: another may have written it */
GM_STORE(gm_st_cg, __stcg) /* in the second level only */
GM_STORE(gm_st_cs, __stcs) /* first to go */
GM_STORE(gm_st_wt, __stwt) /* through the second level to memory */
struct gm_no_allocate {    /* no place of the first level is given up for it */
    template <typename T> static __device__ __forceinline__ T get(const T *from) { return gm_get_no_allocate(from); }
    template <typename T> static __device__ __forceinline__ void put(T *to, T item) { gm_put_no_allocate(to, item); }
};

template <typename T, typename H> __device__ __forceinline__ void cache(T *__restrict__ out, const T *__restrict__ in, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        H::put(out + i, H::get(in + i));
}

#define GM_KERNEL(stage, hint, size, type)                                                                             \
    extern "C" __global__ void __launch_bounds__(256) stage##_##size(type *__restrict__ out, const type *__restrict__ in, long long n) \
    {                                                                                                                  \
        cache<type, hint>(out, in, n);                                                                                 \
    }
#define GM_KERNELS(stage, hint)                   \
    GM_KERNEL(stage, hint, 1, unsigned char)      \
    GM_KERNEL(stage, hint, 2, unsigned short)     \
    GM_KERNEL(stage, hint, 4, unsigned int)       \
    GM_KERNEL(stage, hint, 8, unsigned long long) \
    GM_KERNEL(stage, hint, 16, uint4)

GM_KERNELS(cache_load_default, gm_plain)
GM_KERNELS(cache_load_ldg, gm_ldg)
GM_KERNELS(cache_load_ca, gm_ld_ca)
GM_KERNELS(cache_load_cg, gm_ld_cg)
GM_KERNELS(cache_load_cs, gm_ld_cs)
GM_KERNELS(cache_load_cv, gm_ld_cv)
GM_KERNELS(cache_store_default, gm_plain)
GM_KERNELS(cache_store_cg, gm_st_cg)
GM_KERNELS(cache_store_cs, gm_st_cs)
GM_KERNELS(cache_store_wt, gm_st_wt)
GM_KERNELS(cache_no_allocate, gm_no_allocate)
