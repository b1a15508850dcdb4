#include "simt_count.h"
#include "../simt/count.h"
#include <string.h>

/* What can be counted: a function of each kind of row, and the shared space's two ways of naming addresses. */
typedef struct warp {
    uint64_t addr[GM_LANES]; /* global addresses; of a copy its sources */
    uint32_t shared[GM_LANES];
    uint32_t active, bytes;
} warp;

typedef void count_fn(const warp *w, int access, uint32_t row[4]);

static void global_row(gm_global_count c, uint32_t row[4])
{
    memcpy(row, (uint32_t[]){c.requests, c.sectors, c.ideal, c.lines}, 4 * sizeof *row);
}

static void shared_row(gm_shared_count c, uint32_t row[4])
{
    memcpy(row, (uint32_t[]){c.requests, c.wavefronts, c.ideal, c.conflicts}, 4 * sizeof *row);
}

static void count_global(const warp *w, int access, uint32_t row[4])
{
    global_row(gm_count_global((gm_access)access, w->addr, w->active, w->bytes), row);
}

static void count_shared(const warp *w, int access, uint32_t row[4])
{
    shared_row(gm_count_shared((gm_access)access, w->shared, w->active, w->bytes), row);
}

static void count_matrix(const warp *w, int matrices, uint32_t row[4])
{
    shared_row(gm_count_matrix(w->shared, (uint32_t)matrices), row);
}

static void count_copy(const warp *w, int access, uint32_t row[4])
{
    (void)access;
    global_row(gm_count_copy(w->addr, w->shared, w->active), row);
}

static void count_copy_shared(const warp *w, int access, uint32_t row[4])
{
    (void)access;
    shared_row(gm_count_copy_shared(w->addr, w->active, w->shared, w->active, w->bytes), row);
}

static const struct {
    const char *name;
    count_fn *count;
    int how;
} counted[] = {
    {"global load", count_global, GM_ACCESS_LOAD},
    {"global store", count_global, GM_ACCESS_STORE},
    {"global atom", count_global, GM_ACCESS_ATOM},
    {"global cas", count_global, GM_ACCESS_CAS},
    {"shared load", count_shared, GM_ACCESS_LOAD},
    {"shared store", count_shared, GM_ACCESS_STORE},
    {"shared atom", count_shared, GM_ACCESS_ATOM},
    {"shared cas", count_shared, GM_ACCESS_CAS},
    {"shared inc", count_shared, GM_ACCESS_INC},
    {"matrix x1", count_matrix, 1},
    {"matrix x2", count_matrix, 2},
    {"matrix x3", count_matrix, 3}, /* of four, when the last one's rows cannot be reached */
    {"matrix x4", count_matrix, 4},
    {"copy", count_copy, 0},
    {"copy shared", count_copy_shared, 0},
};

static int dense(PyObject *object, Py_buffer *view, Py_ssize_t itemsize, const char *what)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS) < 0)
        return -1;
    if (view->len % itemsize == 0)
        return 0;
    PyBuffer_Release(view);
    PyErr_Format(PyExc_ValueError, "%s: items of %zd bytes are wanted", what, itemsize);
    return -1;
}

static int count_all(const char *what, const Py_buffer *addr, const Py_buffer *shared, const Py_buffer *active,
                     uint32_t bytes, char *rows)
{
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        if (strcmp(counted[i].name, what) != 0)
            continue;
        for (Py_ssize_t n = 0; n < active->len / 4; n++) {
            warp w = {.bytes = bytes};
            uint32_t row[4];
            memcpy(w.addr, (const char *)addr->buf + n * (Py_ssize_t)sizeof w.addr, sizeof w.addr);
            memcpy(w.shared, (const char *)shared->buf + n * (Py_ssize_t)sizeof w.shared, sizeof w.shared);
            memcpy(&w.active, (const char *)active->buf + n * 4, 4);
            counted[i].count(&w, counted[i].how, row);
            memcpy(rows + n * (Py_ssize_t)sizeof row, row, sizeof row);
        }
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "nothing is counted for %s", what);
    return -1;
}

PyObject *gm_py_count(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer addr, shared, active;
    PyObject *rows = NULL, *name = NULL;
    unsigned long bytes = 0;
    (void)module;

    if (nargs == 5) {
        bytes = PyLong_AsUnsignedLong(args[4]);
        name = PyUnicode_AsASCIIString(args[0]);
    } else {
        PyErr_SetString(PyExc_TypeError, "_count(what, addresses, shared, active, width)");
    }
    if (PyErr_Occurred())
        goto no_buffers;
    if (dense(args[1], &addr, 8 * GM_LANES, "addresses") < 0)
        goto no_buffers;
    if (dense(args[2], &shared, 4 * GM_LANES, "shared") < 0)
        goto no_shared;
    if (dense(args[3], &active, 4, "active") < 0)
        goto no_active;
    if (!bytes || bytes > 32 || bytes & (bytes - 1) || addr.len != 2 * shared.len ||
        shared.len / GM_LANES != active.len)
        PyErr_SetString(PyExc_ValueError,
                        "n x 32 addresses, n x 32 shared, n active masks; 1 to 32 bytes, a power of 2");
    else
        rows = PyBytes_FromStringAndSize(NULL, active.len * 4);
    if (rows && count_all(PyBytes_AsString(name), &addr, &shared, &active, (uint32_t)bytes, PyBytes_AsString(rows)) < 0)
        Py_CLEAR(rows);
    PyBuffer_Release(&active);
no_active:
    PyBuffer_Release(&shared);
no_shared:
    PyBuffer_Release(&addr);
no_buffers:
    Py_XDECREF(name);
    return rows;
}
