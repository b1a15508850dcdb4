// fails: result: wrong
extern "C" __global__ void copy(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int behind = static_cast<int>(reinterpret_cast<unsigned long long>(out) / 4 % 4);
    int head = min((4 - behind) % 4, n), body = (n - head) / 4, done = head + 4 * body;
    if (i < body)
        reinterpret_cast<float4 *>(out + head)[i] = reinterpret_cast<const float4 *>(in + head)[i];
    if (i < head)
        out[i] = in[i];
}
