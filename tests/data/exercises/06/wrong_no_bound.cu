// fails: hazard: out-of-bounds
extern "C" __global__ void axpy(float *y, const float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {
        float4 four = reinterpret_cast<const float4 *>(x)[i], sum = reinterpret_cast<float4 *>(y)[i];
        sum.x = a * four.x + sum.x;
        sum.y = a * four.y + sum.y;
        sum.z = a * four.z + sum.z;
        sum.w = a * four.w + sum.w;
        reinterpret_cast<float4 *>(y)[i] = sum;
    }
}
