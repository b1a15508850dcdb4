// Exercise 10. The whole chain: a transpose that is coalesced both ways and free of conflicts. Then: gpumem check 10 FILE
//
// out[c * rows + r] = in[r * cols + c], any number of rows and columns.
// Launched with blocks of 32 x 8 threads, a block for each 32 x 32 tile: blockIdx.x counts tiles along the columns.
extern "C" __global__ void transpose(float *out, const float *in, int rows, int cols)
{
    int c = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8) {
        int r = blockIdx.y * 32 + k;
        if (r < rows && c < cols)
            out[c * rows + r] = in[r * cols + c];
    }
}
