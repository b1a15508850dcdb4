// Exercise 7. A vectorised copy for any start and any length. Then: gpumem check 7 FILE
//
// out[i] = in[i] for i < n. in and out begin 0, 4, 8 or 12 bytes behind a multiple of 16, both by the same.
// Launched with blocks of 256 threads, a thread for each 4 items and some more: at least 256 more than that.
extern "C" __global__ void copy(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i < n)
        reinterpret_cast<float4 *>(out)[i] = reinterpret_cast<const float4 *>(in)[i];
}
