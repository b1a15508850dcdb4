#include "transfer.h"
#include "args.h"
#include "operand.h"
#include "raise.h"
#include "through.h"
#include "../base/memory.h"
#include "../base/overlap.h"
#include "../cuda/backend.h"
#include <string.h>

/* Below this many bytes, letting other Python threads in costs more than the movement. */
enum { WORTH_RELEASING = 32 << 10 };

int gm_transfer_from(const gm_state *state, PyObject *stage, gm_lesson lesson, gm_device_kind device,
                     gm_transfer *transfer)
{
    int id = gm_stage_from(state, stage, lesson, device);
    if (id < 0)
        return -1;
    transfer->stage = (gm_stage_id)id;
    transfer->chosen = stage && stage != Py_None;
    transfer->through = -1;
    return 0;
}

PyThreadState *gm_release_for(int64_t bytes)
{
    return bytes < WORTH_RELEASING ? NULL : PyEval_SaveThread();
}

void gm_take_back(PyThreadState *saved)
{
    if (saved)
        PyEval_RestoreThread(saved);
}

static int on_device(const gm_transfer *transfer, const gm_plan *plan, const gm_array *dst, const gm_array *src)
{
    gm_failure failure;

    /* A launch waits where the driver's queue is full, and what is in it may wait for this thread's lock. */
    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = gm_cuda_move(dst->device_id, dst->stream, plan, dst->data, src->data, transfer->stage, &failure);
    PyEval_RestoreThread(saved);
    return status == GM_OK ? 0 : gm_raise(status, failure.text);
}

int gm_transfer_apart(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_plan plan;

    gm_plan_make(&plan, src->itemsize, dst->ndim, dst->shape, src->strides, dst->strides);
    if (plan.family == GM_EMPTY)
        return 0;
    if (transfer->through >= 0)
        return gm_through_device(state, transfer, dst, src);
    if (dst->device == GM_CUDA)
        return on_device(transfer, &plan, dst, src);
    PyThreadState *saved = gm_release_for(plan.items * plan.item);
    gm_status status = gm_cpu_move_stage(transfer->stage)(&state->cpu, &plan, dst->data, src->data);
    gm_take_back(saved);
    return status == GM_OK ? 0 : gm_raise(status, "a stage's scratch");
}

/* Room for a temporary array where x is. */
static int allocate(gm_array *dense, int64_t bytes)
{
    gm_failure failure;
    void *memory = NULL;

    if (dense->device == GM_CPU) {
        dense->data = gm_alloc((size_t)bytes);
        return dense->data ? 0
                           : gm_raise(GM_NO_MEMORY, "a temporary array, which out needs as it shares memory with x");
    }
    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = gm_cuda_alloc(dense->device_id, dense->stream, bytes, &memory, &failure);
    PyEval_RestoreThread(saved);
    dense->data = memory;
    return status == GM_OK ? 0 : gm_raise(status, failure.text);
}

int gm_dense_like(const gm_array *like, gm_array *dense)
{
    int64_t bytes = gm_bytes_of(like->ndim, like->shape, like->itemsize), step = like->itemsize;
    if (bytes < 0)
        return -1;
    dense->device = like->device;
    dense->device_id = like->device_id;
    dense->stream = like->stream;
    if (allocate(dense, bytes) < 0)
        return -1;
    dense->itemsize = like->itemsize;
    dense->ndim = like->ndim;
    for (int i = like->ndim - 1; i >= 0; i--) {
        dense->shape[i] = like->shape[i];
        dense->strides[i] = step;
        step *= like->shape[i];
    }
    return 0;
}

void gm_dense_free(const gm_array *dense)
{
    if (dense->device == GM_CPU)
        gm_free(dense->data);
    else
        gm_cuda_free(dense->device_id, dense->stream, dense->data);
}

static int through_a_copy(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_transfer fastest;
    gm_array dense;

    if (gm_transfer_from(state, NULL, GM_LESSON_COPY, dst->device, &fastest) < 0 || gm_dense_like(src, &dense) < 0)
        return -1;
    int rc = gm_transfer_apart(state, transfer, &dense, src);
    if (rc == 0)
        rc = gm_transfer_apart(state, &fastest, dst, &dense);
    gm_dense_free(&dense);
    return rc;
}

/* What it takes to turn a view into another one of the same memory: nothing, two axes swapped, or more than that. */
typedef enum gm_relation { SAME, SWAPPED, OTHER } gm_relation;

static gm_relation relation_of(const gm_array *dst, const gm_array *src, int *a, int *b)
{
    int moved[2], count = 0;

    if (dst->data != src->data)
        return OTHER;
    for (int i = 0; i < dst->ndim; i++) {
        if (dst->shape[i] == 1 || dst->strides[i] == src->strides[i])
            continue;
        if (count == 2)
            return OTHER;
        moved[count++] = i;
    }
    if (count == 0)
        return SAME;
    if (count == 1)
        return OTHER;
    *a = moved[0];
    *b = moved[1];
    return dst->shape[*a] == dst->shape[*b] && dst->strides[*a] == src->strides[*b] &&
                   dst->strides[*b] == src->strides[*a]
               ? SWAPPED
               : OTHER;
}

static int swap_in_place(gm_state *state, const gm_array *array, int a, int b)
{
    gm_failure failure = {GM_OK, "the scratch of a transposition in place"};
    int64_t bytes = gm_bytes_of(array->ndim, array->shape, array->itemsize);
    PyThreadState *saved = array->device == GM_CUDA ? PyEval_SaveThread() : gm_release_for(bytes);
    gm_status status = array->device == GM_CUDA
                           ? gm_cuda_swap_axes(array->device_id, array->stream, array, a, b, &failure)
                           : gm_cpu_swap_axes(&state->cpu, array, a, b);
    gm_take_back(saved);
    return status == GM_OK ? 0 : gm_raise(status, failure.text);
}

int gm_transfer_any(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    int a, b;

    if (transfer->through >= 0 || !gm_may_share(dst, src))
        return gm_transfer_apart(state, transfer, dst, src);
    gm_relation relation = relation_of(dst, src, &a, &b);
    if (relation == SAME)
        return 0;
    if (relation == SWAPPED && !transfer->chosen)
        return swap_in_place(state, dst, a, b);
    return through_a_copy(state, transfer, dst, src);
}
