#include "through.h"
#include "operand.h"
#include "raise.h"
#include "../base/overlap.h"

static gm_status copy_bytes(void *context, char *dst, const char *src, int64_t bytes)
{
    const gm_state *state = context;
    const int64_t step = 1;
    gm_plan plan;

    gm_plan_make(&plan, 1, 1, &bytes, &step, &step);
    return gm_cpu_move_stage(state->fastest[GM_CPU][GM_LESSON_COPY])(&state->cpu, &plan, dst, src);
}

gm_host_copy gm_host_copy_of(gm_state *state)
{
    return (gm_host_copy){copy_bytes, state};
}

int gm_is_loose(const gm_array *array, int64_t times)
{
    uintptr_t low, high;
    gm_span(array, &low, &high);
    return (int64_t)(high - low) > times * gm_bytes_of(array->ndim, array->shape, array->itemsize);
}

static int send(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_failure failure = {GM_OK, "a stage's scratch"};
    gm_plan plan;

    gm_plan_make(&plan, src->itemsize, dst->ndim, dst->shape, src->strides, dst->strides);
    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = gm_cuda_move_host(transfer->through, &plan, dst->data, src->data, transfer->stage,
                                         gm_host_copy_of(state), &failure);
    PyEval_RestoreThread(saved);
    return status == GM_OK ? 0 : gm_raise(status, failure.text);
}

int gm_gather(gm_state *state, const gm_array *src, gm_array *dense)
{
    gm_transfer here;

    if (gm_transfer_from(state, NULL, GM_LESSON_COPY, GM_CPU, &here) < 0 || gm_dense_like(src, dense) < 0)
        return -1;
    if (gm_transfer_apart(state, &here, dense, src) == 0)
        return 0;
    gm_dense_free(dense);
    return -1;
}

static int send_tight(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_array dense;

    if (!gm_is_loose(src, 2))
        return send(state, transfer, dst, src);
    if (gm_gather(state, src, &dense) < 0)
        return -1;
    int rc = send(state, transfer, dst, &dense);
    gm_dense_free(&dense);
    return rc;
}

int gm_through_device(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_transfer here;
    gm_array dense;

    if (gm_transfer_from(state, NULL, GM_LESSON_COPY, GM_CPU, &here) < 0)
        return -1;
    if (!gm_is_loose(dst, 1) && !gm_may_share(dst, src))
        return send_tight(state, transfer, dst, src);
    if (gm_dense_like(dst, &dense) < 0)
        return -1;
    int rc = send_tight(state, transfer, &dense, src);
    if (rc == 0)
        rc = gm_transfer_apart(state, &here, dst, &dense);
    gm_dense_free(&dense);
    return rc;
}
