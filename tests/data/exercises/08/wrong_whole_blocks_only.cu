// fails: hazard: out-of-bounds
extern "C" __global__ void to_records(float *out, const float *in, int n, int pitch)
{
    __shared__ float records[5 * 256];
    int t = threadIdx.x, first = blockIdx.x * 256, here = min(256, n - first);
    if (t < here)
        for (int f = 0; f < 5; f++)
            records[5 * t + f] = in[f * pitch + first + t];
    __syncthreads();
    for (int k = t; k < 5 * 256; k += 256)
        out[5 * first + k] = records[k];
}
