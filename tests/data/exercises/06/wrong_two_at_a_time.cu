// fails: counters: requests
extern "C" __global__ void axpy(float *y, const float *x, float a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; 2 * i < n; i += gridDim.x * blockDim.x) {
        float2 two = reinterpret_cast<const float2 *>(x)[i], sum = reinterpret_cast<float2 *>(y)[i];
        sum.x = a * two.x + sum.x;
        sum.y = a * two.y + sum.y;
        reinterpret_cast<float2 *>(y)[i] = sum;
    }
}
