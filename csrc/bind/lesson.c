#include "lesson.h"
#include "dlpack_type.h"
#include "dtypes.h"
#include "inspect.h"
#include "operand.h"
#include "raise.h"
#include "stream.h"
#include "../base/overlap.h"
#include <stdio.h>

enum { LESSON, STAGE, X, SHAPE, FIGURES, INDEX, OUT, STREAM, ARGUMENTS };

/* What a stage refuses before its launcher sees it. */
static int refuse(const gm_stage *stage, const char *why)
{
    char text[300];
    snprintf(text, sizeof text, "%s/%s: %s", stage->lesson, stage->name, why);
    return gm_raise(GM_STAGE_REFUSES, text);
}

static int is_dense(const gm_array *array)
{
    int64_t step = array->itemsize;
    int dense = 1;

    for (int i = array->ndim - 1; i >= 0; i--) {
        dense &= array->shape[i] == 1 || array->strides[i] == step;
        step *= array->shape[i];
    }
    return dense || step == 0; /* the strides of an array without items mean nothing */
}

/* A stage is about where its items lie: nothing is copied behind the caller's back. */
static int check_array(const gm_stage *stage, const gm_array *array, const char *what)
{
    char text[200];

    if (array->device != GM_CUDA) {
        snprintf(text, sizeof text, "%s is in host memory, and this is a stage for CUDA devices", what);
        return refuse(stage, text);
    }
    if (!is_dense(array)) {
        snprintf(text, sizeof text, "%s has gaps, or axes in another order than C's: pass gpumem.copy(%s)", what, what);
        return refuse(stage, text);
    }
    return 0;
}

/* What the result is like: x, but that integers add up to 64 bits. */
static int result_like(const gm_stage *stage, const gm_operand *x, gm_lesson_call *call, gm_operand *like)
{
    int type = gm_dtype_of(x);

    *like = *x;
    call->type = (gm_dtype)type;
    if (stage->bytes != 1)
        return 0;
    if (type < 0)
        return refuse(stage, "x has a dtype that gpumem cannot add");
    char kind = gm_dtype_get(call->type)->kind;
    gm_dtype to = kind == 'b' || kind == 'i' ? GM_int64 : kind == 'u' ? GM_uint64 : call->type;
    call->to = to;
    like->array.itemsize = gm_dtype_get(to)->bits / 8;
    like->tensor.dtype = gm_dlpack_from_dtype(to);
    return 0;
}

static int run(const gm_lesson_call *call, const gm_array *dst, const gm_array *src)
{
    gm_failure failure;

    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = gm_cuda_run_stage(src->device_id, src->stream, call, dst->data, src->data, &failure);
    PyEval_RestoreThread(saved);
    return status == GM_OK ? 0 : gm_raise(status, failure.text);
}

static PyObject *run_into(gm_state *state, const gm_stage *stage, const gm_lesson_call *call, PyObject *given,
                          const gm_operand *x, const gm_operand *like, int ndim, const int64_t *shape)
{
    gm_operand out;

    if (given != Py_None) {
        if (gm_operand_out(state, given, like, ndim, shape, &out) < 0)
            return NULL;
        int rc = check_array(stage, &out.array, "out");
        if (rc == 0 && gm_may_share(&out.array, &x->array))
            rc = refuse(stage, "out shares memory with x");
        if (rc == 0)
            rc = run(call, &out.array, &x->array);
        gm_operand_release(&out);
        return rc < 0 ? NULL : Py_NewRef(given);
    }
    if (gm_operand_empty(state, like, ndim, shape, &out) < 0)
        return NULL;
    if (run(call, &out.array, &x->array) < 0) {
        gm_operand_discard(&out);
        return NULL;
    }
    return gm_operand_finish(state, like, &out);
}

/* The index of a gather, which must stay until the caller has launched. */
static int take_index(gm_state *state, const gm_stage *stage, PyObject *object, const gm_operand *x,
                      gm_lesson_call *call, gm_operand *index)
{
    if (gm_operand_from(state, object, "index", x->array.stream, index) < 0)
        return -1;
    int type = gm_dtype_of(index), rc = check_array(stage, &index->array, "index");
    if (rc == 0 && type != GM_int32 && type != GM_int64)
        rc = refuse(stage, "index must have dtype int32 or int64");
    if (rc == 0 && index->array.device_id != x->array.device_id)
        rc = refuse(stage, "index is on another device than x");
    call->index = index->array.data;
    call->index_item = (int)index->array.itemsize;
    if (rc < 0)
        gm_operand_release(index);
    return rc;
}

static PyObject *run_on(gm_state *state, gm_lesson_call *call, PyObject *const *args, const gm_operand *x, int ndim,
                        const int64_t *shape)
{
    const gm_stage *stage = gm_stage_get(call->stage);
    gm_operand like, index;
    int gathers = args[INDEX] != Py_None;

    call->item = (int)x->array.itemsize;
    if (check_array(stage, &x->array, "x") < 0 || result_like(stage, x, call, &like) < 0 ||
        (gathers && take_index(state, stage, args[INDEX], x, call, &index) < 0))
        return NULL;
    PyObject *result = run_into(state, stage, call, args[OUT], x, &like, ndim, shape);
    if (gathers)
        gm_operand_release(&index);
    return result;
}

static int figures_from(PyObject *object, gm_lesson_call *call)
{
    long long n, rows, columns, items, stride, offset, field;

    if (!PyArg_ParseTuple(object, "LLLLLLL", &n, &rows, &columns, &items, &stride, &offset, &field))
        return -1;
    call->n = n;
    call->rows = rows;
    call->columns = columns;
    call->items = items;
    call->stride = stride;
    call->offset = offset;
    call->field = field;
    return 0;
}

PyObject *gm_py_run_stage(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    gm_state *state = gm_state_of(module);
    gm_lesson_call call = {0};
    int64_t shape[GM_MAX_NDIM];
    gm_operand x;
    void *stream;

    if (nargs != ARGUMENTS) {
        PyErr_SetString(PyExc_TypeError, "_run_stage(lesson, stage, x, shape, figures, index, out, stream)");
        return NULL;
    }
    const char *lesson = PyUnicode_AsUTF8AndSize(args[LESSON], NULL),
               *name = PyUnicode_AsUTF8AndSize(args[STAGE], NULL);
    if (!lesson || !name || figures_from(args[FIGURES], &call) < 0)
        return NULL;
    call.stage = gm_stage_find(lesson, name, GM_CUDA);
    if (call.stage == GM_STAGE_COUNT) {
        PyErr_Format(PyExc_ValueError, "%s has no stage %s on CUDA devices", lesson, name);
        return NULL;
    }
    int ndim = gm_integers_from(args[SHAPE], shape);
    if (ndim < 0 || gm_stream_from(state, args[STREAM], &stream) < 0)
        return NULL;
    gm_owner_poll(state);
    if (gm_operand_from(state, args[X], "x", stream, &x) < 0)
        return NULL;
    PyObject *result = run_on(state, &call, args, &x, ndim, shape);
    gm_operand_release(&x);
    return result;
}
