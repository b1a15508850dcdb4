// fails: hazard: out-of-bounds|result: items of data are wrong
struct particle {
    float x, y, z, vx, vy, vz, mass, charge;
};

extern "C" __global__ void advance(float *data, float dt, int n, int pitch)
{
    particle *p = reinterpret_cast<particle *>(data);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        p[i].x += p[i].vx * dt;
        p[i].y += p[i].vy * dt;
        p[i].z += p[i].vz * dt;
    }
}
