// fails: hazard: read-only
extern "C" __global__ void transpose(float *out, const float *in, int rows, int cols)
{
    const_cast<float *>(in)[0] = 0;
}
