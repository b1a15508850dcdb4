// fails: counters: loads take
extern "C" __global__ void axpy(float *y, const float *x, float a, int n)
{
    int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int i = first; i < first + 4 && i < n; i++)
        y[i] = a * x[i] + y[i];
}
