// fails: counters: requests
// Coalesced, with 4 bytes a lane.
extern "C" __global__ void axpy(float *y, const float *x, float a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
