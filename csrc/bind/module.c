/* gpumem._core: the module itself. */
#define GM_IMPORTS_NUMPY
#include "state.h"
#include "docs.h"
#include "movement.h"

static int execute(PyObject *module)
{
    gm_state *state = gm_state_of(module);
    if (PyArray_ImportNumPyAPI() < 0)
        return -1;
    return gm_cpu_init(&state->cpu, NULL, 0) ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    gm_state *state = gm_state_of(module);
    Py_VISIT(state->array_type);
    return 0;
}

static int clear(PyObject *module)
{
    gm_state *state = gm_state_of(module);
    Py_CLEAR(state->array_type);
    return 0;
}

#define METHOD(name, function)                                                                                         \
    {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, gm_doc_##function}

static PyMethodDef methods[] = {
    METHOD("transpose", gm_py_transpose),
    METHOD("matrix_transpose", gm_py_matrix_transpose),
    METHOD("permute_dims", gm_py_permute_dims),
    METHOD("copy", gm_py_copy),
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        .m_name = "gpumem._core",
                                        .m_size = sizeof(gm_state),
                                        .m_methods = methods,
                                        .m_slots = slots,
                                        .m_traverse = traverse,
                                        .m_clear = clear};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
