#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
__global__ void h(__half *x, __half2 *y, float *f, int *i, double *d)
{
    int t = threadIdx.x;
    __half a = x[t], b = x[t + 1];
    __half2 p = y[t], q = y[t + 1];
    x[0] = a + b;
    x[1] = a * b;
    x[2] = a / b;
    x[3] = __hfma(a, b, a);
    x[4] = hsqrt(a);
    x[5] = hexp(a);
    x[6] = hlog(a);
    x[7] = hsin(a);
    x[8] = __hmax(a, b);
    x[9] = __hmin_nan(a, b);
    x[10] = htanh(a);
    x[11] = hrcp(a);
    x[12] = hrsqrt(a);
    x[13] = hfloor(a);
    x[14] = hrint(a);
    x[15] = __habs(a);
    x[16] = -a;
    x[17] = __hadd_sat(a, b);
    x[18] = __hfma_relu(a, b, a);
    x[19] = htanh_approx(a);
    y[0] = p + q;
    y[1] = __hfma2(p, q, p);
    y[2] = h2exp(p);
    y[3] = __hmax2(p, q);
    y[4] = __hgt2(p, q);
    i[0] = __hbgt2(p, q);
    i[1] = a < b;
    i[2] = __hisnan(a);
    i[3] = __hltu(a, b);
    i[4] = __hgt2_mask(p, q);
    y[5] = __lowhigh2highlow(p);
    y[6] = h2sqrt(p);
    y[7] = __hcmadd(p, q, p);
    f[0] = __half2float(a);
    f[1] = __low2float(p);
    x[20] = __float2half_rz(f[2]);
    x[21] = __int2half_rn(i[5]);
    i[6] = __half2int_rz(a);
    i[7] = __half2ull_rn(a);
    x[22] = __double2half(d[0]);
    d[1] = (double)a;
    y[8] = __float22half2_rn(make_float2(f[1], f[2]));
    i[8] = __half_as_short(a);
    atomicAdd(x + 30, a);
    atomicAdd(y + 30, p);
    x[23] = __shfl_xor_sync(~0u, a, 1);
    y[9] = __shfl_down_sync(~0u, p, 2);
    x[24] = __ldg(x + 40);
    x[25] = __ldcs(x + 41);
    __stwt(x + 42, a);
}
__global__ void g(__nv_bfloat16 *x, __nv_bfloat162 *y, float *f, int *i, double *d)
{
    int t = threadIdx.x;
    auto a = x[t], b = x[t + 1];
    auto p = y[t], q = y[t + 1];
    x[0] = a + b;
    x[1] = a * b;
    x[2] = a / b;
    x[3] = __hfma(a, b, a);
    x[4] = hsqrt(a);
    x[5] = hexp(a);
    x[6] = hlog(a);
    x[8] = __hmax(a, b);
    x[9] = __hmin_nan(a, b);
    x[10] = htanh(a);
    x[11] = hrcp(a);
    x[12] = hrsqrt(a);
    x[15] = __habs(a);
    x[16] = -a;
    x[17] = __hadd_sat(a, b);
    x[18] = __hfma_relu(a, b, a);
    x[19] = htanh_approx(a);
    y[0] = p + q;
    y[1] = __hfma2(p, q, p);
    y[2] = h2exp(p);
    y[3] = __hmax2(p, q);
    y[4] = __hgt2(p, q);
    i[0] = __hbgt2(p, q);
    i[1] = a < b;
    i[2] = __hisnan(a);
    f[0] = __bfloat162float(a);
    x[20] = __float2bfloat16_rz(f[2]);
    x[21] = __int2bfloat16_rn(i[5]);
    i[6] = __bfloat162int_rz(a);
    x[22] = __double2bfloat16(d[0]);
    y[8] = __float22bfloat162_rn(make_float2(f[1], f[2]));
    x[26] = __ull2bfloat16_rn(i[9]);
    i[10] = __bfloat162ll_rd(a);
    atomicAdd(x + 30, a);
    atomicAdd(y + 30, p);
    x[23] = __shfl_xor_sync(~0u, a, 1);
}
__global__ void e(__nv_fp8_e4m3 *x, __nv_fp8_e5m2 *y, float *f, __half2 *h, __nv_fp8x4_e4m3 *v, float4 *f4,
                  __nv_fp6_e2m3 *s, __nv_fp4_e2m1 *w, __nv_fp8_e8m0 *u)
{
    x[0] = __nv_fp8_e4m3(f[0]);
    y[0] = __nv_fp8_e5m2(f[1]);
    f[2] = float(x[1]);
    f[3] = float(y[1]);
    v[0] = __nv_fp8x4_e4m3(f4[0]);
    f4[1] = float4(v[1]);
    s[0] = __nv_fp6_e2m3(f[5]);
    w[0] = __nv_fp4_e2m1(f[6]);
    f[7] = float(s[1]);
    f[8] = float(w[1]);
    u[0] = __nv_fp8_e8m0(f[9]);
    f[10] = float(u[1]);
}
