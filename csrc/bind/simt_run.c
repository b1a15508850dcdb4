/* One run of the lens: what Python gives, as a launch. gpumem/kernel.py has checked it. */
#include "simt.h"
#include "raise.h"
#include <stdlib.h>
#include <string.h>

const char gm_doc_simt_run[] =
    "run($self, grid, block, cluster, shared, parameters, pointers, buffers, units, options, counted, /)\n--\n\n"
    "Executes a launch; the counters, the findings and how it ended, as a dictionary.\n\n"
    "grid, block, cluster: three integers each. shared: dynamic bytes. parameters: the block as bytes.\n"
    "pointers: (at, buffer, offset) rows. buffers: (address, bytes, name, lead, read-only) rows, memory that\n"
    "the caller keeps alive. units: (first, step, units). options: (threads, watch, isa, instructions, memory,\n"
    "seconds). counted: a gm_lens_counted a site as bytes, or b\"\": as they are written.\n";

/* For the callback: the thread's state while it runs without the GIL, and whether a signal's handler raised. */
typedef struct gm_signals {
    PyThreadState *thread;
    int raised;
} gm_signals;

static int interrupted(void *context)
{
    gm_signals *signals = context;

    PyEval_RestoreThread(signals->thread);
    signals->raised = PyErr_CheckSignals() < 0;
    signals->thread = PyEval_SaveThread();
    return signals->raised;
}

/* Calls `take` with each row of a list: all rows, or -1 with an exception. */
typedef int gm_take(PyObject *row, void *into);

static int take_rows(PyObject *list, size_t item, gm_take *take, void **rows, size_t *count)
{
    Py_ssize_t size = PyList_Size(list);

    if (size < 0)
        return -1;
    if (!(*rows = calloc((size_t)size + 1, item)))
        return gm_raise(GM_NO_MEMORY, "the arguments of a launch");
    *count = (size_t)size;
    for (Py_ssize_t i = 0; i < size; i++)
        if (take(PyList_GetItem(list, i), (char *)*rows + (size_t)i * item) < 0)
            return -1;
    return 0;
}

static int take_pointer(PyObject *row, void *into)
{
    gm_lens_pointer *pointer = into;
    unsigned int at, buffer;
    long long offset;

    if (!PyArg_ParseTuple(row, "IIL", &at, &buffer, &offset))
        return -1;
    *pointer = (gm_lens_pointer){at, buffer, offset};
    return 0;
}

static int take_buffer(PyObject *row, void *into)
{
    gm_lens_buffer *buffer = into;
    unsigned long long address, size;
    const char *name;
    unsigned int lead;
    int read_only;

    if (!PyArg_ParseTuple(row, "KKsIp", &address, &size, &name, &lead, &read_only))
        return -1;
    *buffer = (gm_lens_buffer){.memory = (void *)(uintptr_t)address,
                               .size = size,
                               .name = name,
                               .lead = lead,
                               .read_only = (uint8_t)read_only};
    return 0;
}

static PyObject *execute(const gm_lens *lens, gm_lens_launch *launch)
{
    gm_signals signals = {0};
    gm_lens_result result = {0};
    gm_failure failure = {GM_OK, ""};
    PyObject *made = NULL;

    launch->interrupted = interrupted;
    launch->context = &signals;
    signals.thread = PyEval_SaveThread();
    gm_status status = gm_lens_run(lens, launch, &result, &failure);
    PyEval_RestoreThread(signals.thread);
    if (signals.raised)
        goto done; /* with the handler's exception */
    if (status == GM_OK || status == GM_LENS_LIMIT || status == GM_LENS_DEADLOCK)
        made = gm_simt_result(&result, failure.text, launch);
    else
        gm_raise(status, failure.text);
done:
    gm_lens_result_free(&result);
    return made;
}

PyObject *gm_simt_run(const gm_lens *lens, PyObject *args)
{
    gm_lens_launch launch = {0};
    unsigned int grid[3], block[3], cluster[3], shared;
    unsigned long long first, step, units, instructions, memory;
    const char *parameters;
    const char *counted;
    Py_ssize_t parameter_bytes, counted_bytes;
    PyObject *pointers, *buffers, *made = NULL;
    void *pointer_rows = NULL, *buffer_rows = NULL;

    if (!PyArg_ParseTuple(args, "(III)(III)(III)Iy#O!O!(KKK)(iIzKKd)y#", &grid[0], &grid[1], &grid[2], &block[0],
                          &block[1], &block[2], &cluster[0], &cluster[1], &cluster[2], &shared, &parameters,
                          &parameter_bytes, &PyList_Type, &pointers, &PyList_Type, &buffers, &first, &step, &units,
                          &launch.threads, &launch.watch, &launch.isa, &instructions, &memory, &launch.seconds,
                          &counted, &counted_bytes))
        return NULL;
    launch.grid = (gm_lens_dim){grid[0], grid[1], grid[2]};
    launch.block = (gm_lens_dim){block[0], block[1], block[2]};
    launch.cluster = (gm_lens_dim){cluster[0], cluster[1], cluster[2]};
    launch.dynamic_shared = shared;
    launch.parameters = parameters;
    launch.parameter_bytes = (size_t)parameter_bytes;
    launch.first = first;
    launch.step = step;
    launch.units = units;
    launch.instructions = instructions;
    launch.memory = memory;
    if (counted_bytes && (size_t)counted_bytes != gm_lens_describe(lens)->site_count * sizeof(gm_lens_counted)) {
        PyErr_SetString(PyExc_ValueError, "counted: one row a site");
        return NULL;
    }
    gm_lens_counted *as = counted_bytes ? malloc((size_t)counted_bytes) : NULL;
    if (counted_bytes && !as) {
        gm_raise(GM_NO_MEMORY, "the arguments of a launch");
        return NULL;
    }
    if (as)
        memcpy(as, counted, (size_t)counted_bytes);
    launch.counted = as;
    if (take_rows(pointers, sizeof(gm_lens_pointer), take_pointer, &pointer_rows, &launch.pointer_count) == 0 &&
        take_rows(buffers, sizeof(gm_lens_buffer), take_buffer, &buffer_rows, &launch.buffer_count) == 0) {
        launch.pointers = pointer_rows;
        launch.buffers = buffer_rows;
        made = execute(lens, &launch);
    }
    free(pointer_rows);
    free(buffer_rows);
    free(as);
    return made;
}
