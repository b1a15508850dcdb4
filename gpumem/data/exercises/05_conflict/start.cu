// Exercise 5. Remove the 32-way bank conflict. Then: gpumem check 5 FILE
//
// out[r] = the sum of row r of a matrix of 32 columns, any number of rows.
// Launched with blocks of 32 threads, a block for each 32 rows.
extern "C" __global__ void row_sums(int *out, const int *in, int rows)
{
    __shared__ int tile[32][32];
    int t = threadIdx.x, first = blockIdx.x * 32;
    for (int k = 0; k < 32 && first + k < rows; k++)
        tile[k][t] = in[(first + k) * 32 + t];
    __syncthreads();
    if (first + t < rows) {
        int sum = 0;
        for (int k = 0; k < 32; k++)
            sum += tile[t][k];
        out[first + t] = sum;
    }
}
