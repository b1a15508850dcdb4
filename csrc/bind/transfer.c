#include "transfer.h"
#include "args.h"
#include "operand.h"
#include "raise.h"
#include "../base/memory.h"
#include "../base/overlap.h"
#include <string.h>

/* Below this many bytes, letting other Python threads in costs more than the movement. */
enum { WORTH_RELEASING = 32 << 10 };

int gm_transfer_from(const gm_state *state, PyObject *stage, gm_lesson lesson, gm_transfer *transfer)
{
    int id = gm_stage_from(state, stage, lesson);
    if (id < 0)
        return -1;
    transfer->stage = gm_cpu_move_stage((gm_stage_id)id);
    transfer->chosen = stage && stage != Py_None;
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

int gm_transfer_apart(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_plan plan;

    gm_plan_make(&plan, src->itemsize, dst->ndim, dst->shape, src->strides, dst->strides);
    if (plan.family == GM_EMPTY)
        return 0;
    PyThreadState *saved = gm_release_for(plan.items * plan.item);
    gm_status status = transfer->stage(&state->cpu, &plan, dst->data, src->data);
    gm_take_back(saved);
    return status == GM_OK ? 0 : gm_raise(status, "a stage's scratch");
}

int gm_dense_like(const gm_array *like, gm_array *dense)
{
    int64_t bytes = gm_bytes_of(like->ndim, like->shape, like->itemsize), step = like->itemsize;
    if (bytes < 0)
        return -1;
    dense->data = gm_alloc((size_t)bytes);
    if (!dense->data)
        return gm_raise(GM_NO_MEMORY, "a temporary array, which out needs as it shares memory with x");
    dense->itemsize = like->itemsize;
    dense->ndim = like->ndim;
    for (int i = like->ndim - 1; i >= 0; i--) {
        dense->shape[i] = like->shape[i];
        dense->strides[i] = step;
        step *= like->shape[i];
    }
    return 0;
}

static int through_a_copy(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_array dense;

    if (gm_dense_like(src, &dense) < 0)
        return -1;
    int rc = gm_transfer_apart(state, transfer, &dense, src);
    if (rc == 0)
        rc = gm_transfer_apart(state, transfer, dst, &dense);
    gm_free(dense.data);
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
    PyThreadState *saved = gm_release_for(gm_bytes_of(array->ndim, array->shape, array->itemsize));
    gm_status status = gm_cpu_swap_axes(&state->cpu, array, a, b);
    gm_take_back(saved);
    return status == GM_OK ? 0 : gm_raise(status, "the scratch of a transposition in place");
}

int gm_transfer_any(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    int a, b;

    if (!gm_may_share(dst, src))
        return gm_transfer_apart(state, transfer, dst, src);
    gm_relation relation = relation_of(dst, src, &a, &b);
    if (relation == SAME)
        return 0;
    if (relation == SWAPPED && !transfer->chosen)
        return swap_in_place(state, dst, a, b);
    return through_a_copy(state, transfer, dst, src);
}
