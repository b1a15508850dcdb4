// Exercise 9. Read the profile of this kernel, which `gpumem exercises 9` prints. Then: gpumem check 9 FILE
//
// Which line wastes most sectors (those that it moves beyond the ideal)?
// answer line = ?
// How many per cent of the bytes that this line moves are used?
// answer used = ?
// Which line has bank conflicts?
// answer conflicts = ?
// How many wavefronts would all accesses to shared memory take together without conflicts?
// answer wavefronts = ?
// How many sectors would be moved in all, were every access ideal?
// answer sectors = ?
//
// The launch: 16 blocks of 128 threads; n is 2048.
extern "C" __global__ void work(float *out, const float *in, const float4 *records, int n)
{
    __shared__ float tile[128 * 8];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
#pragma unroll 1
    for (int k = 0; k < 8; k++)
        tile[k * 128 + t] = in[k * n + i];
    __syncthreads();
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 8; k++)
        sum += tile[t * 8 + k];
    sum *= records[i].w;
    out[i] = sum;
    out[n + i * 8] = sum;
}
