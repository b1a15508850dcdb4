#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/atomic>
#include <cuda/semaphore>
#include <cuda/latch>
#include <cuda/std/complex>
namespace cg = cooperative_groups;
__global__ void k1(float *x, int n)
{
    auto b = cg::this_thread_block();
    auto w = cg::tiled_partition<32>(b);
    auto t8 = cg::tiled_partition<8>(b);
    float v = x[b.thread_rank()];
    v = cg::reduce(w, v, cg::plus<float>());
    v += cg::reduce(t8, v, cg::less<float>());
    int i = cg::reduce(w, (int)v, cg::plus<int>());
    i += cg::inclusive_scan(w, i);
    i += cg::exclusive_scan(t8, i, cg::bit_or<int>());
    auto c = cg::coalesced_threads();
    i += c.thread_rank() + c.size();
    if (c.any(i))
        i += c.ballot(i & 1);
    i += c.shfl(i, 0);
    auto lp = cg::labeled_partition(w, i & 3);
    i += lp.size();
    auto bp = cg::binary_partition(w, i & 1);
    i += bp.num_threads();
    b.sync();
    x[b.thread_rank()] = v + i;
}
__global__ void k2(float *x)
{
    auto g = cg::this_grid();
    x[g.thread_rank()] = 1;
    g.sync();
    x[0] = x[1];
}
__global__ void __cluster_dims__(2, 1, 1) k3(float *x)
{
    __shared__ float s[64];
    auto c = cg::this_cluster();
    s[threadIdx.x] = x[threadIdx.x];
    c.sync();
    float *o = c.map_shared_rank(s, c.block_rank() ^ 1);
    x[threadIdx.x] = o[threadIdx.x];
    auto tok = c.barrier_arrive();
    c.barrier_wait(std::move(tok));
}
__global__ void k4(float4 *x, float4 *y)
{
    extern __shared__ float4 sm[];
    auto b = cg::this_thread_block();
    cg::memcpy_async(b, sm, x, 1024);
    cg::wait(b);
    y[threadIdx.x] = sm[threadIdx.x];
}
__global__ void k5(float *x, float *y)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float s[1024];
    auto b = cg::this_thread_block();
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    b.sync();
    cuda::memcpy_async(b, s, x, cuda::aligned_size_t<16>(4096), bar);
    bar.arrive_and_wait();
    y[threadIdx.x] = s[threadIdx.x];
}
__global__ void k6(float *x, float *y)
{
    __shared__ float s[2][256];
    auto p = cuda::make_pipeline();
    for (int i = 0; i < 4; i++) {
        p.producer_acquire();
        cuda::memcpy_async(&s[i & 1][threadIdx.x], x + i * 256 + threadIdx.x, 4, p);
        p.producer_commit();
        p.consumer_wait();
        y[threadIdx.x] += s[i & 1][threadIdx.x];
        p.consumer_release();
    }
}
__global__ void k7(int *x)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> a(*x);
    a.fetch_add(1, cuda::memory_order_acq_rel);
    a.fetch_max(3);
    a.store(1, cuda::memory_order_release);
    int e = 3;
    a.compare_exchange_strong(e, 4);
    x[1] = a.load(cuda::memory_order_acquire);
    a.notify_all();
    cuda::atomic_ref<int, cuda::thread_scope_system> s(x[2]);
    s.fetch_and(3);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
    cuda::atomic_ref<unsigned long long> u(*(unsigned long long *)(x + 4));
    u.fetch_xor(7);
    cuda::atomic_ref<short> sh(*(short *)(x + 8));
    sh.fetch_add(1);
    cuda::atomic_ref<double> dd(*(double *)(x + 12));
    dd.fetch_add(1.0);
}
__global__ void k8(cuda::std::complex<float> *z)
{
    z[threadIdx.x] = exp(z[threadIdx.x]) * z[0] / z[1];
}
