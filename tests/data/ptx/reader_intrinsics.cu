#include <cstdint>
#include <cstdio>
#include <cassert>
#include <mma.h>
using namespace nvcuda;
__constant__ float ctab[16] = {1, 2, 3};
__device__ int gtab[4] = {1, 2, 3, 4};
__device__ const char *str = "hello";
__device__ int *ptr = &gtab[2];
struct S {
    char c;
    short s;
    int i;
    double d;
};
__device__ S sv = {1, 2, 3, 4.0};
__device__ int (*fp)(int);
__device__ __noinline__ int f1(int x)
{
    return x * 3 + gtab[x & 3];
}
__device__ __noinline__ int f2(int x)
{
    return x < 2 ? x : f2(x - 1) + f2(x - 2);
}
__device__ __noinline__ float4 f3(float4 a, S s)
{
    a.x += s.d;
    return a;
}
__global__ void calls(int *x, int sel, S s)
{
    int (*tab[2])(int) = {f1, f2};
    x[0] = tab[sel](x[1]);
    fp = f1;
    x[2] = fp(x[3]);
    float4 a = make_float4(1, 2, 3, 4);
    a = f3(a, s);
    x[4] = a.x;
    printf("%d %s\n", x[0], str);
    assert(x[5] > 0);
    int *p = (int *)malloc(16);
    p[0] = 1;
    free(p);
}
__global__ void sw(int *x, int k)
{
    switch (k) {
    case 0:
        x[0] = 1;
        break;
    case 1:
        x[0] = 5;
        x[2] = 3;
        break;
    case 2:
        x[1] = 7;
        break;
    case 3:
        x[3] *= 7;
        break;
    case 4:
        x[1] += x[9];
        break;
    case 5:
        x[8] = 1;
        break;
    case 6:
        x[9] = f2(3);
        break;
    case 7:
        x[5] /= 3;
        break;
    case 8:
        __syncthreads();
        break;
    default:
        x[7] = 0;
    }
}
__global__ void ints(int *x, unsigned *u, long long *l, unsigned long long *ul)
{
    int a = x[0], b = x[1], c = x[2];
    unsigned p = u[0], q = u[1];
    unsigned long long m = ul[0], n = ul[1];
    long long j = l[0], k = l[1];
    x[0] = __clz(a) + __clzll(j) + __popc(p) + __popcll(m) + __ffs(a) + __ffsll(j) + __brev(p) + __brevll(m);
    u[2] = __byte_perm(p, q, 0x3210);
    x[3] = __mulhi(a, b);
    u[3] = __umulhi(p, q);
    ul[2] = __umul64hi(m, n);
    l[2] = __mul64hi(j, k);
    x[4] = __mul24(a, b);
    u[4] = __umul24(p, q);
    x[5] = __sad(a, b, p);
    u[5] = __usad(p, q, p);
    x[6] = __hadd(a, b);
    x[7] = __rhadd(a, b);
    u[6] = __funnelshift_l(p, q, a);
    u[7] = __funnelshift_rc(p, q, a);
    u[8] = __vadd2(p, q);
    u[9] = __vadd4(p, q);
    u[10] = __vabsdiffu4(p, q);
    u[11] = __vavgu2(p, q);
    u[12] = __vmaxs4(p, q);
    u[13] = __vsadu4(p, q);
    u[14] = __vcmpgtu4(p, q);
    u[15] = __vaddss2(p, q);
    u[16] = __vabs4(p);
    u[17] = __vsetgeu2(p, q);
    u[18] = __vminu2(p, q);
    u[19] = __vsubus4(p, q);
    u[30] = __vimax3_s32(a, b, c);
    u[31] = __vibmax_s32(a, b, (bool *)(u + 40));
    u[32] = __viaddmax_s32(a, b, c);
    u[33] = __vimax_s16x2_relu(p, q);
    u[34] = __viaddmin_u16x2(p, q, p);
    x[8] = __dp4a(a, b, c);
    u[20] = __dp4a(p, q, p);
    x[9] = __dp2a_lo(a, b, c);
    u[21] = __dp2a_hi(p, q, p);
    l[3] = j / k;
    l[4] = j % k;
    ul[3] = m / n;
    ul[4] = m % n;
    x[10] = a / b;
    x[11] = a % b;
    u[22] = p / q;
    u[23] = p % q;
    l[5] = j * k;
    l[6] = j >> a;
    ul[5] = m << b;
    x[12] = min(a, b);
    l[7] = max(j, k);
    x[13] = abs(a);
    l[8] = llabs(j);
    uint8_t *u8 = (uint8_t *)u;
    int16_t *s16 = (int16_t *)x;
    u8[100] = u8[101] * u8[102];
    s16[100] = s16[101] / s16[102];
    u8[103] = (uint8_t)s16[103];
    x[20] = (int8_t)u8[104];
    __int128 t = (__int128)j * k;
    l[10] = t >> 64;
    unsigned __int128 t2 = (unsigned __int128)m * n + m;
    ul[10] = t2 / 3;
}
__global__ void flts(float *f, double *d, int *i, long long *l)
{
    float a = f[0], b = f[1], c = f[2];
    double x = d[0], y = d[1], z = d[2];
    f[0] = sqrtf(a) + rsqrtf(b) + floorf(a) + ceilf(b) + truncf(a) + rintf(b) + copysignf(a, b) + fmaf(a, b, c) +
           fminf(a, b) + fmaxf(a, b) + fabsf(a) + exp2f(a);
    f[1] = __sinf(a) + __cosf(b) + __expf(a) + __logf(b) + __powf(a, b) + __fdividef(a, b) + __saturatef(a) +
           __tanf(b) + __exp10f(a) + __frsqrt_rn(a) + __fsqrt_rz(a) + __frcp_ru(b) + __fdiv_rd(a, b) + __fadd_ru(a, b) +
           __fmul_rz(a, b) + __fmaf_rd(a, b, c) + a / b;
    d[0] = sqrt(x) + floor(x) + ceil(y) + trunc(x) + rint(y) + fma(x, y, z) + fmin(x, y) + x / y + __ddiv_ru(x, y) +
           __drcp_rn(x) + __dsqrt_rd(y) + __dadd_rz(x, y) + __fma_ru(x, y, z);
    i[0] = (int)a;
    i[1] = (unsigned)b;
    l[0] = (long long)a;
    l[1] = (unsigned long long)x;
    f[2] = (float)i[2];
    f[3] = (float)l[2];
    d[3] = (double)i[3];
    d[4] = (double)(unsigned long long)l[3];
    f[4] = (float)x;
    d[5] = a;
    i[4] = __float2int_rd(a);
    i[5] = __double2int_ru(x);
    i[6] = __float_as_int(a);
    l[4] = __double_as_longlong(x);
    i[7] = __double2hiint(x);
    d[6] = __hiloint2double(i[8], i[9]);
    f[5] = __int2float_rz(i[10]);
    f[6] = __ull2float_ru(l[5]);
    f[7] = __double2float_rd(x);
    i[11] = isnan(a) + isinf(b) + isfinite(x) + signbit(a);
    i[12] = (a < b) + (x >= y) + (a != b) + !(a < b);
    i[13] = __float2uint_rn(a);
    f[15] = ctab[i[21] & 15];
    char ch = (char)a;
    ((char *)i)[100] = ch;
    short sh = (short)x;
    ((short *)i)[60] = sh;
}
__global__ void warp(int *x, unsigned long long *u, float *f)
{
    int t = threadIdx.x, v = x[t];
    unsigned m = __activemask();
    v += __shfl_sync(m, v, 0);
    v += __shfl_up_sync(~0u, v, 1);
    v += __shfl_down_sync(~0u, v, 2, 16);
    v += __shfl_xor_sync(~0u, v, 4);
    u[0] = __shfl_sync(~0u, u[1], 3);
    f[0] = __shfl_sync(~0u, f[t], 1);
    v += __any_sync(~0u, v) + __all_sync(~0u, v) + __ballot_sync(~0u, v) + __uni_sync(~0u, v);
    int pr;
    v += __match_any_sync(~0u, v) + __match_all_sync(~0u, v, &pr) + pr;
    v += __match_any_sync(~0u, u[2]);
    v += __reduce_add_sync(~0u, v) + __reduce_max_sync(~0u, v) + __reduce_or_sync(~0u, (unsigned)v) +
         __reduce_min_sync(~0u, (unsigned)v);
    __syncwarp();
    __syncwarp(0xff);
    v += __syncthreads_count(v) + __syncthreads_and(v) + __syncthreads_or(v);
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    x[t] = v;
    unsigned l;
    asm("mov.u32 %0, %%laneid;" : "=r"(l));
    x[t + 1] = l;
    u[5] = clock64();
    x[5] = clock();
    __nanosleep(100);
    unsigned long long gt;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(gt));
    u[6] = gt;
    x[8] = __isGlobal(x) + __isShared(x) + __isConstant(x) + __isLocal(x);
    u[7] = __cvta_generic_to_shared(x);
    u[8] = (unsigned long long)__cvta_global_to_generic(u[7]);
    __prof_trigger(1);
    if (v == 77)
        __trap();
    if (v == 78)
        __brkpt();
    x[9] = __fns(v, 0, 2);
}
__global__ void atoms(int *x, unsigned *u, unsigned long long *l, float *f, double *d, short *h)
{
    __shared__ int s[32];
    __shared__ unsigned long long sl[2];
    __shared__ float sf[2];
    s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(s, 1);
    x[0] = atomicAdd(s + 1, 2);
    atomicMax(s + 2, 3);
    atomicCAS(s + 3, 0, 1);
    atomicExch(s + 4, 9);
    atomicAnd(s + 5, 3);
    atomicAdd(sl, 5ull);
    atomicAdd(sf, 1.f);
    atomicInc((unsigned *)s + 6, 7);
    atomicAdd(x, 1);
    atomicSub(x, 1);
    atomicExch(x, 1);
    x[9] = atomicExch(f, 2.f);
    atomicMin(x, 1);
    atomicMax(u, 2u);
    u[9] = atomicInc(u, 3);
    atomicDec(u, 3);
    x[10] = atomicCAS(x, 1, 2);
    atomicAnd(u, 1);
    atomicOr(x, 1);
    atomicXor(l, 1ull);
    atomicAdd(l, 1ull);
    l[9] = atomicCAS(l, 1ull, 2ull);
    atomicMin(l, 2ull);
    atomicMax((long long *)l, 3ll);
    atomicAdd(f, 1.f);
    atomicAdd(d, 1.0);
    atomicAdd_system(x, 1);
    atomicAdd_block(x, 2);
    atomicCAS((unsigned short *)h, (unsigned short)1, (unsigned short)2);
}
#if __CUDA_ARCH__ >= 900
__global__ void vecatom(float2 *a, float4 *b)
{
    atomicAdd(a, make_float2(1, 2));
    atomicAdd(b, make_float4(1, 2, 3, 4));
}
#endif
__global__ void mem(float4 *a, const float4 *__restrict__ b, int *x, volatile int *v, double2 *d)
{
    a[0] = b[0];
    a[1] = __ldg(b + 1);
    a[2] = __ldcg(b + 2);
    a[3] = __ldca(b + 3);
    a[4] = __ldcs(b + 4);
    a[5] = __ldcv(b + 5);
    a[6] = __ldlu(b + 6);
    __stcg(a + 7, b[7]);
    __stcs(a + 8, b[8]);
    __stwb(a + 9, b[9]);
    __stwt(a + 10, b[10]);
    v[0] = v[1];
    d[0] = d[1];
    int y;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u32 %0, [%1];" : "=r"(y) : "l"(x));
    unsigned long long pol;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(pol));
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(y) : "l"(x), "l"(pol));
    x[1] = y;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(x));
    asm volatile("prefetch.global.L1 [%0];" ::"l"(x));
    asm volatile("{ .reg .pred p; .reg .b32 q; setp.ne.s32 p, %0, 0; @p bra DONE; mov.b32 q, 5; st.global.b32 [%1], q; "
                 "DONE: }" ::"r"(y),
                 "l"(x));
    asm volatile("st.global.L1::no_allocate.u32 [%0], %1;" ::"l"(x), "r"(y));
    float loc[40];
    for (int i = 0; i < 40; i++)
        loc[i] = a[i].x;
    a[50].x = loc[x[3] & 31];
    __builtin_assume(x[0] > 0);
    a[51] = b[x[7]];
    int4 z;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(z.x) : "l"(x));
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(z.y) : "l"(x));
    asm volatile("st.release.cta.global.s32 [%1], %0;" ::"r"(z.x), "l"(x));
    asm volatile("fence.acq_rel.gpu;");
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(x));
}
__global__ void wm(half *a, half *b, float *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
