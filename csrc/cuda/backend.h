/* The CUDA back end as the bindings see it: device pointers, plans and streams; no header of CUDA's needed.
 * A build without nvcc has the same functions, which say so (absent.c). Every function may be called without the GIL
 * and from many threads at once; the thread's current context is as it was afterwards; nothing here waits for the
 * device but where it is said. */
#pragma once
#include "../base/array.h"
#include "../base/failure.h"
#include "../base/plan.h"
#include "../base/stages.h"

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

/* How many devices there are, or -1 with the reason. */
int gm_cuda_count(gm_failure *failure);
gm_status gm_cuda_figures_of(int device, gm_cuda_figures *figures, gm_failure *failure);

/* dst[plan] = src[plan] on `stream` of `device`; memory that does not overlap. */
gm_status gm_cuda_move(int device, void *stream, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                       gm_failure *failure);

/* Swaps axes a and b of equal length inside one array, on `stream` of `device`. The view must not overlap itself. */
gm_status gm_cuda_swap_axes(int device, void *stream, const gm_array *array, int a, int b, gm_failure *failure);

/* Memory of the device, ordered on the stream. */
gm_status gm_cuda_alloc(int device, void *stream, int64_t bytes, void **memory, gm_failure *failure);
void gm_cuda_free(int device, void *stream, void *memory);

/* Has `done(ctx)` called by a thread of the driver's when the work that is now on the stream has finished. */
gm_status gm_cuda_when_done(int device, void *stream, void (*done)(void *ctx), void *ctx, gm_failure *failure);

/* Makes what comes on `later` wait for what is on `first` now; neither waits on the host. */
gm_status gm_cuda_order(int device, void *first, void *later, gm_failure *failure);

/* Waits until the stream is idle: for host arrays, whose answer is due at once. */
gm_status gm_cuda_wait(int device, void *stream, gm_failure *failure);

/* The PTX of the file that has this kernel, or NULL. */
const char *gm_cuda_ptx(const char *kernel);
