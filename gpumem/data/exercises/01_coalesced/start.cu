// Exercise 1. Which of these loads are coalesced? Write yes or no behind each answer, then: gpumem check 1 FILE
//
// answer a = ?
// answer b = ?
// answer c = ?
// answer d = ?
// answer e = ?
// answer f = ?
// answer g = ?
// answer h = ?
//
// One block of 256 threads; `in` begins at a multiple of 256 bytes.
extern "C" __global__ void judge(float *out, const float *in, int pitch)
{
    int t = threadIdx.x;
    float sum = 0;
    sum += in[t];                                                    // (a)
    sum += in[8192 + 2 * t];                                         // (b)
    sum += in[16384 + 255 - t];                                      // (c)
    sum += in[24576 + (t ^ 5)];                                      // (d)
    sum += in[32768 + t % 8 * 32 + t / 8];                           // (e)
    sum += in[40960 + t / 32];                                       // (f)
    sum += in[49152 + t * pitch];                                    // (g)
    sum += reinterpret_cast<const float4 *>(in + 65536)[t].x;        // (h)
    out[t] = sum;
}
