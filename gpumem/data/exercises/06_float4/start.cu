// Exercise 6. Load and store 16 bytes at once. Then: gpumem check 6 FILE
//
// y[i] = a * x[i] + y[i]. n is a multiple of 4; x and y begin at multiples of 16 bytes.
// Launched with blocks of 256 threads, a thread for each 4 items and some more.
extern "C" __global__ void axpy(float *y, const float *x, float a, int n)
{
    int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int i = first; i < first + 4 && i < n; i++)
        y[i] = a * x[i] + y[i];
}
