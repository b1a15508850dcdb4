#include <cub/cub.cuh>
__global__ void block_work(float *x, int *y)
{
    using R = cub::BlockReduce<float, 128>;
    using S = cub::BlockScan<int, 128>;
    using T = cub::BlockRadixSort<unsigned, 128, 2>;
    __shared__ union {
        typename R::TempStorage r;
        typename S::TempStorage s;
        typename T::TempStorage t;
    } m;
    float v = R(m.r).Sum(x[threadIdx.x]);
    __syncthreads();
    int i = y[threadIdx.x];
    S(m.s).ExclusiveSum(i, i);
    __syncthreads();
    unsigned k[2] = {(unsigned)i, (unsigned)y[threadIdx.x + 128]};
    T(m.t).Sort(k);
    x[threadIdx.x] = v;
    y[threadIdx.x] = k[0];
    y[threadIdx.x + 128] = k[1];
}
