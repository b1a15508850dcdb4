/* sum: which axes, of which type, into what; the stages of the lesson `reduce` do the work. */
#include "reduction.h"
#include "args.h"
#include "dtypes.h"
#include "operand.h"
#include "place.h"
#include "raise.h"
#include "through.h"
#include "transfer.h"
#include "../base/memory.h"
#include "../base/overlap.h"
#include "../cpu/sum.h"
#include <stdio.h>
#include <string.h>

static const gm_parameters parameters = {
    "sum", 1, 1, 1, {"x", "axis", "dtype", "keepdims", "out", "device", "stage", "stream"}};

enum { X, AXIS, DTYPE, KEEPDIMS, OUT, DEVICE, STAGE, STREAM };

typedef struct gm_reduction {
    gm_stage_id stage;
    int through; /* as in gm_transfer */
    gm_dtype from, to;
    unsigned char summed[GM_MAX_NDIM]; /* by axis of x */
    int keepdims;
    int ndim; /* of the result */
    int64_t shape[GM_MAX_NDIM];
} gm_reduction;

static int choose_shape(gm_reduction *r, PyObject *axis, PyObject *keepdims, const gm_array *x)
{
    memset(r->summed, 0, (size_t)x->ndim);
    r->keepdims = keepdims ? PyObject_IsTrue(keepdims) : 0;
    if (r->keepdims < 0 || gm_axis_set_from(axis, x->ndim, r->summed) < 0)
        return -1;
    r->ndim = 0;
    for (int i = 0; i < x->ndim; i++)
        if (!r->summed[i])
            r->shape[r->ndim++] = x->shape[i];
        else if (r->keepdims)
            r->shape[r->ndim++] = 1;
    return 0;
}

/* The array API's: sums of integers are as wide as any, sums of inexact numbers are of their own type. */
static gm_dtype usual_result(gm_dtype from)
{
    char kind = gm_dtype_get(from)->kind;
    return kind == 'b' || kind == 'i' ? GM_int64 : kind == 'u' ? GM_uint64 : from;
}

static int raise_type(gm_status status, const gm_operand *x, PyObject *dtype)
{
    PyObject *given = gm_operand_dtype(x), *names = dtype ? Py_NewRef(dtype) : gm_dtype_names();
    if (given && names)
        gm_raise(status, given, names);
    Py_XDECREF(given);
    Py_XDECREF(names);
    return -1;
}

/* NumPy's type of the result, a new reference; NULL with an exception. */
static PyArray_Descr *numpy_result(PyObject *dtype, gm_dtype from, PyArray_Descr *given)
{
    PyArray_Descr *descr = NULL;

    if (dtype)
        PyArray_DescrConverter(dtype, &descr);
    else if (usual_result(from) == from)
        descr = (PyArray_Descr *)Py_NewRef((PyObject *)given);
    else
        descr = gm_dtype_as_numpy(usual_result(from));
    return descr ? gm_dtype_native(descr) : NULL;
}

/* The types that are added and stored: into r, and into `like`, what the result is like (a new reference in like->descr
 * where x is NumPy's). */
static int choose_types(gm_reduction *r, PyObject *dtype, const gm_operand *x, gm_operand *like)
{
    int from = gm_dtype_of(x), to;

    if (dtype == Py_None)
        dtype = NULL;
    if (from < 0)
        return raise_type(GM_SUM_TYPE, x, NULL);
    r->from = (gm_dtype)from;

    like->array.device = x->array.device;
    like->array.device_id = x->array.device_id;
    like->array.stream = x->array.stream;
    like->descr = NULL;
    if (x->descr) {
        if (!(like->descr = numpy_result(dtype, r->from, x->descr)))
            return -1;
        to = gm_dtype_of_numpy(like->descr);
    } else {
        to = dtype ? gm_dtype_by_name(dtype) : (int)usual_result(r->from);
        like->tensor = x->tensor;
    }
    if (to < 0 || gm_sum_check(r->from, (gm_dtype)to) != GM_OK) {
        Py_CLEAR(like->descr);
        return raise_type(GM_SUM_DTYPE, x, dtype);
    }
    r->to = (gm_dtype)to;
    like->array.itemsize = gm_dtype_get(r->to)->bits / 8;
    if (!x->descr)
        like->tensor.dtype = gm_dlpack_from_dtype(r->to);
    return 0;
}

/* Strides over the result by axis of x, 0 along the summed ones. */
static void strides_by_axis(const gm_reduction *r, const gm_array *x, const gm_array *result, int64_t *strides)
{
    int axis = 0;
    for (int i = 0; i < x->ndim; i++) {
        strides[i] = r->summed[i] ? 0 : result->strides[axis];
        axis += !r->summed[i] || r->keepdims;
    }
}

/* Copies within the memory that an array is in. */
static int copy_there(gm_state *state, const gm_array *dst, const gm_array *src)
{
    gm_transfer fastest;

    return gm_transfer_from(state, NULL, GM_LESSON_COPY, dst->device, &fastest) < 0
               ? -1
               : gm_transfer_apart(state, &fastest, dst, src);
}

/* A sum of nothing is 0, whatever the stage: one zero, where the result is, is all of it. */
static int fill_with_zeros(gm_state *state, const gm_array *result)
{
    gm_array zeros = *result, one = *result;
    gm_failure failure;
    gm_status status = GM_OK;

    one.ndim = 0;
    if (gm_dense_like(&one, &zeros) < 0)
        return -1;
    if (result->device == GM_CPU)
        memset(zeros.data, 0, (size_t)result->itemsize);
    else
        status = gm_cuda_zero(result->device_id, result->stream, zeros.data, result->itemsize, &failure);
    one = zeros;
    zeros.ndim = result->ndim;
    memcpy(zeros.shape, result->shape, sizeof zeros.shape);
    memset(zeros.strides, 0, sizeof zeros.strides);
    int rc = status == GM_OK ? copy_there(state, result, &zeros) : gm_raise(status, failure.text);
    gm_dense_free(&one);
    return rc;
}

/* A stage of the ladder, asked for by name, adds up all of a dense array; the rest is for the last one alone. */
static gm_status add_by_stage(const gm_reduction *r, const gm_plan *plan, const gm_array *x, const gm_array *result,
                              gm_failure *failure)
{
    gm_lesson_call call = {.stage = r->stage, .item = (int)x->itemsize, .type = r->from, .to = r->to};
    const gm_axis *axis = plan->axis;

    call.n = call.items = plan->items;
    if (r->through < 0 && r->to == usual_result(r->from) &&
        (plan->naxes == 0 || (plan->naxes == 1 && axis->dst == 0 && axis->src == x->itemsize)))
        return gm_cuda_run_stage(result->device_id, result->stream, &call, result->data + plan->dst_start,
                                 x->data + plan->src_start, failure);
    snprintf(
        failure->text, sizeof failure->text,
        "reduce/%s: adds up all of a dense array on a CUDA device, into the usual type; reduce/tuned adds anything",
        gm_stage_get(r->stage)->name);
    return failure->status = GM_STAGE_REFUSES;
}

static gm_status add_plan(gm_state *state, const gm_reduction *r, const gm_plan *plan, const gm_array *x,
                          const gm_array *result, gm_failure *failure)
{
    if (gm_stage_get(r->stage)->device == GM_CUDA && r->stage != GM_CUDA_reduce_tuned)
        return add_by_stage(r, plan, x, result, failure);
    if (r->through >= 0)
        return gm_cuda_sum_host(r->through, plan, result->data,
                                gm_bytes_of(result->ndim, result->shape, result->itemsize), r->to, x->data, r->from,
                                gm_host_copy_of(state), failure);
    if (x->device == GM_CUDA)
        return gm_cuda_sum(result->device_id, result->stream, plan, result->data, r->to, x->data, r->from, failure);
    snprintf(failure->text, sizeof failure->text, "the partial sums");
    return gm_cpu_sum_stage(r->stage)(&state->cpu, plan, result->data, r->to, x->data, r->from);
}

static int add_up(gm_state *state, const gm_reduction *r, const gm_array *x, const gm_array *result)
{
    int64_t strides[GM_MAX_NDIM];
    gm_failure failure = {GM_OK, "a copy"};
    gm_plan plan;

    strides_by_axis(r, x, result, strides);
    gm_plan_make(&plan, x->itemsize, x->ndim, x->shape, x->strides, strides);
    if (plan.family == GM_EMPTY)
        return fill_with_zeros(state, result);

    int on_device = r->through >= 0 || x->device == GM_CUDA;
    PyThreadState *saved = on_device ? PyEval_SaveThread() : gm_release_for(plan.items * plan.item);
    gm_status status = add_plan(state, r, &plan, x, result, &failure);
    gm_take_back(saved);
    return status == GM_OK ? 0 : gm_raise(status, failure.text);
}

/* The sums are made elsewhere first: out shares memory with x, or a device could not write there. */
static int add_up_aside(gm_state *state, const gm_reduction *r, const gm_array *x, const gm_array *out)
{
    gm_array aside;

    if (gm_dense_like(out, &aside) < 0)
        return -1;
    int rc = add_up(state, r, x, &aside);
    if (rc == 0)
        rc = copy_there(state, out, &aside);
    gm_dense_free(&aside);
    return rc;
}

/* Whether a device can write results of that type there: each at a multiple of its size, or of its parts'. */
static int is_aligned(const gm_array *out, gm_dtype to)
{
    uint64_t bits = (uint64_t)(uintptr_t)out->data;

    for (int i = 0; i < out->ndim; i++)
        bits |= out->shape[i] > 1 ? (uint64_t)out->strides[i] : 0;
    return bits % (uint64_t)(gm_dtype_get(to)->bits / 8 / gm_sum_parts(to)) == 0;
}

static int add_up_into(gm_state *state, const gm_reduction *r, const gm_array *x, const gm_array *out)
{
    gm_array dense;

    if (gm_may_share(out, x) || (out->device == GM_CUDA && !is_aligned(out, r->to)) ||
        (r->through >= 0 && gm_is_loose(out, 1)))
        return add_up_aside(state, r, x, out);
    if (r->through < 0 || !gm_is_loose(x, 2))
        return add_up(state, r, x, out);
    if (gm_gather(state, x, &dense) < 0)
        return -1;
    int rc = add_up(state, r, &dense, out);
    gm_dense_free(&dense);
    return rc;
}

static PyObject *sum_into(gm_state *state, const gm_reduction *r, PyObject *object, const gm_operand *x,
                          const gm_operand *like)
{
    gm_operand out;

    if (object && object != Py_None) {
        if (gm_operand_out(state, object, like, r->ndim, r->shape, &out) < 0)
            return NULL;
        int rc = add_up_into(state, r, &x->array, &out.array);
        gm_operand_release(&out);
        return rc < 0 ? NULL : Py_NewRef(object);
    }
    if (gm_operand_empty(state, like, r->ndim, r->shape, &out) < 0)
        return NULL;
    if (add_up_into(state, r, &x->array, &out.array) < 0) {
        gm_operand_discard(&out);
        return NULL;
    }
    return gm_operand_finish(state, like, &out);
}

/* The kernels read native byte order only: `*converted` is a copy in it, or NULL where x is in it already. */
static int to_native(gm_state *state, gm_operand *x, PyObject **converted)
{
    *converted = NULL;
    if (!x->descr || PyArray_ISNBO(x->descr->byteorder))
        return 0;
    PyArray_Descr *native = PyArray_DescrNewByteorder(x->descr, NPY_NATIVE);
    if (!native || !(*converted = PyArray_FromArray((PyArrayObject *)x->object, native, 0)))
        return -1;
    return gm_operand_from(state, *converted, "x", NULL, x);
}

static PyObject *sum(gm_state *state, PyObject *const *value, gm_operand *x, int through)
{
    PyObject *native, *result = NULL;
    gm_operand like;
    gm_reduction r;

    int id = gm_stage_from(state, value[STAGE], GM_LESSON_REDUCE, through < 0 ? x->array.device : GM_CUDA);
    if (id < 0)
        return NULL;
    r.stage = (gm_stage_id)id;
    r.through = through;
    if (choose_shape(&r, value[AXIS], value[KEEPDIMS], &x->array) == 0 &&
        choose_types(&r, value[DTYPE], x, &like) == 0) {
        if (to_native(state, x, &native) == 0)
            result = sum_into(state, &r, value[OUT], x, &like);
        Py_XDECREF(native);
        Py_XDECREF((PyObject *)like.descr);
    }
    return result;
}

PyObject *gm_py_sum(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    gm_state *state = gm_state_of(module);
    PyObject *value[GM_MAX_PARAMETERS], *result = NULL;
    gm_operand x;
    gm_place place;
    int through;

    if (gm_parse(&parameters, args, nargs, kwnames, value) < 0 ||
        gm_place_from(state, value[DEVICE], value[STREAM], value[X], &place) < 0)
        return NULL;
    gm_owner_poll(state);
    if (gm_operand_from(state, value[X], "x", place.stream, &x) < 0)
        return NULL;
    if (gm_place_check(&place, &x.array, &through) == 0)
        result = sum(state, value, &x, through);
    gm_operand_release(&x);
    return result;
}
