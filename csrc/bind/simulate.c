#include "simulate.h"
#include "inspect.h"
#include "raise.h"
#include "../cuda/backend.h"
#include <string.h>

PyObject *gm_py_kernel_ptx(PyObject *module, PyObject *kernel)
{
    const char *name = PyUnicode_AsUTF8AndSize(kernel, NULL), *ptx = name ? gm_cuda_ptx(name) : NULL;

    (void)module;
    if (!name)
        return NULL;
    return ptx ? PyUnicode_FromString(ptx) : Py_NewRef(Py_None);
}

static PyObject *arrays_of(const gm_simulator *simulator)
{
    PyObject *list = PyList_New(0);

    for (int i = 0; list && i < simulator->count; i++) {
        PyObject *row = Py_BuildValue("(KK)", (unsigned long long)(uintptr_t)simulator->array[i].memory,
                                      (unsigned long long)simulator->array[i].bytes);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* launch(kernel, grid, block, shared, address of the arguments, memory of the device). The GIL is held: nobody but
 * Python does anything here. */
static int launch(gm_simulator *simulator, const gm_simulated_launch *given)
{
    PyObject *arrays = arrays_of(simulator);
    const unsigned *grid = given->grid, *block = given->block;

    PyObject *args =
        arrays ? Py_BuildValue("(s(III)(III)IKN)", given->kernel, grid[0], grid[1], grid[2], block[0], block[1],
                               block[2], given->shared, (unsigned long long)(uintptr_t)given->arguments, arrays)
               : NULL;
    PyObject *done = args ? PyObject_CallObject(simulator->context, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* None, or the exception: that of the launches before what the back end makes of it. */
static PyObject *ended(gm_status status, const gm_failure *failure)
{
    if (PyErr_Occurred())
        return NULL;
    if (status == GM_OK)
        return Py_NewRef(Py_None);
    gm_raise(status, failure->text);
    return NULL;
}

static int stage_from(const char *lesson, const char *name, gm_stage_id *stage)
{
    *stage = gm_stage_find(lesson, name, GM_CUDA);
    if (*stage != GM_STAGE_COUNT)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s has no stage %s on CUDA devices", lesson, name);
    return -1;
}

PyObject *gm_py_simulate_move(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    gm_simulator simulator = {.launch = launch};
    gm_failure failure = {GM_OK, ""};
    gm_stage_id stage;
    gm_plan plan;

    (void)module;
    if (nargs != 9) {
        PyErr_SetString(PyExc_TypeError, "_simulate_move(launch, lesson, stage, itemsize, shape, src_strides, "
                                         "dst_strides, src, dst)");
        return NULL;
    }
    const char *lesson = PyUnicode_AsUTF8AndSize(args[1], NULL), *name = PyUnicode_AsUTF8AndSize(args[2], NULL);
    if (!lesson || !name || stage_from(lesson, name, &stage) < 0 || gm_plan_from(args + 3, &plan) < 0)
        return NULL;
    char *src = PyLong_AsVoidPtr(args[7]), *dst = PyLong_AsVoidPtr(args[8]);
    if (PyErr_Occurred())
        return NULL;
    simulator.context = args[0];
    return ended(gm_cuda_move(GM_CUDA_SIMULATED, &simulator, &plan, dst, src, stage, &failure), &failure);
}

/* What a sum of that type is given as. */
static gm_dtype sum_of(gm_dtype type)
{
    char kind = gm_dtype_get(type)->kind;

    return kind == 'b' || kind == 'i' ? GM_int64 : kind == 'u' ? GM_uint64 : type;
}

PyObject *gm_py_simulate_stage(PyObject *module, PyObject *args)
{
    gm_simulator simulator = {.launch = launch};
    gm_failure failure = {GM_OK, ""};
    gm_lesson_call call = {.type = GM_DTYPE_COUNT, .to = GM_DTYPE_COUNT};
    PyObject *function;
    const char *lesson, *name, *dtype;
    long long n, rows, columns, items, stride, offset, field;
    unsigned long long src, dst, index;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ossis(LLLLLLL)KK(Ki)", &function, &lesson, &name, &call.item, &dtype, &n, &rows,
                          &columns, &items, &stride, &offset, &field, &src, &dst, &index, &call.index_item) ||
        stage_from(lesson, name, &call.stage) < 0)
        return NULL;
    for (int type = 0; type < GM_DTYPE_COUNT; type++)
        if (strcmp(gm_dtype_get((gm_dtype)type)->name, dtype) == 0)
            call.type = (gm_dtype)type;
    if (call.type != GM_DTYPE_COUNT)
        call.to = sum_of(call.type);
    else if (gm_stage_get(call.stage)->bytes == 1) {
        PyErr_Format(PyExc_ValueError, "%s/%s: x has dtype %s, which gpumem cannot add", lesson, name, dtype);
        return NULL;
    }
    call.n = n;
    call.rows = rows;
    call.columns = columns;
    call.items = items;
    call.stride = stride;
    call.offset = offset;
    call.field = field;
    call.index = (const char *)(uintptr_t)index;
    simulator.context = function;
    gm_status status = gm_cuda_run_stage(GM_CUDA_SIMULATED, &simulator, &call, (char *)(uintptr_t)dst,
                                         (const char *)(uintptr_t)src, &failure);
    return ended(status, &failure);
}
