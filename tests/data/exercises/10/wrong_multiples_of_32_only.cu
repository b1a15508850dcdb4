// fails: hazard: out-of-bounds
extern "C" __global__ void transpose(float *out, const float *in, int rows, int cols)
{
    __shared__ float tile[32][33];
    int r = blockIdx.y * 32, c = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8)
        
            tile[k][threadIdx.x] = in[(r + k) * cols + c];
    __syncthreads();
    c = blockIdx.x * 32;
    r += threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8)
        
            out[(c + k) * rows + r] = tile[threadIdx.x][k];
}
