/* Kernels whose memory instructions ptxas changes: `fused.ptx` is made of them like the others (README.md). */
extern "C" __global__ void two(float *out, const float *in)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[2 * threadIdx.x] + tile[2 * threadIdx.x + 1];
}

extern "C" __global__ void unrolled(float *out, const float *in, int n)
{
    __shared__ float tile[1024];
    for (int i = threadIdx.x; i < 1024; i += 32)
        tile[i] = in[i];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 32; k++)
        sum += tile[32 * threadIdx.x + k];
    out[threadIdx.x] = sum;
}

extern "C" __global__ void histogram(unsigned *out, const unsigned char *in)
{
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x]], 1);
    atomicAdd(&out[256], 1);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

extern "C" __global__ void shared_float_sum(float *out, const float *in)
{
    __shared__ float sum[4];
    if (threadIdx.x < 4)
        sum[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&sum[threadIdx.x & 3], in[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x < 4)
        out[threadIdx.x] = sum[threadIdx.x];
}
