#include "transfer.h"
#include "args.h"
#include "operand.h"
#include "raise.h"
#include "../base/memory.h"
#include "../base/overlap.h"
#include <string.h>

/* Below this many bytes, letting other Python threads in costs more than the movement. */
enum { WORTH_RELEASING = 32 << 10 };

int gm_transfer_from(PyObject *stage, const char *lesson, gm_transfer *transfer)
{
    int id = gm_stage_from(stage, lesson);
    if (id < 0)
        return -1;
    transfer->stage = gm_cpu_move_stage((gm_stage_id)id);
    transfer->chosen = stage && stage != Py_None;
    return 0;
}

int gm_transfer_apart(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_plan plan;
    gm_status status;

    gm_plan_make(&plan, dst->itemsize, dst->ndim, dst->shape, src->strides, dst->strides);
    if (plan.family == GM_EMPTY)
        return 0;
    if (plan.items * plan.item < WORTH_RELEASING) {
        status = transfer->stage(&state->cpu, &plan, dst->data, src->data);
    } else {
        PyThreadState *saved = PyEval_SaveThread();
        status = transfer->stage(&state->cpu, &plan, dst->data, src->data);
        PyEval_RestoreThread(saved);
    }
    return status == GM_OK ? 0 : gm_raise(status, "the scratch of a transposition");
}

static int64_t item_count(const gm_array *array)
{
    int64_t count = 1;
    for (int i = 0; i < array->ndim; i++)
        count *= array->shape[i];
    return count;
}

static int through_a_copy(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    gm_array dense;
    int64_t step = src->itemsize;

    if (gm_bytes_of(src->ndim, src->shape, src->itemsize) < 0)
        return -1;
    dense.data = gm_alloc((size_t)(item_count(src) * src->itemsize));
    if (!dense.data)
        return gm_raise(GM_NO_MEMORY, "a copy of x, which shares memory with out");
    dense.itemsize = src->itemsize;
    dense.ndim = src->ndim;
    for (int i = src->ndim - 1; i >= 0; i--) {
        dense.shape[i] = src->shape[i];
        dense.strides[i] = step;
        step *= src->shape[i];
    }
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

int gm_transfer_any(gm_state *state, const gm_transfer *transfer, const gm_array *dst, const gm_array *src)
{
    int a, b;

    if (!gm_may_share(dst, src))
        return gm_transfer_apart(state, transfer, dst, src);
    gm_relation relation = relation_of(dst, src, &a, &b);
    if (relation == SAME)
        return 0;
    return through_a_copy(state, transfer, dst, src);
}
