#include "owner.h"
#include "dlpack_block.h"
#include "state.h"
#include "../base/memory.h"
#include "../cuda/backend.h"

struct gm_kept {
    gm_kept *next;
    gm_owner owner;
    int device;
    void *mark; /* on the stream, behind the work */
};

void gm_owner_drop(gm_owner *owner)
{
    gm_owner dropped = *owner;
    PyObject *type, *value, *traceback;

    *owner = (gm_owner){NULL, NULL, NULL, NULL};
    /* A deleter may run Python code, which must find no exception set. */
    PyErr_Fetch(&type, &value, &traceback);
    if (dropped.versioned && dropped.versioned->deleter)
        dropped.versioned->deleter(dropped.versioned);
    if (dropped.legacy && dropped.legacy->deleter)
        dropped.legacy->deleter(dropped.legacy);
    if (dropped.block)
        gm_block_release(dropped.block);
    Py_XDECREF(dropped.object);
    PyErr_Restore(type, value, traceback);
}

static void push(gm_state *state, gm_kept *kept)
{
    gm_kept *head = atomic_load(&state->kept);
    do
        kept->next = head;
    while (!atomic_compare_exchange_weak(&state->kept, &head, kept));
}

void gm_owner_drop_after(gm_state *state, gm_owner *owner, int device, void *stream)
{
    gm_failure ignored;
    void *mark = NULL;
    gm_kept *kept = gm_alloc(sizeof *kept);

    PyThreadState *saved = PyEval_SaveThread();
    gm_status status = kept ? gm_cuda_mark(device, stream, &mark, &ignored) : GM_NO_MEMORY;
    if (status != GM_OK)
        gm_cuda_wait(device, stream, &ignored);
    PyEval_RestoreThread(saved);
    if (mark) {
        *kept = (gm_kept){NULL, *owner, device, mark};
        *owner = (gm_owner){NULL, NULL, NULL, NULL};
        push(state, kept);
        return;
    }
    /* In a graph, arrays are for the caller to keep, as long as the graph is. */
    gm_free(kept);
    gm_owner_drop(owner);
}

Py_ssize_t gm_owner_poll(gm_state *state)
{
    Py_ssize_t left = 0;

    if (!atomic_load_explicit(&state->kept, memory_order_relaxed))
        return 0;
    /* A list of our own, so that deleters may call us again. */
    for (gm_kept *kept = atomic_exchange(&state->kept, NULL), *next; kept; kept = next) {
        next = kept->next;
        if (gm_cuda_happened(kept->device, kept->mark)) {
            gm_cuda_unmark(kept->device, kept->mark);
            gm_owner_drop(&kept->owner);
            gm_free(kept);
        } else {
            push(state, kept);
            left++;
        }
    }
    return left;
}

PyObject *gm_py_kept(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(gm_owner_poll(gm_state_of(module)));
}
