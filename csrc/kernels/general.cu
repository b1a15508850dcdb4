/* Any plan, a few units a thread: the kernel for what no other suits, and for rows of aligned vectors.
 *
 * Must move 2 * units * sizeof(T) bytes; is as fast as the strides let 32 neighbouring lanes share sectors.
 */
#include "walk.cuh"

/* Lanes run along the destination's fastest axis; a thread's loads are all under way before its first store. */
template <typename T> __device__ void move_general(char *__restrict__ out, const char *__restrict__ in, const gm_walk &walk)
{
    enum { UNITS = 4 };
    long long first = (long long)blockIdx.x * UNITS * blockDim.x + threadIdx.x;
    long long place[UNITS];
    T unit[UNITS];

#pragma unroll
    for (int k = 0; k < UNITS; k++)
        if (long long i = first + k * blockDim.x; i < walk.units) {
            gm_place at = gm_place_of(walk, i);
            place[k] = at.dst;
            unit[k] = *(const T *)(in + at.src);
        }
#pragma unroll
    for (int k = 0; k < UNITS; k++)
        if (first + k * blockDim.x < walk.units)
            *(T *)(out + place[k]) = unit[k];
}

#define GM_KERNEL(size, type)                                                                                   \
    extern "C" __global__ void __launch_bounds__(256) move_general_##size(                                      \
        char *__restrict__ out, const char *__restrict__ in, const __grid_constant__ gm_walk walk)              \
    {                                                                                                           \
        move_general<type>(out, in, walk);                                                                      \
    }

GM_KERNEL(1, unsigned char)
GM_KERNEL(2, unsigned short)
GM_KERNEL(4, unsigned int)
GM_KERNEL(8, unsigned long long)
GM_KERNEL(16, uint4)
