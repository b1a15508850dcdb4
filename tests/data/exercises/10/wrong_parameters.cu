// fails: signature: takes 3 parameters
extern "C" __global__ void transpose(float *out, const float *in, int rows) { out[0] = in[rows]; }
