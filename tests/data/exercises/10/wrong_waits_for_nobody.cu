// fails: limit: stopped
extern "C" __global__ void transpose(float *out, const float *in, int rows, int cols)
{
    while (reinterpret_cast<const volatile float *>(in)[0] != 1e30f)
        ;
    out[0] = 0;
}
