// fails: counters: stores take
extern "C" __global__ void axpy(float *y, const float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i < n) {
        float4 four = reinterpret_cast<const float4 *>(x)[i], sum = reinterpret_cast<float4 *>(y)[i];
        y[4 * i] = a * four.x + sum.x;
        y[4 * i + 1] = a * four.y + sum.y;
        y[4 * i + 2] = a * four.z + sum.z;
        y[4 * i + 3] = a * four.w + sum.w;
    }
}
