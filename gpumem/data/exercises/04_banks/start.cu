// Exercise 4. How many wavefronts does each of these loads from shared memory take? Then: gpumem check 4 FILE
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
// One warp. A wavefront serves each of the 32 banks (4 bytes wide) once, a word for all lanes that want the same one.
extern "C" __global__ void banks(float *out, const float *in)
{
    __shared__ __align__(16) float tile[1056];
    int t = threadIdx.x;
    for (int i = t; i < 1056; i += 32)
        tile[i] = in[i];
    __syncthreads();
    float sum = 0;
    sum += tile[t];                                                  // (a)
    sum += tile[2 * t + 1];                                          // (b)
    sum += tile[3 * t + 1];                                          // (c)
    sum += tile[32 * t + 1];                                         // (d)
    sum += tile[33 * t];                                             // (e)
    sum += tile[t / 4 * 8];                                          // (f)
    sum += tile[12 * t];                                             // (g)
    sum += reinterpret_cast<const double *>(tile)[t];                // (h)
    float4 four = reinterpret_cast<const float4 *>(tile)[t];         // (i)
    out[t] = sum + four.x + four.y + four.z + four.w;
}
