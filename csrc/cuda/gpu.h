/* One CUDA device as this back end uses it: its primary context, its figures, and the kernels loaded there. */
#pragma once
#include "backend.h"
#include "driver.h"

enum { GM_MAX_GPUS = 64 }; /* of one process */

typedef struct gm_gpu {
    const gm_driver *driver;
    int ordinal;
    CUcontext context; /* the primary one, which other libraries share */
    gm_cuda_figures figures;
} gm_gpu;

/* The device, opened on first use and kept until the process ends; NULL with the reason. */
gm_gpu *gm_gpu_get(int ordinal, gm_failure *failure);

/* Opens the device, makes its context current for this thread, unless it is, and puts back what was. The caller ends
 * the visit unless this returns NULL, with the reason. */
typedef struct gm_visit {
    const gm_gpu *gpu;
    int pushed;
} gm_visit;
gm_gpu *gm_visit_begin(gm_visit *visit, int device, gm_failure *failure);
void gm_visit_end(const gm_visit *visit);

/* Our own pool of memory, made when it is first asked for: the device's usual one gives everything back at each
 * synchronisation. NULL where the usual one has to serve: none may be made for a stream that is being captured. */
CUmemoryPool gm_gpu_pool(gm_gpu *gpu, CUstream stream);

/* A launch of the kernel `entry` (gm_entry_find); inside a visit. The kernel's module is loaded on first use. More
 * blocks than the driver takes are refused. */
typedef struct gm_launch {
    int entry;
    int64_t blocks;
    unsigned threads; /* of a block */
    unsigned shared;  /* bytes of dynamic shared memory */
    int asynchronous; /* loads do not go by the first-level cache: the same in all launches of a kernel */
    CUstream stream;
} gm_launch;
gm_status gm_gpu_launch(gm_gpu *gpu, const gm_launch *launch, void **arguments, gm_failure *failure);
