// Exercise 2. How many sectors of 32 bytes does the warp touch in each of these loads? Then: gpumem check 2 FILE
//
// answer a = ?
// answer b = ?
// answer c = ?
// answer d = ?
// answer e = ?
// answer f = ?
// answer g = ?
// answer h = ?
// answer i = ?
//
// One warp; `in` begins at a multiple of 256 bytes.
extern "C" __global__ void sectors(float *out, const float *in)
{
    int t = threadIdx.x;
    float sum = 0;
    sum += in[t];                                                    // (a)
    sum += in[1024 + t + 1];                                         // (b)
    sum += in[2048 + 2 * t];                                         // (c)
    sum += in[3072 + 3 * t];                                         // (d)
    sum += in[4096 + 8 * t];                                         // (e)
    sum += in[5120 + 32 * t];                                        // (f)
    sum += reinterpret_cast<const double *>(in + 8192)[t];           // (g)
    sum += reinterpret_cast<const unsigned char *>(in + 9216)[t];    // (h)
    if (t % 2 == 0)
        sum += in[10240 + t];                                        // (i)
    out[t] = sum;
}
