// fails: counters: loads take
extern "C" __global__ void row_sums(int *out, const int *in, int rows)
{
    int r = blockIdx.x * 32 + threadIdx.x;
    if (r < rows) {
        int sum = 0;
        for (int k = 0; k < 32; k++)
            sum += in[r * 32 + k];
        out[r] = sum;
    }
}
