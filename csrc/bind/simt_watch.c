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

typedef enum occasion {
    ACCESSED,
    UNWRITTEN,
    COPIED,
    COMMITTED,
    WAITED,
    ARRIVED,
    LANES_MET,
    WARPS_MET,
    RELEASED,
    ACQUIRED,
    FENCED,
    STRONGLY,
    HANDED_OVER,
    TAKEN_OVER,
    BEGAN
} occasion;

static const struct {
    const char *name;
    occasion what;
    unsigned how;
} kinds[] = {
    {"read", ACCESSED, GM_HOW_READ},
    {"write", ACCESSED, GM_HOW_WRITE},
    {"atom", ACCESSED, GM_HOW_WRITE | GM_HOW_ATOMIC | GM_HOW_UPDATES},
    {"relaxed read", ACCESSED, GM_HOW_ATOMIC},
    {"volatile read", ACCESSED, GM_HOW_VOLATILE},
    {"volatile write", ACCESSED, GM_HOW_WRITE | GM_HOW_VOLATILE},
    {"unwritten", UNWRITTEN, 0},
    {"copy", COPIED, 0},
    {"commit", COMMITTED, 0},
    {"wait", WAITED, 0},
    {"arrived", ARRIVED, 0},
    {"warp barrier", LANES_MET, 0},
    {"barrier", WARPS_MET, 0},
    {"release", RELEASED, 0},
    {"acquire", ACQUIRED, 0},
    {"fence", FENCED, 0},
    {"strong read", STRONGLY, GM_HOW_VOLATILE},
    {"strong write", STRONGLY, GM_HOW_WRITE | GM_HOW_VOLATILE},
    {"strong atom", STRONGLY, GM_HOW_WRITE | GM_HOW_ATOMIC | GM_HOW_UPDATES},
    {"hand over", HANDED_OVER, 0},
    {"take over", TAKEN_OVER, 0},
    {"block", BEGAN, 0},
};

/* What an access gives back; else 0. */
static uint32_t happen(gm_watch *watch, occasion what, unsigned how, const event *e)
{
    const uint32_t *n = e->n;
    switch (what) {
    case ACCESSED:
        return gm_watch_shared(watch, n[0], how, n[1], e->addr, e->active, n[2]);
    case UNWRITTEN:
        gm_watch_unwritten(watch, n[0], n[1], e->addr, e->active, n[2]);
        break;
    case COPIED:
        gm_watch_copy(watch, n[0], n[1], e->addr, e->active, n[2]);
        break;
    case COMMITTED:
        gm_watch_copy_commit(watch, n[0], n[1]);
        break;
    case WAITED:
        gm_watch_copy_wait(watch, n[0], n[1], n[2], (int)n[3]);
        break;
    case ARRIVED:
        gm_watch_arrived(watch, n[0], n[1]);
        break;
    case LANES_MET:
        gm_watch_warp_barrier(watch, n[0], n[1], n[2]);
        break;
    case WARPS_MET:
        gm_watch_barrier(watch, n[0]);
        break;
    case RELEASED:
        gm_watch_release(watch, n[0], n[1]);
        break;
    case ACQUIRED:
        gm_watch_acquire(watch, n[0], n[1]);
        break;
    case FENCED:
        gm_watch_fence(watch, n[0], n[1]);
        break;
    case STRONGLY:
        gm_watch_strong(watch, n[0], n[1], how);
        break;
    case HANDED_OVER:
        gm_watch_hand_over(watch, n[0], n[1]);
        break;
    case TAKEN_OVER:
        gm_watch_take_over(watch, n[0], n[1]);
        break;
    case BEGAN:
        gm_watch_block(watch, (uint32_t[]){n[0], 0, 0}, n[0]);
        break;
    }
    return 0;
}

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
        PyObject *answer = PyLong_FromUnsignedLong(happen(watch, kinds[kind].what, kinds[kind].how, &e));
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
