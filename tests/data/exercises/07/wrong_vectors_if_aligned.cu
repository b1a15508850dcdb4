// fails: counters: loads take
// Falls back to single items where the start is no multiple of 16 bytes.
extern "C" __global__ void copy(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, first = 0;
    if (reinterpret_cast<unsigned long long>(out) % 16 == 0) {
        first = n / 4 * 4;
        if (i < n / 4)
            reinterpret_cast<float4 *>(out)[i] = reinterpret_cast<const float4 *>(in)[i];
    }
    for (int k = first + i; k < n; k += gridDim.x * blockDim.x)
        out[k] = in[k];
}
