// fails: counters: stores take
extern "C" __global__ void to_records(float *out, const float *in, int n, int pitch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int f = 0; f < 5; f++)
            out[5 * i + f] = in[f * pitch + i];
}
