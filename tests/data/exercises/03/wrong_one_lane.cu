// fails: counters: times, with 1.00 lanes of 4 bytes
// One lane of each warp does the work of all: every request is ideal for its one lane.
extern "C" __global__ void advance(float *data, float dt, int n, int pitch)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t % 32 == 0)
        for (int i = t; i < t + 32 && i < n; i++)
            for (int f = 0; f < 3; f++)
                data[f * pitch + i] += data[(f + 3) * pitch + i] * dt;
}
