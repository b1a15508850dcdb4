// fails: counters: loads take
// Four particles for each thread: right, and lanes are 16 bytes apart.
extern "C" __global__ void advance(float *data, float dt, int n, int pitch)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 4 * t; i < 4 * t + 4 && i < n; i++)
        for (int f = 0; f < 3; f++)
            data[f * pitch + i] += data[(f + 3) * pitch + i] * dt;
}
