// fails: hazard: out-of-bounds
extern "C" __global__ void transpose(float *out, const float *in, int rows, int cols)
{
    out[(1ll << 40) + threadIdx.x] = in[-4];
}
