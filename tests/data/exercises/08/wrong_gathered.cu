// fails: counters: loads take
// The stores are coalesced now, and the loads no more.
extern "C" __global__ void to_records(float *out, const float *in, int n, int pitch)
{
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < 5 * n; k += gridDim.x * blockDim.x)
        out[k] = in[k % 5 * pitch + k / 5];
}
