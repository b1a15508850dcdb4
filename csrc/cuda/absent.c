/* The back end of a build without nvcc: every call says so. */
#include "backend.h"
#include <stdio.h>

static gm_status refuse(gm_failure *failure)
{
    snprintf(
        failure->text, sizeof failure->text,
        "this gpumem was built without CUDA (GPUMEM_CUDA=0, or no nvcc was found); build it with GPUMEM_CUDA=1 to see "
        "why");
    return failure->status = GM_NO_KERNELS;
}

const char *gm_cuda_chips(void)
{
    return "";
}

int gm_cuda_count(gm_failure *failure)
{
    refuse(failure);
    return -1;
}

gm_status gm_cuda_figures_of(int device, gm_cuda_figures *figures, gm_failure *failure)
{
    (void)device, (void)figures;
    return refuse(failure);
}

gm_status gm_cuda_open(int device, gm_failure *failure)
{
    (void)device;
    return refuse(failure);
}

gm_status gm_cuda_device_of(const void *memory, int *device, gm_failure *failure)
{
    (void)memory, (void)device;
    return refuse(failure);
}

gm_status gm_cuda_move(int device, void *stream, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                       gm_failure *failure)
{
    (void)device, (void)stream, (void)plan, (void)dst, (void)src, (void)stage;
    return refuse(failure);
}

gm_status gm_cuda_move_host(int device, const gm_plan *plan, char *dst, const char *src, gm_stage_id stage,
                            gm_host_copy copy, gm_failure *failure)
{
    (void)device, (void)plan, (void)dst, (void)src, (void)stage, (void)copy;
    return refuse(failure);
}

gm_status gm_cuda_sum(int device, void *stream, const gm_plan *plan, char *dst, gm_dtype to, const char *src,
                      gm_dtype from, gm_failure *failure)
{
    (void)device, (void)stream, (void)plan, (void)dst, (void)to, (void)src, (void)from;
    return refuse(failure);
}

gm_status gm_cuda_sum_host(int device, const gm_plan *plan, char *dst, int64_t bytes, gm_dtype to, const char *src,
                           gm_dtype from, gm_host_copy copy, gm_failure *failure)
{
    (void)device, (void)plan, (void)dst, (void)bytes, (void)to, (void)src, (void)from, (void)copy;
    return refuse(failure);
}

gm_status gm_cuda_swap_axes(int device, void *stream, const gm_array *array, int a, int b, gm_failure *failure)
{
    (void)device, (void)stream, (void)array, (void)a, (void)b;
    return refuse(failure);
}

gm_status gm_cuda_run_stage(int device, void *stream, const gm_lesson_call *call, char *dst, const char *src,
                            gm_failure *failure)
{
    (void)device, (void)stream, (void)call, (void)dst, (void)src;
    return refuse(failure);
}

gm_status gm_cuda_alloc(int device, void *stream, int64_t bytes, void **memory, gm_failure *failure)
{
    (void)device, (void)stream, (void)bytes, (void)memory;
    return refuse(failure);
}

void gm_cuda_free(int device, void *stream, void *memory)
{
    (void)device, (void)stream, (void)memory;
}

gm_status gm_cuda_zero(int device, void *stream, void *memory, int64_t bytes, gm_failure *failure)
{
    (void)device, (void)stream, (void)memory, (void)bytes;
    return refuse(failure);
}

gm_status gm_cuda_order(int device, void *first, void *later, gm_failure *failure)
{
    (void)device, (void)first, (void)later;
    return refuse(failure);
}

gm_status gm_cuda_mark(int device, void *stream, void **mark, gm_failure *failure)
{
    (void)device, (void)stream, (void)mark;
    return refuse(failure);
}

int gm_cuda_happened(int device, void *mark)
{
    (void)device, (void)mark;
    return 1;
}

gm_status gm_cuda_after(int device, void *stream, void *mark, gm_failure *failure)
{
    (void)device, (void)stream, (void)mark;
    return refuse(failure);
}

void gm_cuda_unmark(int device, void *mark)
{
    (void)device, (void)mark;
}

gm_status gm_cuda_wait(int device, void *stream, gm_failure *failure)
{
    (void)device, (void)stream;
    return refuse(failure);
}

const char *gm_cuda_ptx(const char *kernel)
{
    (void)kernel;
    return NULL;
}
