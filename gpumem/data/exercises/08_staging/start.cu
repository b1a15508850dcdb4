// Exercise 8. Make the stores coalesced, through shared memory. Then: gpumem check 8 FILE
//
// Five arrays become one of records: out[5 * i + f] = in[f * pitch + i] for i < n. pitch is a multiple of 32.
// Launched with blocks of 256 threads, a thread for each record and some more.
extern "C" __global__ void to_records(float *out, const float *in, int n, int pitch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int f = 0; f < 5; f++)
            out[5 * i + f] = in[f * pitch + i];
}
