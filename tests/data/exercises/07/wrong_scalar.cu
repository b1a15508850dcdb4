// fails: counters: of the bytes are moved 16 at a time
extern "C" __global__ void copy(float *out, const float *in, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = in[i];
}
