// fails: limit: stopped
extern "C" __global__ void transpose(float *out, const float *in, int rows, int cols)
{
    while (true)
        reinterpret_cast<volatile float *>(out)[0] = in[0];
}
