#include "simt.h"
#include "raise.h"

typedef struct {
    PyObject base;
    gm_lens *lens;
} lens_object;

static gm_lens *lens_of(PyObject *self)
{
    return ((lens_object *)self)->lens;
}

PyObject *gm_py_lens(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    gm_state *state = gm_state_of(module);
    gm_failure failure = {GM_OK, ""};
    const char *file = NULL, *kernel = NULL;
    Py_ssize_t size;
    gm_lens *lens;

    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "_lens(text, file, kernel)");
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(args[0], &size);
    if (!text || !(file = PyUnicode_AsUTF8AndSize(args[1], NULL)) ||
        (args[2] != Py_None && !(kernel = PyUnicode_AsUTF8AndSize(args[2], NULL))))
        return NULL;
    /* The texts belong to strings that the caller holds. */
    PyThreadState *thread = PyEval_SaveThread();
    gm_status status = gm_lens_load(&lens, text, (size_t)size, file, kernel, &failure);
    PyEval_RestoreThread(thread);
    if (status != GM_OK) {
        gm_raise(status, failure.text);
        return NULL;
    }
    lens_object *self = PyObject_New(lens_object, state->lens_type);
    if (!self) {
        gm_lens_free(lens);
        return NULL;
    }
    self->lens = lens;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    gm_lens_free(lens_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *describe(PyObject *self, PyObject *unused)
{
    (void)unused;
    return gm_simt_describe(gm_lens_describe(lens_of(self)));
}

static PyObject *run(PyObject *self, PyObject *args)
{
    return gm_simt_run(lens_of(self), args);
}

PyObject *gm_py_lens_isas(PyObject *module, PyObject *unused)
{
    PyObject *rows = PyList_New(0);

    (void)module, (void)unused;
    for (const gm_lens_isa *const *isa = gm_lens_isas; rows && *isa; isa++) {
        PyObject *row =
            Py_BuildValue("(ssO)", (*isa)->name, (*isa)->description, (*isa)->runs_here() ? Py_True : Py_False);
        if (!row || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

static PyMethodDef methods[] = {
    {"describe", describe, METH_NOARGS, "describe($self, /)\n--\n\nThe kernel as a dictionary."},
    {"run", run, METH_VARARGS, gm_doc_simt_run},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)"A kernel of a PTX text, ready to be executed."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "gpumem._core.Lens",
    .basicsize = sizeof(lens_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int gm_simt_init(gm_state *state, PyObject *module)
{
    state->lens_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->lens_type ? 0 : -1;
}
