/* Kernels before and after the change that `gpumem advise` proposes; pairs.ptx is made of them by tools/exercise_ptx.py.
 *
 * The first ones lay their tile in shared memory as four numbers say, so that any padding and any swizzle can be tried:
 * item i at j + j / pitch * pad, where j = i ^ ((i >> shift) & mask). With mask = pad = 0 that is i. */
struct layout {
    int shift, mask, pitch, pad;
};

extern __shared__ __align__(128) unsigned char memory[];

template <typename T> __device__ T *place(int i, layout by)
{
    int j = i ^ ((i >> by.shift) & by.mask);
    return reinterpret_cast<T *>(memory) + j + j / by.pitch * by.pad;
}

/* A tile of 32 x 32, written along rows, read along columns. One warp a block. */
template <typename T> __device__ void turn(T *out, const T *in, layout by)
{
    int t = threadIdx.x;
    for (int k = 0; k < 32; k++)
        *place<T>(32 * k + t, by) = in[32 * k + t];
    __syncthreads();
    for (int k = 0; k < 32; k++)
        out[32 * k + t] = *place<T>(32 * t + k, by);
}

extern "C" __global__ void turn_bytes(unsigned char *out, const unsigned char *in, layout by) { turn(out, in, by); }
extern "C" __global__ void turn_halves(unsigned short *out, const unsigned short *in, layout by) { turn(out, in, by); }
extern "C" __global__ void turn_floats(float *out, const float *in, layout by) { turn(out, in, by); }
extern "C" __global__ void turn_doubles(double *out, const double *in, layout by) { turn(out, in, by); }

/* Rows of 32 floats, 16 bytes a lane: each lane reads a row of its own. One warp. */
extern "C" __global__ void rows_of_vectors(float4 *out, const float4 *in, layout by)
{
    int t = threadIdx.x;
    for (int k = t; k < 256; k += 32)
        *reinterpret_cast<float4 *>(place<float>(4 * k, by)) = in[k];
    __syncthreads();
    for (int k = 0; k < 8; k++)
        out[8 * t + k] = *reinterpret_cast<float4 *>(place<float>(32 * t + 4 * k, by));
}

/* 16-byte stores along rows of 64 floats, single loads along columns. 64 threads. */
extern "C" __global__ void vectors_and_columns(float *out, const float4 *in, layout by)
{
    int t = threadIdx.x;
    for (int k = t; k < 1024; k += 64)
        *reinterpret_cast<float4 *>(place<float>(4 * k, by)) = in[k];
    __syncthreads();
    for (int k = 0; k < 64; k++)
        out[64 * k + t] = *place<float>(64 * t + k, by);
}

/* A sum whose threads' items lie further and further apart. 256 threads. */
extern "C" __global__ void strided_sum(int *out, const int *in, layout by)
{
    int t = threadIdx.x;
    *place<int>(t, by) = in[256 * blockIdx.x + t];
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        int i = 2 * s * t;
        if (i < 256)
            *place<int>(i, by) += *place<int>(i + s, by);
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = *place<int>(0, by);
}

/* Rows of 128 bytes as ldmatrix takes them. One warp. */
extern "C" __global__ void matrices(uint4 *out, const float4 *in, layout by)
{
    int t = threadIdx.x;
    for (int k = t; k < 256; k += 32)
        *reinterpret_cast<float4 *>(place<float>(4 * k, by)) = in[k];
    __syncthreads();
    for (int k = 0; k < 8; k++) {
        unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(place<float>(32 * t + 4 * k, by)));
        uint4 four;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
                     : "r"(row)
                     : "memory");
        out[32 * k + t] = four;
    }
}

/* The expressions that are proposed for a tile of 32 x 32 floats, as they would be written. */
#define TILE(name, declared, col)                                                                                      \
    extern "C" __global__ void name(float *out, const float *in)                                                       \
    {                                                                                                                  \
        __shared__ float tile declared;                                                                                \
        int t = threadIdx.x;                                                                                           \
        for (int k = 0; k < 32; k++)                                                                                   \
            tile[k][col(k, t)] = in[32 * k + t];                                                                       \
        __syncthreads();                                                                                               \
        for (int k = 0; k < 32; k++)                                                                                   \
            out[32 * k + t] = tile[t][col(t, k)];                                                                      \
    }
#define PLAIN(row, col)    (col)
#define SWIZZLED(row, col) ((col) ^ ((row) & 31))
TILE(tile_plain, [32][32], PLAIN)
TILE(tile_padded, [32][32 + 1], PLAIN)
TILE(tile_swizzled, [32][32], SWIZZLED)

/* Wider accesses. */
extern "C" __global__ void copy_items(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

extern "C" __global__ void copy_vectors(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i < n)
        reinterpret_cast<float4 *>(out)[i] = reinterpret_cast<const float4 *>(in)[i];
}

extern "C" __global__ void copy_bytes(unsigned char *out, const unsigned char *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

extern "C" __global__ void copy_vectors_of_bytes(unsigned char *out, const unsigned char *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (16 * i < n)
        reinterpret_cast<uint4 *>(out)[i] = reinterpret_cast<const uint4 *>(in)[i];
}

/* Records of four floats to planes. */
extern "C" __global__ void fields_by_item(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int f = 0; f < 4; f++)
            out[f * n + i] = in[4 * i + f];
}

extern "C" __global__ void fields_by_record(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 record = reinterpret_cast<const float4 *>(in)[i];
        out[i] = record.x;
        out[n + i] = record.y;
        out[2 * n + i] = record.z;
        out[3 * n + i] = record.w;
    }
}

/* Records of three floats: all fields, through shared memory, and from planes. 256 threads. */
extern "C" __global__ void sum_of_records(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[3 * i] + in[3 * i + 1] + in[3 * i + 2];
}

extern "C" __global__ void sum_of_staged_records(float *out, const float *in, int n)
{
    __shared__ float records[3 * 256];
    int t = threadIdx.x, first = 3 * 256 * blockIdx.x, i = 256 * blockIdx.x + t;
    for (int k = t; k < 3 * 256 && first + k < 3 * n; k += 256)
        records[k] = in[first + k];
    __syncthreads();
    if (i < n)
        out[i] = records[3 * t] + records[3 * t + 1] + records[3 * t + 2];
}

extern "C" __global__ void sum_of_planes(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] + in[n + i] + in[2 * n + i];
}

/* One field of records of eight. */
extern "C" __global__ void one_field(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[8 * i + 3];
}

extern "C" __global__ void one_plane(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[3 * n + i];
}

/* Rows of a matrix: a lane each, and a warp each. */
extern "C" __global__ void scale_columns(float *out, const float *in, int n)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    for (int c = 0; c < n; c++)
        out[r * n + c] = 2 * in[r * n + c];
}

extern "C" __global__ void scale_rows(float *out, const float *in, int n)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < n; r++)
        out[r * n + c] = 2 * in[r * n + c];
}

/* A start inside a sector. */
extern "C" __global__ void copy_from(float *out, const float *in, int n, int start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i + start];
}

/* Every item loaded once for each result, and each result stored once for each item. */
extern "C" __global__ void product(float *out, const float *a, const float *b, int n)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[r * n + k] * b[k * n + c];
    out[r * n + c] = sum;
}

extern "C" __global__ void add_in_memory(volatile float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 8; k++)
        out[i] = out[i] + in[k * n + i];
}

/* Atomics of a warp on one address, and one for each warp. */
extern "C" __global__ void count_all(int *total, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(total, in[i] + 1);
}

extern "C" __global__ void count_warps(int *total, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = __reduce_add_sync(0xffffffff, in[i] + 1);
    if (i % 32 == 0)
        atomicAdd(total, sum);
}

/* An array of a thread that is indexed by a number which the compiler does not know. */
extern "C" __global__ void private_array(int *out, const int *in)
{
    int held[32], t = threadIdx.x;
    for (int k = 0; k < 32; k++)
        held[k] = in[32 * k + t];
    int sum = 0;
    for (int k = 0; k < 32; k++)
        sum = 3 * sum + held[(in[k] + k) & 31];
    out[t] = sum;
}

/* Much arithmetic for little memory. */
extern "C" __global__ void hash(unsigned *out, const unsigned *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = in[i];
    for (int k = 0; k < 100; k++)
        x = x * 1664525u + (x >> 7) + 1013904223u;
    out[i] = x;
}

/* Pieces of four items for each thread, one item after another; and the same items by neighbouring threads. */
extern "C" __global__ void scale_pieces(float *out, const float *in, int n)
{
    int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
#pragma unroll 1
    for (int i = first; i < first + 4; i++)
        out[i] = 2 * in[i];
}

extern "C" __global__ void scale_neighbours(float *out, const float *in, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = 2 * in[i];
}

/* Asynchronous copies from a row for each lane. */
extern "C" __global__ void copies_of_rows(float *out, const float *in)
{
    float *tile = reinterpret_cast<float *>(memory);
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in + 64 * threadIdx.x) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}
