#include "settings.h"
#include "raise.h"
#include "../cpu/isa.h"
#include <errno.h>
#include <stdlib.h>
#include <stdatomic.h>

/* More than the pool ever starts; nobody means a larger number. */
enum { MOST_THREADS = 1024 };

/* "avx512 (runs here), avx2 (runs here), portable (runs here)" */
static PyObject *describe_isas(void)
{
    PyObject *text = PyUnicode_FromString("");
    for (const gm_isa *const *isa = gm_isas; text && *isa; isa++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s%s (%s here)", text, isa == gm_isas ? "" : ", ", (*isa)->name,
                                                (*isa)->runs_here() ? "runs" : "does not run");
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

static int raise_isa(const char *asked)
{
    PyObject *there_are = describe_isas();
    if (there_are)
        gm_raise(GM_ISA, asked, there_are);
    Py_XDECREF(there_are);
    return -1;
}

int gm_settings_init(gm_state *state)
{
    const char *threads = getenv("GPUMEM_NUM_THREADS"), *isa = getenv("GPUMEM_ISA");
    long count = 0;

    if (threads && *threads) {
        char *end;
        errno = 0;
        count = strtol(threads, &end, 10);
        if (errno || *end || count < 1 || count > MOST_THREADS)
            return gm_raise(GM_NUM_THREADS_TEXT, MOST_THREADS, threads);
    }
    return gm_cpu_init(&state->cpu, isa, (int)count) ? 0 : raise_isa(isa);
}

PyObject *gm_py_set_num_threads(PyObject *module, PyObject *count)
{
    /* Clipped, not an overflow: any number so large is out of range. */
    Py_ssize_t threads = PyNumber_AsSsize_t(count, NULL);
    if (threads == -1 && PyErr_Occurred())
        return NULL;
    if (threads < 1 || threads > MOST_THREADS) {
        gm_raise(GM_NUM_THREADS, count, MOST_THREADS);
        return NULL;
    }
    atomic_store(&gm_state_of(module)->cpu.threads, (int)threads);
    Py_RETURN_NONE;
}

PyObject *gm_py_get_num_threads(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(atomic_load(&gm_state_of(module)->cpu.threads));
}

PyObject *gm_py_isa(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(gm_state_of(module)->cpu.isa->name);
}

PyObject *gm_py_isas(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    for (const gm_isa *const *isa = gm_isas; list && *isa; isa++) {
        PyObject *row =
            Py_BuildValue("(ssO)", (*isa)->name, (*isa)->description, (*isa)->runs_here() ? Py_True : Py_False);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}
