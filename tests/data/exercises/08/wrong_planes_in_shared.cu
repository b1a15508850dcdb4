// fails: counters: bank conflicts
// Fields side by side in shared memory: five lanes of the second loop meet in a bank.
extern "C" __global__ void to_records(float *out, const float *in, int n, int pitch)
{
    __shared__ float planes[5][256];
    int t = threadIdx.x, first = blockIdx.x * 256, here = min(256, n - first);
    if (t < here)
        for (int f = 0; f < 5; f++)
            planes[f][t] = in[f * pitch + first + t];
    __syncthreads();
    for (int k = t; k < 5 * here; k += 256)
        out[5 * first + k] = planes[k % 5][k / 5];
}
