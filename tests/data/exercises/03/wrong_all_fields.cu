// fails: counters: loads take
// Reads and writes mass and charge, too, which nobody asked for.
extern "C" __global__ void advance(float *data, float dt, int n, int pitch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float field[8];
        for (int f = 0; f < 8; f++)
            field[f] = data[f * pitch + i];
        for (int f = 0; f < 3; f++)
            field[f] += field[f + 3] * dt;
        for (int f = 0; f < 8; f++)
            data[f * pitch + i] = field[f];
    }
}
