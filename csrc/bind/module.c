/* gpumem._core: the module itself. */
#define GM_IMPORTS_NUMPY
#include "dlpack.h"
#include "state.h"
#include "args.h"
#include "devices.h"
#include "docs.h"
#include "inspect.h"
#include "interleave.h"
#include "lesson.h"
#include "movement.h"
#include "records.h"
#include "reduction.h"
#include "results.h"
#include "settings.h"
#include "simt.h"
#include "simt_count.h"
#include "simt_ptx.h"
#include "simt_watch.h"
#include "simulate.h"

static int execute(PyObject *module)
{
    gm_state *state = gm_state_of(module);
    if (PyArray_ImportNumPyAPI() < 0 || gm_dlpack_init(state, module) < 0 || gm_simt_init(state, module) < 0 ||
        gm_results_init(state) < 0)
        return -1;
    gm_find_fastest(state);
    return gm_settings_init(state);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    gm_state *state = gm_state_of(module);
    Py_VISIT(state->array_type);
    Py_VISIT(state->lens_type);
    Py_VISIT(state->results);
    return 0;
}

static int clear(PyObject *module)
{
    gm_state *state = gm_state_of(module);
    gm_owner_poll(state); /* what is still under way is left to the end of the process */
    Py_CLEAR(state->array_type);
    Py_CLEAR(state->lens_type);
    Py_CLEAR(state->results);
    gm_dlpack_clear(state);
    return 0;
}

#define FASTCALL(function) (PyCFunction)(void (*)(void)) function

enum { KEYWORDS = METH_FASTCALL | METH_KEYWORDS };

static PyMethodDef methods[] = {
    {"transpose", FASTCALL(gm_py_transpose), KEYWORDS, gm_doc_transpose},
    {"matrix_transpose", FASTCALL(gm_py_matrix_transpose), KEYWORDS, gm_doc_matrix_transpose},
    {"permute_dims", FASTCALL(gm_py_permute_dims), KEYWORDS, gm_doc_permute_dims},
    {"copy", FASTCALL(gm_py_copy), KEYWORDS, gm_doc_copy},
    {"sum", FASTCALL(gm_py_sum), KEYWORDS, gm_doc_sum},
    {"set_num_threads", gm_py_set_num_threads, METH_O, gm_doc_set_num_threads},
    {"get_num_threads", gm_py_get_num_threads, METH_NOARGS, gm_doc_get_num_threads},
    {"_isa", gm_py_isa, METH_NOARGS, "_isa($module, /)\n--\n\nThe name of the ISA variant in use."},
    {"_isas", gm_py_isas, METH_NOARGS, "_isas($module, /)\n--\n\nRows (name, description, runs here), best first."},
    {"_caches", gm_py_caches, METH_NOARGS, "_caches($module, /)\n--\n\nBytes of the data caches by level."},
    {"_stages", gm_py_stages, METH_NOARGS,
     "_stages($module, /)\n--\n\nRows (lesson, name, device, kernel, idea, bytes)."},
    {"_plan", FASTCALL(gm_py_plan), METH_FASTCALL,
     "_plan($module, itemsize, shape, src_strides, dst_strides, /)\n--\n\nThe fields of gm_plan, axes as rows (len, "
     "src, dst)."},
    {"_gather_fields", FASTCALL(gm_py_gather_fields), METH_FASTCALL,
     "_gather_fields($module, records, planes, offsets, /)\n--\n\nplanes[f][i] = the bytes at offsets[f] of "
     "records[i]."},
    {"_scatter_fields", FASTCALL(gm_py_scatter_fields), METH_FASTCALL,
     "_scatter_fields($module, records, planes, offsets, /)\n--\n\nThe other way; bytes between fields stay."},
    {"_interleave", gm_py_interleave, METH_O,
     "_interleave($module, planes, /)\n--\n\nThe planes of a list as one array, whose last axis counts them."},
    {"_reference_copy", FASTCALL(gm_py_reference_copy), METH_FASTCALL,
     "_reference_copy($module, out, x, how, /)\n--\n\nThe copy to measure against; how: memcpy or streaming."},
    {"_reference_read", gm_py_reference_read, METH_O,
     "_reference_read($module, x, /)\n--\n\nThe read to measure against: the sum of x's 64-bit words."},
    {"_cuda", gm_py_cuda, METH_NOARGS,
     "_cuda($module, /)\n--\n\nThe build's chips, the devices, and the reason where there are none."},
    {"_cuda_move", FASTCALL(gm_py_cuda_move), METH_FASTCALL,
     "_cuda_move($module, device, stream, itemsize, shape, src_strides, dst_strides, src, dst, /)\n--\n\nMoves between "
     "device addresses on a stream; nothing is checked."},
    {"_run_stage", FASTCALL(gm_py_run_stage), METH_FASTCALL,
     "_run_stage($module, lesson, stage, x, shape, figures, index, out, stream, /)\n--\n\nA stage on a CUDA array; "
     "figures: n, rows, columns, items, stride, offset, field of gm_lesson_call."},
    {"_lens", FASTCALL(gm_py_lens), METH_FASTCALL,
     "_lens($module, text, file, kernel, /)\n--\n\nThe kernel of a PTX text (None: its only one) as a Lens; `file` is "
     "how messages call the text."},
    {"_lens_isas", gm_py_lens_isas, METH_NOARGS,
     "_lens_isas($module, /)\n--\n\nRows (name, description, runs here) of the lens's executor, best first."},
    {"_kernel_ptx", gm_py_kernel_ptx, METH_O,
     "_kernel_ptx($module, kernel, /)\n--\n\nThe PTX of the file that has this kernel, or None."},
    {"_simulate_move", FASTCALL(gm_py_simulate_move), METH_FASTCALL,
     "_simulate_move($module, launch, lesson, stage, itemsize, shape, src_strides, dst_strides, src, dst, /)\n--\n\n"
     "Moves between host addresses by the kernels of a stage: launch(kernel, grid, block, shared, arguments, memory)."},
    {"_simulate_stage", gm_py_simulate_stage, METH_VARARGS,
     "_simulate_stage($module, launch, lesson, stage, item, dtype, figures, src, dst, index, /)\n--\n\nThe same for a "
     "stage as _run_stage has it; index: (address, itemsize)."},
    {"_kept", gm_py_kept, METH_NOARGS,
     "_kept($module, /)\n--\n\nGives back the arrays whose work on a stream has happened; how many are still kept."},
    {"_count", FASTCALL(gm_py_count), METH_FASTCALL,
     "_count($module, what, addresses, shared, active, width, /)\n--\n\nCounts of n warp instructions, four uint32 "
     "each: requests, sectors or wavefronts, ideal, lines or conflicts."},
    {"_wavefronts", gm_py_wavefronts, METH_VARARGS,
     "_wavefronts($module, rule, addresses, active, width, /)\n--\n\nThe wavefronts of one access to shared memory, "
     "and "
     "each lane's as 32 bytes."},
    {"_ptx", FASTCALL(gm_py_ptx), METH_FASTCALL,
     "_ptx($module, text, name, /)\n--\n\nWhat the reader understood of PTX: functions, instructions, variables."},
    {"_watch", FASTCALL(gm_py_watch), METH_FASTCALL,
     "_watch($module, threads, shared_bytes, grain, events, /)\n--\n\nFindings, and what each event gave back."},
    {"_fail_allocation", gm_py_fail_allocation, METH_O,
     "_fail_allocation($module, count, /)\n--\n\nFails this thread's allocation after `count` more; -1 ends it."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "gpumem._core", .m_size = sizeof(gm_state),
                                        .m_methods = methods,  .m_slots = slots,         .m_traverse = traverse,
                                        .m_clear = clear};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
