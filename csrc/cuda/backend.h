/* The CUDA back end as the bindings see it: device pointers, plans and streams; no header of CUDA's needed.
 * A build without nvcc has the same functions, which say so (absent.c). Every function may be called without the GIL
 * and from many threads at once; the thread's current context is as it was afterwards; nothing here waits for the
 * device but where it is said. */
#pragma once
#include "../base/array.h"
#include "../base/dtype.h"
#include "../base/failure.h"
#include "../base/plan.h"
#include "../base/stages.h"
#include <stddef.h>

typedef struct gm_cuda_figures {
    char name[128];
    int capability; /* 90 for compute capability 9.0 */
    int processors; /* multiprocessors */
    int l2_bytes;
    int shared_bytes; /* the most dynamic shared memory that a block may ask for */
    int memory_khz, bus_bits;
    int64_t memory_bytes;
    int driver; /* the newest CUDA that the driver serves: 13000 for 13.0 */
} gm_cuda_figures;

/* The chips that this build has machine code for, "sm_80 sm_90"; "" in a build without CUDA. */
const char *gm_cuda_chips(void);

/* How many devices CUDA_VISIBLE_DEVICES leaves, or -1 with the reason. */
int gm_cuda_count(gm_failure *failure);
gm_status gm_cuda_figures_of(int device, gm_cuda_figures *figures, gm_failure *failure);

/* Whether the device can be worked on; opens it on first use. */
gm_status gm_cuda_open(int device, gm_failure *failure);
/* The device that memory belongs to. */
gm_status gm_cuda_device_of(const void *memory, int *device, gm_failure *failure);

/* dst[plan] = src[plan] on `stream` of `device`; memory that does not overlap. */
gm_status gm_cuda_move(int device, void *stream, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                       gm_failure *failure);

/* dst = the sums of src, whose summed axes have dst == 0 in the plan; accumulated as ../cpu/sum.h says, but that a
 * float is added in an order of the device's: the same for the same shape, strides, types and alignment of src to 16
 * bytes on the same chip. Items of src may lie anywhere, results at multiples of their size, or of their parts'. */
gm_status gm_cuda_sum(int device, void *stream, const gm_plan *plan, char *dst, gm_dtype to, const char *src,
                      gm_dtype from, gm_failure *failure);

/* How bytes are copied between host arrays and pinned buffers: by all cores, which this back end knows nothing of. */
typedef struct gm_host_copy {
    gm_status (*function)(void *context, char *dst, const char *src, int64_t bytes);
    void *context;
} gm_host_copy;

/* The same for arrays in host memory, whose items go through `device`; done on return. They must not overlap, and the
 * destination must be dense: what is between its items would be overwritten. */
gm_status gm_cuda_move_host(int device, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                            gm_host_copy copy, gm_failure *failure);

/* Likewise for sums; the results are `bytes` from dst on. */
gm_status gm_cuda_sum_host(int device, const gm_plan *plan, char *dst, int64_t bytes, gm_dtype to, const char *src,
                           gm_dtype from, gm_host_copy copy, gm_failure *failure);

/* Swaps axes a and b of equal length inside one array, on `stream` of `device`. The view must not overlap itself. */
gm_status gm_cuda_swap_axes(int device, void *stream, const gm_array *array, int a, int b, gm_failure *failure);

/* What a stage of a lesson is to do; arrays are dense, in C order. What a stage has no use for is 0. */
typedef struct gm_lesson_call {
    gm_stage_id stage;
    int item;      /* bytes of an item of src */
    gm_dtype type; /* of src's items, for sums */
    gm_dtype to;   /* of the sum */
    int64_t n;     /* items written; for sums, items read */
    int64_t rows;  /* of src as a matrix: records for `layout`, planes for its way back */
    int64_t columns;
    int64_t items;  /* of src */
    int64_t stride; /* items */
    int64_t offset; /* of the first item that is read */
    int64_t field;
    const char *index; /* int32 or int64 */
    int index_item;
    int64_t src_pitch, dst_pitch; /* transpose: bytes from one row to the next */
    int64_t batches, src_batch, dst_batch;
} gm_lesson_call;

/* dst = what the stage makes of src, by the stage's own kernel. GM_STAGE_REFUSES where the kernel cannot by its nature.
 */
gm_status gm_cuda_run_stage(int device, void *stream, const gm_lesson_call *call, char *dst, const char *src,
                            gm_failure *failure);

/* Memory of the device, ordered on the stream. */
gm_status gm_cuda_alloc(int device, void *stream, int64_t bytes, void **memory, gm_failure *failure);
void gm_cuda_free(int device, void *stream, void *memory);
gm_status gm_cuda_zero(int device, void *stream, void *memory, int64_t bytes, gm_failure *failure);

/* Makes what comes on `later` wait for what is on `first` now; neither waits on the host. */
gm_status gm_cuda_order(int device, void *first, void *later, gm_failure *failure);

/* A mark on a stream stands for the work that was on it then, and outlives the stream. It is NULL on a stream that is
 * being captured: nothing happens there until the graph is launched. */
gm_status gm_cuda_mark(int device, void *stream, void **mark, gm_failure *failure);
int gm_cuda_happened(int device, void *mark);
/* Makes what comes on the stream wait for a mark. */
gm_status gm_cuda_after(int device, void *stream, void *mark, gm_failure *failure);
void gm_cuda_unmark(int device, void *mark);

/* Waits until the stream is idle: for host arrays, whose answer is due at once. */
gm_status gm_cuda_wait(int device, void *stream, gm_failure *failure);

/* The legacy default stream, by the handle that is never mistaken for none. */
#define GM_LEGACY_STREAM ((void *)(uintptr_t)1)

/* The device that is none: its memory is the host's, its launches go to a function, and every stream of its is a
 * simulator. What works on it: gm_cuda_move, gm_cuda_sum, gm_cuda_run_stage, gm_cuda_alloc and _free, gm_cuda_zero. The
 * lens executes the PTX of the kernels that are launched there. */
enum { GM_CUDA_SIMULATED = -1, GM_SIMULATED_ARRAYS = 8 };

typedef struct gm_simulated_launch {
    const char *kernel;
    unsigned grid[3], block[3], shared;
    void **arguments; /* as the driver takes them: a pointer to each */
} gm_simulated_launch;

typedef struct gm_simulated_array {
    void *memory;
    size_t bytes;
} gm_simulated_array;

typedef struct gm_simulator gm_simulator;
struct gm_simulator {
    int (*launch)(gm_simulator *simulator, const gm_simulated_launch *launch); /* 0: done */
    void *context;
    gm_simulated_array array[GM_SIMULATED_ARRAYS]; /* allocated now */
    int count;
};

/* The PTX of the file that has this kernel, or NULL. */
const char *gm_cuda_ptx(const char *kernel);
