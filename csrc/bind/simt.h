/* gpumem._core.Lens: a kernel of a PTX text, ready to be executed by the lens. gpumem.Kernel is built on it. */
#pragma once
#include "state.h"
#include "../simt/lens.h"

/* Creates the type. 0, or -1 with an exception. */
int gm_simt_init(gm_state *state, PyObject *module);

/* _lens(text, file, kernel): a new Lens. */
PyObject *gm_py_lens(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
/* _lens_isas(): rows (name, description, runs here), best first. */
PyObject *gm_py_lens_isas(PyObject *module, PyObject *unused);

/* The kernel as a dictionary: its name, parameters, sites, bytes of shared and local memory, what it asks of a launch.
 */
PyObject *gm_simt_describe(const gm_lens_kernel *kernel);

/* run(...) of a Lens: arguments to a launch, the run without the GIL, the result as a dictionary. */
PyObject *gm_simt_run(const gm_lens *lens, PyObject *args);
extern const char gm_doc_simt_run[];

/* A result as a dictionary; `text` says why the run ended early. The buffers tell where each was placed. */
PyObject *gm_simt_result(const gm_lens_result *result, const char *text, const gm_lens_launch *launch);
