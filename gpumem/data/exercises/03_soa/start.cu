// Exercise 3. From an array of structures to a structure of arrays. Then: gpumem check 3 FILE
//
// As it stands, particle i is 8 floats at data[8 * i]. Change the kernel to another layout: field f of particle i at
// data[f * pitch + i], with the fields in the order of the structure. pitch is a multiple of 32, and at least n.
struct particle {
    float x, y, z, vx, vy, vz, mass, charge;
};

// Launched with blocks of 256 threads, a thread for each particle and some more.
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
