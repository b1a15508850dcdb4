// Kernels for tests/test_lens_machine.py: what lanes, warps and blocks do together. Compiled with
// nvcc -ptx -O3 -arch=sm_90 -std=c++17 -lineinfo machine.cu
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void

// Each thread is alone with the lock for a while; lanes of one warp wait for one another.
KERNEL spin_lock(int *lock, int *count) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *count = *(volatile int *)count + 1;
    __threadfence();
    atomicExch(lock, 0);
}

// Block b adds to what block b + 1 (backwards) or b - 1 has made: some blocks wait for later ones.
KERNEL chain(volatile int *done, int blocks, int backwards) {
    int b = blockIdx.x, before = backwards ? b + 1 : b - 1;
    if (threadIdx.x) return;
    int sum = 0;
    if (before >= 0 && before < blocks) while ((sum = done[before]) == 0) {}
    done[b] = sum + 1;
}

// Trip counts differ by lane; all meet again behind the loop, where the warp's mask says so.
KERNEL meets(unsigned *mask, int *sum) {
    int t = threadIdx.x, s = 0;
    for (int i = 0; i <= t % 7; i++) s += i * (t & 1 ? 2 : 1);
    if (t % 3 == 0) s = -s;
    else if (t % 3 == 1) s += 100;
    mask[t] = __activemask();
    sum[t] = s;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL recursion(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

KERNEL local_array(int *out, int k) {
    int a[20];
    for (int i = 0; i < 20; i++) a[i] = i * k;
    for (int i = 1; i < 20; i += 3) a[i] += a[(i * 7 + threadIdx.x) % 20];
    out[threadIdx.x] = a[(threadIdx.x * 7) % 20];
}

__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int counter = 40;
KERNEL variables(int *out) {
    out[threadIdx.x] = table[threadIdx.x % 8];
    if (threadIdx.x == 0) out[32] = atomicAdd(&counter, 2), out[33] = counter;
}

KERNEL switched(int *out) {
    int t = threadIdx.x, r;
    switch (t % 9) {
    case 0: r = t * 3; break;
    case 1: r = t - 7; break;
    case 2: r = t ^ 21; break;
    case 3: r = __popc(t); break;
    case 4: r = t * t; break;
    case 5: r = ~t; break;
    case 6: r = t << 3; break;
    case 7: r = t / 3; break;
    default: r = 1000 + t;
    }
    out[t] = r;
}

// Every thread tells its warp's and its block's votes.
KERNEL votes(unsigned *out) {
    int t = threadIdx.x;
    out[t * 6 + 0] = __ballot_sync(~0u, t % 5 == 0);
    out[t * 6 + 1] = __match_any_sync(~0u, t % 3);
    out[t * 6 + 2] = __reduce_max_sync(~0u, (unsigned)(t * 37 % 64));
    out[t * 6 + 3] = __syncthreads_count(t % 4 == 1);
    out[t * 6 + 4] = __syncthreads_or(t == 77) != 0;
    out[t * 6 + 5] = __shfl_xor_sync(~0u, t, 5);
}

// One half of the warps produces what the other consumes, through two named barriers.
KERNEL named_barriers(int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int i = 0; i < 4; i++) {
        if (t < 64) {
            s[t] = t * 10 + i;
            asm volatile("bar.sync 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[i * 64 + t - 64] = s[127 - t];
            asm volatile("bar.sync 2, 128;" ::: "memory");
        }
    }
}

KERNEL pipeline(int *out, const int *in) {
    __shared__ int s[256];
    __pipeline_memcpy_async(s + threadIdx.x, in + threadIdx.x, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

KERNEL barrier_object(int *out) {
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t == 0) init(&b, blockDim.x);
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        s[t] = t + i;
        auto token = b.arrive();
        b.wait(std::move(token));
        out[i * 64 + t] = s[63 - t];
        b.arrive_and_wait();
    }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_exchange(int *out) {
    extern __shared__ int s[];
    cg::cluster_group c = cg::this_cluster();
    s[threadIdx.x] = c.block_rank() * 100 + threadIdx.x;
    c.sync();
    int *other = c.map_shared_rank(s, c.block_rank() ^ 1);
    out[blockIdx.x * blockDim.x + threadIdx.x] = other[threadIdx.x];
    c.sync();
}

KERNEL grid_barrier(int *out, int blocks) {
    out[blockIdx.x] = blockIdx.x + 1;
    cg::this_grid().sync();
    int sum = 0;
    for (int i = 0; i < blocks; i++) sum += ((volatile int *)out)[i];
    out[blocks + blockIdx.x] = sum;
}

// A 16 x 8 product of halves, its operands by ldmatrix.
KERNEL product(float *d, const half *a, const half *b) {
    __shared__ __align__(16) half sa[256], sb[128];
    int l = threadIdx.x, g = l / 4, t = l % 4;
    for (int i = l; i < 256; i += 32) sa[i] = a[i];
    for (int i = l; i < 128; i += 32) sb[i] = b[i];
    __syncwarp();
    unsigned a0, a1, a2, a3, b0, b1;
    unsigned pa = __cvta_generic_to_shared(sa + l % 16 * 16 + l / 16 * 8);
    unsigned pb = __cvta_generic_to_shared(sb + l % 8 * 16 + l / 8 % 2 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(pb));
    float c[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
}

KERNEL product_s8(int *d, const int *a, const int *b) {
    int l = threadIdx.x, g = l / 4, t = l % 4, c[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[g * 8 + t]), "r"(a[g * 8 + 64 + t]), "r"(a[g * 8 + t + 4]), "r"(a[g * 8 + 64 + t + 4]),
                   "r"(b[g * 8 + t]), "r"(b[g * 8 + t + 4]));
    for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
}

KERNEL product_wmma(float *c, const half *a, const half *b) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    fill_fragment(fc, 1);
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    mma_sync(fc, fa, fb, fc);
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 2;
    store_matrix_sync(c, fc, 16, mem_row_major);
}

KERNEL bulk(float *out, const float *in) {
    __shared__ __align__(128) float s[256];
    __shared__ __align__(8) unsigned long long b;
    unsigned ps = __cvta_generic_to_shared(s), pb = __cvta_generic_to_shared(&b);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(pb) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(pb) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                     ::"r"(ps), "l"(in), "r"(pb) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }"
                 ::"r"(pb) : "memory");
    s[threadIdx.x] *= 2;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(out), "r"(ps) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// Sums in any order, counters of every kind.
KERNEL histogram(int *bins, unsigned *most, const unsigned char *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(bins + in[i], 1);
        atomicMax(most, (unsigned)in[i] * (i % 101));
    }
}
