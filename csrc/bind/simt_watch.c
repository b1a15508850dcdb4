#include "simt_watch.h"
#include "simt_findings.h"
#include "../simt/watch.h"
#include <string.h>

enum { SITES = 64, NUMBERS = 4 };

/* Something that happened: up to four numbers, and the lanes' addresses where it is an access. */
typedef struct event {
    uint32_t n[NUMBERS];
    uint32_t addr[GM_LANES], active;
} event;

typedef uint32_t happen(gm_watch *watch, const event *e, unsigned how);

static uint32_t accessed(gm_watch *watch, const event *e, unsigned how)
{
    return gm_watch_shared(watch, e->n[0], how, e->n[1], e->addr, e->active, e->n[2]);
}

static uint32_t unwritten(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_unwritten(watch, e->n[0], e->n[1], e->addr, e->active, e->n[2]);
    return 0;
}

static uint32_t copied(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_copy(watch, e->n[0], e->n[1], e->addr, e->active, e->n[2]);
    return 0;
}

static uint32_t committed(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_copy_commit(watch, e->n[0], e->n[1]);
    return 0;
}

static uint32_t waited(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_copy_wait(watch, e->n[0], e->n[1], e->n[2], (int)e->n[3]);
    return 0;
}

static uint32_t arrived(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_arrived(watch, e->n[0], e->n[1]);
    return 0;
}

static uint32_t lanes_met(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_warp_barrier(watch, e->n[0], e->n[1], e->n[2]);
    return 0;
}

static uint32_t warps_met(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_barrier(watch, e->n[0]);
    return 0;
}

static uint32_t released(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_release(watch, e->n[0], e->n[1]);
    return 0;
}

static uint32_t acquired(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_acquire(watch, e->n[0], e->n[1]);
    return 0;
}

static uint32_t fenced(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_fence(watch, e->n[0], e->n[1]);
    return 0;
}

static uint32_t strongly(gm_watch *watch, const event *e, unsigned how)
{
    gm_watch_strong(watch, e->n[0], e->n[1], how);
    return 0;
}

static uint32_t handed_over(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_hand_over(watch, e->n[0], e->n[1]);
    return 0;
}

static uint32_t taken_over(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_take_over(watch, e->n[0], e->n[1]);
    return 0;
}

static uint32_t began(gm_watch *watch, const event *e, unsigned how)
{
    (void)how;
    gm_watch_block(watch, (uint32_t[]){e->n[0], 0, 0}, e->n[0]);
    return 0;
}

static const struct {
    const char *name;
    happen *happen;
    unsigned how;
} kinds[] = {
    {"read", accessed, GM_HOW_READ},
    {"write", accessed, GM_HOW_WRITE},
    {"atom", accessed, GM_HOW_WRITE | GM_HOW_ATOMIC | GM_HOW_UPDATES},
    {"relaxed read", accessed, GM_HOW_ATOMIC},
    {"volatile read", accessed, GM_HOW_VOLATILE},
    {"volatile write", accessed, GM_HOW_WRITE | GM_HOW_VOLATILE},
    {"unwritten", unwritten, 0},
    {"copy", copied, 0},
    {"commit", committed, 0},
    {"wait", waited, 0},
    {"arrived", arrived, 0},
    {"warp barrier", lanes_met, 0},
    {"barrier", warps_met, 0},
    {"release", released, 0},
    {"acquire", acquired, 0},
    {"fence", fenced, 0},
    {"strong read", strongly, GM_HOW_VOLATILE},
    {"strong write", strongly, GM_HOW_WRITE | GM_HOW_VOLATILE},
    {"strong atom", strongly, GM_HOW_WRITE | GM_HOW_ATOMIC | GM_HOW_UPDATES},
    {"hand over", handed_over, 0},
    {"take over", taken_over, 0},
    {"block", began, 0},
};

/* (name, numbers, addresses or None) -> the row of kinds[], or -1 with an exception. */
static int event_from(PyObject *tuple, event *e)
{
    PyObject *name, *numbers, *addresses;
    memset(e, 0, sizeof *e);
    if (!PyTuple_Check(tuple))
        PyErr_SetString(PyExc_TypeError, "an event is a tuple of name, numbers and addresses");
    if (PyErr_Occurred() || !PyArg_ParseTuple(tuple, "UO!O", &name, &PyTuple_Type, &numbers, &addresses))
        return -1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(numbers) && i < NUMBERS; i++)
        e->n[i] = (uint32_t)PyLong_AsUnsignedLongMask(PyTuple_GetItem(numbers, i));
    for (Py_ssize_t i = 0; addresses != Py_None && i < GM_LANES; i++) {
        PyObject *item = PySequence_GetItem(addresses, i);
        long address = item ? PyLong_AsLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
        e->addr[i] = (uint32_t)address;
        e->active |= (uint32_t)(address >= 0) << i;
    }
    for (size_t k = 0; !PyErr_Occurred() && k < sizeof kinds / sizeof *kinds; k++)
        if (PyUnicode_CompareWithASCIIString(name, kinds[k].name) == 0)
            return (int)k;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "no event %R", name);
    return -1;
}

/* All events in order; appends what each gave back. */
static int tell(gm_watch *watch, PyObject *events, PyObject *answers)
{
    event e;
    for (Py_ssize_t i = 0; i < PyList_Size(events); i++) {
        int kind = event_from(PyList_GetItem(events, i), &e);
        if (kind < 0)
            return -1;
        PyObject *answer = PyLong_FromUnsignedLong(kinds[kind].happen(watch, &e, kinds[kind].how));
        int bad = !answer || PyList_Append(answers, answer) < 0;
        Py_XDECREF(answer);
        if (bad)
            return -1;
    }
    return 0;
}

PyObject *gm_py_watch(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    static const gm_place nowhere;
    gm_place site[SITES];
    gm_findings findings = {0};
    gm_watch_setup setup = {.site = site, .findings = &findings, .block = {0, 1, 1}};
    PyObject *result = NULL, *answers = PyList_New(0);
    (void)module;

    for (uint32_t i = 0; i < SITES; i++) {
        site[i] = nowhere;
        site[i].line = i + 1;
    }
    if (nargs != 4 || !PyList_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "_watch(threads, shared_bytes, grain, events)");
    } else {
        setup.block[0] = (uint32_t)PyLong_AsUnsignedLongMask(args[0]);
        setup.shared_bytes = (uint32_t)PyLong_AsUnsignedLongMask(args[1]);
        setup.grain = (uint32_t)PyLong_AsUnsignedLongMask(args[2]);
    }
    gm_watch *watch = PyErr_Occurred() || !answers ? NULL : gm_watch_new(&setup);
    if (watch) {
        gm_watch_block(watch, (uint32_t[]){0, 0, 0}, 0);
        if (tell(watch, args[3], answers) == 0)
            result = Py_BuildValue("(NO)", gm_py_findings(&findings), answers);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    gm_watch_free(watch);
    gm_findings_free(&findings);
    Py_XDECREF(answers);
    return result;
}
