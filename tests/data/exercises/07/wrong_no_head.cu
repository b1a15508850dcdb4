// fails: hazard: misaligned
extern "C" __global__ void copy(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int done = n / 4 * 4;
    if (i < n / 4)
        reinterpret_cast<float4 *>(out)[i] = reinterpret_cast<const float4 *>(in)[i];
    if (i < n - done)
        out[done + i] = in[done + i];
}
