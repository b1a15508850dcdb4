/* Any plan, one unit a thread: the kernel for what no other suits, and the reference for all of them.
 *
 * Must move 2 * units * sizeof(T) bytes; is as fast as the strides let 32 neighbouring lanes share sectors.
 */
#include "walk.cuh"

/* Each thread turns its number into a place on either side; lanes run along the destination's fastest axis. */
template <typename T> __device__ void move_general(char *__restrict__ out, const char *__restrict__ in, const gm_walk &walk)
{
    long long step = (long long)gridDim.x * blockDim.x;

    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < walk.units; i += step) {
        gm_place at = gm_place_of(walk, i);
        *(T *)(out + at.dst) = *(const T *)(in + at.src);
    }
}

#define GM_KERNEL(size, type)                                                                                   \
    extern "C" __global__ void move_general_##size(char *__restrict__ out, const char *__restrict__ in,         \
                                                   const __grid_constant__ gm_walk walk)                        \
    {                                                                                                           \
        move_general<type>(out, in, walk);                                                                      \
    }

GM_KERNEL(1, unsigned char)
GM_KERNEL(2, unsigned short)
GM_KERNEL(4, unsigned int)
GM_KERNEL(8, unsigned long long)
GM_KERNEL(16, uint4)
