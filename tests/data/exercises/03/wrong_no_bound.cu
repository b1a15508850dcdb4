// fails: hazard: out-of-bounds|result: items of data are wrong
extern "C" __global__ void advance(float *data, float dt, int n, int pitch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int f = 0; f < 3; f++)
        data[f * pitch + i] += data[(f + 3) * pitch + i] * dt;
}
